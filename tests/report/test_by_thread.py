"""Each thread by itself, with the tree of its own scopes."""

import json

import pytest

from pyrometer.analysis.observed import observe
from pyrometer.record.run import Run
from pyrometer.record.values import Strand, StrandParent
from pyrometer.report import render_json, render_markdown, render_terminal
from pyrometer.report.document import build_document
from pyrometer.report.tree_rows import RowKind, TreeRow
from tests.report.sample_runs import MS, S, layered_run, main_strand, node, run_of, threaded_run


def rows_of(run: Run, *, top: int = 20) -> tuple[TreeRow, ...]:
    return build_document(observe(run), top=top, by_thread=True).by_thread


def test_threads_stand_by_total_time_with_who_started_them_and_how_many_they_are() -> None:
    assert [(row.name, row.total_ns) for row in rows_of(layered_run()) if row.kind is RowKind.THREAD] == [
        ("loader and 2 more, started in step", 540 * MS),
        ("MainThread", 480 * MS),
        ("pool_1, started in forward", 410 * MS),
        ("pool_0, started in forward", 400 * MS),
    ]


@pytest.mark.parametrize("run", [threaded_run(), layered_run()], ids=["threaded", "layered"])
def test_the_rows_just_below_a_thread_add_up_to_its_total(run: Run) -> None:
    totals_ns: list[list[int]] = []
    for row in rows_of(run):
        if row.kind is RowKind.THREAD:
            totals_ns.append([row.total_ns])
        elif row.depth == 1:
            totals_ns[-1].append(row.total_ns)
    assert len(totals_ns) == len(run.strands)
    assert all(total_ns == sum(below_ns) for total_ns, *below_ns in totals_ns)


def test_the_share_of_a_thread_is_of_its_own_time_not_of_what_it_shares_with_others() -> None:
    # Two workers were in train_step for 900 ms of wall time together, each for 800 of the 1,600 ms.
    shares = [row.share for row in rows_of(threaded_run()) if row.name == "train_step"]
    assert shares == [0.5, 0.5]
    assert "∥" not in "".join(row.name for row in rows_of(threaded_run()))


def test_threads_beyond_the_top_are_counted_with_their_time() -> None:
    rows = rows_of(threaded_run(), top=2)
    assert [row.name for row in rows if row.depth == 0] == [
        "MainThread",
        "worker-0, started in Parallel_Training",
        "… 2 more threads",
    ]
    assert (rows[-1].total_ns, rows[-1].share) == (800 * MS + 10 * MS, None)
    assert [row.name for row in rows_of(threaded_run(), top=3)][-1] == "… 1 more thread"


def test_threads_are_shown_only_for_the_asking_and_first() -> None:
    for render in (render_terminal, render_markdown):
        assert "started in" not in render(threaded_run())
        text = render(threaded_run(), by_thread=True)
        assert text.index("worker-1, started in Parallel_Training") < text.index("Scopes")


def test_folded_threads_are_explained_where_there_are_any() -> None:
    for render in (render_terminal, render_markdown):
        assert "have their figures summed" in render(layered_run(), by_thread=True)
        assert "have their figures summed" not in render(threaded_run(), by_thread=True)


def test_a_thread_that_was_in_no_scope_is_not_listed() -> None:
    idle = Strand(thread_id=2, thread_name="idle")
    run = run_of(idle, main_strand(node("a", None, [S])), profiled_ns=S)
    assert [row.name for row in rows_of(run)] == ["MainThread", "a"]
    assert [thread["thread_name"] for thread in json.loads(render_json(run))["threads"]] == ["MainThread"]


def test_a_thread_without_a_name_can_be_seen() -> None:
    worker = Strand(
        thread_id=2,
        thread_name="",
        parent=StrandParent(strand=0, node=0),
        nodes=(node("work", None, [S], wall_ns=S),),
    )
    run = run_of(main_strand(node(" ", None, [S])), worker, profiled_ns=S)
    assert "\n'', started in ' ' " in render_terminal(run, by_thread=True)


def test_the_json_report_has_every_thread_and_points_to_where_it_was_started() -> None:
    report = json.loads(render_json(layered_run(), top=1))
    main, *started = sorted(report["threads"], key=lambda thread: thread["started_in"] is not None)
    assert (main["thread_name"], main["started_in"]) == ("MainThread", None)
    assert [(thread["thread_name"], report["tree"][thread["started_in"]]["name"]) for thread in started] == [
        ("loader", "step"),
        ("pool_1", "forward"),
        ("pool_0", "forward"),
    ]
    assert [thread["threads"] for thread in report["threads"]] == [3, 1, 1, 1]
    for thread in report["threads"]:
        tops_ns = [row["total_ns"] for row in thread["tree"] if row["parent"] is None]
        assert thread["total_ns"] == sum(tops_ns)
