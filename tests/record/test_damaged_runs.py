import gzip
import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.analysis.results import build_results
from pyrometer.errors import RunFileError
from pyrometer.record.format import decode_run, encode_run
from tests.record.damage import damage
from tests.record.example_runs import (
    make_allocations,
    make_counters,
    make_garbage,
    make_memory,
    make_node,
    make_run,
    make_strand,
    make_torch_run,
)
from tests.record.example_samples import make_samples

STORED_RUNS = sorted((Path(__file__).parents[1] / "runs").glob("*/*.json*"))


def read_plainly(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def assert_gives_a_run_or_one_clear_line(data: bytes) -> bool:
    """True if the bytes were a run after all."""
    try:
        run = decode_run(data, path="train.json")
    except RunFileError as error:
        line = str(error)
        assert line.startswith("train.json: ")
        assert line.isprintable()
        assert len(line) < 250
        return False
    build_results(run)
    return True


def damage_many(*, seeds: range) -> tuple[int, int]:
    """How many damaged files were still runs, and how many were refused."""
    originals = [read_plainly(path) for path in STORED_RUNS]
    originals.append(
        encode_run(
            make_run(
                memory=make_memory(),
                torch=make_torch_run(),
                counters=make_counters(),
                allocations=make_allocations(),
                garbage=make_garbage(),
            )
        )
    )
    strand = make_strand(make_node("step", 900))
    originals.append(encode_run(make_run(strand, torch=make_torch_run(), samples=make_samples())))
    still_runs = 0
    for seed in seeds:
        chance = random.Random(seed)
        still_runs += assert_gives_a_run_or_one_clear_line(damage(originals[seed % len(originals)], chance))
    return still_runs, len(seeds) - still_runs


def test_a_damaged_run_is_read_or_refused_in_one_line() -> None:
    still_runs, refused = damage_many(seeds=range(2_000))
    assert still_runs > 100
    assert refused > 1_000


@pytest.mark.slow
def test_a_hundred_thousand_damaged_runs_are_read_or_refused_in_one_line() -> None:
    still_runs, refused = damage_many(seeds=range(2_000, 104_000))
    assert still_runs > 5_000
    assert refused > 50_000


@given(st.binary())
def test_any_bytes_are_refused_in_one_line(data: bytes) -> None:
    assert not assert_gives_a_run_or_one_clear_line(data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
FIELDS = (
    "format",
    "version",
    "strands",
    "nodes",
    "buckets",
    "program",
    "name",
    "parent",
    "calls",
    "losses",
    "cost",
    "memory",
    "torch",
    "groups",
    "phases",
    "samples",
    "observations",
    "functions",
)


@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(), json_values))
def test_any_json_is_refused_in_one_line(document: dict[str, object]) -> None:
    for header in ({}, {"format": "pyrometer-run", "version": 1}):
        assert not assert_gives_a_run_or_one_clear_line(json.dumps({**document, **header}).encode())
