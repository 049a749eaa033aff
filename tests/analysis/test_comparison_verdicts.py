import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.analysis.comparison.model import Change, Doubt, Quantity, Verdict
from pyrometer.analysis.comparison.verdicts import (
    ALPHA,
    LEAST_RUNS,
    Pairing,
    find_doubt,
    judge_counts,
    judge_times,
    take_turns,
)
from pyrometer.stats.binomial import clopper_pearson
from pyrometer.stats.label_permutation import holm_adjusted, label_p_value


def times(before: list[float | None], after: list[float | None], *, is_tested: bool = True) -> Pairing:
    return Pairing(quantity=Quantity.DURATION, before=before, after=after, is_tested=is_tested)


def judged(before: list[float | None], after: list[float | None]) -> Change:
    [change] = judge_times([times(before, after)], None)
    return change


def counted(before: list[float | None], after: list[float | None], tolerance: float = 0.0) -> Change:
    return judge_counts(Pairing(quantity=Quantity.COUNT, before=before, after=after), tolerance=tolerance)


def around(middle: float, spread: float = 0.001) -> list[float | None]:
    """Eight values, each a little further out."""
    return [middle * (1 + spread * (place - 3.5)) for place in range(8)]


def test_eight_runs_a_side_that_do_not_overlap_are_a_change() -> None:
    assert judged(around(100), around(105)).verdict is Verdict.SLOWER
    assert judged(around(105), around(100)).verdict is Verdict.FASTER


def test_a_higher_rate_is_faster() -> None:
    [change] = judge_times([Pairing(quantity=Quantity.RATE, before=around(100), after=around(105))], None)
    assert change.verdict is Verdict.FASTER


def test_a_larger_share_of_waiting_is_more() -> None:
    [change] = judge_times([Pairing(quantity=Quantity.SHARE, before=around(0.1), after=around(0.2))], None)
    assert change.verdict is Verdict.MORE


def test_a_certain_change_below_one_percent_is_none_that_matters() -> None:
    change = judged(around(100, 0.0001), around(100.5, 0.0001))
    assert label_p_value(around(100, 0.0001), around(100.5, 0.0001)) < ALPHA  # type: ignore[arg-type]
    assert change.verdict is Verdict.NO_CHANGE


def test_no_change_needs_all_of_its_interval_within_three_percent() -> None:
    assert judged(around(100, 0.002), around(100, 0.002)).verdict is Verdict.NO_CHANGE
    noisy = judged(around(100, 0.05), around(100, 0.05))
    assert (noisy.verdict, noisy.doubt) == (Verdict.CANNOT_TELL, Doubt.UNDECIDED)
    assert noisy.interval is not None
    assert noisy.interval.high > 0.03


@pytest.mark.parametrize("doubt", [Doubt.FEW_RUNS, Doubt.NOT_INTERLEAVED, Doubt.OTHER_MACHINE])
def test_in_doubt_no_time_has_a_verdict_whatever_it_says(doubt: Doubt) -> None:
    [change] = judge_times([times(around(100), around(900))], doubt)
    assert (change.verdict, change.doubt, change.interval) == (Verdict.CANNOT_TELL, doubt, None)
    assert change.relative == pytest.approx(8)


def test_a_figure_that_was_measured_in_too_few_of_the_runs_has_none() -> None:
    before: list[float | None] = [*around(100)[:7], None]
    assert judged(before, around(200)).doubt is Doubt.FEW_RUNS
    assert judged([None] * 8, around(200)).doubt is Doubt.NOT_MEASURED


def test_a_part_too_small_to_be_tested_says_so() -> None:
    [change] = judge_times([times(around(1), around(2), is_tested=False)], None)
    assert change.doubt is Doubt.TOO_SMALL


