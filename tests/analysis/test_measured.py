"""Comparisons that were measured by turns, on pairs made by hand."""

import random
from collections.abc import Callable, Sequence

import msgspec
import pytest

from pyrometer.analysis.comparison.model import (
    Change,
    Comparison,
    Doubt,
    Metric,
    PartsKind,
    Quantity,
    Verdict,
)
from pyrometer.analysis.gate import LOOKS
from pyrometer.analysis.identity import Comparability, Level
from pyrometer.analysis.measured import build_measured, judge_change
from pyrometer.record.trials import Pair, ProcessTurns, Round
from pyrometer.report.gate_words import describe_look
from tests.trial_pairs import STEP_NS, noisy, pairs_of, process, trials_of

COMPARABLE = Comparability(level=Level.COMPARABLE, differences=())


def measured(pairs: Sequence[Pair], **plan: object) -> Comparison:
    """The comparison at the first look that has so many pairs."""
    look = next(look for look in LOOKS if look.pairs >= len(pairs))
    return build_measured(trials_of(pairs, **plan), look, COMPARABLE)


def change_of(comparison: Comparison, metric: Metric) -> Change:
    (found,) = [one.change for one in comparison.metrics if one.metric is metric]
    return found


def with_samples(factor: float, samples: int | None) -> Callable[[random.Random], ProcessTurns]:
    """A process whose steps work on so many samples, and take ``factor`` times as long."""

    def make(noise: random.Random) -> ProcessTurns:
        one = noisy(factor)(noise)
        rounds = tuple(
            Round(turn.duration_ns, turn.steps, None if samples is None else turn.steps * samples)
            for turn in one.rounds
        )
        return msgspec.structs.replace(one, rounds=rounds)

    return make


@pytest.mark.parametrize(
    ("factor", "noise", "verdict", "doubt"),
    [
        (0.9, 0.005, Verdict.FASTER, None),
        (1.1, 0.005, Verdict.SLOWER, None),
        (1.0, 0.005, Verdict.NO_CHANGE, None),
        (1.0, 0.10, Verdict.CANNOT_TELL, Doubt.UNDECIDED),
    ],
)
def test_a_change_is_judged_either_way(
    factor: float, noise: float, verdict: Verdict, doubt: Doubt | None
) -> None:
    pairs = pairs_of(20, noisy(factor, between=noise), baseline=noisy(1.0, between=noise))
    assert judge_change(pairs, LOOKS[1]) == (verdict, doubt)
    comparison = measured(pairs)
    assert comparison.doubt is None
    for metric in (Metric.STEP, Metric.SAMPLES_PER_SECOND):
        change = change_of(comparison, metric)
        assert (change.verdict, change.doubt) == (verdict, doubt)


def test_slower_and_faster_have_half_of_the_chance_of_error_each() -> None:
    # Nine pairs that agree have a chance of 1 in 512, ten of 1 in 1,024; a look has 1 in 500.
    for factor, verdict in ((1.2, Verdict.SLOWER), (0.8, Verdict.FASTER)):
        assert judge_change(pairs_of(9, noisy(factor)), LOOKS[0]) == (Verdict.CANNOT_TELL, Doubt.UNDECIDED)
        assert judge_change(pairs_of(10, noisy(factor)), LOOKS[0]) == (verdict, None)


def test_half_a_percent_for_sure_is_no_change() -> None:
    exact = {"between": 0.0001, "within": 0.001}
    for factor in (1.005, 0.995):
        pairs = pairs_of(40, noisy(factor, **exact), baseline=noisy(1.0, **exact))
        assert judge_change(pairs, LOOKS[2]) == (Verdict.NO_CHANGE, None)


@pytest.mark.parametrize("slow_side", ["candidate", "baseline"])
def test_what_differs_in_few_turns_only_is_not_called_the_same(slow_side: str) -> None:
    slow = process([STEP_NS] * 10 + [4 * STEP_NS] * 2)
    pairs = [
        Pair(
            hash_seed=0,
            **{"baseline": process(), "candidate": process(), "control": process()} | {slow_side: slow},
        )
    ] * 10
    comparison = measured(pairs)
    change = change_of(comparison, Metric.STEP)
    assert (change.verdict, change.doubt) == (Verdict.CANNOT_TELL, Doubt.UNEVEN)
    assert comparison.doubt is Doubt.UNEVEN


