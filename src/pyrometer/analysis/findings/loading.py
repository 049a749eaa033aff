"""Findings about data loading."""

from collections.abc import Iterator

from pyrometer.analysis.findings.between_steps import slowest_of_loading
from pyrometer.analysis.findings.drafting import Answer, Missing, See, at_most, finding, main_group_of
from pyrometer.analysis.findings.model import Evidence, Finding, FindingKind, Place, Remedy
from pyrometer.analysis.loading import LoaderResult, LoaderVerdict
from pyrometer.analysis.observed import Observed
from pyrometer.units import format_count, format_duration, format_share

INPUT_BOUND_SHARE = 0.10
BUSY_SHARE = 0.75
"""Workers busy so much of the time have no room left for a batch that takes longer."""
PART_OF_WORK = 0.40
"""A part of a batch's making that takes so much of it is what makes it slow."""
RESTART_SHARE = 0.02
FEWEST_STARTS = 3
"""Training and evaluation may each have a loader over data sets of one kind, and start it once."""
MOSTLY_STARTED = 0.5
"""Loaders of several data sets that look alike are counted together, each with a first start."""

_UNTOLD = "it cannot be told which steps each loader's batches went into"


def find_input_bound(observed: Observed) -> Answer:
    """Whether the steps wait for data a tenth of their time or more."""
    main = main_group_of(observed)
    if isinstance(main, Missing):
        return main
    data = main.phase("data")
    if data is None or data.share < INPUT_BOUND_SHARE:
        return ()
    loaders = () if observed.torch is None else observed.torch.loaders
    evidence = [
        Evidence(
            text=f"data takes {format_duration(data.mean_ns)} of a step of "
            f"{format_duration(main.steady.mean_ns)}: {format_share(data.share)}",
            see=See.PHASES,
        ),
        *_how_it_loads(loaders),
    ]
    slowest = slowest_of_loading(observed)
    if slowest is not None:
        evidence.append(slowest)
    in_process = any(not loader.workers and loader.batches for loader in loaders)
    remedies: tuple[Remedy, ...] = ()
    if in_process:
        remedies = (
            Remedy(
                text="make the next batches beside the steps, in processes of their own",
                snippet=f"DataLoader(dataset, num_workers={_workers_to_try(observed)}, "
                "persistent_workers=True)",
            ),
        )
    return (
        finding(
            FindingKind.INPUT_BOUND,
            "the steps wait for data",
            *evidence,
            place=Place(group=main.label, phase="data", loader=_slowest_name(loaders)),
            share=data.share,
            duration_ns=data.mean_ns,
            gain=at_most(data.share, "if no step ever waited for its batch"),
            remedies=remedies,
        ),
    )


def find_too_few_workers(observed: Observed) -> Answer:
    """Loaders whose workers are busy nearly all the time and still too slow."""
    loaders = _loaders_with_workers(observed)
    if isinstance(loaders, Missing):
        return loaders
    return tuple(
        finding(
            FindingKind.TOO_FEW_WORKERS,
            f"{format_count(loader.workers, 'loader worker')} cannot keep up with the steps",
            _waits(loader, waiting),
            Evidence(
                text=f"the workers are busy {format_share(_busy_share(loader, observed) or 0.0)} of the "
                f"time, and {format_share(loader.ready_share or 0.0)} of the batches were ready when asked "
                "for",
                see=See.LOADING,
            ),
            *_cores(observed),
            place=Place(phase="data", loader=loader.name),
            share=waiting,
            duration_ns=loader.wait_ns_per_batch,
            gain=at_most(waiting, "if no step ever waited for its batch"),
            remedies=(
                Remedy(
                    text="more workers, as far as there are cores for them",
                    snippet=f"DataLoader(dataset, num_workers={2 * loader.workers}, persistent_workers=True)",
                ),
            ),
        )
        for loader, waiting in _slow_loaders(observed)
        if loader.workers and (busy := _busy_share(loader, observed)) is not None and busy >= BUSY_SHARE
    )


