"""Two sides, of one run or more each, compared part by part."""

import calendar
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from pyrometer.analysis.comparison.figures import (
    Places,
    RunParts,
    calls_are_about_right,
    has_steps,
    lengths_differ,
    lengths_mix_calls,
    modules_of,
    operator_window,
    operators_of,
    phases_of,
    scopes_of,
)
from pyrometer.analysis.comparison.metrics import compare_metrics, leave_changed_open, leave_open
from pyrometer.analysis.comparison.model import (
    Change,
    Comparison,
    Doubt,
    Missing,
    Part,
    PartsTable,
    Presence,
    SideFacts,
)
from pyrometer.analysis.comparison.parts import compare_parts
from pyrometer.analysis.comparison.samples import compare_functions, merge_frames
from pyrometer.analysis.comparison.verdicts import find_doubt
from pyrometer.analysis.identity import (
    RULES,
    Comparability,
    Level,
    Weight,
    compare_identities,
    identity_of,
)
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.sample_results import SampleResults
from pyrometer.analysis.steps import GroupResult, WarmupEnd
from pyrometer.record.run import Run

_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(\.\d{1,9})?(?:Z|([+-])(\d\d):?(\d\d))", re.ASCII
)
_LEVELS = (Level.REFUSED, Level.TREND_ONLY, Level.COMPARABLE)
_CODE = frozenset({"code", "dirty", "script"})
_OF_THE_PROFILER = frozenset({"recorder", "watched"})
"""What differs with these is what recording costs, and not the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The runs of one side, at least one, all of the same program on the same inputs."""

    name: str
    """As the user named it."""
    runs: tuple[Observed, ...]


def compare_facts(
    before: Sequence[Run], after: Sequence[Run], *, allowed: Collection[str] = frozenset()
) -> Comparability:
    """Whether these runs may be compared: only as far as all of them may be with those of the other side."""
    one, other = [identity_of(run) for run in before], [identity_of(run) for run in after]
    pairs = [*((one[0], identity) for identity in other), *((identity, other[0]) for identity in one[1:])]
    found = [compare_identities(*pair, allowed=allowed, sides=("A", "B")) for pair in pairs]
    differences = {difference.name: difference for facts in found for difference in facts.differences}
    return Comparability(
        level=min((facts.level for facts in found), key=_LEVELS.index),
        differences=tuple(differences[name] for name in RULES if name in differences),
    )


def find_unlike(runs: Sequence[Run], *, allowed: Collection[str] = frozenset()) -> tuple[int, str] | None:
    """The first run of a side that is of something else than its first, and how; None where all are alike."""
    first = identity_of(runs[0])
    for index, run in enumerate(runs[1:], start=1):
        facts = compare_identities(first, identity_of(run), allowed=allowed, sides=("first", "other"))
        # Other code is told where nothing weighs more.
        for difference in sorted(facts.differences, key=lambda one: one.name in _CODE):
            # What is missing in all of them is told when they are compared with the other side.
            unlike = difference.weight is Weight.REFUSED or difference.name in _CODE
            if unlike and not difference.accepted and difference.before != difference.after:
                return index, difference.sentence
    return None


def compare_sides(before: Side, after: Side, comparability: Comparability) -> Comparison:
    """Everything that both sides say, beside each other; nothing but the facts where that is refused."""
    before, after = _with_one_main(before, after)
    doubt = _doubt(before, after, comparability)
    watched_alike = _OF_THE_PROFILER.isdisjoint(_weighty(comparability))
    facts = (_facts(before), _facts(after))
    if comparability.level is Level.REFUSED:
        return Comparison(before=facts[0], after=facts[1], comparability=comparability, doubt=doubt)
    parts = _Parts(before.runs, after.runs, doubt, watched_alike=watched_alike)
    sampled = [[run.samples for run in side.runs if _is_sampled(run.samples)] for side in (before, after)]
    kept = [[results for results in side if results is not None] for side in sampled]
    has_samples = bool(kept[0] and kept[1])
    tables, missing = parts.tables()
    if not has_samples:
        missing.append(Missing(part=Part.SAMPLES, before=not kept[0], after=not kept[1]))
    return Comparison(
        before=facts[0],
        after=facts[1],
        comparability=comparability,
        doubt=doubt,
        metrics=compare_metrics(before.runs, after.runs, doubt, watched_alike=watched_alike),
        tables=tables,
        functions=compare_functions(*kept) if has_samples else None,
        frames=merge_frames(*kept) if has_samples else None,
        missing=tuple(missing),
    )


