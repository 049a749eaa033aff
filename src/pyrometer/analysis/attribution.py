"""Where a measured change comes from: the places of the call trees that grew, in turns side by side.

Differences are in nanoseconds of a step, never scaled to the whole: a place that did not change stays at
0 however much the others did. All places share one chance of error, that of the look they are judged at.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from pyrometer.analysis.call_tree import Place
from pyrometer.analysis.comparison.figures import Places
from pyrometer.analysis.comparison.model import (
    Change,
    Doubt,
    PartChange,
    PartsKind,
    PartsTable,
    Quantity,
    Verdict,
)
from pyrometer.analysis.comparison.parts import (
    is_called_otherwise,
    outermost_called_otherwise,
    presence_of,
    with_moves,
)
from pyrometer.analysis.comparison.verdicts import (
    ALPHA,
    COUNT_TOLERANCE,
    LEAST_EFFECT,
    LEAST_TESTED_SHARE,
    Pairing,
)
from pyrometer.analysis.comparison.verdicts import judge_counts as judge_call_counts
from pyrometer.analysis.gate import two_sided_p_value
from pyrometer.analysis.trials import Metric, candidate_ratios, value_of
from pyrometer.record.trials import MAX_KEPT_NODES, NodeFigures, Pair, ProcessTurns
from pyrometer.stats.max_t import max_t_p_values
from pyrometer.stats.pooled import pooled_median

LEAST_CHANGE_SHARE = 0.003
"""Of a step: a smaller change of a place is not told, however sure it is."""

_KINDS = {"module": PartsKind.MODULES, "scope": PartsKind.SCOPES}


def find_changed_places(
    pairs: Sequence[Pair],
    *,
    unit: str = "step",
    calls_per_step: int = 1,
    alpha: float = ALPHA,
    is_void: bool = False,
) -> tuple[PartsTable, ...]:
    """A table for each call tree, with what each place takes of a step, or call, on both sides.

    Rows whose calls changed come first, then those whose time changed most; places too small to be
    tested stand in it without a verdict, and where the control has voided the pairs, all do. ``alpha``
    is the chance of error of the look that judged the pairs: with another, a table would say of its
    whole what the verdict does not.
    """
    if not pairs:
        return ()
    judging = _Judging(unit=unit, calls_per_step=calls_per_step, alpha=alpha, is_void=is_void)
    tables = [_Tree(kind, pairs, judging) for kind in _KINDS]
    tables = [tree for tree in tables if tree.paths]
    tested = [(tree, path) for tree in tables for path in (*tree.tested, None)]
    p_values = max_t_p_values([tree.differences(path) for tree, path in tested])
    for (tree, path), p_value in zip(tested, p_values, strict=True):
        tree.p_values[path] = p_value
    return tuple(tree.table() for tree in tables)


_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judging:
    """Of what figures are, and by which rule they are judged."""

    unit: str
    calls_per_step: int
    alpha: float
    is_void: bool


class _Tree:
    """One call tree in all processes of all pairs; the path None stands for what is in no place."""

    def __init__(self, kind: str, pairs: Sequence[Pair], judging: _Judging) -> None:
        self.kind = kind
        self._judging = judging
        self._pairs = pairs
        self._before = [_by_path(pair.baseline, kind) for pair in pairs]
        self._after = [_by_path(pair.candidate, kind) for pair in pairs]
        self._is_cut = any(map(_is_cut, pairs))
        self.paths = self._compared_paths()
        self._whole_before = [_step_ns(pair.baseline) for pair in pairs]
        self._whole_change = [_step_change_ns(pair) for pair in pairs]
        self.p_values: dict[_Path | None, float] = {}

    def _compared_paths(self) -> list[_Path]:
        """Those that are known of all pairs: where some were cut off, one that is missing may be there."""
        every = dict.fromkeys(path for nodes in (*self._before, *self._after) for path in nodes)
        sides = zip(self._pairs, self._before, self._after, strict=True)
        kept = [{*before, *after} for pair, before, after in sides if _is_cut(pair)]
        return [path for path in every if all(path in paths for paths in kept)]

    @property
    def tested(self) -> list[_Path]:
        """The paths that are large enough to be: on both sides alike, so that none is favoured."""
        least = LEAST_TESTED_SHARE * (2 * median(self._whole_before) + median(self._whole_change))
        return [path for path in self.paths if sum(self._medians(path)) >= least]

    def differences(self, path: _Path | None) -> list[float]:
        """What a step takes more there, pair by pair."""
        if path is not None:
            return [nodes[path].change_ns if path in nodes else 0.0 for nodes in self._after]
        wholes = zip(self._whole_change, self._after, strict=True)
        return [
            change - sum(nodes[one].change_ns for one in self.paths if one in nodes)
            for change, nodes in wholes
        ]

    def table(self) -> PartsTable:
        whole = _whole(self._pairs, self._judging)
        places = Places()
        rows = [self._row(path, places) for path in self.paths]
        rest = self._judged(None, *self._rest(whole, rows))
        rows = with_moves(rows, whole=whole, rest=rest, kind=_KINDS[self.kind], is_judged=True)
        before_steps = self._steps(pair.baseline for pair in self._pairs)
        rows.sort(key=lambda row: (not is_called_otherwise(row), -abs(row.own.grown)))
        return PartsTable(
            kind=_KINDS[self.kind],
            rows=tuple(self._of_a_call(row) for row in rows),
            whole=self._scaled(whole),
            rest=self._scaled(rest),
            steps=(before_steps, self._steps(pair.candidate for pair in self._pairs)),
            with_warmup=False,
            measured_unit=self._judging.unit,
            is_cut=self._is_cut,
        )

    def _steps(self, processes: Iterable[ProcessTurns]) -> int:
        steps = sum(turn.steps for process in processes for turn in process.rounds)
        return steps * self._judging.calls_per_step

    def _of_a_call(self, row: PartChange) -> PartChange:
        """Of a function that is called many times a step, what one call takes."""
        return replace(
            row, own=self._scaled(row.own), calls=None if row.calls is None else self._scaled(row.calls)
        )

    def _scaled(self, change: Change) -> Change:
        if change.before is None or change.after is None:
            return change
        calls = self._judging.calls_per_step
        return replace(change, before=change.before / calls, after=change.after / calls)

    def _rest(self, whole: Change, rows: Sequence[PartChange]) -> tuple[float, float]:
        return (
            (whole.before or 0.0) - sum(row.own.before or 0.0 for row in rows),
            (whole.after or 0.0) - sum(row.own.after or 0.0 for row in rows),
        )

    def _row(self, path: _Path, places: Places) -> PartChange:
        before_calls, after_calls = self._calls(path)
        before_ns, after_ns = self._medians(path)
        place: Place | None = None
        for name in path[1:]:
            place = places.at(place, name)
        if place is None:
            raise ValueError("a place without a name")
        return PartChange(
            place=place,
            presence=presence_of([*map(bool, before_calls)], [*map(bool, after_calls)]),
            is_part=True,
            own=self._judged(path, before_ns, after_ns),
            calls=judge_call_counts(
                Pairing(quantity=Quantity.COUNT, before=before_calls, after=after_calls),
                tolerance=COUNT_TOLERANCE,
            ),
        )

    def _judged(self, path: _Path | None, before: float, after: float) -> Change:
        """The change of a place: what it took before, and by how much the turns side by side differ."""
        change = median(self.differences(path))
        is_large = abs(change) >= LEAST_CHANGE_SHARE * median(self._whole_before)
        is_sure = is_large and self.p_values.get(path, 1.0) <= self._judging.alpha
        verdict, doubt = _verdict(change, is_sure=is_sure, is_void=self._judging.is_void)
        if doubt is Doubt.UNDECIDED and path not in self.p_values:
            doubt = Doubt.TOO_SMALL
        return Change(quantity=Quantity.DURATION, before=before, after=after, verdict=verdict, doubt=doubt)

    def _medians(self, path: _Path) -> tuple[float, float]:
        """What it takes on both sides; after is before and the difference of turns side by side."""
        before = median(nodes[path].self_ns if path in nodes else 0.0 for nodes in self._before)
        return before, max(before + median(self.differences(path)), 0.0)

    def _calls(self, path: _Path) -> tuple[list[float], list[float]]:
        return (
            [nodes[path].calls if path in nodes else 0.0 for nodes in self._before],
            [nodes[path].calls if path in nodes else 0.0 for nodes in self._after],
        )


def _by_path(process: ProcessTurns, kind: str) -> Mapping[_Path, NodeFigures]:
    return {node.path: node for node in process.nodes if node.path[0] == kind}


def _is_cut(pair: Pair) -> bool:
    """Whether places of it may have been left out."""
    return any(len(process.nodes) >= MAX_KEPT_NODES for process in (pair.baseline, pair.candidate))


def _step_ns(process: ProcessTurns) -> float:
    return value_of(process, Metric.LATENCY) or 0.0


def _step_change_ns(pair: Pair) -> float:
    """What a step takes more, by turns side by side, as the places are compared."""
    turns = zip(pair.candidate.rounds, pair.baseline.rounds, strict=True)
    return median(one.duration_ns / one.steps - other.duration_ns / other.steps for one, other in turns)


def _verdict(change: float, *, is_sure: bool, is_void: bool) -> tuple[Verdict, Doubt | None]:
    if is_void:
        return Verdict.CANNOT_TELL, Doubt.CONTROL
    if not is_sure:
        return Verdict.CANNOT_TELL, Doubt.UNDECIDED
    return (Verdict.SLOWER if change > 0 else Verdict.FASTER), None


def _whole(pairs: Sequence[Pair], judging: _Judging) -> Change:
    """The change of a whole step, told and judged as a comparison or a gate does."""
    before = median(_step_ns(pair.baseline) for pair in pairs)
    ratios = [group for group in candidate_ratios(pairs, Metric.LATENCY) if group]
    relative = math.expm1(pooled_median(ratios)) if ratios else 0.0
    change = before * relative
    p_value = two_sided_p_value(ratios)
    is_sure = p_value is not None and p_value <= judging.alpha and abs(relative) >= LEAST_EFFECT
    verdict, doubt = _verdict(change, is_sure=is_sure, is_void=judging.is_void)
    return Change(
        quantity=Quantity.DURATION, before=before, after=before + change, verdict=verdict, doubt=doubt
    )


def changed_rows(tables: Sequence[PartsTable]) -> Iterator[tuple[PartsTable, PartChange]]:
    """The places that changed for sure: by their calls first, then by time, the largest first.

    What is called otherwise stands for what is below it. Where all of that is too small to matter, it comes
    last, whatever its calls: the place that takes the time is what is looked for.
    """
    called = [(table, row) for table in tables for row in outermost_called_otherwise(table)]
    telling = [found for found in called if _matters(*found)]
    timed = [
        (table, row)
        for table in tables
        for row in table.rows
        if row.own.verdict in {Verdict.SLOWER, Verdict.FASTER} and not is_called_otherwise(row)
    ]
    yield from telling
    yield from sorted(timed, key=lambda found: -abs(found[1].own.grown))
    yield from (found for found in called if found not in telling)


def _matters(table: PartsTable, called: PartChange) -> bool:
    """Whether it, with what is below it, takes enough more or less to be told first."""
    return abs(grown_with_below(table, called)) >= LEAST_CHANGE_SHARE * (table.whole.before or 0.0)


def grown_with_below(table: PartsTable, called: PartChange) -> float:
    """What a place takes more, and with it what is called otherwise below it."""

    def is_within(place: Place | None) -> bool:
        while place is not None and place is not called.place:
            place = place.outer
        return place is not None

    return sum(row.own.grown for row in table.rows if is_called_otherwise(row) and is_within(row.place))
