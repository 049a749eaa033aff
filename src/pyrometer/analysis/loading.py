"""Data loading: what the program waits, what the loader works, and which of the two is too slow."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pyrometer.analysis.step_kinds import group_trains
from pyrometer.record.torch_run import Loader, StepGroup
from pyrometer.stats.rates import per

SLOW_WAIT_SHARE = 0.10
MOSTLY_READY_SHARE = 0.50
NEARLY_ALWAYS_READY_SHARE = 0.90
IDLE_BUSY_SHARE = 0.50


class LoaderVerdict(Enum):
    """Who waits for whom."""

    TOO_SLOW = "loader too slow"
    """The steps wait 10 % of their time or more, and the loader works in the program's own process
    or batches are mostly not ready when asked for."""
    IDLE = "loader idle"
    """Batches are nearly always ready, and the workers are busy less than half of the time."""
    BALANCED = "balanced"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderResult:
    """One loader. Figures per batch are over all its batches, or over those whose making was timed."""

    name: str
    workers: int
    """0: it works in the program's own process."""
    batches: int
    iterators: int
    worker_starts: int | None
    """How many of the iterations started workers; None without workers, or where it was not counted."""
    start_ns_per_iterator: float | None
    """Making an iterator, which starts the workers."""
    first_batch_ns_per_iterator: float | None
    """From the start of an iterator to its first batch."""
    wait_ns: int
    wait_ns_per_batch: float | None
    """What the program waited."""
    wait_share: float | None
    """The waiting against the steps it was waited in; None where those are not known."""
    timed_batches: int
    work_ns_per_batch: float | None
    """Making a batch: ``fetch``, ``transform`` and ``collate`` make it up exactly."""
    fetch_ns_per_batch: float | None
    transform_ns_per_batch: float | None
    """None when the dataset has no transform that can be timed; it is then part of ``fetch``."""
    collate_ns_per_batch: float | None
    worker_busy_share: float | None
    """Of the workers' time while the steps went on; at most 1. None without workers."""
    ready_share: float | None
    """Of the requests, those that found their batch ready."""
    average_queue: float | None
    """Finished batches that lay waiting at a request."""
    verdict: LoaderVerdict


def build_loaders(loaders: Sequence[Loader], groups: Sequence[StepGroup]) -> tuple[LoaderResult, ...]:
    """Each loader with its verdict, in the order of the record."""
    return tuple(_build_loader(loader, fed=_fed(loader, loaders, groups)) for loader in loaders)


def _fed(loader: Loader, loaders: Sequence[Loader], groups: Sequence[StepGroup]) -> "_Fed | None":
    """The steps this loader's batches went into; None where that cannot be told."""
    fed = [group for group in groups if group.batches]
    if len(loaders) == 1:
        return _Fed.of(fed)
    if sum(_close(other.batches, loader.batches) for other in loaders) > 1:
        return None
    # Evaluation mostly has a loader of its own, and groups that train share one.
    training = [group for group in fed if group_trains(group)]
    others = [group for group in fed if not group_trains(group)]
    for together in (training, others, *([group] for group in fed)):
        if _close(sum(group.batches for group in together), loader.batches):
            return _Fed.of(together)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fed:
    """Steps that batches of a loader went into."""

    total_ns: int
    batches: int

    @classmethod
    def of(cls, groups: Sequence[StepGroup]) -> "_Fed | None":
        total_ns = sum(group.total_ns for group in groups)
        batches = sum(group.batches for group in groups)
        return cls(total_ns=total_ns, batches=batches) if total_ns else None


def _close(one: int, other: int) -> bool:
    # Batches fetched after the last step, at the end of a run or of its window, are in no group.
    return abs(one - other) <= max(2, 0.02 * max(one, other))


def _build_loader(loader: Loader, *, fed: _Fed | None) -> LoaderResult:
    # Batches of steps that are in no group, as those whose operators were looked at, are not waited in these.
    batches = loader.batches if fed is None else min(loader.batches, fed.batches)
    steps_ns = None if fed is None else fed.total_ns
    timed = loader.timed_batches
    fetch_ns = None
    if loader.work_ns is not None:
        fetch_ns = max(loader.work_ns - (loader.collate_ns or 0) - (loader.transform_ns or 0), 0)
    wait_ns = per(loader.wait_ns, loader.batches)
    wait_share = per(None if wait_ns is None else wait_ns * batches, steps_ns)
    ready_share = per(loader.ready_batches, loader.batches)
    work_ns = per(loader.work_ns, timed)
    busy_share = None
    if loader.workers and work_ns is not None and steps_ns:
        busy_share = min(work_ns * batches / (loader.workers * steps_ns), 1.0)
    return LoaderResult(
        name=loader.name,
        workers=loader.workers,
        batches=loader.batches,
        iterators=loader.iterators,
        worker_starts=loader.worker_starts,
        start_ns_per_iterator=per(loader.start_ns, loader.iterators),
        first_batch_ns_per_iterator=per(loader.first_batch_ns, loader.iterators),
        wait_ns=loader.wait_ns,
        wait_ns_per_batch=per(loader.wait_ns, loader.batches),
        wait_share=wait_share,
        timed_batches=timed,
        work_ns_per_batch=work_ns,
        fetch_ns_per_batch=per(fetch_ns, timed),
        transform_ns_per_batch=per(loader.transform_ns, timed),
        collate_ns_per_batch=per(loader.collate_ns, timed),
        worker_busy_share=busy_share,
        ready_share=ready_share,
        average_queue=per(loader.queued_batches, loader.batches),
        verdict=judge_loader(
            in_process=not loader.workers,
            wait_share=wait_share,
            ready_share=ready_share,
            busy_share=busy_share,
        ),
    )


def judge_loader(
    *, in_process: bool, wait_share: float | None, ready_share: float | None, busy_share: float | None
) -> LoaderVerdict:
    """Who waits for whom, by the rules of ``LoaderVerdict``; "cannot tell" where a figure is missing."""
    if wait_share is None or (ready_share is None and not in_process):
        return LoaderVerdict.CANNOT_TELL
    mostly_ready = ready_share is not None and ready_share >= MOSTLY_READY_SHARE
    if wait_share >= SLOW_WAIT_SHARE and (in_process or not mostly_ready):
        return LoaderVerdict.TOO_SLOW
    if in_process or ready_share is None or ready_share < NEARLY_ALWAYS_READY_SHARE:
        return LoaderVerdict.BALANCED
    if busy_share is None:
        return LoaderVerdict.CANNOT_TELL
    return LoaderVerdict.IDLE if busy_share < IDLE_BUSY_SHARE else LoaderVerdict.BALANCED
