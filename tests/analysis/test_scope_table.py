import pytest
from hypothesis import given
from msgspec import structs

from pyrometer.analysis.call_tree import build_call_tree
from pyrometer.analysis.scope_table import ScopeSummary, summarize_by_name
from pyrometer.record.run import Run
from tests.record.example_runs import any_runs, make_node, make_run, make_strand


def summary_of(run: Run, name: str) -> ScopeSummary:
    (found,) = (summary for summary in summarize_by_name(run) if summary.name == name)
    return found


@given(any_runs())
def test_self_times_by_name_are_all_the_time_spent_in_scopes(run: Run) -> None:
    tops_ns = sum(node.total_ns for strand in run.strands for node in strand.nodes if node.parent is None)
    assert sum(summary.self_ns for summary in summarize_by_name(run)) == tops_ns


@given(any_runs())
def test_calls_by_name_are_all_calls(run: Run) -> None:
    summaries = summarize_by_name(run)
    assert sum(summary.calls for summary in summaries) == sum(scope.calls for scope in run.scopes())
    assert sum(summary.open_calls for summary in summaries) == sum(scope.open_calls for scope in run.scopes())


@given(any_runs())
def test_percentiles_lie_in_order_between_the_shortest_and_the_longest_call(run: Run) -> None:
    for summary in summarize_by_name(run):
        column = [summary.min_ns, summary.p50_ns, summary.p95_ns, summary.p99_ns, summary.max_ns]
        if summary.calls:
            numbers = [value for value in column if value is not None]
            assert len(numbers) == len(column)
            assert numbers == sorted(numbers)
        else:
            assert column == [None] * len(column)


@given(any_runs())
def test_a_total_by_name_is_what_the_outermost_nodes_of_the_tree_took(run: Run) -> None:
    outermost_ns: dict[str, int] = {}
    for _, node in build_call_tree(run).walk():
        if node.name not in node.path[:-1]:
            outermost_ns[node.name] = outermost_ns.get(node.name, 0) + node.total_ns
    assert {summary.name: summary.total_ns for summary in summarize_by_name(run)} == outermost_ns


@given(any_runs())
def test_names_are_ordered_by_their_total_and_then_by_name(run: Run) -> None:
    keys = [(-summary.total_ns, summary.name) for summary in summarize_by_name(run)]
    assert keys == sorted(keys)


def test_a_recursive_scopes_time_is_counted_once_and_its_calls_all() -> None:
    run = make_run(
        make_strand(
            make_node("fib", 100),
            make_node("fib", 60, parent=0, durations_ns=[20, 40], suspended_ns=5),
            make_node("add", 10, parent=1),
            make_node("fib", 5, parent=2),
        )
    )
    fib = summary_of(run, "fib")
    assert (fib.calls, fib.total_ns, fib.self_ns, fib.suspended_ns) == (4, 100, 95, 0)
    assert (fib.min_ns, fib.max_ns) == (5, 100)
    assert fib.average_ns == pytest.approx((100 + 20 + 40 + 5) / 4)


def test_one_name_at_several_places_is_summed() -> None:
    run = make_run(
        make_strand(
            make_node("train", 500),
            make_node("load", 100, parent=0),
            make_node("validate", 300),
            make_node("load", 200, parent=2),
        )
    )
    load = summary_of(run, "load")
    assert (load.calls, load.total_ns, load.share, load.wall_ns) == (2, 300, 0.3, None)
    assert not load.parallel


def test_the_share_of_threads_that_ran_side_by_side_is_of_the_time_that_went_by() -> None:
    run = make_run(
        make_strand(make_node("pool", 600)),
        make_strand(make_node("step", 550, wall_ns=590), parent=(0, 0), thread_id=2),
        make_strand(make_node("step", 580, wall_ns=590), parent=(0, 0), thread_id=3),
    )
    step = summary_of(run, "step")
    assert (step.total_ns, step.wall_ns, step.share, step.parallel) == (1_130, 590, 0.59, True)


def test_the_wall_time_of_a_name_on_the_main_thread_and_on_workers_is_of_both() -> None:
    run = make_run(
        make_strand(make_node("load", 200), make_node("pool", 600)),
        make_strand(make_node("load", 300, wall_ns=320), parent=(0, 1), thread_id=2),
    )
    load = summary_of(run, "load")
    assert (load.total_ns, load.wall_ns, load.wall_is_upper_bound) == (500, 520, True)