def test_one_change_among_many_rows_has_to_be_surer() -> None:
    # One run of the other side lies among the first: p is 0.13 %, enough for one row and not for twenty.
    before: list[float | None] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 12.5]
    after: list[float | None] = [8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
    one = times(before, after)
    others = [times(around(100, 0.05), around(103, 0.05)) for _ in range(19)]
    assert judge_times([one], None)[0].verdict is Verdict.SLOWER
    assert judge_times([one, *others], None)[0].verdict is Verdict.CANNOT_TELL


def test_a_table_of_unchanged_times_calls_one_changed_no_more_often_than_said() -> None:
    chooser = random.Random(11)

    def row() -> float:
        before = [chooser.lognormvariate(0, 0.05) for _ in range(LEAST_RUNS)]
        after = [chooser.lognormvariate(0, 0.05) for _ in range(LEAST_RUNS)]
        return label_p_value(before, after)

    alarms = sum(min(holm_adjusted([row() for _ in range(10)])) <= ALPHA for _ in range(500))
    assert clopper_pearson(alarms, 500, confidence=0.99).low <= ALPHA


# Turns.


def test_fewer_than_eight_runs_on_either_side_are_too_few() -> None:
    many = [float(second) for second in range(20)]
    assert find_doubt(many[::2][:7], many[1::2], same_machine=True) is Doubt.FEW_RUNS
    assert find_doubt(many[::2], many[1::2], same_machine=True) is None


def test_all_of_one_side_before_the_other_cannot_be_told_from_the_machine() -> None:
    seconds = [float(second) for second in range(16)]
    assert find_doubt(seconds[:8], seconds[8:], same_machine=True) is Doubt.NOT_INTERLEAVED
    assert find_doubt(seconds[8:], seconds[:8], same_machine=True) is Doubt.NOT_INTERLEAVED


def test_one_run_between_the_others_is_no_taking_turns() -> None:
    # A A A A A A A B A B B B B B B B
    before = [0.0, 1, 2, 3, 4, 5, 6, 8]
    after = [7.0, 9, 10, 11, 12, 13, 14, 15]
    assert not take_turns(before, after)


def in_order(order: str) -> tuple[list[float], list[float]]:
    """When runs of A and of B began, by the letters: a second each."""
    before, after = ([float(at) for at, letter in enumerate(order) if letter == side] for side in "AB")
    return before, after


@pytest.mark.parametrize(
    "order", ["ABABABABABABABAB", "ABBAABBAABBAABBA", "ABBBABBBABBBABBBABBBABBBABBBABBB"]
)
def test_orders_in_which_the_sides_change_all_the_time_are_turns(order: str) -> None:
    assert take_turns(*in_order(order))


@pytest.mark.parametrize("order", ["AAAABBBBBBBBAAAA", "BBBBAAAAAAAABBBB", "AABBBBAAAABBBBAA"])
def test_orders_in_long_blocks_are_no_turns_though_no_side_is_early(order: str) -> None:
    # A busy stretch lands on one of them alone.
    before, after = in_order(order)
    assert sum(before) == sum(after)  # neither is the earlier
    assert not take_turns(before, after)


def test_runs_that_do_not_say_when_they_began_take_no_turns() -> None:
    assert not take_turns([1.0, 3.0, None], [2.0, 4.0, 5.0])


# Counts.


def test_counts_are_certain_from_one_run_a_side() -> None:
    assert counted([1.0], [2.0]).verdict is Verdict.MORE
    assert counted([2.0], [1.0]).verdict is Verdict.FEWER
    assert counted([2.0], [2.0]).verdict is Verdict.SAME
    assert counted([0.0], [0.0]).verdict is Verdict.SAME


def test_a_count_that_varies_within_a_side_is_certain_only_where_the_sides_do_not_overlap() -> None:
    assert counted([1.0, 2.0], [2.0, 3.0]).doubt is Doubt.VARIES
    assert counted([1.0, 2.0], [3.0, 4.0]).verdict is Verdict.MORE
    assert counted([3.0, 4.0], [1.0, 2.0]).verdict is Verdict.FEWER


def test_bytes_within_the_tolerance_are_the_same() -> None:
    assert counted([1_000.0], [1_009.0], 0.01).verdict is Verdict.SAME
    assert counted([1_000.0], [1_020.0], 0.01).verdict is Verdict.MORE


def test_what_one_side_did_not_measure_is_unknown_and_not_zero() -> None:
    change = counted([None], [5.0])
    assert (change.before, change.absolute, change.verdict, change.doubt) == (
        None,
        None,
        Verdict.CANNOT_TELL,
        Doubt.NOT_MEASURED,
    )


@given(
    st.lists(st.one_of(st.none(), st.floats(0, 1e12)), min_size=1, max_size=9),
    st.lists(st.one_of(st.none(), st.floats(0, 1e12)), min_size=1, max_size=9),
    st.sampled_from([None, *Doubt]),
)
def test_a_doubt_is_named_exactly_where_nothing_can_be_told(
    before: list[float | None], after: list[float | None], doubt: Doubt | None
) -> None:
    for change in (*judge_times([times(before, after)], doubt), counted(before, after)):
        assert (change.verdict is Verdict.CANNOT_TELL) == (change.doubt is not None)


@given(
    st.lists(st.floats(1, 1e6), min_size=1, max_size=5), st.lists(st.floats(1, 1e6), min_size=1, max_size=5)
)
def test_turned_round_more_is_fewer(before: list[float], after: list[float]) -> None:
    turned = {Verdict.MORE: Verdict.FEWER, Verdict.FEWER: Verdict.MORE}
    verdict = counted([*before], [*after]).verdict
    assert counted([*after], [*before]).verdict is turned.get(verdict, verdict)
