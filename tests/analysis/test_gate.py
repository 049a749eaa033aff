"""The gate's rule on pairs made by hand."""

import math
import random

import msgspec
import pytest

from pyrometer.analysis.gate import LOOKS, Judgement, Look, Reason, Verdict, judge, judge_counts, judge_suite
from pyrometer.analysis.trials import Metric, average_ratios, candidate_ratios, control_ratios, value_of
from pyrometer.record.trials import Pair, ProcessTurns
from tests.trial_pairs import ROUNDS, STEP_NS, noisy, pairs_of, process


def judged(
    pairs: list[Pair], *, max_slowdown: float = 0.0, look: int = 0, is_last: bool = False
) -> Judgement:
    return judge(
        candidate_ratios(pairs, Metric.LATENCY),
        control_ratios(pairs, Metric.LATENCY),
        averages=average_ratios(pairs, Metric.LATENCY),
        max_slowdown=max_slowdown,
        look=LOOKS[look],
        is_last=is_last,
    )


def test_a_candidate_that_is_slower_fails() -> None:
    found = judged(pairs_of(10, noisy(1.10)))
    assert (found.verdict, found.reason) == (Verdict.FAIL, Reason.SLOWER)
    assert found.change == pytest.approx(0.10, abs=0.01)
    assert found.interval is not None
    assert found.change is not None
    assert found.interval.low < found.change < found.interval.high
    assert found.p_slower == 1 / 1024


def test_the_same_code_passes() -> None:
    found = judged(pairs_of(10, noisy(1.0)))
    assert (found.verdict, found.reason) == (Verdict.PASS, Reason.WITHIN)


def test_a_faster_candidate_passes() -> None:
    assert judged(pairs_of(10, noisy(0.8))).verdict is Verdict.PASS


def test_what_is_allowed_is_allowed() -> None:
    pairs = pairs_of(10, noisy(1.10))
    assert judged(pairs, max_slowdown=0.15).verdict is Verdict.PASS
    assert judged(pairs, max_slowdown=0.05).verdict is Verdict.FAIL


def test_a_slowdown_too_small_to_matter_does_not_fail() -> None:
    # Half a percent, and sure of it.
    baseline = noisy(1.0, between=0.0001, within=0.001)
    candidate = noisy(1.005, between=0.0001, within=0.001)
    found = judged(pairs_of(40, candidate, baseline=baseline), look=2, is_last=True)
    assert found.p_slower is not None
    assert found.p_slower < 0.001
    assert found.verdict is Verdict.PASS


def test_between_the_two_it_takes_more_pairs_and_then_is_inconclusive() -> None:
    pairs = pairs_of(10, noisy(1.02, between=0.05))
    assert judged(pairs).verdict is None
    last = judged(pairs, is_last=True)
    assert (last.verdict, last.reason) == (Verdict.INCONCLUSIVE, Reason.UNDECIDED)
    assert last.smallest_seen is not None
    assert last.smallest_seen > 0.02


def with_slow_turns(noise: random.Random) -> ProcessTurns:
    """Every sixth turn takes three times as long: a third more in all, and a usual one takes no longer."""
    turns = [3.0 if number % 6 == 5 else 1.0 for number in range(ROUNDS)]
    return process([STEP_NS * turn * (1 + noise.gauss(0, 0.01)) for turn in turns])


def test_what_is_slower_in_some_turns_only_does_not_pass() -> None:
    found = judged(pairs_of(10, with_slow_turns))
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.UNEVEN)
    assert found.change == pytest.approx(0.0, abs=0.01)
    assert found.average_change == pytest.approx(1 / 3, abs=0.02)


def test_what_is_slower_in_all_turns_is_not_called_uneven_where_it_is_not_sure_enough() -> None:
    every = [pairs_of(10, noisy(1.5), seed=seed) for seed in range(3)]
    found = judge_suite(
        [candidate_ratios(pairs, Metric.LATENCY) for pairs in every],
        [control_ratios(pairs, Metric.LATENCY) for pairs in every],
        [None] * 3,
        averages=[average_ratios(pairs, Metric.LATENCY) for pairs in every],
        max_slowdown=0.0,
        look=LOOKS[0],
        is_last=True,
    )
    assert {judgement.reason for judgement in found} == {Reason.UNDECIDED}


def test_what_is_slower_on_the_average_by_no_more_than_is_allowed_passes() -> None:
    assert judged(pairs_of(10, with_slow_turns), max_slowdown=0.4).verdict is Verdict.PASS


def test_turns_that_are_slow_on_both_sides_are_no_reason_to_doubt() -> None:
    assert judged(pairs_of(10, with_slow_turns, baseline=with_slow_turns)).verdict is Verdict.PASS


