"""CSV of every table: figures as they are, adding up, and nothing that a spreadsheet would run."""

import csv
import io
import re
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyrometer.analysis.observed import observe
from pyrometer.record.garbage import GarbageCollections, GarbageGeneration, GarbagePause
from pyrometer.record.run import Run
from pyrometer.report.csv_cells import CsvTable, table_of, write_csv
from pyrometer.report.csv_tables import csv_tables
from tests.findings import findings_named, no_findings, training_findings
from tests.limits import make_limits
from tests.placed_runs import placed_run
from tests.record.example_runs import any_runs, make_allocations, make_counters
from tests.report.sample_runs import (
    HOSTILE_NAMES,
    allocating_run,
    counted_run,
    empty_run,
    hostile_run,
    layered_run,
    main_strand,
    node,
    simple_run,
    threaded_run,
    wide_run,
)
from tests.report.torch_samples import torch_run_named
from tests.sampled_runs import STACKS, THREADS, stack_samples, with_samples
from tests.targets import judged
from tests.torch_runs import (
    MB,
    MS,
    TORCH_RUNS,
    S,
    evaluation_run,
    generation_run,
    net_operators,
    operators_run,
    training_run,
    with_scopes,
)

Row = dict[str, str]
RUNS = {
    **TORCH_RUNS,
    "simple": simple_run,
    "threaded": threaded_run,
    "layered": layered_run,
    "empty": empty_run,
    "hostile": hostile_run,
    "wide": wide_run,
    "counted": counted_run,
    "allocating": allocating_run,
    "placed": placed_run,
    "sampled": lambda: with_samples(training_run(), stack_samples(*STACKS, threads=THREADS)),
}


def tables_of(run: Run) -> dict[str, list[Row]]:
    """Each file as a reader of CSV sees it, all rows as long as the header."""
    tables = {}
    for name, text in csv_tables(observe(run), no_findings()):
        header, *rows = csv.reader(io.StringIO(text))
        assert rows, f"{name} has no rows"
        assert {len(row) for row in rows} == {len(header)}
        assert name.endswith(".csv")
        tables[name.removesuffix(".csv")] = [dict(zip(header, row, strict=True)) for row in rows]
    return tables


def full_run() -> Run:
    """A run that has something of everything."""
    operators = net_operators()
    run = with_scopes(operators_run(operators))
    generation = generation_run(cached=True).torch
    assert run.torch is not None
    assert generation is not None
    torch = msgspec.structs.replace(run.torch, generations=generation.generations)
    samples = stack_samples(*STACKS, threads=THREADS)
    return msgspec.structs.replace(
        run,
        torch=torch,
        samples=samples,
        limits=make_limits(),
        counters=make_counters(),
        allocations=make_allocations(),
        losses=hostile_run().losses,
        garbage=GarbageCollections(
            generations=(
                GarbageGeneration(collections=1, total_ns=MS, max_ns=MS),
                *[GarbageGeneration()] * 2,
            ),
            longest=(GarbagePause(5 * MS, MS, 0),),
            interval_pause_ns=(MS,),
        ),
    )


def total(rows: list[Row], column: str) -> int:
    return sum(int(row[column]) for row in rows)


def test_there_is_a_file_for_each_table() -> None:
    findings = training_findings()
    targets = [judged(training_run(), "throughput", "+30%")]
    files = [name for name, _ in csv_tables(observe(full_run()), findings, targets)]
    assert sorted(files) == sorted(
        f"{name}.csv"
        for name in (
            "steps", "step_groups", "phases", "modules", "module_tree", "scopes", "scope_tree", "threads",
            "functions", "lines", "hot_paths", "operators", "operator_origins", "allocations_by_operation",
            "allocations_by_line", "memory_over_time", "loaders", "generations", "generation_positions",
            "garbage", "garbage_pauses", "roofline", "counters", "hotspots", "findings", "targets", "losses",
            "facts",
        )
    )  # fmt: skip


def test_a_table_without_rows_is_not_written() -> None:
    assert list(tables_of(empty_run())) == ["facts"]


