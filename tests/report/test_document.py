import json
import re

import pytest

from pyrometer.analysis.observed import observe
from pyrometer.record.run import GitState, Machine, Outcome, Run
from pyrometer.record.values import Strand
from pyrometer.report import render_json, render_markdown, render_terminal
from pyrometer.report.document import build_document
from pyrometer.report.tree_rows import DEEPEST, RowKind, TreeRow
from tests.report.sample_runs import (
    MS,
    S,
    empty_run,
    hostile_run,
    layered_run,
    main_strand,
    node,
    run_of,
    simple_run,
    threaded_run,
    wide_run,
)

every_run = pytest.mark.parametrize(
    "run", [simple_run(), threaded_run(), layered_run(), hostile_run(), wide_run()]
)


def rows_below(rows: tuple[TreeRow, ...], index: int) -> list[TreeRow]:
    """The rows one level below a row, up to where its part of the tree ends."""
    below = []
    for row in rows[index + 1 :]:
        if row.depth <= rows[index].depth:
            break
        if row.depth == rows[index].depth + 1:
            below.append(row)
    return below


@every_run
def test_self_and_the_rows_below_add_up_to_the_total(run: Run) -> None:
    rows = build_document(observe(run), top=20).tree
    for index, row in enumerate(rows):
        if row.kind is RowKind.SCOPE:
            inside = [below for below in rows_below(rows, index) if not below.starts_strand]
            assert row.self_ns is not None
            assert row.self_ns + sum(below.total_ns for below in inside) == row.total_ns


@every_run
def test_the_top_of_the_tree_adds_up_to_the_whole_run(run: Run) -> None:
    top = [
        row for row in build_document(observe(run), top=20).tree if row.depth == 0 and not row.starts_strand
    ]
    assert sum(row.total_ns for row in top) == run.profiled_ns
    assert sum(row.share or 0 for row in top) == pytest.approx(1)


@every_run
def test_the_self_times_of_all_names_are_all_the_time_in_scopes(run: Run) -> None:
    document = build_document(observe(run), top=1_000)
    roots = sum(
        strand_node.total_ns
        for strand in run.strands
        for strand_node in strand.nodes
        if strand_node.parent is None
    )
    assert sum(scope.self_ns for scope in document.scopes) == roots


@every_run
def test_the_columns_of_a_row_agree_with_one_another(run: Run) -> None:
    for scope in build_document(observe(run), top=1_000).scopes:
        figures = (scope.min_ns, scope.p50_ns, scope.p95_ns, scope.max_ns)
        known = [figure for figure in figures if figure is not None]
        assert known == sorted(known)
        if scope.average_ns is not None and known:
            # The longest run's average is beyond what a float holds exactly.
            assert known[0] * (1 - 1e-9) <= scope.average_ns <= known[-1] * (1 + 1e-9)
            assert scope.average_ns * scope.calls == pytest.approx(scope.total_ns, rel=1e-9)


def test_the_json_tree_adds_up() -> None:
    rows = json.loads(render_json(threaded_run()))["tree"]
    for index, row in enumerate(rows):
        inside = [below for below in rows if below["parent"] == index and not below["starts_strand"]]
        assert row["self_ns"] + sum(below["total_ns"] for below in inside) == row["total_ns"]
        assert row["parent"] is None or rows[row["parent"]]["depth"] == row["depth"] - 1


def test_siblings_stand_by_total_time() -> None:
    names = [row.name for row in build_document(observe(simple_run()), top=20).tree if row.depth == 1]
    assert names == ["Forward_Pass", "Backward_Pass", "load_batch", "Loss_Computation", "… 3 more"]


def test_scopes_below_a_thousandth_of_the_run_are_folded_with_their_time() -> None:
    (folded,) = [
        row for row in build_document(observe(simple_run()), top=20).tree if row.kind is RowKind.FOLDED
    ]
    assert folded.total_ns == 700_000 + 3 * 200_000 + 900 * 450


def test_one_small_leaf_is_shown_rather_than_folded() -> None:
    run = run_of(main_strand(node("a", None, [S]), node("tiny", 0, [1])), profiled_ns=S)
    assert [row.name for row in build_document(observe(run), top=20).tree] == [
        "a",
        "tiny",
        "(outside any scope)",
    ]


def test_the_tree_ends_at_a_depth_and_says_how_much_is_below() -> None:
    rows = build_document(observe(wide_run()), top=20).tree
    (below,) = [row for row in rows if row.depth == DEEPEST]
    # 40 nested scopes and "element" inside the last of them.
    assert below.name == f"… {41 - DEEPEST} more"