def test_an_average_is_that_of_all_time_and_of_all_samples() -> None:
    slow = process([STEP_NS] * 11 + [13 * STEP_NS])
    pair = Pair(hash_seed=0, baseline=process(STEP_NS), candidate=slow)
    assert average_ratios([pair], Metric.LATENCY) == [pytest.approx(math.log(2))]
    assert average_ratios([pair], Metric.THROUGHPUT) == [pytest.approx(math.log(2))]
    assert average_ratios([pair], Metric.PEAK_MEMORY) == []


def test_a_control_that_differs_voids_the_verdict() -> None:
    pairs = pairs_of(10, noisy(1.10), control=noisy(1.05))
    found = judged(pairs)
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.CONTROL)
    assert found.control_change == pytest.approx(0.05, abs=0.01)


def test_nothing_measured_is_never_a_pass() -> None:
    nothing = pairs_of(10, lambda _: process(samples=None), baseline=lambda _: process(samples=None))
    found = judge(
        candidate_ratios(nothing, Metric.THROUGHPUT), [], max_slowdown=0, look=LOOKS[0], is_last=True
    )
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.NOT_MEASURED)


def test_all_looks_together_have_one_chance_in_a_hundred() -> None:
    assert sum(look.alpha for look in LOOKS) == pytest.approx(0.01)
    assert [look.pairs for look in LOOKS] == [10, 20, 40]


def test_throughput_is_by_sample_and_latency_by_step() -> None:
    # Twice the batch in 1.5 times the time.
    pair = Pair(
        hash_seed=0, baseline=process(STEP_NS, samples=32), candidate=process(1.5 * STEP_NS, samples=64)
    )
    (by_sample,) = candidate_ratios([pair], Metric.THROUGHPUT)
    (by_step,) = candidate_ratios([pair], Metric.LATENCY)
    assert max(by_sample) < 0 < min(by_step)
    assert len(by_sample) == ROUNDS
    assert value_of(pair.candidate, Metric.LATENCY) == 1.5 * STEP_NS


def counted(candidate: list[int], *, max_slowdown: float = 0.0, control: int = 1_000) -> Judgement:
    pairs = [
        Pair(
            hash_seed=0,
            baseline=process(instructions=1_000),
            candidate=process(instructions=count),
            control=process(instructions=control),
        )
        for count in candidate
    ]
    return judge_counts(
        candidate_ratios(pairs, Metric.INSTRUCTIONS),
        control_ratios(pairs, Metric.INSTRUCTIONS),
        max_slowdown=max_slowdown,
    )


@pytest.mark.parametrize(
    ("candidate", "verdict"),
    [
        ([1_050, 1_051, 1_049], Verdict.FAIL),
        ([1_000, 1_001, 999], Verdict.PASS),
        ([900, 905, 902], Verdict.PASS),
        ([1_050, 1_051, 990], Verdict.INCONCLUSIVE),
        ([1_008, 1_007, 1_009], Verdict.PASS),
        ([1_020, 1_021, 1_040], Verdict.FAIL),
        ([999, 1_005, 1_040], Verdict.INCONCLUSIVE),
    ],
)
def test_counts_need_all_pairs_to_agree(candidate: list[int], verdict: Verdict) -> None:
    assert counted(candidate).verdict is verdict


def test_counts_within_what_is_allowed_pass() -> None:
    assert counted([1_050] * 3, max_slowdown=0.06).verdict is Verdict.PASS


def test_a_control_that_counts_otherwise_voids_counts_too() -> None:
    assert counted([1_050] * 3, control=1_020).reason is Reason.CONTROL
    # A baseline that reads too high is what would hide more.
    assert counted([1_000] * 3, control=800).reason is Reason.CONTROL


def test_counts_must_differ_by_more_than_the_control_does() -> None:
    assert counted([1_030] * 3, control=995).verdict is Verdict.FAIL
    assert counted([1_030] * 3, control=965).verdict is Verdict.INCONCLUSIVE


def test_peaks_are_of_what_was_allocated_where_that_is_known() -> None:
    pair = Pair(
        hash_seed=0,
        baseline=process(peak_bytes=100, peak_live_bytes=10),
        candidate=process(peak_bytes=100, peak_live_bytes=20),
    )
    ((ratio,),) = candidate_ratios([pair], Metric.PEAK_MEMORY)
    assert ratio == pytest.approx(0.693, abs=0.001)


def test_identical_sides_fail_no_more_often_than_stated() -> None:
    noise = random.Random(17)
    failed = 0
    gates = 150
    for seed in range(gates):
        # Processes of both sides differ by 2 %, as they do: which side is which is chance.
        pairs = pairs_of(10, noisy(1.0, between=0.02), seed=noise.randrange(2**32) + seed)
        failed += (
            judge(
                candidate_ratios(pairs, Metric.LATENCY),
                [],
                max_slowdown=0,
                look=Look(pairs=10, alpha=0.01),
                is_last=True,
            ).verdict
            is Verdict.FAIL
        )
    # At 1 % one or two are expected; above 7 is less likely than 1 in 1,000.
    assert failed <= 7