def test_a_control_that_differs_leaves_no_verdict_on_any_time() -> None:
    def of(factor: float, change_ns: float) -> Callable[[random.Random], ProcessTurns]:
        figures = (1.0, 500_000 + change_ns, change_ns)
        return lambda noise: process(
            factor * STEP_NS * (1 + noise.gauss(0, 0.001)), nodes={("scope", "work"): figures}
        )

    candidate, baseline = of(1.1, 100_000), of(1.0, 0)
    comparison = measured(pairs_of(10, candidate, baseline=baseline, control=of(1.05, 0)))
    assert comparison.doubt is Doubt.CONTROL
    (table,) = comparison.tables
    changes = [change_of(comparison, Metric.STEP), change_of(comparison, Metric.SAMPLES_PER_SECOND)]
    changes += [table.whole, table.rest, *(row.own for row in table.rows)]
    assert {(change.verdict, change.doubt) for change in changes} == {(Verdict.CANNOT_TELL, Doubt.CONTROL)}
    # The same without a control that differs is told.
    told = measured(pairs_of(10, candidate, baseline=baseline))
    assert told.tables[0].rows[0].own.verdict is Verdict.SLOWER


def test_larger_batches_are_judged_by_the_rate_and_that_comes_first() -> None:
    # Twice the batch in 1.5 times the time.
    comparison = measured(pairs_of(10, with_samples(1.5, 64), baseline=with_samples(1.0, 32)))
    assert comparison.leading is not None
    assert comparison.leading.metric is Metric.SAMPLES_PER_SECOND
    rate = comparison.leading.change
    assert (rate.quantity, rate.verdict) == (Quantity.RATE, Verdict.FASTER)
    assert rate.relative == pytest.approx(1 / 3, abs=0.02)
    step = change_of(comparison, Metric.STEP)
    assert (step.verdict, step.doubt) == (Verdict.CANNOT_TELL, Doubt.UNDECIDED)
    assert step.relative == pytest.approx(0.5, abs=0.02)


def test_without_samples_the_step_is_judged_and_there_is_no_rate() -> None:
    comparison = measured(pairs_of(10, with_samples(1.1, None), baseline=with_samples(1.0, None)))
    assert [one.metric for one in comparison.metrics] == [Metric.STEP, Metric.PEAK_HOST_BYTES]
    assert change_of(comparison, Metric.STEP).verdict is Verdict.SLOWER
    # Known on one side only is not known.
    half = measured(pairs_of(10, with_samples(1.1, 32), baseline=with_samples(1.0, None)))
    assert [one.metric for one in half.metrics] == [Metric.STEP, Metric.PEAK_HOST_BYTES]


def test_a_side_that_no_longer_tells_its_samples_is_not_judged_by_its_steps_instead() -> None:
    pairs = pairs_of(10, with_samples(0.5, None), baseline=with_samples(1.0, 32))
    assert judge_change(pairs, LOOKS[0]) == (Verdict.CANNOT_TELL, Doubt.NOT_MEASURED)
    comparison = measured(pairs)
    assert comparison.leading is not None
    assert comparison.leading.metric is Metric.SAMPLES_PER_SECOND
    assert comparison.leading.change.after is None
    assert change_of(comparison, Metric.STEP).verdict is Verdict.CANNOT_TELL
    assert comparison.trials is not None
    assert "B's steps do not tell how many samples" in describe_look(comparison.trials, LOOKS[0])


def test_places_are_judged_at_the_look_that_judged_the_step() -> None:
    # Nine pairs that agree: 2 in 512 is less than 1 in 100, and more than the 1 in 500 of the look.
    def of(change_ns: float) -> Callable[[random.Random], ProcessTurns]:
        return lambda noise: process(
            STEP_NS + change_ns + noise.gauss(0, 10),
            nodes={("scope", "work"): (1.0, 500_000 + change_ns, change_ns)},
        )

    comparison = measured(pairs_of(9, of(50_000), baseline=of(0)))
    (table,) = comparison.tables
    changes = [change_of(comparison, Metric.STEP), table.whole, *(row.own for row in table.rows)]
    assert {change.verdict for change in changes} == {Verdict.CANNOT_TELL}


def test_after_is_before_with_the_change_of_turns_side_by_side() -> None:
    # The first half of the pairs is measured on a machine that is twice as slow.
    pairs = [
        Pair(
            hash_seed=number,
            baseline=process(STEP_NS * slow, peak_bytes=1),
            candidate=process(STEP_NS * slow * 1.1),
        )
        for number, slow in enumerate([2.0] * 5 + [1.0] * 5)
    ]
    step = change_of(measured(pairs), Metric.STEP)
    assert step.before == 1.5 * STEP_NS
    assert step.relative == pytest.approx(0.1)