def find_idle_workers(observed: Observed) -> Answer:
    """Loaders with more workers than the steps have use for."""
    loaders = _loaders_with_workers(observed)
    if isinstance(loaders, Missing):
        return loaders
    return tuple(
        _idle(loader, busy)
        for loader in loaders
        if (busy := _busy_share(loader, observed)) is not None
        and _workers_needed(loader, busy) < loader.workers
    )


def find_restarting_workers(observed: Observed) -> Answer:
    """Loaders that start their workers anew with each epoch, for a noticeable time."""
    loaders = _loaders_with_workers(observed)
    if isinstance(loaders, Missing):
        return loaders
    return tuple(found for loader in loaders for found in _restarts(loader))


def find_slow_collate(observed: Observed) -> Answer:
    """Loaders that take most of a batch's time for putting samples together."""
    return tuple(
        _slow_part(
            FindingKind.SLOW_COLLATE, loader, waiting, "collating the samples", loader.collate_ns_per_batch
        )
        for loader, waiting in _slow_loaders(observed)
        if _is_large_part(loader, loader.collate_ns_per_batch)
    )


def find_slow_transform(observed: Observed) -> Answer:
    """Loaders that take most of a batch's time for the dataset's transform."""
    found = tuple(
        _slow_part(
            FindingKind.SLOW_TRANSFORM, loader, waiting, "the transform", loader.transform_ns_per_batch
        )
        for loader, waiting in _slow_loaders(observed)
        if _is_large_part(loader, loader.transform_ns_per_batch)
    )
    if not found and any(not loader.workers for loader, _ in _slow_loaders(observed)):
        return Missing(
            reason="transforms are timed in loader workers, and this loader works in the program's own "
            "process: its functions tell"
        )
    return found


def _loaders_with_workers(observed: Observed) -> tuple[LoaderResult, ...] | Missing:
    loaders = () if observed.torch is None else observed.torch.loaders
    with_workers = tuple(loader for loader in loaders if loader.workers)
    if with_workers and all(loader.verdict is LoaderVerdict.CANNOT_TELL for loader in with_workers):
        return Missing(reason=_UNTOLD)
    return with_workers


def _slow_loaders(observed: Observed) -> Iterator[tuple[LoaderResult, float]]:
    """Loaders that steps wait for, and how much of their time."""
    for loader in () if observed.torch is None else observed.torch.loaders:
        waiting = _waiting_share(loader, observed)
        if loader.verdict is LoaderVerdict.TOO_SLOW and waiting >= INPUT_BOUND_SHARE:
            yield loader, waiting


def _is_large_part(loader: LoaderResult, part_ns: float | None) -> bool:
    work_ns = loader.work_ns_per_batch
    return bool(part_ns and work_ns and part_ns >= PART_OF_WORK * work_ns)


def _slow_part(
    kind: FindingKind, loader: LoaderResult, waiting: float, what: str, part_ns: float | None
) -> Finding:
    part_ns, work_ns = part_ns or 0.0, loader.work_ns_per_batch or 0.0
    part = min(part_ns / work_ns, 1.0)
    return finding(
        kind,
        f"{what} takes most of the time in which a batch is made",
        Evidence(
            text=f"{what} takes {format_duration(part_ns)} of the {format_duration(work_ns)} a batch takes "
            f"to make: {format_share(part)}",
            see=See.LOADING,
        ),
        _waits(loader, waiting),
        place=Place(phase="data", loader=loader.name),
        share=part * waiting,
        duration_ns=part * (loader.wait_ns_per_batch or 0.0),
        gain=at_most(part * waiting, "its part of making a batch, of the time steps wait for batches"),
    )


def _idle(loader: LoaderResult, busy: float) -> Finding:
    needed = _workers_needed(loader, busy)
    return finding(
        FindingKind.IDLE_WORKERS,
        f"{loader.workers:,} loader workers are more than the steps need",
        Evidence(
            text=f"the workers are busy {format_share(busy)} of the time, and "
            f"{format_share(loader.ready_share or 0.0)} of the batches were ready when asked for",
            see=See.LOADING,
        ),
        place=Place(loader=loader.name),
        share=None,
        remedies=(
            Remedy(
                text="fewer workers: each takes memory, and a core from the steps while it starts",
                snippet=f"DataLoader(dataset, num_workers={needed})",
            ),
        ),
    )


