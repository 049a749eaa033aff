"""Tables of parts that make up a whole, each part beside itself in the other runs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

from pyrometer.analysis.call_tree import Place
from pyrometer.analysis.comparison.figures import PartFigures, RunParts
from pyrometer.analysis.comparison.model import (
    Change,
    Doubt,
    Move,
    PartChange,
    PartsKind,
    PartsTable,
    Presence,
    Quantity,
    Verdict,
)
from pyrometer.analysis.comparison.moves import LEAST_MOVED_SHARE, Grown, find_moves
from pyrometer.analysis.comparison.verdicts import (
    BYTES_TOLERANCE,
    COUNT_TOLERANCE,
    LEAST_TESTED_SHARE,
    Pairing,
    judge_counts,
    judge_times,
)

# What may be left of sums of floating-point numbers, as a part of the whole.
_NOISE = 1e-9
_FLAT = frozenset({PartsKind.PHASES, PartsKind.OPERATORS})

_Figure = Callable[[PartFigures], float | None]


def compare_parts(before: Sequence[RunParts], after: Sequence[RunParts], doubt: Doubt | None) -> PartsTable:
    """The parts of all runs of both sides, of which each has one at least; all are of one kind."""
    table = _Table(before, after, is_judged=doubt is None)
    places = table.places
    whole, rest, *own = judge_times([table.whole(), table.rest(), *map(table.own, places)], doubt)
    totals = judge_times([table.time(place, _total_ns) for place in places], doubt)
    per_call = judge_times([table.call_time(place) for place in places], doubt)
    rows = [table.row(*changes) for changes in zip(places, own, totals, per_call, strict=True)]
    rest = _adding_up(rest, whole, rows)
    kind = before[0].kind
    rows = with_moves(rows, whole=whole, rest=rest, kind=kind, is_judged=doubt is None)
    return PartsTable(
        kind=kind,
        rows=tuple(sorted(rows, key=lambda row: (not is_called_otherwise(row), -abs(row.own.grown)))),
        whole=whole,
        rest=rest,
        steps=_steps(before, after),
        with_warmup=before[0].with_warmup,
    )


def presence_of(before: Sequence[bool], after: Sequence[bool]) -> Presence:
    """Whether a part is there, by all processes of each side.

    New is what all of the one side have and none of the other: what only some have may come and go.
    """
    if all(after) and not any(before):
        return Presence.NEW
    return Presence.VANISHED if all(before) and not any(after) else Presence.BOTH


def is_called_otherwise(row: PartChange) -> bool:
    """Whether it is called more or less often than before, which says more than any time.

    One that is new or has vanished is, unless the control has voided what was measured.
    """
    if row.presence is not Presence.BOTH:
        return row.own.doubt is not Doubt.CONTROL
    return row.calls is not None and row.calls.verdict in {Verdict.MORE, Verdict.FEWER}


def outermost_called_otherwise(table: PartsTable) -> list[PartChange]:
    """Rows that are called otherwise, without those that only follow the one around them."""
    by_place = {row.place: row for row in table.rows}

    def follows(row: PartChange) -> bool:
        outer = None if row.place.outer is None else by_place.get(row.place.outer)
        if outer is None or outer.presence is not row.presence:
            return False
        if row.presence is not Presence.BOTH:
            return True
        ratios = [None if one.calls is None else one.calls.relative for one in (row, outer)]
        return ratios[0] is not None and ratios[1] is not None and math.isclose(ratios[0], ratios[1])

    return [row for row in table.rows if is_called_otherwise(row) and not follows(row)]


class _Table:
    """The figures of a table in all runs, paired to be judged.

    Times that are shown are those of one run a side, the one whose whole is the middle one: its parts
    add up, and it is not one that was disturbed.
    """

    def __init__(self, before: Sequence[RunParts], after: Sequence[RunParts], *, is_judged: bool) -> None:
        self._runs = (*before, *after)
        self._first_after = len(before)
        self._is_judged = is_judged
        self._middle = (_middle_run(before), len(before) + _middle_run(after))
        self.places = list(dict.fromkeys(chain.from_iterable(run.parts for run in self._runs)))

    def whole(self) -> Pairing:
        shown = [run.whole_ns for run in self._runs]
        return self._times([_judged_whole(run) for run in self._runs], shown=shown)

    def rest(self) -> Pairing:
        parts = (sum(part.own_ns for part in run.parts.values() if part.is_part) for run in self._runs)
        return self._times([run.whole_ns - part for run, part in zip(self._runs, parts, strict=True)])

    def own(self, place: Place) -> Pairing:
        shown = self._values(place, lambda part: part.own_ns)
        judged = self._values(place, lambda part: part.own_ns if part.judged_ns is None else part.judged_ns)
        return self._times(judged, shown=shown)

    def time(self, place: Place, figure: _Figure) -> Pairing:
        return self._times(self._values(place, figure))

    def call_time(self, place: Place) -> Pairing:
        values = self._values(place, lambda part: part.ns_per_call, absent=None)
        # By all its calls: a single one is small beside the whole, however many there are.
        is_tested = self.time(place, _total_ns).is_tested
        return replace(self._times(values), shown=None, is_tested=is_tested)

    def row(self, place: Place, own: Change, total: Change, per_call: Change) -> PartChange:
        there = [place in run.parts for run in self._runs]
        presence = presence_of(there[: self._first_after], there[self._first_after :])
        is_before, is_after = presence is not Presence.NEW, presence is not Presence.VANISHED

        def known(change: Change) -> Change | None:
            """The change, without a figure on a side where the part is not; None without any."""
            before, after = change.before if is_before else None, change.after if is_after else None
            if before is None and after is None:
                return None
            return replace(change, before=before, after=after)

        return PartChange(
            place=place,
            presence=presence,
            is_part=all(run.parts[place].is_part for run in self._runs if place in run.parts),
            own=known(own) or own,
            total=known(total),
            per_call=known(per_call),
            calls=known(self._counted(place, Quantity.COUNT, _calls, COUNT_TOLERANCE)),
            allocated=known(self._counted(place, Quantity.BYTES, _allocated_bytes, BYTES_TOLERANCE)),
        )

    def _counted(self, place: Place, quantity: Quantity, figure: _Figure, tolerance: float) -> Change:
        values = self._values(place, figure)
        if all(figure(run.parts[place]) is None for run in self._runs if place in run.parts):
            values = [None] * len(values)
        before, after = values[: self._first_after], values[self._first_after :]
        return judge_counts(Pairing(quantity=quantity, before=before, after=after), tolerance=tolerance)

    def _values(self, place: Place, figure: _Figure, absent: float | None = 0.0) -> list[float | None]:
        """The figure in each run; in one without the part, it took nothing."""
        return [figure(run.parts[place]) if place in run.parts else absent for run in self._runs]

    def _times(
        self, values: Sequence[float | None], *, shown: Sequence[float | None] | None = None
    ) -> Pairing:
        at = self._first_after
        shown = values if shown is None else shown
        before, after = self._middle
        return Pairing(
            quantity=Quantity.DURATION,
            before=values[:at],
            after=values[at:],
            shown=(shown[before], shown[after]),
            is_tested=self._is_judged and self._matters(shown),
        )

    def _matters(self, values: Sequence[float | None]) -> bool:
        """Whether it is large enough to be tested: over all runs alike, so that no side is favoured."""
        shares = [
            (value or 0.0) / run.whole_ns if run.whole_ns else 0.0
            for value, run in zip(values, self._runs, strict=True)
        ]
        return sum(shares) >= LEAST_TESTED_SHARE * len(shares)


def _judged_whole(run: RunParts) -> float:
    return run.whole_ns if run.judged_whole_ns is None else run.judged_whole_ns


def _middle_run(runs: Sequence[RunParts]) -> int:
    """The run whose whole is the middle one, of two the shorter."""
    ordered = sorted(range(len(runs)), key=lambda index: runs[index].whole_ns)
    return ordered[(len(runs) - 1) // 2]


def _total_ns(part: PartFigures) -> float | None:
    return part.total_ns


def _calls(part: PartFigures) -> float | None:
    return part.calls


def _allocated_bytes(part: PartFigures) -> float | None:
    return part.allocated_bytes


def _adding_up(rest: Change, whole: Change, rows: Sequence[PartChange]) -> Change:
    """The rest, without what is left of sums of floating-point numbers."""
    parts = [row.own for row in rows if row.is_part]
    before = (whole.before or 0.0) - sum(own.before or 0.0 for own in parts)
    after = (whole.after or 0.0) - sum(own.after or 0.0 for own in parts)
    return replace(rest, before=_without_noise(before, whole), after=_without_noise(after, whole))


def _without_noise(rest: float, whole: Change) -> float:
    return 0.0 if abs(rest) <= _NOISE * max(whole.before or 0.0, whole.after or 0.0) else rest


def with_moves(
    rows: Sequence[PartChange], *, whole: Change, rest: Change, kind: PartsKind, is_judged: bool
) -> list[PartChange]:
    """The rows, each that gained what another lost with where it moved from."""
    by_place = {row.place: row for row in rows}
    # Operators hold one another, in no fixed order: only what they take themselves can move.
    whole_of = {row.place: row.own if kind in _FLAT or row.total is None else row.total for row in rows}
    grown = [
        Grown(place=row.place, total=whole_of[row.place].grown, own=row.own.grown)
        for row in rows
        if row.is_part
    ]
    # Verdicts leave out noise better than any limit does.
    least = 0.0 if is_judged else LEAST_MOVED_SHARE * max(whole.before or 0.0, whole.after or 0.0)
    moves = find_moves(grown, rest=rest.grown, least=least)
    moved: dict[Place, Move] = {}
    for place, source in moves.items():
        lost = rest if source is None else by_place[source].own
        if source is not None and source is not place.outer:
            lost = whole_of[source]
        proven = is_judged and (whole_of[place].verdict, lost.verdict) == (Verdict.SLOWER, Verdict.FASTER)
        # Where times are judged, what did not change for sure is noise, and noise moves nowhere.
        if proven or not is_judged:
            moved[place] = Move(name="" if source is None else source.name, proven=proven)
    return [replace(row, moved=moved.get(row.place)) for row in rows]


def _steps(before: Sequence[RunParts], after: Sequence[RunParts]) -> tuple[int, int] | None:
    counts = [[run.steps for run in side] for side in (before, after)]
    if any(steps is None for side in counts for steps in side):
        return None
    return sum(steps or 0 for steps in counts[0]), sum(steps or 0 for steps in counts[1])
