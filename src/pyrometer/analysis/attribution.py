"""Where a measured change comes from: the places of the call trees that grew, in turns side by side.

Differences are in nanoseconds of a step, never scaled to the whole: a place that did not change stays at
0 however much the others did. All places share one chance of error.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

from pyrometer.analysis.call_tree import Place
from pyrometer.analysis.comparison.figures import Places
from pyrometer.analysis.comparison.model import (
    Change,
    Doubt,
    PartChange,
    PartsKind,
    PartsTable,
    Presence,
    Quantity,
    Verdict,
)
from pyrometer.analysis.comparison.parts import is_called_otherwise, with_moves
from pyrometer.analysis.comparison.verdicts import ALPHA, COUNT_TOLERANCE, LEAST_TESTED_SHARE, Pairing
from pyrometer.analysis.comparison.verdicts import judge_counts as judge_call_counts
from pyrometer.analysis.gate import two_sided_p_value
from pyrometer.analysis.trials import Metric, candidate_ratios, value_of
from pyrometer.record.trials import NodeFigures, Pair, ProcessTurns
from pyrometer.stats.max_t import max_t_p_values

LEAST_CHANGE_SHARE = 0.003
"""Of a step: a smaller change of a place is not told, however sure it is."""

_KINDS = {"module": PartsKind.MODULES, "scope": PartsKind.SCOPES}


def find_changed_places(
    pairs: Sequence[Pair], *, unit: str = "step", calls_per_step: int = 1, is_void: bool = False
) -> tuple[PartsTable, ...]:
    """A table for each call tree, with what each place takes of a step, or call, on both sides.

    Rows whose calls changed come first, then those whose time changed most; places too small to be
    tested stand in it without a verdict, and where the control has voided the pairs, all do.
    """
    if not pairs:
        return ()
    tables = [_Tree(kind, pairs, unit, calls_per_step, is_void=is_void) for kind in _KINDS]
    tables = [tree for tree in tables if tree.paths]
    tested = [(tree, path) for tree in tables for path in (*tree.tested, None)]
    p_values = max_t_p_values([tree.differences(path) for tree, path in tested])
    for (tree, path), p_value in zip(tested, p_values, strict=True):
        tree.p_values[path] = p_value
    return tuple(tree.table() for tree in tables)


_Path = tuple[str, ...]


class _Tree:
    """One call tree in all processes of all pairs; the path None stands for what is in no place."""

    def __init__(
        self, kind: str, pairs: Sequence[Pair], unit: str, calls_per_step: int, *, is_void: bool
    ) -> None:
        self.kind = kind
        self._is_void = is_void
        self._unit = unit
        self._calls_per_step = calls_per_step
        self._pairs = pairs
        self._before = [_by_path(pair.baseline, kind) for pair in pairs]
        self._after = [_by_path(pair.candidate, kind) for pair in pairs]
        self.paths = list(dict.fromkeys(path for nodes in (*self._before, *self._after) for path in nodes))
        self._whole_before = [_step_ns(pair.baseline) for pair in pairs]
        self._whole_change = [_step_change_ns(pair) for pair in pairs]
        self.p_values: dict[_Path | None, float] = {}

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
        return [change - sum(node.change_ns for node in nodes.values()) for change, nodes in wholes]

    def table(self) -> PartsTable:
        whole = _whole(self._pairs, is_void=self._is_void)
        places = Places()
        rows = [self._row(path, places) for path in self.paths]
        rest = self._judged(None, *self._rest(whole, rows), is_tested=True)
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
            measured_unit=self._unit,
        )

    def _steps(self, processes: Iterable[ProcessTurns]) -> int:
        steps = sum(turn.steps for process in processes for turn in process.rounds)
        return steps * self._calls_per_step

    def _of_a_call(self, row: PartChange) -> PartChange:
        """Of a function that is called many times a step, what one call takes."""
        return replace(
            row, own=self._scaled(row.own), calls=None if row.calls is None else self._scaled(row.calls)
        )

    def _scaled(self, change: Change) -> Change:
        if change.before is None or change.after is None:
            return change
        calls = self._calls_per_step
        return replace(change, before=change.before / calls, after=change.after / calls)

    def _rest(self, whole: Change, rows: Sequence[PartChange]) -> tuple[float, float]:
        return (
            (whole.before or 0.0) - sum(row.own.before or 0.0 for row in rows),
            (whole.after or 0.0) - sum(row.own.after or 0.0 for row in rows),
        )

    def _row(self, path: _Path, places: Places) -> PartChange:
        before_calls, after_calls = self._calls(path)
        is_before, is_after = any(before_calls), any(after_calls)
        before_ns, after_ns = self._medians(path)
        place: Place | None = None
        for name in path[1:]:
            place = places.at(place, name)
        if place is None:
            raise ValueError("a place without a name")
        own = self._judged(path, before_ns, after_ns, is_tested=path in self.p_values)
        presence = Presence.NEW if is_after else Presence.VANISHED
        return PartChange(
            place=place,
            presence=Presence.BOTH if is_before == is_after else presence,
            is_part=True,
            own=own,
            calls=judge_call_counts(
                Pairing(quantity=Quantity.COUNT, before=before_calls, after=after_calls),
                tolerance=COUNT_TOLERANCE,
            ),
        )

    def _judged(self, path: _Path | None, before: float, after: float, *, is_tested: bool) -> Change:
        """The change of a place: what it took before, and by how much the turns side by side differ."""
        if not is_tested:
            return Change(
                quantity=Quantity.DURATION,
                before=before,
                after=after,
                verdict=Verdict.CANNOT_TELL,
                doubt=Doubt.TOO_SMALL,
            )
        change = median(self.differences(path))
        least = LEAST_CHANGE_SHARE * median(self._whole_before)
        is_sure = self.p_values[path] <= ALPHA and abs(change) >= least
        verdict, doubt = _verdict(change, is_sure=is_sure, is_void=self._is_void)
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


def _whole(pairs: Sequence[Pair], *, is_void: bool) -> Change:
    before = median(_step_ns(pair.baseline) for pair in pairs)
    change = median(map(_step_change_ns, pairs))
    p_value = two_sided_p_value(candidate_ratios(pairs, Metric.LATENCY))
    is_sure = p_value is not None and p_value <= ALPHA and abs(change) >= LEAST_CHANGE_SHARE * before
    verdict, doubt = _verdict(change, is_sure=is_sure, is_void=is_void)
    return Change(
        quantity=Quantity.DURATION, before=before, after=before + change, verdict=verdict, doubt=doubt
    )


def changed_rows(tables: Sequence[PartsTable]) -> Iterator[tuple[PartsTable, PartChange]]:
    """The places that changed for sure: by their calls first, then by time, the largest first."""
    for table in tables:
        yield from ((table, row) for row in table.rows if is_called_otherwise(row))
    timed = [
        (table, row)
        for table in tables
        for row in table.rows
        if row.own.verdict in {Verdict.SLOWER, Verdict.FASTER} and not is_called_otherwise(row)
    ]
    yield from sorted(timed, key=lambda found: -abs(found[1].own.grown))
