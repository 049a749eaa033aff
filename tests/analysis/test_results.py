import pytest
from hypothesis import given

from pyrometer.analysis.call_tree import build_call_tree, strand_tree
from pyrometer.analysis.results import build_results
from pyrometer.analysis.scope_table import summarize_by_name
from pyrometer.record.run import Loss, Run
from tests.record.example_runs import any_runs, make_node, make_run, make_strand


@given(any_runs())
def test_results_hold_the_table_the_tree_and_each_thread(run: Run) -> None:
    results = build_results(run)
    assert results.scopes == summarize_by_name(run)
    assert results.tree == build_call_tree(run)
    assert [thread.tree for thread in results.threads] == [
        strand_tree(run, index) for index in range(len(run.strands))
    ]


def test_a_scope_is_found_by_its_name() -> None:
    results = build_results(make_run(make_strand(make_node("step", 250))))
    assert results["step"].total_ns == 250
    assert "step" in results
    assert "stop" not in results


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    results = build_results(make_run(make_strand(make_node("step", 250), make_node("load", 100))))
    with pytest.raises(KeyError, match=r"no scope named 'stop' was recorded \(recorded: 'step', 'load'\)"):
        results["stop"]


def test_of_very_many_names_the_error_lists_a_few() -> None:
    results = build_results(make_run(make_strand(*(make_node(f"step {index}", 1) for index in range(100)))))
    with pytest.raises(KeyError, match="and 80 more"):
        results["stop"]


def test_a_thread_knows_the_path_of_the_scope_that_started_it() -> None:
    results = build_results(
        make_run(
            make_strand(make_node("epoch", 900), make_node("pool", 800, parent=0)),
            make_strand(make_node("step", 700, wall_ns=700), parent=(0, 1), thread_id=2, threads=3),
            make_strand(make_node("read", 600, wall_ns=600), parent=(1, 0), thread_id=3),
        )
    )
    assert [(thread.thread_name, thread.threads, thread.parent_path) for thread in results.threads] == [
        ("thread-1", 1, ()),
        ("thread-2", 3, ("epoch", "pool")),
        ("thread-3", 1, ("epoch", "pool", "step")),
    ]


def test_losses_are_passed_on() -> None:
    loss = Loss(collector="scopes", reason="no room for more places", count=3)
    assert build_results(make_run(losses=(loss,))).losses == (loss,)
