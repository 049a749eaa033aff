"""Which places of a pair's processes are kept, and with which figures, on turns made by hand."""

from collections.abc import Mapping, Sequence

from pyrometer.experiment.places import places_of
from pyrometer.record.trials import NodeFigures
from pyrometer.record.turns import Turn, TurnNode


def turn(nodes: Mapping[str, tuple[int, int]], *, steps: int = 2) -> Turn:
    """One of so many steps, in which scopes were called so often and took so long."""
    return Turn(
        steps=steps,
        duration_ns=1_000,
        nodes=tuple(TurnNode(("scope", name), *figures) for name, figures in nodes.items()),
    )


def kept(
    baseline: Sequence[Turn], candidate: Sequence[Turn], control: Sequence[Turn] | None = None, *, most: int
) -> dict[str, dict[str, NodeFigures]]:
    turns = {"baseline": baseline, "candidate": candidate}
    if control is not None:
        turns["control"] = control
    found = places_of(turns, baseline="baseline", most=most)
    return {side: {node.path[-1]: node for node in nodes} for side, nodes in found.items()}


def test_a_place_is_told_a_step_and_by_its_differences_to_the_turn_beside_it() -> None:
    # The second turn of both is disturbed.
    baseline = [turn({"work": (2, 200)}), turn({"work": (2, 800)}), turn({"work": (2, 220)})]
    candidate = [turn({"work": (4, 260)}), turn({"work": (4, 860)}), turn({"work": (4, 280)})]
    found = kept(baseline, candidate, most=10)
    assert found["baseline"]["work"] == NodeFigures(("scope", "work"), 1.0, 110.0, 0.0)
    assert found["candidate"]["work"] == NodeFigures(("scope", "work"), 2.0, 140.0, 30.0)


def test_a_large_place_that_has_vanished_is_kept_though_it_takes_nothing() -> None:
    found = kept([turn({"small": (2, 10), "gone": (2, 900)})], [turn({"small": (2, 10)})], most=1)
    assert found["candidate"] == {"gone": NodeFigures(("scope", "gone"), 0.0, 0.0, -450.0)}
    assert found["baseline"] == {"gone": NodeFigures(("scope", "gone"), 1.0, 450.0, 0.0)}


def test_all_sides_keep_the_same_places_though_other_ones_are_their_largest() -> None:
    baseline = [turn({"a": (2, 100), "b": (2, 90), "c": (2, 80)})]
    candidate = [turn({"a": (2, 100), "b": (2, 90), "c": (2, 98)})]
    control = [turn({"d": (2, 95), "a": (2, 100), "b": (2, 90)})]
    found = kept(baseline, candidate, control, most=3)
    assert [[*side] for side in found.values()] == [["a", "c", "d"]] * 3
    assert found["baseline"]["d"].calls == 0


def test_turns_of_more_steps_than_were_ordered_weigh_no_more() -> None:
    found = kept([turn({"work": (2, 200)})], [turn({"work": (6, 600)}, steps=6)], most=1)
    assert found["candidate"]["work"] == NodeFigures(("scope", "work"), 1.0, 100.0, 0.0)
