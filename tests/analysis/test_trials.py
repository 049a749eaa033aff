"""What pairs of processes say about a metric, on pairs made by hand."""

import math
import random
from collections.abc import Callable

import msgspec
import pytest

from pyrometer.analysis.gate import LOOKS, Reason, Verdict, judge, judge_counts
from pyrometer.analysis.gated import GatedLane
from pyrometer.analysis.trials import (
    Metric,
    Peaks,
    candidate_ratios,
    control_ratios,
    default_metric,
    loses_samples,
    peaks_of,
    value_of,
)
from pyrometer.record.trials import Pair, ProcessTurns, Round
from pyrometer.report.gate_words import describe_verdict, lane_name
from tests.trial_pairs import ROUNDS, pairs_of, process, trials_of


def with_peaks(live_bytes: int | None, resident_bytes: int | None) -> ProcessTurns:
    return process(peak_live_bytes=live_bytes, peak_bytes=resident_bytes)


def memory_lane(*pairs: Pair) -> GatedLane:
    """The lane of a gate of memory."""
    metric = Metric.PEAK_MEMORY
    return GatedLane(
        metric=metric,
        judgement=judge_counts(
            candidate_ratios(pairs, metric), control_ratios(pairs, metric), max_slowdown=0
        ),
        max_slowdown=0,
        trials=trials_of(pairs),
    )


# Which peak.


def test_one_kind_of_peak_is_compared_in_all_processes() -> None:
    counted = Pair(hash_seed=0, baseline=with_peaks(10, 1_000), candidate=with_peaks(20, 1_100))
    half = Pair(hash_seed=1, baseline=with_peaks(10, 1_000), candidate=with_peaks(None, 1_100))
    assert peaks_of([counted]) is Peaks.ALLOCATED
    assert candidate_ratios([counted], Metric.PEAK_MEMORY) == [[pytest.approx(math.log(2))]]
    # 1,100 resident bytes against 10 allocated ones would be a hundred times as much.
    assert peaks_of([counted, half]) is Peaks.RESIDENT
    assert candidate_ratios([counted, half], Metric.PEAK_MEMORY) == [[pytest.approx(math.log(1.1))]] * 2


def test_a_control_whose_allocations_were_not_counted_decides_for_all() -> None:
    pair = Pair(
        hash_seed=0,
        baseline=with_peaks(10, 1_000),
        candidate=with_peaks(20, 1_000),
        control=with_peaks(None, 1_000),
    )
    assert candidate_ratios([pair], Metric.PEAK_MEMORY) == [[0.0]]
    assert control_ratios([pair], Metric.PEAK_MEMORY) == [[0.0]]


@pytest.mark.parametrize("candidate_live", [0, 30_000_000])
def test_a_program_of_whose_objects_none_is_counted_is_judged_by_what_is_resident(
    candidate_live: int,
) -> None:
    lane = memory_lane(
        *(
            Pair(
                hash_seed=number,
                baseline=with_peaks(0, 100_000_000),
                candidate=with_peaks(candidate_live, 100_000_000 + candidate_live),
            )
            for number in range(5)
        )
    )
    assert lane.judgement.change == pytest.approx(candidate_live / 100_000_000)
    assert lane.verdict is (Verdict.FAIL if candidate_live else Verdict.PASS)
    assert (lane.before, lane.after) == (100_000_000, 100_000_000 + candidate_live)
    assert lane_name(lane) == "peak memory (resident)"


def test_the_peak_that_was_judged_is_the_one_that_is_shown_and_named() -> None:
    pair = Pair(hash_seed=0, baseline=with_peaks(10, 1_000), candidate=with_peaks(20, 1_000))
    lane = memory_lane(*[pair] * 5)
    assert (lane.before, lane.after, lane.peaks) == (10, 20, Peaks.ALLOCATED)
    assert lane_name(lane) == "peak memory (allocated)"


def test_no_peak_at_all_is_not_measured_and_has_no_kind() -> None:
    lane = memory_lane(Pair(hash_seed=0, baseline=with_peaks(0, None), candidate=with_peaks(0, None)))
    assert (lane.judgement.reason, lane.peaks, lane.before) == (Reason.NOT_MEASURED, None, None)
    assert lane_name(lane) == "peak memory"