@pytest.mark.parametrize("make", RUNS.values(), ids=list(RUNS))
def test_every_run_makes_tables_that_can_be_read(make: object) -> None:
    assert callable(make)
    assert "facts" in tables_of(make())


@given(any_runs())
def test_any_run_makes_tables_that_can_be_read(run: Run) -> None:
    assert "facts" in tables_of(run)


# Figures.


def test_a_step_is_a_row_with_its_phases_in_nanoseconds() -> None:
    first, *_, last = tables_of(training_run())["steps"]
    assert first["step"] == "0"
    assert first["is_warmup"] == "true"
    assert first["duration_ns"] == str(40 * MS)
    assert last["is_warmup"] == "false"
    assert last["phase_data_ns"] == str(MS)
    assert last["samples"] == "32"
    assert last["worker_ns"] == ""


def test_the_phases_of_each_step_add_up_to_it() -> None:
    for run in (training_run(), evaluation_run()):
        for row in tables_of(run)["steps"]:
            phases = [value for column, value in row.items() if column.startswith("phase_") and value]
            assert sum(map(int, phases)) == int(row["duration_ns"])


@pytest.mark.parametrize("name", [name for name in TORCH_RUNS if name != "no-steps"])
def test_phases_add_up_to_their_group_and_its_steady_part(name: str) -> None:
    tables = tables_of(TORCH_RUNS[name]())
    groups = {row["group"]: row for row in tables["step_groups"]}
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in tables["phases"]:
        totals[row["group"]][0] += int(row["total_ns"])
        totals[row["group"]][1] += int(row["steady_total_ns"])
    assert totals.keys() == groups.keys()
    for group, row in groups.items():
        assert totals[group] == [int(row["total_ns"]), int(row["steady_total_ns"])]
        assert int(row["warmup_total_ns"]) + int(row["steady_total_ns"]) == int(row["total_ns"])


@pytest.mark.parametrize("table", ["functions", "lines", "threads"])
def test_functions_lines_and_threads_add_up_to_all_that_was_sampled(table: str) -> None:
    run = with_samples(simple_run(), stack_samples(*STACKS, threads=THREADS))
    samples = observe(run).samples
    assert samples is not None
    whole = samples.overall.parts
    rows = [row for row in tables_of(run)[table] if row.get("source") != "scopes"]
    assert total(rows, "cpu_ns") == whole.cpu_ns
    assert total(rows, "wall_ns") == whole.wall_ns
    assert total(rows, "python_ns") + total(rows, "native_ns") == whole.cpu_ns


def test_the_own_times_of_the_tree_of_scopes_add_up_to_its_top() -> None:
    rows = tables_of(threaded_run())["scope_tree"]
    tops = [row for row in rows if not row["parent"] or row["starts_strand"] == "true"]
    assert total(rows, "self_ns") == total(tops, "total_ns")
    for row in rows:
        if row["parent"]:
            assert int(row["depth"]) == int(rows[int(row["parent"])]["depth"]) + 1


def test_origins_add_up_to_their_operator() -> None:
    tables = tables_of(operators_run(net_operators()))
    spent: dict[str, float] = defaultdict(float)
    for row in tables["operator_origins"]:
        spent[row["operator"]] += float(row["self_ns_per_step"])
    for row in tables["operators"]:
        assert spent[row["name"]] == pytest.approx(float(row["self_ns_per_step"]))


def test_memory_is_in_bytes_over_nanoseconds() -> None:
    rows = tables_of(training_run())["memory_over_time"]
    assert rows[0] == {"at_ns": "0", "resident_bytes": str(400 * MB)}
    assert rows[-1] == {"at_ns": str(S), "resident_bytes": str(509 * MB)}


def test_a_stack_is_one_cell_from_the_outermost_frame() -> None:
    run = with_samples(simple_run(), stack_samples(*STACKS, threads=THREADS))
    stack = tables_of(run)["hot_paths"][0]["stack"].split("; ")
    assert stack[0].startswith("<module>")
    assert stack[-1].startswith("Linear.forward")


