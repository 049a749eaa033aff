"""Where a change comes from, on pairs made by hand."""

import random
from collections.abc import Mapping

import pytest

from pyrometer.analysis.attribution import changed_rows, find_changed_places
from pyrometer.analysis.comparison.model import PartsKind, Presence, Verdict
from pyrometer.record.trials import Pair
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