def test_the_interval_of_a_rate_is_that_of_the_time_turned_round() -> None:
    comparison = measured(pairs_of(10, noisy(1.25)))
    step, rate = change_of(comparison, Metric.STEP), change_of(comparison, Metric.SAMPLES_PER_SECOND)
    assert step.interval is not None
    assert rate.interval is not None
    assert 1 + rate.interval.low == pytest.approx(1 / (1 + step.interval.high))
    assert 1 + rate.interval.high == pytest.approx(1 / (1 + step.interval.low))
    assert rate.relative is not None
    assert rate.interval.low < rate.relative < rate.interval.high < 0
    # 32 samples a step.
    assert rate.before == pytest.approx(32e9 / (step.before or 0))
    assert rate.after == pytest.approx(32e9 / (step.after or 0))


def test_fewer_than_eight_pairs_have_no_interval() -> None:
    for count, has_one in ((1, False), (7, False), (8, True)):
        assert (change_of(measured(pairs_of(count, noisy(1.1))), Metric.STEP).interval is not None) is has_one


def test_a_program_without_steps_is_told_as_a_whole() -> None:
    pairs = pairs_of(10, with_samples(1.1, None), baseline=with_samples(1.0, None))
    comparison = measured(pairs, unit="program", warmup_turns=(), rounds=1, turn_steps=1)
    assert comparison.leading is not None
    assert comparison.leading.metric is Metric.PROFILED
    assert comparison.leading.change.verdict is Verdict.SLOWER


def test_parts_and_the_rest_are_the_whole() -> None:
    def of(first_ns: float, change_ns: float) -> Callable[[random.Random], ProcessTurns]:
        def make(noise: random.Random) -> ProcessTurns:
            return process(
                STEP_NS + change_ns + noise.gauss(0, 500),
                nodes={
                    ("module", "forward"): (1, 100_000 + noise.gauss(0, 100), noise.gauss(0, 100)),
                    ("module", "forward", "net"): (2, first_ns, change_ns + noise.gauss(0, 100)),
                    ("scope", "load"): (1, 50_000, noise.gauss(0, 100)),
                },
            )

        return make

    comparison = measured(pairs_of(10, of(350_000, 50_000), baseline=of(300_000, 0)))
    assert [table.kind for table in comparison.tables] == [PartsKind.MODULES, PartsKind.SCOPES]
    for table in comparison.tables:
        for side in ("before", "after"):
            parts = sum(getattr(row.own, side) for row in table.rows)
            assert parts + getattr(table.rest, side) == pytest.approx(getattr(table.whole, side))
        assert table.explained + table.unexplained == pytest.approx(table.whole.grown)
    (slower,) = [row for row in comparison.tables[0].rows if row.own.verdict is Verdict.SLOWER]
    assert slower.name == "net"


def test_peaks_are_compared_and_those_not_measured_are_not_told() -> None:
    def of(peak_bytes: int | None) -> Callable[[random.Random], ProcessTurns]:
        return lambda _: process(peak_bytes=peak_bytes)

    more = change_of(measured(pairs_of(3, of(150 << 20), baseline=of(100 << 20))), Metric.PEAK_HOST_BYTES)
    assert (more.verdict, more.before, more.after) == (Verdict.MORE, 100 << 20, 150 << 20)
    unknown = change_of(measured(pairs_of(3, of(None), baseline=of(100 << 20))), Metric.PEAK_HOST_BYTES)
    assert (unknown.verdict, unknown.doubt) == (Verdict.CANNOT_TELL, Doubt.NOT_MEASURED)


def test_turns_that_took_no_time_at_all_say_nothing() -> None:
    comparison = measured(pairs_of(10, lambda _: process(0), baseline=lambda _: process(0)))
    step = change_of(comparison, Metric.STEP)
    assert (step.verdict, step.doubt, step.before, step.after) == (
        Verdict.CANNOT_TELL,
        Doubt.NOT_MEASURED,
        None,
        None,
    )


def test_each_side_is_said_to_be_what_it_was() -> None:
    comparison = measured(pairs_of(10, noisy(1.0)))
    before, after = comparison.before, comparison.after
    assert (before.name, after.name, before.commit, after.dirty) == ("main", "working tree", "1" * 40, True)
    # Ten processes with twelve turns of four steps, and twenty of warm-up.
    assert (before.runs, before.steps, before.warmup_steps) == (10, 680, 200)
