"""Data loading: what the program waits, what the loader works, and which of the two is too slow."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pyrometer.record.torch_run import Loader, StepGroup

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
    start_ns_per_iterator: float | None
    """Making an iterator, which starts the workers."""
    first_batch_ns_per_iterator: float | None
    """From the start of an iterator to its first batch."""
    wait_ns: int
    wait_ns_per_batch: float | None
    """What the program waited."""
    wait_share: float | None
    """``wait_ns`` against the steps it was waited in; None where those are not known."""
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
    ...