def _with_one_main(before: Side, after: Side) -> tuple[Side, Side]:
    """The sides, told by steps of one kind where all runs have it: that which takes most of their time.

    Each run by itself takes the kind with most time. Of two that take about as long, it would be now the
    one and now the other, and steps of different kinds would be compared.
    """
    runs = [run for side in (before, after) for run in side.runs]
    known = [run.torch for run in runs if run.torch is not None and run.torch.main is not None]
    by_label = [{group.label: group for group in torch.groups} for torch in known]
    labels = {torch.main.label for torch in known if torch.main is not None}
    common = [label for label in sorted(labels) if all(label in groups for groups in by_label)]
    if len(labels) < 2 or not common:
        return before, after
    label = max(common, key=lambda label: sum(groups[label].total_ns for groups in by_label))
    return _with_main(before, label), _with_main(after, label)


def _with_main(side: Side, label: str) -> Side:
    def told_by(run: Observed) -> Observed:
        groups = () if run.torch is None else run.torch.groups
        main = next((group for group in groups if group.label == label), None)
        return run if main is None or run.torch is None else replace(run, torch=replace(run.torch, main=main))

    return replace(side, runs=tuple(map(told_by, side.runs)))


def _doubt(before: Side, after: Side, comparability: Comparability) -> Doubt | None:
    weighty = _weighty(comparability)
    if weighty and weighty <= _OF_THE_PROFILER:
        return Doubt.WATCHED_OTHERWISE
    return find_doubt(
        [started_s(run.run.started_at) for run in before.runs],
        [started_s(run.run.started_at) for run in after.runs],
        same_machine=comparability.level is Level.COMPARABLE,
    )


def _weighty(comparability: Comparability) -> set[str]:
    """The facts that leave a trend."""
    differences = comparability.differences
    return {one.name for one in differences if one.weight is Weight.TREND_ONLY and not one.accepted}


def started_s(moment: str) -> float | None:
    """When a run began, in seconds, to tell which of two was first; None where it cannot be read."""
    found = _MOMENT.fullmatch(moment)
    if found is None:
        return None
    *date_and_time, fraction, sign, hours, minutes = found.groups()
    try:
        seconds = calendar.timegm(tuple(map(int, date_and_time)))
    except ValueError:
        return None
    offset_s = 60 * (60 * int(hours or 0) + int(minutes or 0))
    return seconds + float(fraction or 0) - (-offset_s if sign == "-" else offset_s)


def _is_sampled(results: SampleResults | None) -> bool:
    return results is not None and results.overall.parts.cpu_ns > 0