def _busy_share(loader: LoaderResult, observed: Observed) -> float | None:
    """How busy the workers are while steady steps go on: while they start nobody works.

    Of several loaders only the average over all their steps is known.
    """
    main = main_group_of(observed)
    loaders = () if observed.torch is None else observed.torch.loaders
    work_ns = loader.work_ns_per_batch
    if len(loaders) != 1 or isinstance(main, Missing) or work_ns is None or not main.batches_per_step:
        return loader.worker_busy_share
    return min(work_ns * main.batches_per_step / (loader.workers * main.steady.mean_ns), 1.0)


def _workers_needed(loader: LoaderResult, busy: float) -> int:
    """As many as would be busy three quarters of their time."""
    if loader.verdict is not LoaderVerdict.IDLE:
        return loader.workers
    return max(1, -int(-busy * loader.workers // BUSY_SHARE))


def _restarts(loader: LoaderResult) -> Iterator[Finding]:
    starts, each_ns = loader.worker_starts, loader.first_batch_ns_per_iterator
    if (
        starts is None
        or each_ns is None
        or starts < FEWEST_STARTS
        or starts < MOSTLY_STARTED * loader.iterators
    ):
        return
    steps_ns = None if not loader.wait_share else loader.wait_ns / loader.wait_share
    lost_ns = (starts - 1) * each_ns
    if not steps_ns or lost_ns < RESTART_SHARE * steps_ns:
        return
    share = min(lost_ns / steps_ns, 1.0)
    yield finding(
        FindingKind.WORKERS_RESTART,
        "the loader's workers are started anew with each epoch",
        Evidence(
            text=f"{starts:,} of {format_count(loader.iterators, 'iteration')} started workers, and the "
            f"first batch came after {format_duration(each_ns)}",
            see=See.LOADING,
        ),
        place=Place(phase="data", loader=loader.name),
        share=share,
        duration_ns=lost_ns,
        gain=at_most(share, "if only the first epoch waited for workers to start"),
    )


def _waits(loader: LoaderResult, waiting: float) -> Evidence:
    return Evidence(
        text=f"the steps wait {format_duration(loader.wait_ns_per_batch or 0.0)} for a batch on average, "
        f"steady ones {format_share(waiting)} of their time",
        see=See.LOADING,
    )


def _waiting_share(loader: LoaderResult, observed: Observed) -> float:
    """What steady steps wait for the loader: first batches, which wait for its start too, left out.

    Of several loaders only the average over all their steps is known.
    """
    main = main_group_of(observed)
    loaders = () if observed.torch is None else observed.torch.loaders
    data = None if isinstance(main, Missing) else main.phase("data")
    if len(loaders) != 1 or data is None:
        return loader.wait_share or 0.0
    return min(data.share, loader.wait_share or 0.0)


def _how_it_loads(loaders: tuple[LoaderResult, ...]) -> Iterator[Evidence]:
    for loader in loaders:
        if loader.verdict is not LoaderVerdict.TOO_SLOW:
            continue
        if not loader.workers:
            yield Evidence(
                text="the loader has no workers: it makes each batch while the steps wait", see=See.LOADING
            )
        elif loader.ready_share is not None:
            yield Evidence(
                text=f"{format_share(loader.ready_share)} of the batches were ready when asked for",
                see=See.LOADING,
            )


def _slowest_name(loaders: tuple[LoaderResult, ...]) -> str | None:
    slowest = max(loaders, key=lambda loader: loader.wait_ns, default=None)
    return None if slowest is None else slowest.name


def _workers_to_try(observed: Observed) -> int:
    cores = observed.run.machine.usable_cores
    return 2 if cores is None else max(1, min(cores, 8))


def _cores(observed: Observed) -> Iterator[Evidence]:
    cores = observed.run.machine.usable_cores
    if cores is not None:
        yield Evidence(text=f"{format_count(cores, 'core')} can be used here", see=See.FACTS)
