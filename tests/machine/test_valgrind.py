"""Which caches valgrind is to model, and how it is called."""

from pathlib import Path

import pytest

from pyrometer.errors import UsageError
from pyrometer.machine.valgrind import caches_to_model, callgrind_command, find_valgrind
from pyrometer.record.counters import SimulatedCache


def write_cache(folder: Path, level: int, kind: str, shape: tuple[str, int, int]) -> None:
    size, ways, line = shape
    place = folder / f"index{level}{kind}"
    place.mkdir()
    for name, value in {
        "level": level,
        "type": kind,
        "size": size,
        "ways_of_associativity": ways,
        "coherency_line_size": line,
    }.items():
        (place / name).write_text(f"{value}\n")


def shapes(folder: Path) -> dict[str, tuple[int, int, int, str]]:
    return {
        cache.name: (cache.size_bytes, cache.ways, cache.line_bytes, cache.origin)
        for cache in caches_to_model(folder)
    }


def test_the_caches_are_those_of_the_machine_and_the_highest_level_is_the_last(tmp_path: Path) -> None:
    write_cache(tmp_path, 1, "Data", ("48K", 12, 64))
    write_cache(tmp_path, 1, "Instruction", ("32K", 8, 64))
    write_cache(tmp_path, 2, "Unified", ("2048K", 16, 64))
    write_cache(tmp_path, 3, "Unified", ("32768K", 16, 64))
    assert shapes(tmp_path) == {
        "I1": (32 << 10, 8, 64, "machine"),
        "D1": (48 << 10, 12, 64, "machine"),
        "LL": (32 << 20, 16, 64, "machine"),
    }


def test_a_number_of_sets_that_is_no_power_of_two_is_made_one_at_the_same_size(tmp_path: Path) -> None:
    # 36 MiB in 12 ways of 64 bytes: 49,152 sets; 32,768 sets are 18 ways.
    write_cache(tmp_path, 3, "Unified", ("36864K", 12, 64))
    assert shapes(tmp_path)["LL"] == (36 << 20, 18, 64, "rounded")


def test_a_machine_that_tells_nothing_gets_caches_that_are_called_assumed(tmp_path: Path) -> None:
    assert {shape[-1] for shape in shapes(tmp_path).values()} == {"assumed"}


@pytest.mark.parametrize(
    ("size", "ways", "line"), [("", 8, 64), ("0K", 8, 64), ("32K", 0, 64), ("32K", 8, 0)]
)
def test_nonsense_is_never_passed_on(tmp_path: Path, size: str, ways: int, line: int) -> None:
    write_cache(tmp_path, 1, "Data", (size, ways, line))
    total, used_ways, used_line, _ = shapes(tmp_path)["D1"]
    sets, left = divmod(total, used_ways * used_line)
    assert (left, sets & (sets - 1)) == (0, 0)
    assert sets > 0


def test_valgrind_is_given_the_caches_and_nothing_is_left_to_its_guesses(tmp_path: Path) -> None:
    cache = SimulatedCache(name="D1", size_bytes=49_152, ways=12, line_bytes=64, origin="machine")
    command = callgrind_command(
        "/usr/bin/valgrind",
        caches=[cache],
        counts_file=tmp_path / "100%.out",
        log_file=tmp_path / "a.log",
        whole_program=False,
    )
    assert command[:2] == ["/usr/bin/valgrind", "--tool=callgrind"]
    assert {"--cache-sim=yes", "--D1=49152,12,64", "--collect-atstart=no"} <= set(command)
    assert f"--callgrind-out-file={tmp_path}/100%%.out.%p" in command


def test_without_valgrind_the_error_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="apt-get install valgrind"):
        find_valgrind()
