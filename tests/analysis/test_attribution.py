"""Where a change comes from, on pairs made by hand."""

import random
from collections.abc import Callable, Mapping

import pytest

from pyrometer.analysis.attribution import changed_rows, find_changed_places, grown_with_below
from pyrometer.analysis.comparison.model import Doubt, PartsKind, PartsTable, Presence, Verdict
from pyrometer.analysis.comparison.parts import outermost_called_otherwise
from pyrometer.analysis.gate import LOOKS
from pyrometer.record.trials import MAX_KEPT_NODES, Pair, ProcessTurns
from pyrometer.report.comparison_words import describe_adding_up, describe_basis
from tests.trial_pairs import STEP_NS, pairs_of, process

_ROOT = ("module", "forward")


def tree(
    noise: random.Random,
    changes: Mapping[str, float],
    calls: Mapping[str, float] | None = None,
    *,
    spread: float = 2_000,
) -> dict[tuple[str, ...], tuple[float, float, float]]:
    """Ten modules of 90 µs each, some of which take so many ns more."""
    nodes: dict[tuple[str, ...], tuple[float, float, float]] = {
        _ROOT: (1.0, 10_000.0, noise.gauss(0, spread / 10))
    }
    for number in range(10):
        name = f"layer{number}"
        if name in (calls or {}) and (calls or {})[name] == 0:
            continue
        change = changes.get(name, 0.0) + noise.gauss(0, spread)
        nodes[*_ROOT, name] = (calls or {}).get(name, 1.0), 90_000.0 + change, change
    return nodes


def measured(
    changes: Mapping[str, float], calls: Mapping[str, float] | None = None, *, pairs: int = 20, seed: int = 1
) -> list[Pair]:
    total = STEP_NS + sum(changes.values())
    return pairs_of(
        pairs,
        lambda noise: process(total, nodes=tree(noise, changes, calls)),
        baseline=lambda noise: process(STEP_NS, nodes=tree(noise, {}, spread=1)),
        seed=seed,
    )


def names(pairs: list[Pair]) -> list[str]:
    return [row.name for _, row in changed_rows(find_changed_places(pairs))]


def test_the_module_that_became_slower_is_named_and_no_other() -> None:
    assert names(measured({"layer3": 30_000})) == ["layer3"]


def test_nothing_is_named_where_nothing_changed() -> None:
    assert names(measured({})) == []


def test_the_largest_change_comes_first() -> None:
    assert names(measured({"layer3": 20_000, "layer5": 50_000})) == ["layer5", "layer3"]


def test_what_is_called_more_often_comes_before_what_takes_longer() -> None:
    pairs = measured({"layer2": 60_000, "layer7": 20_000}, {"layer7": 2.0})
    tables = find_changed_places(pairs)
    _, row = next(changed_rows(tables))
    assert row.name == "layer7"
    assert row.calls is not None
    assert (row.calls.before, row.calls.after, row.calls.verdict) == (1.0, 2.0, Verdict.MORE)


def test_what_is_called_more_often_but_takes_nothing_does_not_hide_what_does() -> None:
    def with_calls(calls: float, change: float) -> Callable[[random.Random], ProcessTurns]:
        def make(noise: random.Random) -> ProcessTurns:
            nodes = tree(noise, {"layer3": change}, spread=1)
            nodes["scope", "log"] = calls, 10_000.0, noise.gauss(0, 100)
            return process(STEP_NS + change, nodes=nodes)

        return make

    pairs = pairs_of(20, with_calls(2.0, 50_000), baseline=with_calls(1.0, 0))
    assert names(pairs) == ["layer3", "log"]


def test_what_is_called_more_often_stands_for_what_is_below_it() -> None:
    def with_calls(calls: float) -> Callable[[random.Random], ProcessTurns]:
        below = {(*_ROOT, "model"): 40_000.0, (*_ROOT, "model", "layer"): 200_000.0}
        more = calls - 1

        def make(noise: random.Random) -> ProcessTurns:
            nodes = {
                path: (calls, own * calls, own * more + noise.gauss(0, 100)) for path, own in below.items()
            }
            return process(STEP_NS + 240_000 * more, nodes={_ROOT: (1.0, 10_000.0, 0.0), **nodes})

        return make

    tables = find_changed_places(pairs_of(20, with_calls(2.0), baseline=with_calls(1.0)))
    ((table, row),) = changed_rows(tables)
    assert row.name == "model"
    assert row.own.grown == pytest.approx(40_000, rel=0.01)
    assert grown_with_below(table, row) == pytest.approx(240_000, rel=0.01)


