"""Limits on disk: kept, found again, and never trusted."""

import json
import os
import random
from pathlib import Path

import msgspec
import pytest

from pyrometer.record.limits import KERNELS_VERSION, Limits
from pyrometer.store.limits_files import KeptLimitsError, limits_path, read_limits, write_limits
from tests.limits import make_limits
from tests.record.damage import damage

LIMITS = make_limits()


def read(path: Path) -> Limits | None:
    return read_limits(path, identity=LIMITS.identity)


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "limits.json"
    write_limits(LIMITS, path)
    assert read(path) == LIMITS


def test_there_is_one_file_for_each_machine() -> None:
    environment = {"HOME": "/home/me"}
    assert limits_path("abc", environment) == Path("/home/me/.cache/pyrometer/limits-abc.json")
    assert limits_path("abc", environment | {"XDG_CACHE_HOME": "/cache"}) == Path(
        "/cache/pyrometer/limits-abc.json"
    )
    # The specification says that a relative one is to be ignored.
    assert limits_path("abc", environment | {"XDG_CACHE_HOME": "cache"}) == limits_path("abc", environment)
    assert limits_path("abc", {}) is None


def test_other_machines_have_other_identities() -> None:
    others = [
        make_limits(cpu_model="Other CPU"),
        msgspec.structs.replace(LIMITS, usable_cores=4),
        msgspec.structs.replace(LIMITS, usable_cores=None),
    ]
    assert len({LIMITS.identity, *(other.identity for other in others)}) == 4


def test_limits_of_another_machine_or_of_other_kernels_are_not_used(tmp_path: Path) -> None:
    path = tmp_path / "limits.json"
    for other in (
        make_limits(cpu_model="Other CPU"),
        msgspec.structs.replace(LIMITS, kernels_version=KERNELS_VERSION + 1),
    ):
        write_limits(other, path)
        assert read(path) is None


def test_where_nothing_is_kept_there_is_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / "limits.json") is None
    assert read_limits(None, identity="abc") is None
    (tmp_path / "file").write_text("")
    assert read(tmp_path / "file" / "limits.json") is None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "truncated"),
        (b"{}", "missing required field"),
        (b"[1]", "Expected `object`"),
        (b"\xff\xfe", "malformed"),
        (b"[" * 100_000, "recursion|malformed|truncated|Expected"),
        (b" " * (2 << 20), "larger than"),
    ],
)
def test_what_is_no_limits_is_said(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "limits.json"
    path.write_bytes(content)
    with pytest.raises(KeptLimitsError, match=f"limits.json: .*({problem})"):
        read(path)


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (("flop_rates", 0, "best_flops_per_s"), 1.0, "the best is worse than the median"),
        (("flop_rates", 0, "best_flops_per_s"), -1.0, "> 0"),
        (("flop_rates", 0, "best_flops_per_s"), 1e300, "<="),
        (("flop_rates", 0, "kind"), "guess", "'guess' is none of fma, gemm, library gemm"),
        (("flop_rates", 0, "precision"), "f8", "'f8' is none of"),
        (("bandwidths", 0, "kind"), "x" * 500, "is none of triad"),
        (("bandwidths", 0, "threads"), 7, "for 7 threads"),
        (("latencies", 0, "best_ns"), 1e9, "the best is worse than the median"),
        (("strided", 0, "median_ns_per_element"), 1e-9, "the best is worse than the median"),
        (("not_measured", 0, "reason"), "x" * 201, "length <= 200"),
        (("cpu_model",), "x" * 201, "length <= 200"),
        (("threads",), 0, ">= 1"),
        (("version",), 2, "version"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(
    tmp_path: Path, place: tuple[str | int, ...], value: object, problem: str
) -> None:
    content = json.loads(msgspec.json.encode(LIMITS))
    inside = content
    for step in place[:-1]:
        inside = inside[step]
    inside[place[-1]] = value
    path = tmp_path / "limits.json"
    path.write_text(json.dumps(content))
    with pytest.raises(KeptLimitsError, match=problem):
        read(path)


def test_a_damaged_file_is_refused_or_holds_together(tmp_path: Path) -> None:
    path = tmp_path / "limits.json"
    data = msgspec.json.encode(LIMITS)
    for seed in range(1_000):
        path.write_bytes(damage(data, random.Random(seed)))
        try:
            found = read(path)
        except KeptLimitsError:
            continue
        assert found is None or all(rate.best_flops_per_s > 0 for rate in found.flop_rates)


def test_a_pipe_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "limits.json"
    os.mkfifo(path)
    with pytest.raises(KeptLimitsError, match="not a regular file"):
        read(path)


def test_a_place_that_cannot_be_written_to_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KeptLimitsError, match=r"limits\.json: "):
        write_limits(LIMITS, tmp_path / "file" / "limits.json")
    with pytest.raises(KeptLimitsError, match="neither HOME nor XDG_CACHE_HOME"):
        write_limits(LIMITS, None)