def test_a_finding_is_a_row_with_its_bound_and_evidence() -> None:
    [text] = [
        text
        for name, text in csv_tables(observe(training_run()), training_findings())
        if name == "findings.csv"
    ]
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["rank"] for row in rows] == ["1", "2", "3", "4", "5"]
    assert rows[0]["gain_share"] == "0.35"
    assert float(rows[0]["speedup_at_most"]) == pytest.approx(1 / 0.65)
    assert rows[0]["evidence"] == "212 operators a step, 16.5 µs each on average"
    assert rows[0]["module"] == "model.fc1"
    # Not bounded by anything: unknown, and not 0.
    assert (rows[4]["gain_share"], rows[4]["speedup_at_most"], rows[4]["gain_of"]) == ("", "", "")


def test_what_is_not_known_is_an_empty_cell() -> None:
    [row] = [row for row in tables_of(simple_run())["facts"] if row["fact"] == "torch_version"]
    assert row["value"] == ""
    [loader] = tables_of(training_run())["loaders"]
    assert (loader["workers"], loader["worker_busy_share"]) == ("0", "")


# Names.

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0")


def is_formula(cell: str) -> bool:
    """What a spreadsheet would calculate: not a plain number, and it begins as a formula does."""
    if not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


def run_named(name: str) -> Run:
    run = torch_run_named(name)
    return msgspec.structs.replace(
        run,
        strands=(main_strand(node(name, None, [MS])),),
        counters=make_counters(name),
        allocations=make_allocations(name),
    )


def check_harmless(name: str) -> None:
    files = dict(csv_tables(observe(run_named(name)), findings_named(name)))
    assert len(files) > 15
    for text in files.values():
        text.encode("utf-8")
        assert all(line.isprintable() for line in text.split("\n"))
        header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
        assert {len(row) for row in rows} == {len(header)}
        # A row is a line: what reads the file line by line finds every row.
        assert len(rows) + 2 == len(text.split("\n"))
        assert [cell for row in (header, *rows) for cell in row if is_formula(cell)] == []


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, *FORMULAS, 'a"b', "a,b", "\ud800", "x" * 1_000_000])
def test_a_name_is_never_more_than_text(name: str) -> None:
    check_harmless(name)


@given(st.text(max_size=30))
@example("-\x00")
@example("\n=1")
def test_whatever_the_name_it_is_never_more_than_text(name: str) -> None:
    check_harmless(name)


@pytest.mark.parametrize("name", FORMULAS)
def test_what_begins_like_a_formula_gets_an_apostrophe(name: str) -> None:
    table = table_of("t", [{"name": name, "figure": -5, "several": (name, name)}])
    assert table is not None
    [_, row] = csv.reader(io.StringIO(write_csv(table)))
    assert row[0].startswith("'")
    assert row[1] == "-5"
    assert row[2].startswith("'") or not is_formula(row[2])


def test_several_texts_can_be_told_apart_and_are_not_without_end() -> None:
    text = write_csv(CsvTable(name="t", header=("x",), rows=[[("a;b", "c")], [("f",) * 100_000]]))
    _, two, many, _ = text.split("\n")
    assert two == "a:b; c"
    assert len(many) < 10_000


def test_the_docs_name_every_file_and_every_column() -> None:
    page = (Path(__file__).parents[2] / "docs" / "exports.md").read_text(encoding="utf-8")
    targets = [judged(training_run(), "throughput", "+30%")]
    missing = []
    for name, text in csv_tables(observe(full_run()), training_findings(), targets):
        [header] = csv.reader([text.partition("\n")[0]])
        missing += [name] if f"`{name}`" not in page else []
        for column in header:
            plain = re.sub(r"^(forward|without_gradients|timed_backward|recomputed)_(?=\w)", "", column)
            is_phase = name == "steps.csv" and column.startswith("phase_")
            if not is_phase and f"`{column}`" not in page and f"`{plain}`" not in page:
                missing.append(f"{name}: {column}")
    assert missing == []