def test_the_tree_keeps_the_largest_scopes_when_there_are_too_many() -> None:
    nodes = [node(f"scope_{index}", None, [(index + 10) * MS]) for index in range(30)]
    rows = build_document(observe(run_of(main_strand(*nodes), profiled_ns=S)), top=5).tree
    assert [row.name for row in rows[:10]] == [f"scope_{index}" for index in range(29, 19, -1)]
    assert rows[10].name == "… 20 more"


def test_a_tree_a_thousand_levels_deep_is_reported() -> None:
    nodes = [node(f"level_{depth}", depth - 1 if depth else None, [S]) for depth in range(1_000)]
    run = run_of(main_strand(*nodes), profiled_ns=S)
    assert "… 988 more" in render_terminal(run)
    assert "… 988 more" in render_markdown(run)
    assert len(json.loads(render_json(run))["tree"]) == 1_000


def test_the_table_shows_the_top_scopes_and_how_many_there_are_besides() -> None:
    document = build_document(observe(simple_run()), top=3)
    assert [scope.name for scope in document.scopes] == ["train_epoch", "Forward_Pass", "Backward_Pass"]
    assert document.scopes_not_shown == 6 + 1
    assert "7 more not shown" in render_terminal(simple_run(), top=3)
    assert "7 more not shown" in render_markdown(simple_run(), top=3)
    assert json.loads(render_json(simple_run(), top=3))["scopes_not_shown"] == 7


def test_the_headline_names_the_scope_with_the_most_time_of_its_own() -> None:
    headline = build_document(observe(simple_run()), top=20).headline
    assert headline.hottest is not None
    assert headline.hottest.name == "Backward_Pass"
    assert headline.hottest_share == pytest.approx(0.3)


def test_a_parallel_scope_has_no_share_of_self_time_in_the_headline() -> None:
    workers = [Strand(thread_id=2, thread_name="w", nodes=(node("work", None, [5 * S]),))]
    run = run_of(main_strand(node("main", None, [S])), *workers, profiled_ns=6 * S)
    assert "most self: work ∥ 5.00 s" in render_terminal(run)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome(status="finished"), "train.py ended ·"),
        (Outcome(status="running"), "train.py still running ·"),
        (Outcome(status="exception", detail="KeyError"), "train.py ended by KeyError ·"),
        (Outcome(status="signal", detail="SIGINT"), "train.py ended by SIGINT ·"),
        (Outcome(status="signal"), "train.py ended by an unknown signal ·"),
        (Outcome(status="paused", detail="lid closed"), "train.py paused (lid closed) ·"),
    ],
)
def test_the_headline_says_how_the_program_ended(outcome: Outcome, words: str) -> None:
    assert render_terminal(run_of(profiled_ns=S, outcome=outcome)).startswith(words)


def test_how_to_read_it_takes_exactly_three_lines() -> None:
    section = re.search(r"How to read it\n(.*?)\n\n", render_terminal(simple_run()), re.DOTALL)
    assert section is not None
    assert [line[:2] for line in section.group(1).splitlines()] == ["1.", "2.", "3."]


def test_what_does_not_occur_is_not_mentioned() -> None:
    for text in (render_terminal(simple_run()), render_markdown(simple_run())):
        for word in ("∥", "thread time", "uspended", "pen calls", "is unknown", "not shown", "≤"):
            assert word not in text


def test_what_occurs_is_explained() -> None:
    for text in (render_terminal(threaded_run()), render_markdown(threaded_run())):
        for word in ("∥ on threads: total and self are summed", "suspended", "open calls", "– is unknown"):
            assert word in text


