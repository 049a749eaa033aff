"""What many gates say together: tables of rates with their intervals, and whether stated limits are kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, median, stdev

from gate_measuring import Outcome
from gate_rules import RULES
from gate_trials import BUSY, QUIET, TWO_AT_ONCE

from pyrometer.analysis.gate import LOOKS, Reason, Verdict, two_sided_p_value
from pyrometer.stats.binomial import clopper_pearson

WIDTH = 100
CONFIDENCE = 0.95
FALSE_ALARMS = 0.01
POWER = {(5.0, 20): 0.99, (3.0, 40): 0.95}
"""The least share of FAIL, by percent of extra work, within so many pairs."""
RIGHT_FIRST = 0.95
WRONG_TOLD = 0.01
WITHIN_PAIRS = (10, 20, 40)
FIRST_LOOK = LOOKS[0].pairs
LOADS = tuple(load.name for load in (QUIET, TWO_AT_ONCE, BUSY))


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A table, and the limits that are missed for sure in it."""

    text: str
    missed: tuple[str, ...] = ()


def at_most(count: int, of: int, limit: float) -> str:
    """PASS where the whole interval of a rate lies within the limit, FAIL where all lies beyond."""
    interval = clopper_pearson(count, of, confidence=CONFIDENCE)
    if interval.high <= limit:
        return "PASS"
    return "FAIL" if interval.low > limit else "UNCLEAR"


def at_least(count: int, of: int, limit: float) -> str:
    """The same of a rate that is to be no lower."""
    return at_most(of - count, of, 1 - limit)


def rate(count: int, of: int) -> str:
    """A share in percent, with its interval."""
    if not of:
        return "–"
    interval = clopper_pearson(count, of, confidence=CONFIDENCE)
    return f"{100 * count / of:.1f} ({100 * interval.low:.1f}–{100 * interval.high:.1f})"


def share(count: int, of: int) -> str:
    """A share in percent."""
    return f"{100 * count / of:.0f} %" if of else "–"


def false_alarms(title: str, outcomes: Sequence[Outcome], others: Sequence[Outcome] = ()) -> Section:
    """Gates on identical code, a row for each workload and load; the last is of all, with the others' too."""
    cells = _with_all(_by_cell(outcomes))
    if others:
        cells["all, and those above"] = [*outcomes, *others]
    heads = f"{'PASS':>6}{'undec.':>7}{'void':>6}{'pairs':>7}{'s':>6}{'others':>8}"
    lines = [title, f"{'':<22}{'gates':>6}{'FAIL':>6}  {'FAIL %, 95 % interval':<22}{heads}"]
    missed = []
    for name, cell in cells.items():
        alarms = _count(cell, is_fail)
        verdict = at_most(alarms, len(cell), FALSE_ALARMS)
        if verdict == "FAIL":
            missed.append(f"false alarms: {name}")
        voids = _count(cell, is_void)
        undecided = _count(cell, lambda one: one.verdict == Verdict.INCONCLUSIVE) - voids
        passes = _count(cell, lambda one: one.verdict == Verdict.PASS)
        shares = "".join(
            f"{share(count, len(cell)):>{width}}"
            for count, width in ((passes, 6), (undecided, 7), (voids, 6))
        )
        lines.append(
            f"{name:<22}{len(cell):>6}{alarms:>6}  {rate(alarms, len(cell)):<22}{shares}"
            f"{fmean(one.pairs for one in cell):>7.1f}{median(one.seconds for one in cell):>6.0f}"
            f"{median(one.cores_of_others for one in cell):>8.2f}  {verdict}"
        )
    return Section(text="\n".join(lines), missed=tuple(missed))


def p_values(outcomes: Sequence[Outcome]) -> Section:
    """Whether the test's p-values are what they say: of identical code, at most 5 % of them are below 5 %.

    FAIL asks for 1 % of change as well, so that few false alarms alone would not show a test that is off.
    Two-sided, over the pairs of the first look.
    """
    cells = _with_all(_by_cell(outcomes))
    lines = [
        "The test itself, on identical code: how many p-values are so low, in %, with the 95 % interval",
        f"{'':<24}{'gates':>6}  {'p ≤ 5 %':<26}{'p ≤ 1 %':<26}".rstrip(),
    ]
    missed = []
    for name, cell in cells.items():
        found = [two_sided_p_value([[value] for value in one.ratios[:FIRST_LOOK]]) for one in cell]
        row = ""
        for limit in (0.05, 0.01):
            low = sum(p_value is not None and p_value <= limit for p_value in found)
            verdict = at_most(low, len(found), limit)
            row += f"{rate(low, len(found))} {verdict}".ljust(26)
            if verdict == "FAIL":
                missed.append(f"p-values up to {100 * limit:g} %: {name}")
        lines.append(f"{name:<24}{len(found):>6}  {row}".rstrip())
    return Section(text="\n".join(lines), missed=tuple(missed))