class _Parts:
    """The tables of parts, and those that there are not."""

    def __init__(
        self,
        before: Sequence[Observed],
        after: Sequence[Observed],
        doubt: Doubt | None,
        *,
        watched_alike: bool,
    ) -> None:
        self._sides = (before, after)
        self._doubt = doubt
        self._watched_alike = watched_alike
        self._missing: list[Missing] = []

    def tables(self) -> tuple[tuple[PartsTable, ...], list[Missing]]:
        a_step = all(has_steps(run) for side in self._sides for run in side)
        made = (
            self._table(Part.STEPS, phases_of),
            self._table(Part.MODULES, modules_of),
            self._table(Part.SCOPES, lambda run, places: scopes_of(run, places, a_step=a_step)),
            self._table(Part.OPERATORS, operators_of),
        )
        return tuple(table for table in made if table is not None), self._missing

    def _table(self, part: Part, of: Callable[[Observed, Places], RunParts | None]) -> PartsTable | None:
        places = Places()
        before, after = (
            [found for run in side if (found := of(run, places)) is not None] for side in self._sides
        )
        if before and after and any(run.parts for run in (*before, *after)):
            return self._with_open_counts(compare_parts(before, after, self._doubt), part)
        is_missing = [not any(run.parts for run in side) for side in (before, after)]
        self._missing.append(Missing(part=part, before=is_missing[0], after=is_missing[1]))
        return None

    def _with_open_counts(self, table: PartsTable, part: Part) -> PartsTable:
        """The table, without verdicts on counts that say nothing of the code."""
        is_about = part in {Part.MODULES, Part.SCOPES} and any(
            calls_are_about_right(run) for side in self._sides for run in side
        )
        of_calls = Doubt.VARIES if is_about else None
        of_bytes = of_calls if self._watched_alike else Doubt.WATCHED_OTHERWISE
        rows = (
            replace(row, calls=_left_open(row.calls, of_calls), allocated=_left_open(row.allocated, of_bytes))
            for row in table.rows
        )
        return self._without_chance(replace(table, rows=tuple(rows)), part)

    def _without_chance(self, table: PartsTable, part: Part) -> PartsTable:
        """The table, without verdicts on counts that hang on how long runs were, or when looked at."""
        runs = [run for side in self._sides for run in side]
        match part:
            case Part.STEPS if lengths_differ(runs):
                return _with_changed_open(table, allocated=True)
            case Part.MODULES if lengths_differ(runs):
                # What a first call allocates is shared out to few steps or many, however they are called.
                return _with_changed_open(table, calls=lengths_mix_calls(runs), allocated=True)
            case Part.SCOPES if all(map(has_steps, runs)) and lengths_differ(runs):
                return _with_changed_open(table, calls=True, allocated=True)
            case Part.OPERATORS if len({operator_window(run) for run in runs} - {None}) > 1:
                return _with_changed_open(_with_all_there(table), calls=True)
            case _:
                return table


def _with_changed_open(table: PartsTable, *, calls: bool = False, allocated: bool = False) -> PartsTable:
    """The table without verdicts on calls, and bytes, that are not the same."""

    def left_open(change: Change | None, *, is_open: bool) -> Change | None:
        return leave_changed_open(change, Doubt.VARIES) if change is not None and is_open else change

    rows = (
        replace(
            row,
            calls=left_open(row.calls, is_open=calls),
            allocated=left_open(row.allocated, is_open=allocated),
        )
        for row in table.rows
    )
    return replace(table, rows=tuple(rows))


def _with_all_there(table: PartsTable) -> PartsTable:
    """The table with nothing new or vanished in it: a part that one side has not had been met 0 times."""

    def known(change: Change | None) -> Change | None:
        return None if change is None else _known(change)

    rows = (
        replace(
            row, presence=Presence.BOTH, own=_known(row.own), total=known(row.total), calls=known(row.calls)
        )
        for row in table.rows
    )
    return replace(table, rows=tuple(rows))


def _known(change: Change) -> Change:
    return replace(change, before=change.before or 0.0, after=change.after or 0.0)


def _left_open(change: Change | None, doubt: Doubt | None) -> Change | None:
    return change if change is None or doubt is None else leave_open(change, doubt)


def _facts(side: Side) -> SideFacts:
    first = min((run.run for run in side.runs), key=lambda run: started_s(run.started_at) or 0.0)
    git = first.program.git
    mains = [main for run in side.runs if (main := _main(run)) is not None]
    return SideFacts(
        name=side.name,
        program=first.program.name,
        runs=len(side.runs),
        commit=None if git is None else git.commit,
        dirty=None if git is None else git.dirty,
        started_at=first.started_at,
        steps_label=mains[0].label if mains else None,
        steps=sum(main.steps for main in mains),
        warmup_steps=sum(main.warmup.steps for main in mains),
        is_steady=all(main.warmup.end in {WarmupEnd.GIVEN, WarmupEnd.STEADY} for main in mains),
        step_kinds=tuple(
            sorted({group.label for run in side.runs if run.torch is not None for group in run.torch.groups})
        ),
        unfinished=tuple(run.run.outcome.status for run in side.runs if run.run.outcome.status != "finished"),
    )


def _main(run: Observed) -> GroupResult | None:
    return None if run.torch is None else run.torch.main