def test_shares_of_thread_time_are_called_that() -> None:
    worker = Strand(thread_id=2, thread_name="w", nodes=(node("work", None, [S // 2]),))
    run = run_of(main_strand(node("main", None, [S])), worker, profiled_ns=S)
    assert "or of thread time where that was not measured." in " ".join(render_terminal(run).split())
    assert "thread time" not in render_terminal(threaded_run())


def test_a_wall_time_that_may_be_less_is_called_at_most() -> None:
    # Attention ran for 300 ms in each layer: for 600 of the 500 ms profiled, if never at once.
    screen, ascii_screen = render_terminal(layered_run()), render_terminal(layered_run(), ascii_only=True)
    markdown = render_markdown(layered_run())
    assert re.search(r"^Attention ∥ .* ≤100\.0\n", screen, re.MULTILINE)
    assert re.search(r"^Attention ∥ +≤500ms\n", screen, re.MULTILINE)
    assert re.search(r"^Attention \|\| .* <=100\.0\n", ascii_screen, re.MULTILINE)
    assert re.search(r"^\| Attention ∥ \| .* \| ≤ 100\.0 % \|\n", markdown, re.MULTILINE)
    assert "| Attention ∥ | ≤ 500 ms |\n" in markdown
    for text, mark in ((screen, "≤"), (ascii_screen, "<="), (markdown, "≤")):
        assert text.count(f"{mark} is at most: times at several places") == 1


def test_at_most_is_explained_when_only_the_figures_shown_apart_have_it() -> None:
    workers = [
        Strand(
            thread_id=2 + index,
            thread_name="w",
            nodes=(node(f"Layer_{index}", None, [9], wall_ns=9), node("Attention", 0, [3], wall_ns=3)),
        )
        for index in range(2)
    ]
    main = main_strand(node("a", None, [10]), node("b", 0, [10]), node("c", 1, [10]))
    text = render_terminal(run_of(main, *workers, profiled_ns=20), top=3)
    table, apart = text[: text.index("Tree,")], text[text.index("Shown apart") :]
    assert re.search(r"^Attention ∥ +≤6ns$", apart, re.MULTILINE)
    assert [line for line in table.splitlines() if "≤" in line] == [
        "≤ is at most: times at several places, on threads, that may have overlapped."
    ]


def test_recursion_is_explained_where_it_occurs() -> None:
    nested = main_strand(node("f", None, [30 * MS]), node("f", 0, [10 * MS]))
    note = "a scope's total is of outermost calls; calls, avg to max are of all."
    assert [
        mark for mark in build_document(observe(run_of(nested, profiled_ns=S)), top=20).marks if note in mark
    ]
    flat = main_strand(node("f", None, [30 * MS]), node("g", 0, [10 * MS]))
    assert not build_document(observe(run_of(flat, profiled_ns=S)), top=20).marks


def test_a_run_without_scopes_says_how_to_mark_them() -> None:
    for text in (render_terminal(empty_run()), render_markdown(empty_run())):
        assert 'with pyrometer.scope("load_batch"):' in text
        assert "@pyrometer.profiled" in text


def test_what_is_unknown_is_called_unknown() -> None:
    run = run_of(
        profiled_ns=S,
        startup_ns=None,
        machine=Machine(system="Linux", architecture="x86_64", logical_cores=8),
    )
    facts = dict(build_document(observe(run), top=20).facts)
    assert facts["memory"] == "unknown"
    assert facts["processor"] == "model unknown, cores: unknown physical, 8 logical, unknown usable"
    assert facts["source"].startswith("unknown")
    assert "first line: unknown." in render_terminal(run)


def test_shares_of_no_time_at_all_are_unknown() -> None:
    run = run_of(main_strand(node("a", None, [0])), profiled_ns=0)
    report = json.loads(render_json(run))
    assert [report["scopes"][0]["share"], report["tree"][0]["share"]] == [None, None]
    assert report["own_cost"]["share"] is None
    assert re.search(r"^a +1 .* –$", render_terminal(run), re.MULTILINE)


def test_the_source_is_named_with_its_commit_and_state() -> None:
    git = GitState(commit="abcdef0123456789", branch=None, dirty=False)
    facts = dict(build_document(observe(run_of(profiled_ns=S, git=git)), top=20).facts)
    assert facts["source"] == "commit abcdef012345, clean"


def test_the_cost_of_the_profiler_is_worked_out_before_the_readers_eyes() -> None:
    run = run_of(main_strand(node("a", None, [1_000] * 2_000)), profiled_ns=2 * MS)
    # 2,000 scopes of 61.5 ns are 123 µs, and that of 2 ms is 6.15 %.
    assert "2,000 scopes entered × 61.5 ns each = 123 µs, 6.2 % of the run." in render_terminal(run)


def test_the_python_recorder_is_named_with_what_to_do_about_it() -> None:
    (line,) = [line for line in build_document(observe(threaded_run()), top=20).cost if "recorder" in line]
    assert "C core is not available" in line
    assert "Install a C compiler" in line


def test_losses_are_sentences_or_nothing_was_lost() -> None:
    assert build_document(observe(simple_run()), top=20).losses == ("Nothing was lost.",)
    assert build_document(observe(threaded_run()), top=20).losses == (
        "scopes: more than 20,000 places in the call tree (12,345 times).",
        "processes: child processes used 1.50 s of CPU time, not seen.",
    )
