"""Histograms of durations: 32 buckets to each power of two.

Every duration lies within 1.6 % of the middle of its bucket, whatever its size, and is
exact below 64 ns. The recorder counts by the same rule.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter

Buckets = tuple[tuple[int, int], ...]
"""(bucket, calls) pairs in ascending order of bucket, each bucket once."""

_SUB_BUCKET_BITS = 5
_SUB_BUCKETS = 1 << _SUB_BUCKET_BITS


def bucket_of(duration_ns: int) -> int:
    """The bucket that counts this duration."""
    if duration_ns < 0:
        raise ValueError(f"a duration cannot be negative: {duration_ns} ns")
    if duration_ns < _SUB_BUCKETS:
        return duration_ns
    shift = duration_ns.bit_length() - 1 - _SUB_BUCKET_BITS
    return shift * _SUB_BUCKETS + (duration_ns >> shift)


def bucket_bounds(bucket: int) -> tuple[int, int]:
    """The durations in a bucket, in ns: from the first up to, and without, the second."""
    if bucket < 0:
        raise ValueError(f"a bucket cannot be negative: {bucket}")
    if bucket < _SUB_BUCKETS:
        return bucket, bucket + 1
    shift = bucket // _SUB_BUCKETS - 1
    low_ns = (_SUB_BUCKETS + bucket % _SUB_BUCKETS) << shift
    return low_ns, low_ns + (1 << shift)


def quantile(buckets: Sequence[tuple[int, int]], q: float, *, min_ns: int, max_ns: int) -> int:
    """The duration that the fraction ``q`` of all calls does not exceed.

    It is the middle of the bucket that holds the nearest-rank quantile, never outside the
    shortest and longest call, and so within 1.6 % of the exact nearest-rank value.
    """
    if not 0 <= q <= 1:
        raise ValueError(f"a quantile is a fraction from 0 to 1, not {q}")
    calls_up_to = list(accumulate(map(itemgetter(1), buckets)))
    if not calls_up_to or calls_up_to[-1] == 0:
        raise ValueError("a histogram without calls has no quantiles")
    numerator, denominator = _as_written(q)
    rank = max(1, -(-numerator * calls_up_to[-1] // denominator))  # rounded up, in integers
    reached, _ = buckets[bisect_left(calls_up_to, rank)]
    low_ns, high_ns = bucket_bounds(reached)
    return min(max((low_ns + high_ns - 1) // 2, min_ns), max_ns)


def merge_buckets(*many: Iterable[tuple[int, int]]) -> Buckets:
    """The histogram of all calls of all these histograms."""
    merged: dict[int, int] = {}
    for buckets in many:
        for bucket, count in buckets:
            merged[bucket] = merged.get(bucket, 0) + count
    return tuple(sorted(merged.items()))


def subtract_buckets(buckets: Iterable[tuple[int, int]], durations_ns: Iterable[int]) -> Buckets:
    """The histogram without calls of these durations."""
    left = dict(buckets)
    for duration_ns in durations_ns:
        bucket = bucket_of(duration_ns)
        left[bucket] = left.get(bucket, 0) - 1
    return tuple(sorted((bucket, count) for bucket, count in left.items() if count > 0))


@lru_cache(maxsize=64)
def _as_written(q: float) -> tuple[int, int]:
    # 0.07 * 100 is a little more than 7 in floating point, which would move the rank up by one.
    return Fraction(repr(q)).as_integer_ratio()