def test_a_module_that_is_gone_stays_in_the_table() -> None:
    pairs = measured({}, {"layer4": 0})
    (table,) = find_changed_places(pairs)
    row = next(row for row in table.rows if row.name == "layer4")
    assert row.presence is Presence.VANISHED


def test_time_that_moved_is_told_from_time_that_was_added() -> None:
    (table,) = find_changed_places(measured({"layer1": 40_000, "layer2": -40_000}))
    row = next(row for row in table.rows if row.name == "layer1")
    assert row.moved is not None
    assert (row.moved.name, row.moved.proven) == ("layer2", True)


def test_the_parts_and_the_rest_are_the_change_of_the_whole() -> None:
    (table,) = find_changed_places(measured({"layer3": 30_000}))
    assert table.kind is PartsKind.MODULES
    assert table.explained + table.unexplained == pytest.approx(table.whole.grown)
    assert table.whole.grown == pytest.approx(30_000)
    assert table.whole.verdict is Verdict.SLOWER


def test_parts_that_come_to_more_than_the_whole_are_told_to() -> None:
    nodes: dict[tuple[str, ...], tuple[float, float, float]] = {(*_ROOT, "layer"): (1.0, 1_200_000.0, 0.0)}
    (table,) = find_changed_places(
        [Pair(hash_seed=0, baseline=process(nodes=nodes), candidate=process(nodes=nodes))]
    )
    assert table.rest.before == -200_000
    assert "medians of parts need not come to that of the whole" in describe_adding_up(table)
    (whole,) = find_changed_places(measured({}, pairs=1))
    assert "medians" not in describe_adding_up(whole)


def test_a_module_of_less_than_a_hundredth_is_not_tested() -> None:
    pairs = [
        Pair(
            hash_seed=0,
            baseline=process(nodes={("module", "tiny"): (1.0, 1_000.0, 0.0)}),
            candidate=process(nodes={("module", "tiny"): (1.0, 3_000.0, 2_000.0)}),
        )
    ] * 20
    assert names(pairs) == []


def test_a_wrong_node_is_named_no_more_often_than_stated() -> None:
    wrong = right = 0
    experiments = 100
    for seed in range(experiments):
        found = names(measured({"layer6": 30_000}, pairs=10, seed=seed))
        right += found[:1] == ["layer6"]
        wrong += bool(set(found) - {"layer6"})
    assert right >= 95
    # At 1 % one is expected; above 5 is less likely than 1 in 1,000.
    assert wrong <= 5


def test_of_a_function_that_is_called_many_times_a_step_one_call_is_told() -> None:
    (table,) = find_changed_places(measured({"layer3": 30_000}), unit="call", calls_per_step=10)
    row = next(row for row in table.rows if row.name == "layer3")
    assert table.whole.grown == pytest.approx(3_000)
    assert row.own.grown == pytest.approx(3_000, rel=0.1)
    assert row.calls is not None
    assert row.calls.before == pytest.approx(0.1)
    assert table.unit == "call"


# What is there in some processes only.

_LOG = ("scope", "log")


def seen_in(baseline: int, candidate: int, *, pairs: int = 10) -> list[Pair]:
    """Pairs in which a scope that takes next to nothing is called in so many processes of each side."""

    def one(is_there: bool) -> ProcessTurns:
        return process(nodes={("scope", "work"): (1, 500_000, 0), _LOG: (float(is_there), 0, 0)})

    return [
        Pair(hash_seed=number, baseline=one(number < baseline), candidate=one(number < candidate))
        for number in range(pairs)
    ]


@pytest.mark.parametrize(("baseline", "candidate"), [(0, 1), (1, 0), (0, 9), (9, 0), (3, 10)])
def test_a_place_that_comes_and_goes_is_no_change(baseline: int, candidate: int) -> None:
    (table,) = find_changed_places(seen_in(baseline, candidate))
    row = next(row for row in table.rows if row.name == "log")
    assert row.presence is Presence.BOTH
    assert row.calls is not None
    assert row.calls.doubt is Doubt.VARIES
    assert not [*changed_rows([table])]
    assert not outermost_called_otherwise(table)


