"""Findings about steps as a whole: slow ones and first ones."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from pyrometer.analysis.findings.drafting import (
    Answer,
    Missing,
    See,
    at_most,
    finding,
    main_group_of,
)
from pyrometer.analysis.findings.model import Evidence, FindingKind, GainOf, Place, Remedy
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.steps import LEAST_WARMUP_STEPS, GroupResult
from pyrometer.record.torch_run import Step
from pyrometer.units import format_count, format_duration, format_share

FEWEST_STEPS_FOR_A_TAIL = 50
TAIL_RATIO = 2.0
"""The slowest hundredth takes at least so many times the median."""
SLOW_RATIO = 1.5
"""A step that takes more than so many times the median is slow."""
LEAST_TAIL_SHARE = 0.02
COMMON_SHARE = 0.6
"""What holds so much of all slow steps is what they have in common."""
BEYOND_ITS_OWN = 1.5
"""A phase that is most of each step is most of the slow ones too; it must have more than its part."""
FEWEST_SLOW_STEPS = 3
MOST_SLOW_SHARE = 0.15
"""More of them are no tail: the steps are of several kinds."""

FIRST_CALL_SHARE = 0.02


def find_long_tail(observed: Observed) -> Answer:
    """Whether some steps take far longer than most, for a reason that they have in common."""
    main = main_group_of(observed)
    if isinstance(main, Missing):
        return main
    if main.steady.steps < FEWEST_STEPS_FOR_A_TAIL:
        return Missing(reason=f"fewer than {FEWEST_STEPS_FOR_A_TAIL} steps were measured after the warm-up")
    tail = _Tail.of(main)
    if (
        not tail.median_ns
        or tail.p99_ns < TAIL_RATIO * tail.median_ns
        or tail.excess_share < LEAST_TAIL_SHARE
    ):
        return ()
    if len(tail.slow) > MOST_SLOW_SHARE * len(tail.steps):
        return Missing(
            reason=f"{len(tail.slow):,} of {len(tail.steps):,} steps take more than {SLOW_RATIO} × the "
            "median: that is no tail, the steps differ"
        )
    common = tuple(_in_common(tail, main, observed))
    if not common:
        return Missing(
            reason=f"slow steps (p99 {tail.p99_ns / tail.median_ns:.1f} × the median) have nothing in common "
            "that was recorded, as when something else uses the machine"
        )
    return (
        finding(
            FindingKind.LONG_TAIL,
            f"some steps take far longer than most: p99 is {tail.p99_ns / tail.median_ns:.1f} × the median",
            Evidence(
                text=f"of the steps kept one by one, {len(tail.slow):,} of {len(tail.steps):,} take more "
                f"than {SLOW_RATIO} × the median of {format_duration(tail.median_ns)}; p99 "
                f"{format_duration(tail.p99_ns)}",
                see=See.PHASES,
            ),
            *common,
            place=Place(group=main.label, phase=tail.guilty_phase(main)),
            share=tail.excess_share,
            duration_ns=tail.excess_share * main.steady.mean_ns,
            gain=at_most(tail.excess_share, "if no step took longer than the median"),
            remedies=(_EVEN_BATCHES,) if any(_larger_batches(tail)) else (_LESS_OFTEN,),
        ),
    )


_EVEN_BATCHES = Remedy(
    text="batches of like size: sorted into buckets by length, or filled up to a number of tokens",
    snippet="batch_sampler=BucketSampler(lengths, most_tokens=8_192)",
)
_LESS_OFTEN = Remedy(text="do what only these steps do less often, or on another thread")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tail:
    """The steady steps that were kept one by one, and the slow ones among them."""

    steps: tuple[Step, ...]
    slow: tuple[Step, ...]
    usual: tuple[Step, ...]
    median_ns: float
    p99_ns: float
    excess_share: float
    """What slow steps take over the median, of the time of all."""

    @classmethod
    def of(cls, main: GroupResult) -> "_Tail":
        steps = main.series[main.warmup.steps :] or main.series
        durations_ns = sorted(step.duration_ns for step in steps)
        middle_ns = median(durations_ns)
        slow = tuple(step for step in steps if step.duration_ns > SLOW_RATIO * middle_ns)
        excess_ns = sum(step.duration_ns - middle_ns for step in slow)
        return cls(
            steps=steps,
            slow=slow,
            usual=tuple(step for step in steps if step.duration_ns <= SLOW_RATIO * middle_ns),
            median_ns=middle_ns,
            p99_ns=durations_ns[min(len(durations_ns) - 1, int(0.99 * len(durations_ns)))],
            excess_share=excess_ns / (sum(durations_ns) or 1),
        )

    def excess_by_phase(self, main: GroupResult) -> dict[str, float]:
        """What the slow steps take over usual ones in each phase, all of them together."""
        excess = {}
        for index, phase in enumerate(main.phases):
            usual_ns = median(step.phase_ns[index] for step in self.usual)
            excess[phase.name] = sum(step.phase_ns[index] - usual_ns for step in self.slow)
        return excess

    def guilty_phase(self, main: GroupResult) -> str | None:
        """The phase that holds most of what slow steps take longer, and more than it does of any step."""
        excess = {name: ns for name, ns in self.excess_by_phase(main).items() if ns > 0}
        whole = sum(excess.values())
        if not whole:
            return None
        name, most = max(excess.items(), key=lambda item: item[1])
        usual = median(step.duration_ns for step in self.usual)
        index = [phase.name for phase in main.phases].index(name)
        usual_share = median(step.phase_ns[index] for step in self.usual) / (usual or 1)
        share = most / whole
        return name if share >= COMMON_SHARE and share >= BEYOND_ITS_OWN * usual_share else None


def _in_common(tail: _Tail, main: GroupResult, observed: Observed) -> Iterator[Evidence]:
    if len(tail.slow) < FEWEST_SLOW_STEPS or not tail.usual:
        return
    phase = tail.guilty_phase(main)
    if phase is not None:
        excess = tail.excess_by_phase(main)
        share = excess[phase] / sum(ns for ns in excess.values() if ns > 0)
        yield Evidence(text=f"{format_share(share)} of what they take longer is in {phase}", see=See.PHASES)
    every = _period(tail.slow, main)
    if every is not None:
        yield Evidence(text=f"they come every {every:,} steps", see=See.PHASES)
    yield from _larger_batches(tail)
    yield from _pauses(tail, observed)


def _period(slow: Sequence[Step], main: GroupResult) -> int | None:
    """The distance that most slow steps have to the one before, where the steps were kept in a row."""
    in_a_row = main.series[: _length_of_run(main.series)]
    last = in_a_row[-1].index if in_a_row else -1
    # A step that saves is long, and often the one after it too: the first of such a pair counts.
    starts = [step.index for step in slow if step.index <= last]
    starts = [
        index for position, index in enumerate(starts) if not position or index - starts[position - 1] > 1
    ]
    gaps = Counter(later - earlier for earlier, later in pairwise(starts))
    if not gaps:
        return None
    gap, times = gaps.most_common(1)[0]
    return (
        gap
        if gap > 1 and times >= FEWEST_SLOW_STEPS - 1 and times >= COMMON_SHARE * sum(gaps.values())
        else None
    )


def _length_of_run(series: Sequence[Step]) -> int:
    """How many steps at the start follow each other without one left out."""
    return next(
        (
            index
            for index, (one, other) in enumerate(pairwise(series), start=1)
            if other.index != one.index + 1
        ),
        len(series),
    )


def _larger_batches(tail: _Tail) -> Iterator[Evidence]:
    for figure, noun in (("tokens", "tokens"), ("samples", "samples")):
        slow = [getattr(step, figure) for step in tail.slow if getattr(step, figure) is not None]
        usual = [getattr(step, figure) for step in tail.usual if getattr(step, figure) is not None]
        if slow and usual and median(slow) >= SLOW_RATIO * median(usual) > 0:
            yield Evidence(
                text=f"they get {median(slow):,.0f} {noun} each, the others {median(usual):,.0f}",
                see=See.PHASES,
            )
            return


def _pauses(tail: _Tail, observed: Observed) -> Iterator[Evidence]:
    """Whether garbage was collected in most slow steps."""
    garbage = observed.run.garbage
    longest = () if garbage is None else garbage.longest
    hit = [
        step
        for step in tail.slow
        if any(
            step.started_ns <= pause.started_ns < step.started_ns + step.duration_ns
            and pause.duration_ns >= (step.duration_ns - tail.median_ns) / 2
            for pause in longest
        )
    ]
    if len(hit) >= COMMON_SHARE * len(tail.slow):
        yield Evidence(
            text=f"Python collected garbage in {len(hit):,} of {len(tail.slow):,} of them, for most of what "
            "they take longer",
            see=See.GARBAGE,
        )


def find_first_call(observed: Observed) -> Answer:
    """Whether the first steps, before all is compiled and loaded, take a noticeable part of the run."""
    main = main_group_of(observed)
    if isinstance(main, Missing) or observed.torch is None:
        return main if isinstance(main, Missing) else ()
    run_ns = observed.run.profiled_ns
    slowest = max(observed.torch.groups, key=_extra_ns)
    extra_ns = _extra_ns(slowest)
    if not run_ns or extra_ns < FIRST_CALL_SHARE * run_ns:
        return ()
    first = _first_steps(slowest)
    evidence = [
        Evidence(
            text=f"the longest of the first {format_count(len(first), 'step')} takes "
            f"{format_duration(max(step.duration_ns for step in first))}, a steady one "
            f"{format_duration(slowest.steady.mean_ns)}; together they take {format_duration(extra_ns)} more "
            "than as many steady ones",
            see=See.FIRST_STEP,
        )
    ]
    compilation = observed.torch.compilation
    compiled = compilation is not None and compilation.compile_ns > 0
    if compilation is not None and compiled:
        evidence.append(
            Evidence(
                text=f"{format_duration(compilation.compile_ns)} were spent compiling", see=See.COMPILATION
            )
        )
    share = min(extra_ns / run_ns, 1.0)
    return (
        finding(
            FindingKind.FIRST_CALL,
            "the first steps take a noticeable part of the whole run",
            *evidence,
            place=Place(group=slowest.label),
            share=share,
            duration_ns=extra_ns,
            gain=at_most(share, "if the first steps were as fast as the later ones", of=GainOf.RUN),
            remedies=(_KEEP_COMPILED,) if compiled else (),
        ),
    )


_KEEP_COMPILED = Remedy(
    text="keep what was compiled", snippet="TORCHINDUCTOR_FX_GRAPH_CACHE=1 python PROGRAM.py", language="bash"
)


def _first_steps(group: GroupResult) -> tuple[Step, ...]:
    """No more than any warm-up has: what comes later is as likely noise."""
    return group.series[: min(group.warmup.steps, LEAST_WARMUP_STEPS)]


def _extra_ns(group: GroupResult) -> float:
    """What the first steps took over as many steady ones."""
    first = _first_steps(group)
    return sum(step.duration_ns for step in first) - len(first) * group.steady.mean_ns