def test_a_worker_and_the_thread_it_started_share_the_wall_time_of_their_scopes() -> None:
    run = make_run(
        make_strand(make_node("pool", 900)),
        make_strand(
            make_node("step", 500, wall_ns=500),
            make_node("read", 200, parent=0, wall_ns=450),
            parent=(0, 0),
            thread_id=2,
        ),
        make_strand(make_node("read", 400, wall_ns=450), parent=(1, 0), thread_id=3),
    )
    read = summary_of(run, "read")
    assert (read.total_ns, read.wall_ns, read.wall_is_upper_bound) == (600, 450, False)


def test_wall_times_of_places_that_may_have_overlapped_add_up_to_no_more_than_a_bound() -> None:
    def layers(attention_ns: int) -> Run:
        return make_run(
            make_strand(make_node("pool", 900)),
            *(
                make_strand(
                    make_node(f"Layer_{index}", 800, wall_ns=800),
                    make_node("Attention", attention_ns, parent=0, wall_ns=attention_ns),
                    make_node("idle", 0, parent=0, wall_ns=0),
                    parent=(0, 0),
                    thread_id=2 + index,
                )
                for index in range(2)
            ),
            profiled_ns=1_000,
        )

    attention = summary_of(layers(300), "Attention")
    assert (attention.wall_ns, attention.wall_is_upper_bound, attention.share) == (600, True, 0.6)
    capped = summary_of(layers(700), "Attention")
    assert (capped.wall_ns, capped.wall_is_upper_bound, capped.share) == (1_000, True, 1.0)
    for name in ("Layer_0", "pool", "idle"):
        assert not summary_of(layers(300), name).wall_is_upper_bound


@given(any_runs())
def test_no_more_wall_time_goes_by_than_was_profiled(run: Run) -> None:
    assert all((summary.wall_ns or 0) <= run.profiled_ns for summary in summarize_by_name(run))


def test_a_scope_inside_its_namesake_on_a_thread_it_started_is_not_outermost() -> None:
    run = make_run(
        make_strand(make_node("train", 700)),
        make_strand(make_node("train", 600, wall_ns=600), parent=(0, 0), thread_id=2),
    )
    train = summary_of(run, "train")
    assert (train.calls, train.total_ns, train.self_ns, train.wall_ns) == (2, 700, 1_300, 700)
    assert train.parallel


def test_wall_time_that_was_not_measured_is_not_made_up() -> None:
    run = make_run(make_strand(make_node("main", 100)), make_strand(make_node("poll", 400), thread_id=2))
    poll = summary_of(run, "poll")
    assert (poll.wall_ns, poll.share, poll.parallel) == (None, 0.4, True)


def test_a_name_with_an_open_call_has_no_average() -> None:
    run = make_run(
        make_strand(make_node("serve", 500, durations_ns=[100, 100], open_calls=1), make_node("wait", 7))
    )
    serve = summary_of(run, "serve")
    assert (serve.calls, serve.open_calls, serve.average_ns, serve.p50_ns) == (2, 1, None, 100)
    assert summary_of(run, "wait").average_ns == 7


def test_a_scope_never_finished_has_its_time_and_nothing_else() -> None:
    run = make_run(make_strand(make_node("serve", 500, durations_ns=[], open_calls=1)))
    serve = summary_of(run, "serve")
    assert (serve.total_ns, serve.calls, serve.open_calls) == (500, 0, 1)
    assert (serve.average_ns, serve.min_ns, serve.p99_ns, serve.max_ns) == (None, None, None, None)


def test_no_profiled_time_gives_no_share() -> None:
    run = make_run(make_strand(make_node("step", 0)), profiled_ns=0)
    assert summary_of(run, "step").share == 0


def test_bytes_of_a_recursive_scope_are_counted_once() -> None:
    outer = structs.replace(make_node("grow", 30), allocated_bytes=900, allocations=5)
    inner = structs.replace(make_node("grow", 10, parent=0), allocated_bytes=400, allocations=2)
    (grow,) = summarize_by_name(make_run(make_strand(outer, inner)))
    assert (grow.allocated_bytes, grow.allocations) == (900, 5)