@pytest.mark.parametrize(
    ("baseline", "candidate", "presence"), [(0, 10, Presence.NEW), (10, 0, Presence.VANISHED)]
)
def test_a_place_that_all_of_one_side_have_and_none_of_the_other_is_told(
    baseline: int, candidate: int, presence: Presence
) -> None:
    pairs = seen_in(baseline, candidate)
    assert [(row.name, row.presence) for _, row in changed_rows(find_changed_places(pairs))] == [
        ("log", presence)
    ]
    # What the control has voided names none; the table still has it.
    (void,) = find_changed_places(pairs, is_void=True)
    assert not [*changed_rows([void])]
    assert not outermost_called_otherwise(void)
    assert {row.name: row.presence for row in void.rows}["log"] is presence


# More places than are kept.


def many(change_ns: float = 0.0, *, last: str, last_change_ns: float = 0.0) -> ProcessTurns:
    """As many scopes as are kept: one that may have grown, the last one named, and between them others."""
    nodes: dict[tuple[str, ...], tuple[float, float, float]] = {
        ("scope", "work"): (1.0, 300_000.0 + change_ns, change_ns),
        **{("scope", f"part {number}"): (1.0, 1_000.0, 0.0) for number in range(MAX_KEPT_NODES - 2)},
        ("scope", last): (1.0, 900.0 + last_change_ns, last_change_ns),
    }
    return process(STEP_NS + change_ns + last_change_ns, nodes=nodes)


def cut_pairs() -> list[Pair]:
    """Ten, of which all but the last have kept ``early``, and that one another; both have grown."""
    return [
        Pair(
            hash_seed=number,
            baseline=many(last="early" if number < 9 else "late"),
            candidate=many(
                50_000.0 + number, last="early" if number < 9 else "late", last_change_ns=20_000.0 + number
            ),
        )
        for number in range(10)
    ]


def test_a_place_that_a_pair_did_not_keep_does_not_count_as_not_there() -> None:
    (table,) = find_changed_places(cut_pairs())
    told = {row.name for row in table.rows}
    assert "work" in told
    assert not {"early", "late"} & told
    assert all(row.calls is not None and row.calls.verdict is Verdict.SAME for row in table.rows)


def test_what_was_not_kept_is_in_the_rest_and_the_table_says_so() -> None:
    (table,) = find_changed_places(cut_pairs())
    for side in ("before", "after"):
        parts = sum(getattr(row.own, side) for row in table.rows)
        assert parts + getattr(table.rest, side) == pytest.approx(getattr(table.whole, side))
    assert table.rest.before == pytest.approx(STEP_NS - 300_000 - 1_000 * (MAX_KEPT_NODES - 2))
    assert table.rest.grown == pytest.approx(20_000, rel=0.01)
    assert table.rest.verdict is Verdict.SLOWER
    assert "300 places that take most are kept" in describe_basis(table)
    (whole,) = find_changed_places(seen_in(10, 10))
    assert "are kept" not in describe_basis(whole)


# At which chance of error.


def test_places_and_the_whole_are_judged_at_the_chance_of_error_of_the_look() -> None:
    # Nine pairs that agree come out so in 2 of 512 ways: less than 1 in 100, more than 1 in 500.
    pairs = measured({"layer3": 30_000}, pairs=9)

    def verdicts(table: PartsTable) -> set[Verdict]:
        return {table.whole.verdict, next(row for row in table.rows if row.name == "layer3").own.verdict}

    (surer,) = find_changed_places(pairs, alpha=LOOKS[0].alpha)
    assert verdicts(surer) == {Verdict.CANNOT_TELL}
    (less_sure,) = find_changed_places(pairs, alpha=0.01)
    assert verdicts(less_sure) == {Verdict.SLOWER}


def test_a_whole_that_grew_by_less_than_matters_is_not_called_slower() -> None:
    (table,) = find_changed_places(measured({"layer3": 6_000}, pairs=40))
    assert table.whole.grown == pytest.approx(6_000)
    assert (table.whole.verdict, table.whole.doubt) == (Verdict.CANNOT_TELL, Doubt.UNDECIDED)