def power(outcomes: Sequence[Outcome]) -> Section:
    """Gates on real extra work: how many say FAIL, and after how many pairs."""
    cells: dict[tuple[str, float], list[Outcome]] = {}
    for outcome in sorted(outcomes, key=lambda one: (one.workload, one.extra, _load_order(one))):
        cells.setdefault((f"{outcome.workload}, {outcome.load}", outcome.extra), []).append(outcome)
    heads = "".join(f"{f'≤ {pairs} pairs':<19}" for pairs in WITHIN_PAIRS)
    lines = [
        "Real extra work: FAIL within so many pairs, in %, with the 95 % interval",
        f"{'':<18}{'extra':>6}{'seen as':>8}{'gates':>6}  {heads}{'PASS':>5}{'void':>6}",
    ]
    missed = []
    for (name, extra), cell in cells.items():
        shares, verdicts = "", []
        for pairs in WITHIN_PAIRS:
            caught = sum(is_fail(one) and one.pairs <= pairs for one in cell)
            shares += f"{rate(caught, len(cell)):<19}"
            target = POWER.get((extra, pairs))
            if target is not None:
                verdicts.append(f"≥ {100 * target:g} % {at_least(caught, len(cell), target)}")
        if any("FAIL" in verdict for verdict in verdicts) and not name.endswith(BUSY.name):
            missed.append(f"power: +{extra:g} %, {name}")
        passes = share(_count(cell, lambda one: one.verdict == Verdict.PASS), len(cell))
        seen = f"{100 * median(one.change or 0.0 for one in cell):+.1f} %"
        lines.append(
            f"{name:<18}{f'+{extra:g} %':>6}{seen:>8}{len(cell):>6}  {shares}{passes:>5}"
            f"{share(_count(cell, is_void), len(cell)):>6}"
        )
        if verdicts:
            lines.append(f"{'':<32}limit: {'; '.join(verdicts)}")
    return Section(text="\n".join(lines), missed=tuple(missed))


def uneven(outcomes: Sequence[Outcome]) -> Section:
    """Gates on extra work in few steps, which a usual turn does not show: PASS would be false."""
    lines = [
        "Half as much work again, all of it in every 20th or 50th step: what is said, in %",
        f"{'':<20}{'gates':>6}  {'PASS, with the interval':<26}{'called uneven':<15}FAIL",
    ]
    missed = []
    for name, cell in _by_cell(outcomes).items():
        passes = _count(cell, lambda one: one.verdict == Verdict.PASS)
        verdict = at_most(passes, len(cell), FALSE_ALARMS)
        if verdict == "FAIL":
            missed.append(f"PASS of what is slower in few steps: {name}")
        passed = f"{rate(passes, len(cell))} {verdict}"
        told = share(_count(cell, lambda one: one.reason == Reason.UNEVEN), len(cell))
        fails = share(_count(cell, is_fail), len(cell))
        lines.append(f"{name:<20}{len(cell):>6}  {passed:<26}{told:<15}{fails}")
    return Section(text="\n".join(lines), missed=tuple(missed))


def rules(outcomes: Sequence[Outcome]) -> Section:
    """What other tools' rules say of one process of each side, beside the gate."""
    light = [one for one in outcomes if one.workload == "light" and one.part in {"aa", "power"}]
    cells: dict[str, list[Outcome]] = {}
    for one in sorted(light, key=lambda one: (one.extra, _load_order(one))):
        name = f"+{one.extra:g} %, {one.load}" if one.extra else f"same, {one.load}"
        cells.setdefault(name, []).append(one)
    judges: dict[str, Callable[[Outcome], bool]] = {"pyrometer": is_fail}
    judges |= {rule: partial(_calls_slower, is_slower) for rule, is_slower in RULES.items()}
    lines = [
        "Share called slower, in %: other tools' rules on the light program, one process of each side",
        f"{'':<18}{'gates':>6}{''.join(f'{name:>{_rule_width(name)}}' for name in judges)}",
    ]
    for name, cell in cells.items():
        shares = "".join(f"{_percent(cell, holds):>{_rule_width(rule)}}" for rule, holds in judges.items())
        lines.append(f"{name:<18}{len(cell):>6}{shares}")
    return Section(text="\n".join(lines))


