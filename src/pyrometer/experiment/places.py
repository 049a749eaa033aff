"""The places of the call trees of a pair's processes: what each takes of a step, and how that differs."""

from collections.abc import Mapping, Sequence
from statistics import median

from pyrometer.record.trials import MAX_KEPT_NODES, NodeFigures
from pyrometer.record.turns import Turn, TurnNode

_Path = tuple[str, ...]


def places_of(
    turns_of: Mapping[str, Sequence[Turn]], *, baseline: str, most: int = MAX_KEPT_NODES
) -> dict[str, tuple[NodeFigures, ...]]:
    """By side, medians over turns, and over the differences to the turns of the baseline beside them.

    All sides have the same places in the same order, with 0 calls where one is not there: those that take
    most on any side. So one that has vanished is not lost for taking nothing; and by more than it takes on
    one of them, no place differs.
    """
    nodes_of = {
        side: [{node.path: node for node in turn.nodes} for turn in turns] for side, turns in turns_of.items()
    }
    # In the order they are met, parents first.
    paths = dict.fromkeys(path for turns in nodes_of.values() for nodes in turns for path in nodes)
    self_ns = {side: _self_ns(paths, turns, nodes_of[side]) for side, turns in turns_of.items()}
    figures = {
        side: {
            path: NodeFigures(
                path=path,
                calls=sum(nodes[path].calls for nodes in nodes_of[side] if path in nodes)
                / sum(turn.steps for turn in turns),
                self_ns=median(self_ns[side][path]),
                change_ns=median(
                    one - other
                    for one, other in zip(self_ns[side][path], self_ns[baseline][path], strict=True)
                ),
            )
            for path in paths
        }
        for side, turns in turns_of.items()
    }

    def size_ns(path: _Path) -> float:
        return max(side[path].self_ns for side in figures.values())

    kept = set(sorted(paths, key=size_ns, reverse=True)[:most])
    return {
        side: tuple(one for path, one in places.items() if path in kept) for side, places in figures.items()
    }


def _self_ns(
    paths: Mapping[_Path, None], turns: Sequence[Turn], nodes: Sequence[Mapping[_Path, TurnNode]]
) -> dict[_Path, list[float]]:
    """What each place took of a step, turn by turn."""
    return {
        path: [
            found[path].self_ns / turn.steps if path in found else 0.0
            for turn, found in zip(turns, nodes, strict=True)
        ]
        for path in paths
    }
