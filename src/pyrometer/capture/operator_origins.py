"""Where a thread was at every moment of a window: phase, module and scope, from single calls."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from pyrometer.record.torch_run import FORWARD_WITHOUT_GRADIENTS, RECOMPUTED_FORWARD

LoggedCall = tuple[str, int, int, int, int]
"""Name, thread, depth, start and end, as ``Recorder.take_log()`` has them."""

_PHASE_OF = {FORWARD_WITHOUT_GRADIENTS: "forward", RECOMPUTED_FORWARD: "backward"}


class Place(NamedTuple):
    """What a thread was at; None where in none."""

    phase: str | None = None
    module: str | None = None
    scope: str | None = None


NOWHERE = Place()


class ClockLine(NamedTuple):
    """From our clock to the one torch stamps its events with: two moments read on both."""

    first: tuple[int, int]
    last: tuple[int, int]

    def __call__(self, ours_ns: int) -> int:
        """The same moment on torch's clock."""
        (first_ours, first_theirs), (last_ours, last_theirs) = self
        passed = last_ours - first_ours
        if passed <= 0:
            return ours_ns + first_theirs - first_ours
        drift = (last_theirs - last_ours) - (first_theirs - first_ours)
        return ours_ns + first_theirs - first_ours + drift * (ours_ns - first_ours) // passed


def read_both(ours: Callable[[], int], theirs: Callable[[], int]) -> tuple[int, int]:
    """One moment on both clocks: the tightest of several pairs."""
    pairs = []
    for _ in range(20):
        before = ours()
        now = theirs()
        after = ours()
        pairs.append((after - before, (before + after) // 2, now))
    return min(pairs)[1:]


def places_over_time(
    calls: Iterable[LoggedCall], scopes: Iterable[LoggedCall], *, phases: Iterable[str]
) -> tuple[list[int], list[Place]]:
    """When each place began, in order, and which it is; before the first there is none.

    ``calls`` are phases and modules, ``scopes`` the program's own; all of one thread.
    """
    phase_names = {*phases, *_PHASE_OF}
    open_phases: list[str] = []
    open_modules: list[str] = []
    open_scopes: list[str] = []
    starts: list[int] = []
    places: list[Place] = []
    for at, begins, name, kind in _boundaries(calls, scopes, phase_names):
        names = (open_phases, open_modules, open_scopes)[kind]
        if begins:
            names.append(_PHASE_OF.get(name, name) if kind == 0 else name)
        elif names:
            names.pop()
        place = Place(
            open_phases[-1] if open_phases else None,
            open_modules[-1] if open_modules else None,
            open_scopes[-1] if open_scopes else None,
        )
        if starts and starts[-1] == at:
            places[-1] = place
        else:
            starts.append(at)
            places.append(place)
    return starts, places


def _boundaries(
    calls: Iterable[LoggedCall], scopes: Iterable[LoggedCall], phase_names: set[str]
) -> Iterator[tuple[int, bool, str, int]]:
    """Begins and ends in order of time; of those at one moment ends go first, inner ones before outer."""
    found = []
    for kind, logged in enumerate((calls, scopes)):
        for name, _, depth, start, end in logged:
            if start < end:
                what = 2 if kind else int(name not in phase_names)
                found.append((start, True, depth, name, what))
                found.append((end, False, -depth, name, what))
    found.sort(key=lambda boundary: boundary[:3])
    return ((at, begins, name, what) for at, begins, _, name, what in found)