def _calls_slower(is_slower: Callable[[Sequence[float], Sequence[float]], bool], one: Outcome) -> bool:
    return is_slower(one.before, one.after)


def _rule_width(name: str) -> int:
    return max(len(name) + 2, len("  100.0"))


def attribution(outcomes: Sequence[Outcome]) -> Section:
    """Whether the place that got the extra work is told first, and no other."""
    cells = _by_cell(outcomes)
    lines = [
        "One place slowed by 3 to 5 % of a step: which places are told",
        f"{'':<21}{'gates':>6}{'FAIL':>9}  {'right first, %':<28}a wrong one told, %",
    ]
    missed = []
    for name, cell in cells.items():
        right = _count(cell, lambda one: bool(one.told) and one.told[0] == one.slowed)
        wrong = _count(cell, lambda one: any(place != one.slowed for place in one.told))
        verdicts = (at_least(right, len(cell), RIGHT_FIRST), at_most(wrong, len(cell), WRONG_TOLD))
        if "FAIL" in verdicts:
            missed.append(f"attribution: {name}")
        told = (f"{rate(right, len(cell))} {verdicts[0]}", f"{rate(wrong, len(cell))} {verdicts[1]}")
        lines.append(
            f"{name:<21}{len(cell):>6}{_percent(cell, is_fail):>7} %  {told[0]:<28}{told[1]:<28}".rstrip()
        )
    return Section(text="\n".join(lines), missed=tuple(missed))


def biases(outcomes: Sequence[Outcome]) -> Section:
    """Whether it matters who starts or goes first: identical code, mean over gates and standard error."""
    lines = [
        "Identical code: does the order matter? Mean over gates ± standard error, in % of a step",
        f"{'':<24}{'gates':>5}{'candidate':>14}{'control':>14}   {'1st, 2nd, 3rd turn':<28}{'first started'}",
    ]
    cells = _by_cell([one for one in outcomes if one.by_position])
    for name, cell in cells.items():
        candidate = [median(one.ratios) for one in cell]
        control = [median(one.control) for one in cell]
        turns = [[one.by_position[i] - fmean(one.by_position) for one in cell] for i in range(3)]
        positions = ", ".join(f"{100 * fmean(turn):+.2f}" for turn in turns)
        starts = [one.by_start[0] - fmean(one.by_start) for one in cell]
        lines.append(
            f"{name:<24}{len(cell):>5}{_mean_and_error(candidate):>14}{_mean_and_error(control):>14}"
            f"   {f'{positions} {_error(turns[0])}':<28}{_mean_and_error(starts)}"
        )
    return Section(text="\n".join(lines))


def is_fail(outcome: Outcome) -> bool:
    """Whether the gate calls it slower."""
    return outcome.verdict == Verdict.FAIL


def is_void(outcome: Outcome) -> bool:
    """Whether the control took the verdict back."""
    return outcome.reason == Reason.CONTROL


def _by_cell(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    cells: dict[str, list[Outcome]] = {}
    for outcome in sorted(outcomes, key=_load_order):
        cells.setdefault(f"{outcome.workload}, {outcome.load}", []).append(outcome)
    return cells


def _load_order(outcome: Outcome) -> int:
    """The three loads in their order, and what is no load of its own behind them."""
    return LOADS.index(outcome.load) if outcome.load in LOADS else len(LOADS)


def _with_all(cells: dict[str, list[Outcome]]) -> dict[str, list[Outcome]]:
    """The cells, and all of them together where they are several."""
    return cells if len(cells) < 2 else {**cells, "all": [one for cell in cells.values() for one in cell]}


def _count(outcomes: Sequence[Outcome], holds: Callable[[Outcome], bool]) -> int:
    return sum(map(holds, outcomes))


def _percent(outcomes: Sequence[Outcome], holds: Callable[[Outcome], bool]) -> str:
    return f"{100 * _count(outcomes, holds) / len(outcomes):.1f}"


def _mean_and_error(values: Sequence[float]) -> str:
    return f"{100 * fmean(values):+.2f} {_error(values)}"


def _error(values: Sequence[float]) -> str:
    return f"± {100 * stdev(values) / len(values) ** 0.5:.2f}" if len(values) > 1 else "± –"
