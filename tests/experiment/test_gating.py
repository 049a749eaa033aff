"""What a gate judges and at which chance of error, on pairs made by hand instead of measured."""

from collections.abc import Sequence
from typing import cast

from pyrometer.analysis.comparison.model import Verdict as PlaceVerdict
from pyrometer.analysis.gate import Reason, Verdict
from pyrometer.analysis.gated import GatedLane
from pyrometer.analysis.trials import Metric
from pyrometer.experiment.gating import Candidate, Rule, gate_times
from pyrometer.record.trials import Pair, Trials
from tests.trial_pairs import STEP_NS, noisy, pairs_of, process, trials_of


class Prepared:
    """Stands for a program: its experiment gives pairs that are there already."""

    subject = None

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._all = list(pairs)
        self.pairs: list[Pair] = []

    def experiment(self) -> "Prepared":
        return self

    def measure(self, count: int) -> list[Pair]:
        self.pairs = self._all[:count]
        return self.pairs

    def trials(self) -> Trials:
        return trials_of(self.pairs)


def gated(pairs: Sequence[Pair], *, metric: Metric | None = None, most_pairs: int = 40) -> GatedLane:
    (lane,) = gate_times([cast("Candidate", Prepared(pairs))], metric, Rule(most_pairs=most_pairs))
    return lane


def slowed_scope(count: int) -> list[Pair]:
    """So many pairs that agree: a scope takes 50 µs longer."""
    return [
        Pair(
            hash_seed=number,
            baseline=process(nodes={("scope", "work"): (1, 500_000, 0)}),
            candidate=process(
                STEP_NS + 50_000 + number, nodes={("scope", "work"): (1, 550_000 + number, 50_000 + number)}
            ),
        )
        for number in range(count)
    ]


def test_a_table_beside_an_inconclusive_gate_calls_nothing_slower() -> None:
    # Seven pairs that agree come out so in 2 of 128 ways, eight in 2 of 256: less than 1 in 100 ...
    pairs = slowed_scope(8)
    # ... and more than 1 in 500, which is what the first look may be wrong in.
    lane = gated(pairs, most_pairs=8)
    assert (lane.verdict, lane.judgement.reason) == (Verdict.INCONCLUSIVE, Reason.UNDECIDED)
    (table,) = lane.tables
    changes = [table.whole, table.rest, *(row.own for row in table.rows)]
    assert {change.verdict for change in changes} == {PlaceVerdict.CANNOT_TELL}
    assert not lane.changed


def test_pairs_whose_control_could_not_object_decide_nothing() -> None:
    """Nine that agree come out so in 1 of 512 ways, but their control in 2, one either way."""
    assert gated(slowed_scope(10), most_pairs=10).verdict is Verdict.FAIL
    assert gated(slowed_scope(9), most_pairs=9).verdict is Verdict.INCONCLUSIVE


def test_places_of_a_benchmark_that_fails_among_others_are_told() -> None:
    """Ten pairs can be wrong in 1 of 512 ways at the least: more than half of what the look may be."""
    pairs = slowed_scope(10)
    two = [cast("Candidate", Prepared(pairs)), cast("Candidate", Prepared(pairs))]
    lanes = list(gate_times(two, None, Rule()))
    assert [(lane.verdict, lane.judgement.pairs) for lane in lanes] == [(Verdict.FAIL, 10)] * 2
    assert [[row.path for row in lane.changed] for lane in lanes] == [[("work",)]] * 2


def test_a_candidate_that_no_longer_tells_its_samples_is_not_judged_by_its_steps_instead() -> None:
    # Half of the time a step, because of half the batch: by steps, it would pass.
    pairs = pairs_of(10, lambda _: process(STEP_NS / 2, samples=None), baseline=lambda _: process(samples=32))
    lane = gated(pairs)
    assert lane.metric is Metric.THROUGHPUT
    assert (lane.verdict, lane.judgement.reason) == (Verdict.INCONCLUSIVE, Reason.NOT_MEASURED)
    assert gated(pairs, metric=Metric.LATENCY).verdict is Verdict.PASS


def test_what_is_judged_is_the_same_at_all_looks() -> None:
    # Too unsteady for the first look; from then on the baseline no longer tells its samples.
    early = pairs_of(10, noisy(1.02, between=0.1), seed=3)
    late = pairs_of(
        30, noisy(1.02, between=0.1), baseline=lambda _: process(samples=None), control=noisy(1.0), seed=4
    )
    lane = gated([*early, *late])
    assert len(lane.trials.pairs) > 10
    assert lane.metric is Metric.THROUGHPUT
    assert lane.judgement.pairs == 10
