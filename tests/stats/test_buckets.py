import itertools
from math import ceil

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyrometer._native import twin_tree
from pyrometer.stats.buckets import bucket_bounds, bucket_of, merge_buckets, quantile, subtract_buckets

durations = st.integers(0, 2**63 - 1) | st.integers(0, 10_000)
some_durations = st.lists(durations, min_size=1, max_size=60)
fractions = st.integers(0, 100).map(lambda percent: percent / 100)


def histogram(durations_ns: list[int]) -> tuple[tuple[int, int], ...]:
    return merge_buckets((bucket_of(duration_ns), 1) for duration_ns in durations_ns)


@given(durations)
def test_a_duration_lies_within_the_bounds_of_its_bucket(duration_ns: int) -> None:
    low_ns, high_ns = bucket_bounds(bucket_of(duration_ns))
    assert low_ns <= duration_ns < high_ns


@given(durations)
def test_the_recorder_counts_by_the_same_rule(duration_ns: int) -> None:
    assert bucket_of(duration_ns) == twin_tree.bucket_of(duration_ns)


def test_buckets_follow_one_another_without_gap_or_overlap() -> None:
    ends = [bucket_bounds(bucket) for bucket in range(2_048)]
    assert ends[0][0] == 0
    assert all(before[1] == after[0] for before, after in itertools.pairwise(ends))


def test_below_64_ns_each_duration_has_a_bucket_of_its_own() -> None:
    assert [bucket_bounds(bucket_of(duration_ns)) for duration_ns in range(64)] == [
        (duration_ns, duration_ns + 1) for duration_ns in range(64)
    ]


@given(some_durations, fractions)
@example([2**40 + 2**35 - 1] * 3 + [2**41], 0.5)
def test_a_quantile_is_within_1_6_percent_of_the_nearest_rank(durations_ns: list[int], q: float) -> None:
    percent = round(100 * q)
    rank = max(1, ceil(percent * len(durations_ns) / 100))
    exact_ns = sorted(durations_ns)[rank - 1]
    estimate_ns = quantile(histogram(durations_ns), q, min_ns=min(durations_ns), max_ns=max(durations_ns))
    assert abs(estimate_ns - exact_ns) <= 0.016 * exact_ns


def test_a_rank_is_not_moved_by_the_rounding_of_a_fraction() -> None:
    seven_short_of_a_hundred = ((10, 7), (20, 93))
    # 7 % of 100 calls are 7 calls; in floating point they are 7.000000000000001.
    assert quantile(seven_short_of_a_hundred, 0.07, min_ns=10, max_ns=20) == 10


@given(some_durations)
def test_the_ends_of_a_histogram_are_the_shortest_and_longest_call(durations_ns: list[int]) -> None:
    shortest_ns, longest_ns = min(durations_ns), max(durations_ns)
    found = [quantile(histogram(durations_ns), q, min_ns=shortest_ns, max_ns=longest_ns) for q in (0, 0.5, 1)]
    assert shortest_ns <= found[0] <= found[1] <= found[2] <= longest_ns


@given(some_durations, some_durations)
def test_merging_histograms_is_counting_all_calls_in_one(ones: list[int], others: list[int]) -> None:
    assert merge_buckets(histogram(ones), histogram(others)) == histogram(ones + others)


@pytest.mark.parametrize("q", [-0.1, 1.1])
def test_a_quantile_outside_0_to_1_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match=f"not {q}"):
        quantile(((1, 1),), q, min_ns=1, max_ns=1)


def test_a_histogram_without_calls_has_no_quantile() -> None:
    with pytest.raises(ValueError, match="without calls"):
        quantile((), 0.5, min_ns=0, max_ns=0)


def test_a_negative_duration_or_bucket_is_refused() -> None:
    with pytest.raises(ValueError, match="-1 ns"):
        bucket_of(-1)
    with pytest.raises(ValueError, match="-1"):
        bucket_bounds(-1)


@given(some_durations, some_durations)
def test_taking_calls_away_leaves_the_histogram_of_the_others(some: list[int], others: list[int]) -> None:
    assert subtract_buckets(histogram([*some, *others]), some) == histogram(others)
