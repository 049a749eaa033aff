"""The rules by which the figures of a baseline are judged."""

from collections.abc import Sequence

import pytest

from pyrometer.analysis.baseline_status import (
    Status,
    judge_growth,
    judge_longest,
    judge_phases,
    judge_spread,
)
from pyrometer.analysis.memory import MemoryResult
from pyrometer.analysis.steps import GroupResult, build_groups
from pyrometer.record.torch_run import TorchRun
from tests.torch_runs import MB, MS, group_of


def group(steps: Sequence[dict[str, int]]) -> GroupResult:
    torch = TorchRun(torch_version="2.13.0", warmup=0, groups=(group_of("training", "Adam", steps),))
    (result,) = build_groups(torch)
    return result


def of_ms(*durations_ms: int) -> GroupResult:
    return group([{"forward": duration * MS, "other": 0} for duration in durations_ms])


def memory(*, growth: float | None) -> MemoryResult:
    return MemoryResult(
        peak_bytes=100 * MB,
        first_bytes=None,
        last_bytes=None,
        growth_bytes_per_second=None,
        growth_bytes_per_step=growth,
        growth_samples=0,
        series=(),
    )


@pytest.mark.parametrize(
    ("data", "optimizer", "other", "expected"),
    [
        (4, 9, 4, (Status.FINE, Status.FINE, Status.FINE)),
        (5, 10, 5, (Status.WATCH, Status.WATCH, Status.WATCH)),
        (10, 30, 10, (Status.ACT, Status.ACT, Status.ACT)),
    ],
)
def test_phases_that_are_not_the_work_itself_are_judged_by_their_share(
    data: int, optimizer: int, other: int, expected: tuple[Status, ...]
) -> None:
    parts = {"data": data * MS, "optimizer": optimizer * MS, "other": other * MS}
    step = {"forward": (100 - data - optimizer - other) * MS, **parts}
    judged = {name: judgement.status for name, judgement in judge_phases(group([step] * 5))}
    assert (judged["data"], judged["optimizer"], judged["other"]) == expected
    assert judged["forward"] is judged["backward"] is Status.NOT_JUDGED


def test_even_steps_are_fine_and_of_few_it_cannot_be_told() -> None:
    assert judge_spread(of_ms(*[10] * 20).steady).status is Status.FINE
    assert judge_spread(of_ms(*[10] * 17, 15, 15, 15).steady).status is Status.WATCH
    assert judge_spread(of_ms(*[10] * 17, 50, 50, 50).steady).status is Status.ACT
    assert judge_spread(of_ms(*[10] * 19).steady).status is Status.UNKNOWN


def test_one_long_batch_is_seen() -> None:
    assert judge_longest(of_ms(*[10] * 9, 19).steady).status is Status.FINE
    assert judge_longest(of_ms(*[10] * 9, 40).steady).status is Status.WATCH
    assert judge_longest(of_ms(*[10] * 9, 60).steady).status is Status.ACT


def test_memory_that_grows_is_to_be_watched() -> None:
    # A tenth of 100 MB in a thousand steps: 10 kB a step.
    assert judge_growth(memory(growth=9_999)).status is Status.FINE
    assert judge_growth(memory(growth=-50_000)).status is Status.FINE
    assert judge_growth(memory(growth=10_000)).status is Status.WATCH
    assert judge_growth(memory(growth=None)).status is Status.UNKNOWN
    assert judge_growth(None).status is Status.UNKNOWN