# Instructions.


def test_instructions_are_those_of_a_step_however_many_were_made() -> None:
    # A turn may have more steps than were ordered, where several ended at once.
    four = process(instructions=48_000)
    more = msgspec.structs.replace(
        four, rounds=tuple(Round(1, 5, None) for _ in range(ROUNDS)), instructions=60_000
    )
    assert [value_of(one, Metric.INSTRUCTIONS) for one in (four, more)] == [1_000, 1_000]
    pair = Pair(hash_seed=0, baseline=four, candidate=more)
    assert candidate_ratios([pair], Metric.INSTRUCTIONS) == [[0.0]]


def test_a_program_is_said_to_have_instructions_a_step() -> None:
    pairs = [Pair(hash_seed=0, baseline=process(instructions=48_000), candidate=process(instructions=96_000))]
    lane = GatedLane(
        metric=Metric.INSTRUCTIONS,
        judgement=judge_counts(candidate_ratios(pairs, Metric.INSTRUCTIONS), [], max_slowdown=0),
        max_slowdown=0,
        trials=trials_of(pairs),
    )
    assert (lane_name(lane), lane.before, lane.after) == ("instructions a step", 1_000, 2_000)


# Samples.


def telling(samples: int | None, *, but: int | None = None) -> Callable[[random.Random], ProcessTurns]:
    """A process whose turns tell how many samples there were, but for one."""

    def make(_: random.Random) -> ProcessTurns:
        one = process(samples=samples)
        rounds = tuple(
            Round(turn.duration_ns, turn.steps, None if index == but else turn.samples)
            for index, turn in enumerate(one.rounds)
        )
        return msgspec.structs.replace(one, rounds=rounds)

    return make


def test_the_baseline_alone_decides_what_is_judged() -> None:
    for candidate in (telling(32), telling(None), telling(32, but=3)):
        assert default_metric(pairs_of(10, candidate, baseline=telling(32))) is Metric.THROUGHPUT
        assert default_metric(pairs_of(10, candidate, baseline=telling(None))) is Metric.LATENCY
        assert default_metric(pairs_of(10, candidate, baseline=telling(32, but=0))) is Metric.LATENCY


def test_what_is_judged_does_not_change_after_the_first_look() -> None:
    first = pairs_of(LOOKS[0].pairs, telling(32), baseline=telling(32))
    later = pairs_of(10, telling(32), baseline=telling(None))
    assert default_metric([*first, *later]) is Metric.THROUGHPUT
    assert default_metric([*later, *first]) is Metric.LATENCY


@pytest.mark.parametrize("candidate", [telling(None), telling(32, but=3)])
def test_a_candidate_that_no_longer_tells_its_samples_is_not_judged_by_them(
    candidate: Callable[[random.Random], ProcessTurns],
) -> None:
    pairs = pairs_of(10, candidate, baseline=telling(32))
    assert loses_samples(pairs)
    judgement = judge(
        candidate_ratios(pairs, Metric.THROUGHPUT),
        control_ratios(pairs, Metric.THROUGHPUT),
        max_slowdown=0,
        look=LOOKS[0],
        is_last=False,
    )
    assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, Reason.NOT_MEASURED)
    lane = GatedLane(metric=Metric.THROUGHPUT, judgement=judgement, max_slowdown=0, trials=trials_of(pairs))
    assert "the candidate's steps no longer tell how many samples they work on" in describe_verdict(lane)
    assert "use --metric latency" in describe_verdict(lane)


def test_a_program_that_never_told_its_samples_is_not_said_to_have_lost_them() -> None:
    pairs = pairs_of(10, telling(None), baseline=telling(None))
    assert not loses_samples(pairs)
    judgement = judge(
        candidate_ratios(pairs, Metric.THROUGHPUT), [], max_slowdown=0, look=LOOKS[0], is_last=True
    )
    lane = GatedLane(metric=Metric.THROUGHPUT, judgement=judgement, max_slowdown=0, trials=trials_of(pairs))
    assert "no longer" not in describe_verdict(lane)
    assert "use --metric latency" in describe_verdict(lane)