def suite(*factors: float, look: int = 1) -> list[Judgement]:
    """Benchmarks of a suite, each so many times as slow."""
    every = [pairs_of(LOOKS[look].pairs, noisy(factor), seed=index) for index, factor in enumerate(factors)]
    return judge_suite(
        [candidate_ratios(pairs, Metric.LATENCY) for pairs in every],
        [control_ratios(pairs, Metric.LATENCY) for pairs in every],
        [None] * len(every),
        max_slowdown=0.0,
        look=LOOKS[look],
        is_last=True,
    )


def test_the_slow_ones_of_a_suite_fail_and_the_others_pass() -> None:
    verdicts = [judgement.verdict for judgement in suite(1.0, 1.1, 1.0, 1.2)]
    assert verdicts == [Verdict.PASS, Verdict.FAIL, Verdict.PASS, Verdict.FAIL]


def test_a_suite_has_one_chance_of_a_false_alarm_and_not_one_for_each() -> None:
    # Ten pairs that all agree have a chance of 1 in 1,024: enough for one benchmark, not for three.
    assert suite(1.1, look=0)[0].verdict is Verdict.FAIL
    assert [judgement.verdict for judgement in suite(1.1, 1.1, 1.1, look=0)] == [Verdict.INCONCLUSIVE] * 3


def test_a_suite_has_one_control_and_not_one_for_each() -> None:
    # A control of ten pairs that all agree has a chance of 2 in 1,024: too likely among three benchmarks.
    every = [pairs_of(10, noisy(1.0), control=noisy(1.02), seed=seed) for seed in range(3)]

    def verdicts(suite: list[list[Pair]]) -> set[Verdict | None]:
        found = judge_suite(
            [candidate_ratios(pairs, Metric.LATENCY) for pairs in suite],
            [control_ratios(pairs, Metric.LATENCY) for pairs in suite],
            [None] * len(suite),
            max_slowdown=0.0,
            look=LOOKS[0],
            is_last=True,
        )
        return {judgement.verdict for judgement in found}

    assert verdicts(every[:1]) == {Verdict.INCONCLUSIVE}
    assert verdicts(every) == {Verdict.PASS}


def test_counts_pass_only_by_more_than_the_control_varies() -> None:
    ratios = [[math.log(times)] for times in (0.99, 1.0, 1.02, 1.0, 0.99)]
    assert judge_counts(ratios, [[0.0]] * 5, max_slowdown=0.0).verdict is Verdict.PASS
    varying = [[math.log(0.985)], [math.log(1.015)], [0.0], [0.0], [0.0]]
    assert judge_counts(ratios, varying, max_slowdown=0.0).verdict is Verdict.INCONCLUSIVE


def test_a_verdict_that_was_given_stands() -> None:
    first = suite(1.1, look=0)
    pairs = pairs_of(20, noisy(1.0))
    again = judge_suite(
        [candidate_ratios(pairs, Metric.LATENCY)], [[]], first, max_slowdown=0.0, look=LOOKS[1], is_last=True
    )
    assert again == first


def test_counts_of_fewer_pairs_than_planned_tell_nothing() -> None:
    pairs = [Pair(hash_seed=0, baseline=process(instructions=1_000), candidate=process(instructions=1_200))]
    found = judge_counts(candidate_ratios(pairs, Metric.INSTRUCTIONS), [], max_slowdown=0.0, needed=3)
    assert found.verdict is Verdict.INCONCLUSIVE


def test_turns_that_were_disturbed_do_not_count_as_long_as_others_are_left() -> None:
    baseline, slow = process(STEP_NS), process([3 * STEP_NS] * 9 + [STEP_NS] * 3)
    disturbed = msgspec.structs.replace(
        slow,
        rounds=tuple(
            msgspec.structs.replace(turn, preemptions=1) if turn.duration_ns > 4 * STEP_NS else turn
            for turn in slow.rounds
        ),
    )
    (ratios,) = candidate_ratios([Pair(hash_seed=0, baseline=baseline, candidate=disturbed)], Metric.LATENCY)
    assert ratios == [0.0] * 3
    # On the baseline's side as well, and nothing is left out where too few would stay.
    (ratios,) = candidate_ratios([Pair(hash_seed=0, baseline=disturbed, candidate=baseline)], Metric.LATENCY)
    assert ratios == [0.0] * 3
    all_disturbed = msgspec.structs.replace(
        slow, rounds=tuple(msgspec.structs.replace(turn, preemptions=1) for turn in slow.rounds)
    )
    (ratios,) = candidate_ratios(
        [Pair(hash_seed=0, baseline=baseline, candidate=all_disturbed)], Metric.LATENCY
    )
    assert len(ratios) == ROUNDS
