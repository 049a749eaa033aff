"""Time that moved, told from time that was added: what one part gained, a part beside it lost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyrometer.analysis.call_tree import Place

ABOUT_AS_MUCH = 0.2
"""A gain and a loss belong together when they differ by no more than this part of the larger."""
LEAST_MOVED_SHARE = 0.02
"""Of the whole, where times have no verdicts: there is always something that lost as little as that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """What a part gained, all below it included, and what it gained by itself; negative: lost."""

    place: Place
    total: float
    own: float


def find_moves(parts: Sequence[Grown], *, rest: float, least: float) -> dict[Place, Place | None]:
    """For each part that gained what another lost, that other one; None stands for what is in no part.

    Looked for among the parts below the same one, and in what that one does by itself: at the top in
    the ``rest`` of the whole. The largest gain chooses first, the nearest loss, and a loss is used once.
    Gains below ``least`` are not looked into.
    """
    own = {grown.place: grown.own for grown in parts}
    siblings: dict[Place | None, list[Grown]] = {}
    for grown in parts:
        siblings.setdefault(grown.place.outer, []).append(grown)
    moves: dict[Place, Place | None] = {}
    for outer, below in siblings.items():
        around = rest if outer is None else own.get(outer, 0.0)
        moves.update(_moves_below(outer, below, around, least=least))
    return moves


def _moves_below(
    outer: Place | None, below: Sequence[Grown], around: float, *, least: float
) -> Iterator[tuple[Place, Place | None]]:
    losses: dict[Place | None, float] = {one.place: -one.total for one in below if one.total < 0}
    if around < 0:
        losses[outer] = -around
    gains = {one.place: one.total for one in below if one.total > 0 and one.total >= least}
    for place in sorted(gains, key=lambda place: (-gains[place], place.name)):
        source = _nearest(gains[place], losses)
        if source is not _NOTHING:
            del losses[source]
            yield place, source


_NOTHING = Place(name="", outer=None)


def _nearest(gain: float, losses: Mapping[Place | None, float]) -> Place | None:
    """What lost about as much; ``_NOTHING`` where none did."""
    alike = [place for place, loss in losses.items() if abs(gain - loss) <= ABOUT_AS_MUCH * max(gain, loss)]
    return min(alike, key=lambda place: abs(gain - losses[place]), default=_NOTHING)
