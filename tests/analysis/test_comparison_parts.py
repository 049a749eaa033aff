"""Parts add up to the whole, moved is told from grown, and nothing that vanished is lost."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.analysis.call_tree import Place
from pyrometer.analysis.comparison.model import (
    Comparison,
    Doubt,
    Metric,
    PartChange,
    PartsKind,
    PartsTable,
    Presence,
    Verdict,
)
from pyrometer.analysis.comparison.moves import Grown, find_moves
from pyrometer.analysis.comparison.parts import outermost_called_otherwise
from pyrometer.record.run import Run
from pyrometer.record.values import ScopeNode, Strand
from tests.compared_runs import Net, compare, many_runs, net_run
from tests.report.sample_runs import main_strand, node, run_of, threaded_run
from tests.torch_runs import MS, US, call, group_of


def table_of(comparison: Comparison, kind: PartsKind) -> PartsTable:
    table = comparison.table(kind)
    assert table is not None
    return table


def row_of(table: PartsTable, name: str) -> PartChange:
    [row] = [row for row in table.rows if row.name == name]
    return row


def changed(kind: PartsKind, **changes: int | str) -> PartsTable:
    """The table of a run, beside one of the net with these changes."""
    return table_of(compare(net_run(), net_run(replace(Net(), **changes))), kind)  # type: ignore[arg-type]


# Adding up.


def assert_adds_up(table: PartsTable) -> None:
    for side in ("before", "after"):
        parts = sum(getattr(row.own, side) or 0.0 for row in table.rows if row.is_part)
        assert parts + getattr(table.rest, side) == pytest.approx(getattr(table.whole, side), rel=1e-9)
    assert table.explained + table.unexplained == pytest.approx(table.whole.grown, abs=1e-3)


@given(
    st.builds(
        Net,
        steps=st.integers(13, 30),
        data_us=st.integers(1, 5_000),
        first_us=st.integers(1, 5_000),
        second_us=st.integers(1, 5_000),
        net_us=st.integers(1, 5_000),
        backward_us=st.integers(1, 5_000),
        first_calls=st.integers(1, 4),
        second_name=st.sampled_from(["net.second", "net.renamed"]),
    )
)
def test_every_table_adds_up_whatever_changed(net: Net) -> None:
    comparison = compare(net_run(), net_run(net))
    assert [table.kind for table in comparison.tables] == list(PartsKind)
    for table in comparison.tables:
        assert_adds_up(table)


def test_tables_of_many_runs_add_up_too() -> None:
    after = many_runs(Net(first_us=2_400), at_second=30, spread_us=37)
    comparison = compare(many_runs(Net(), spread_us=23), after)
    for table in comparison.tables:
        assert_adds_up(table)
    # As shown, phases leave nothing over: they are those of one run a side, and not medians of each.
    assert comparison.tables[0].rest.grown == 0


def test_a_run_that_was_disturbed_is_not_the_one_that_is_shown() -> None:
    disturbed = net_run(Net(data_us=90_000, started_at="2026-01-02T03:30:00+00:00"))
    after = (*many_runs(Net(), at_second=30), disturbed, disturbed)
    table = table_of(compare(many_runs(Net()), after), PartsKind.PHASES)
    assert row_of(table, "data").own.after == 1_000 * US


def test_phases_leave_nothing_unexplained() -> None:
    table = changed(PartsKind.PHASES, first_us=3_000, data_us=500)
    assert (table.rest.before, table.rest.after, table.unexplained) == (0.0, 0.0, 0.0)
    assert table.explained == 500 * US


def test_what_modules_do_not_explain_is_left_over() -> None:
    table = changed(PartsKind.MODULES, first_us=2_500, optimizer_us=1_700)
    assert table.explained == pytest.approx(500 * US)
    assert table.unexplained == pytest.approx(300 * US)
    assert table.whole.grown == pytest.approx(800 * US)


def test_scopes_on_other_threads_are_no_part_of_the_whole() -> None:
    table = table_of(compare(threaded_run(), threaded_run()), PartsKind.SCOPES)
    assert {row.is_part for row in table.rows} == {True, False}
    assert_adds_up(table)


@st.composite
def scope_trees(draw: st.DrawFn) -> Run:
    """A run of scopes, up to four levels of up to three, from a few names."""

    def nodes(parent: int | None, depth: int, kept: list[ScopeNode]) -> int:
        total_ns = 0
        for name in draw(st.lists(st.sampled_from("abc"), max_size=3, unique=True)):
            at = len(kept)
            kept.append(ScopeNode(name=name))
            inside_ns = nodes(at, depth + 1, kept) if depth < 3 else 0
            own_ns = draw(st.integers(1, 1_000_000))
            kept[at] = node(name, parent, [inside_ns + own_ns])
            total_ns += inside_ns + own_ns
        return total_ns

    kept: list[ScopeNode] = []
    total_ns = nodes(None, 0, kept)
    strands: tuple[Strand, ...] = (main_strand(*kept),) if kept else ()
    return run_of(*strands, profiled_ns=total_ns + draw(st.integers(1, 1_000_000)))


@given(scope_trees(), scope_trees())
def test_scopes_add_up_over_any_two_trees_and_none_is_lost(before: Run, after: Run) -> None:
    comparison = compare(before, after)
    for table in comparison.tables:
        assert_adds_up(table)
        named = {row.path: row.presence for row in table.rows}
        assert len(named) == len(table.rows)
        turned = compare(after, before).table(table.kind)
        assert turned is not None
        assert turned.whole.grown == pytest.approx(-table.whole.grown)
        opposite = {Presence.NEW: Presence.VANISHED, Presence.VANISHED: Presence.NEW}
        assert {row.path: opposite.get(row.presence, row.presence) for row in turned.rows} == named


# In some runs only.


def runs_with_log(*there: bool) -> list[Run]:
    """A run for each, which calls a scope or does not."""
    both = (node("work", None, [6 * MS]), node("log", None, [MS]))
    return [run_of(main_strand(*both[: 1 + is_there]), profiled_ns=10 * MS) for is_there in there]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((False, False, False), (True, False, False)),
        ((True, True, False), (False, False, False)),
        ((True, False, False), (True, True, True)),
    ],
)
def test_a_scope_that_only_some_runs_of_a_side_have_is_neither_new_nor_vanished(
    before: tuple[bool, ...], after: tuple[bool, ...]
) -> None:
    table = table_of(compare(runs_with_log(*before), runs_with_log(*after)), PartsKind.SCOPES)
    row = row_of(table, "log")
    assert row.presence is Presence.BOTH
    assert row.calls is not None
    assert (row.calls.verdict, row.calls.doubt) == (Verdict.CANNOT_TELL, Doubt.VARIES)
    # Where no run has it, it took nothing, and that is a figure.
    assert None not in {row.own.before, row.own.after}
    assert not outermost_called_otherwise(table)
    assert_adds_up(table)


def test_a_scope_that_all_runs_of_a_side_have_and_none_of_the_other_is_new() -> None:
    table = table_of(
        compare(runs_with_log(False, False, False), runs_with_log(True, True, True)), PartsKind.SCOPES
    )
    assert [(row.name, row.presence) for row in outermost_called_otherwise(table)] == [("log", Presence.NEW)]
    assert row_of(table, "log").own.before is None


# Counts first.


def test_a_module_called_twice_as_often_comes_first_however_little_time_it_takes() -> None:
    table = changed(PartsKind.MODULES, first_calls=2, backward_us=9_000, second_us=5_000)
    first = table.rows[0]
    assert first.name == "net.first"
    assert first.calls is not None
    assert (first.calls.before, first.calls.after, first.calls.verdict) == (1, 2, Verdict.MORE)
    assert first.own.verdict is Verdict.CANNOT_TELL


def test_runs_of_different_length_are_compared_a_step() -> None:
    table = changed(PartsKind.MODULES, steps=40)
    assert table.steps == (20, 40)
    assert [row.calls.verdict for row in table.rows if row.calls is not None] == [Verdict.SAME] * 4
    assert row_of(table, "net.first").own.grown == pytest.approx(0)


def with_accuracy(net: Net, forward_us: int) -> Run:
    """The same run, after each step of which the net is called once more, without gradients.

    That makes a step of its own, of another kind.
    """
    run = net_run(net)
    assert run.torch is not None
    group = group_of(
        "forward",
        "net",
        [{"forward": forward_us * US, "other": 0}] * net.steps,
        batches=0,
        grad_forward_calls=0,
        backward_passes=0,
    )
    [strand] = run.torch.calls
    calls = (
        *strand.nodes,
        call("forward without gradients", None, net.steps, net.steps * forward_us * US),
        call("net", len(strand.nodes), net.steps, net.steps * forward_us * US),
    )
    torch = msgspec.structs.replace(
        run.torch, groups=(*run.torch.groups, group), calls=(main_strand(*calls),)
    )
    return msgspec.structs.replace(run, torch=torch)


def test_a_forward_pass_beside_the_steps_is_told_by_its_calls_and_its_time() -> None:
    comparison = compare(net_run(), with_accuracy(Net(), 3_000))
    table = table_of(comparison, PartsKind.MODULES)
    net, first = row_of(table, "net"), row_of(table, "net.first")
    assert net.calls is not None
    assert (net.calls.before, net.calls.after, net.calls.verdict) == (1, 2, Verdict.MORE)
    assert net.own.grown == table.whole.grown == pytest.approx(3_000 * US)
    assert first.calls is not None
    assert first.calls.verdict is Verdict.SAME
    metrics = {one.metric: one.change for one in comparison.metrics}
    assert metrics[Metric.STEP].relative == 0
    assert metrics[Metric.ALL_STEPS].relative == pytest.approx(0.3)
    assert metrics[Metric.FORWARD_CALLS].after == 2
    assert comparison.after.step_kinds == ("Adam", "net")


def test_calls_after_the_last_step_are_in_the_figure_of_the_whole_as_in_the_table() -> None:
    """The net is called twice a step, and the optimizer steps in between: the last call is in no step."""
    run = net_run()
    assert run.torch is not None
    [group] = run.torch.groups
    [strand] = run.torch.calls
    nodes = [
        msgspec.structs.replace(node, calls=40, buckets=((node.buckets[0][0], 40),))
        if node.name in {"forward", "net"}
        else node
        for node in strand.nodes
    ]
    loss = (call("loss", None, 20, 20 * US), call("criterion", len(nodes), 20, 20 * US))
    torch = msgspec.structs.replace(
        run.torch,
        groups=(msgspec.structs.replace(group, forward_calls=39, grad_forward_calls=39),),
        calls=(main_strand(*nodes, *loss),),
        backward_passes=21,
    )
    comparison = compare(run, msgspec.structs.replace(run, torch=torch))
    net = row_of(table_of(comparison, PartsKind.MODULES), "net")
    metrics = {one.metric: one.change for one in comparison.metrics}
    assert net.calls is not None
    assert net.calls.after == metrics[Metric.FORWARD_CALLS].after == 2
    assert metrics[Metric.BACKWARD_PASSES].after == 21 / 20


def test_where_modules_are_not_known_the_calls_of_steps_are_told() -> None:
    run = net_run()
    assert run.torch is not None
    bare = msgspec.structs.replace(
        run, torch=msgspec.structs.replace(run.torch, calls=(), modules=(), backward_passes=0)
    )
    metrics = {one.metric: one.change for one in compare(bare, bare).metrics}
    assert metrics[Metric.FORWARD_CALLS].after == metrics[Metric.BACKWARD_PASSES].after == 1


def test_of_modules_called_otherwise_together_the_outermost_is_told() -> None:
    before = run_of(
        main_strand(node("epoch", None, [6 * MS]), node("batch", 0, [MS] * 2), node("log", 0, [MS])),
        profiled_ns=10 * MS,
    )
    after = run_of(
        main_strand(node("epoch", None, [6 * MS] * 2), node("batch", 0, [MS] * 4), node("log", 0, [MS])),
        profiled_ns=20 * MS,
    )
    table = table_of(compare(before, after), PartsKind.SCOPES)
    assert [row.name for row in outermost_called_otherwise(table)] == ["epoch"]


def test_more_bytes_are_certain_from_one_run() -> None:
    row = row_of(changed(PartsKind.MODULES, first_kb=450), "net.first")
    assert row.allocated is not None
    assert (row.allocated.before, row.allocated.after) == (300_000, 450_000)
    assert row.allocated.verdict is Verdict.MORE


def test_a_renamed_module_has_vanished_and_is_new() -> None:
    table = changed(PartsKind.MODULES, second_name="net.renamed")
    old, new = row_of(table, "net.second"), row_of(table, "net.renamed")
    assert (old.presence, new.presence) == (Presence.VANISHED, Presence.NEW)
    assert (old.own.after, new.own.before) == (None, None)
    assert old.own.grown == pytest.approx(-1_200 * US)
    assert new.own.grown == pytest.approx(1_200 * US)


def test_what_one_call_of_a_scope_takes_is_told_beside_its_time_a_step() -> None:
    row = row_of(changed(PartsKind.SCOPES, data_us=1_500, steps=40), "load")
    assert row.per_call is not None
    assert (row.per_call.before, row.per_call.after) == (1_000 * US, 1_500 * US)
    assert row.own.after == pytest.approx(1_500 * US)


def test_programs_without_steps_are_compared_over_the_whole_run() -> None:
    before = run_of(main_strand(node("load", None, [MS] * 3)), profiled_ns=10 * MS)
    after = run_of(main_strand(node("load", None, [MS] * 6)), profiled_ns=13 * MS)
    table = table_of(compare(before, after), PartsKind.SCOPES)
    assert table.steps is None
    row = row_of(table, "load")
    assert row.calls is not None
    assert (row.calls.before, row.calls.after) == (3, 6)
    assert (row.own.before, row.own.after, table.unexplained) == (3 * MS, 6 * MS, 0)


# Moved, and not grown.


def test_time_that_a_sibling_lost_has_moved() -> None:
    table = changed(PartsKind.MODULES, first_us=1_500, second_us=1_650)
    moved = row_of(table, "net.second").moved
    assert moved is not None
    assert (moved.name, moved.proven) == ("net.first", False)


def test_time_that_the_module_around_it_lost_has_moved() -> None:
    before, after = Net(net_us=900), Net(net_us=300, first_us=2_600)
    table = table_of(compare(net_run(before), net_run(after)), PartsKind.MODULES)
    moved = row_of(table, "net.first").moved
    assert moved is not None
    assert moved.name == "net"


def test_time_that_nothing_lost_has_grown() -> None:
    table = changed(PartsKind.MODULES, first_us=3_000, second_us=1_100)
    assert [row.moved for row in table.rows] == [None] * 4


def test_noise_that_happens_to_match_is_no_move() -> None:
    # 0.1 ms of 10: there is always something that lost as little.
    table = changed(PartsKind.MODULES, first_us=2_100, second_us=1_100)
    assert row_of(table, "net.first").moved is None


def test_a_move_between_changes_with_verdicts_is_proven() -> None:
    after = many_runs(Net(first_us=1_800, second_us=1_400), at_second=30)
    table = table_of(compare(many_runs(Net()), after), PartsKind.MODULES)
    moved = row_of(table, "net.second").moved
    assert moved is not None
    assert (moved.name, moved.proven) == ("net.first", True)


def test_a_loss_is_used_once_by_the_largest_gain() -> None:
    top = Place(name="top", outer=None)
    lost, much, less = (Place(name=name, outer=top) for name in ("lost", "much", "less"))
    parts = [
        Grown(place=top, total=95, own=0),
        Grown(place=lost, total=-100, own=-100),
        Grown(place=much, total=105, own=105),
        Grown(place=less, total=90, own=90),
    ]
    assert find_moves(parts, rest=0, least=1) == {much: lost}


@given(
    st.lists(st.tuples(st.integers(-100, 100), st.integers(-100, 100)), max_size=12), st.integers(-100, 100)
)
def test_no_more_moves_away_than_was_lost(grown: list[tuple[int, int]], rest: int) -> None:
    parts = [
        Grown(place=Place(name=str(at), outer=None), total=total, own=own)
        for at, (total, own) in enumerate(grown)
    ]
    totals = {part.place: part.total for part in parts}
    moves = find_moves(parts, rest=rest, least=1)
    sources = list(moves.values())
    assert len(sources) == len(set(sources))
    for place, source in moves.items():
        loss = -rest if source is None else -totals[source]
        assert loss > 0
        assert abs(totals[place] - loss) <= 0.2 * max(totals[place], loss)


# Judged.


def test_a_part_that_slowed_down_in_every_process_is_slower() -> None:
    after = many_runs(Net(backward_us=3_900), at_second=30)
    table = table_of(compare(many_runs(Net()), after), PartsKind.PHASES)
    verdicts = {row.name: row.own.verdict for row in table.rows}
    assert verdicts["backward"] is Verdict.SLOWER
    assert verdicts["forward"] is verdicts["data"] is Verdict.NO_CHANGE
    assert table.whole.verdict is Verdict.SLOWER


def test_a_part_below_one_percent_of_the_whole_is_not_tested() -> None:
    net = Net(other_us=40)
    after = many_runs(replace(net, other_us=60), at_second=30)
    table = table_of(compare(many_runs(net), after), PartsKind.PHASES)
    assert row_of(table, "other").own.doubt is Doubt.TOO_SMALL


def test_phases_are_judged_by_medians_which_one_slow_step_does_not_move() -> None:
    def with_slow_step(run: Run) -> Run:
        """The same run, whose last step took a second longer in its forward phase."""
        assert run.torch is not None
        [group] = run.torch.groups
        last = group.first[-1]
        slow = msgspec.structs.replace(
            last,
            duration_ns=last.duration_ns + 1_000 * MS,
            phase_ns=(last.phase_ns[0], last.phase_ns[1] + 1_000 * MS, *last.phase_ns[2:]),
        )
        phase_ns = (group.phase_ns[0], group.phase_ns[1] + 1_000 * MS, *group.phase_ns[2:])
        slowed = msgspec.structs.replace(
            group,
            first=(*group.first[:-1], slow),
            total_ns=group.total_ns + 1_000 * MS,
            phase_ns=phase_ns,
            max_ns=slow.duration_ns,
        )
        return msgspec.structs.replace(run, torch=msgspec.structs.replace(run.torch, groups=(slowed,)))

    after = [with_slow_step(run) for run in many_runs(Net(), at_second=30)]
    table = table_of(compare(many_runs(Net()), after), PartsKind.PHASES)
    row = row_of(table, "forward")
    assert row.own.grown > 50 * MS
    assert row.own.verdict is Verdict.NO_CHANGE
    assert_adds_up(table)
