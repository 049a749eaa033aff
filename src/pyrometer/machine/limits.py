"""Measures what this machine reaches at best: arithmetic, bandwidth, strides, latencies.

Kernels in C take turns, on one thread and on all, until seconds have passed, and the best of each is
kept: a neighbour that takes the machine for a moment spoils one turn of each, not all turns of one.
Threads are not bound to cores.
"""

import os
import platform
import time
from collections.abc import Iterator
from datetime import datetime
from functools import partial

from pyrometer.errors import UnsupportedPlatformError
from pyrometer.machine.caches import data_caches
from pyrometer.machine.crew import Crew, Job, Plan
from pyrometer.machine.facts import cpu_model, usable_cores
from pyrometer.machine.gemm import GemmProcess, NoProductsError
from pyrometer.machine.limit_figures import (
    Turns,
    bandwidths,
    flop_rates,
    latencies,
    strided,
    threads_in_words,
)
from pyrometer.machine.limit_kernels import (
    Kernel,
    Place,
    Stretch,
    Turn,
    available_memory_bytes,
    choose_sizes,
    kernels_of,
    prepare,
)
from pyrometer.record.limits import KERNELS_VERSION, PRECISIONS, Limits, NotMeasured

_TURN_NS = 2_000_000
"""How long one turn of a kernel in registers or in a cache is to take."""
_FEWEST_ROUNDS = 3
"""The first of them is dropped."""
_MEASURE_S = 4.0
_LEAST_MEASURE_S = 2.0
_WHOLE_COMMAND_S = 7.5
_WAIT_FOR_LIBRARIES_S = 5.0
_BY_LIBRARY = "library gemm"


def why_not_available() -> str | None:
    """Why the limits cannot be measured here; None where they can."""
    if os.environ.get("PYROMETER_NATIVE") == "0":
        return "no compiled kernels, because PYROMETER_NATIVE=0"
    try:
        import pyrometer._native.kernels  # noqa: F401 - whether it is there
    except ImportError:
        return "no compiled kernels"
    return None


def measure_limits(
    threads: int | None = None, *, libraries_within_s: float = _WAIT_FOR_LIBRARIES_S
) -> Limits:
    """What this machine reaches, on one thread and on ``threads``, by default all it may use.

    Takes less than ten seconds, of which up to ``libraries_within_s`` is waiting for torch. Raises
    ``UnsupportedPlatformError`` without compiled kernels.
    """
    reason = why_not_available()
    if reason is not None:
        raise UnsupportedPlatformError(
            f"limits are not available: {reason}; pyrometer doctor says how to build what is compiled"
        )
    measuring = _Measuring(threads or usable_cores() or 1, libraries_within_s)
    with GemmProcess(threads=measuring.threads) as products:
        places = [Place(index=index) for index in range(measuring.threads)]
        Crew(places=places, plan=measuring.plan(products)).work()
        return measuring.limits(products.library)


class _Measuring:
    """One measurement, and what it has seen so far."""

    def __init__(self, threads: int, libraries_within_s: float) -> None:
        from pyrometer._native import kernels

        self.threads = threads
        self._libraries_within_s = libraries_within_s
        self._native = kernels
        self._began_s = time.monotonic()
        self._started_at = datetime.now().astimezone()
        self._caches = data_caches()
        self._sizes = choose_sizes(self._caches, threads, available_memory_bytes())
        self._turns: Turns = {}
        self._not_measured: dict[str, str] = {}

    def plan(self, products: GemmProcess) -> Plan[Place, Stretch]:
        """Make the memory, find out how much work is one turn, then turn after turn until time is up."""
        yield Job(work=partial(prepare, sizes=self._sizes, native=self._native), threads=self.threads)
        self._wait_for(products, max(self._began_s + self._libraries_within_s - time.monotonic(), 0.0))
        turns: list[tuple[Kernel, int]] = []
        for kernel in kernels_of(self._native, self._sizes):
            first = Turn(threads=1, amount=kernel.least or 1, slice_number=len(turns))
            [found] = yield Job(work=partial(_take, kernel, first), threads=1)
            turns.append((kernel, _amount_for_a_turn(kernel, found)))
        until_s = self._until_s()
        rounds, round_s = 0, 0.0
        while rounds < _FEWEST_ROUNDS or time.monotonic() + round_s < until_s:
            round_began_s = time.monotonic()
            for threads in sorted({1, self.threads}):
                for index, (kernel, amount) in enumerate(turns):
                    # No two kernels use the same slice in the same round.
                    turn = Turn(threads=threads, amount=amount, slice_number=rounds + index)
                    done = yield Job(work=partial(_take, kernel, turn), threads=threads)
                    self._turns.setdefault((*kernel.figure, threads), []).append(done)
                self._multiply(products, threads)
            rounds += 1
            round_s = time.monotonic() - round_began_s
        if products.library is None:
            self._not_measured.setdefault(_BY_LIBRARY, "neither torch nor numpy was loaded in time")

    def _until_s(self) -> float:
        now_s = time.monotonic()
        return max(now_s + _LEAST_MEASURE_S, min(now_s + _MEASURE_S, self._began_s + _WHOLE_COMMAND_S))

    def _wait_for(self, products: GemmProcess, timeout_s: float) -> None:
        try:
            products.wait_until_ready(timeout_s)
        except NoProductsError as error:
            self._not_measured[_BY_LIBRARY] = str(error)

    def _multiply(self, products: GemmProcess, threads: int) -> None:
        if products.library is None and _BY_LIBRARY not in self._not_measured:
            self._wait_for(products, 0)
        for precision in PRECISIONS if products.library is not None else ():
            name = f"{_BY_LIBRARY} {precision}, {threads_in_words(threads)}"
            if name in self._not_measured:
                continue
            try:
                flops, duration_ns = products.multiply(precision, threads)
            except NoProductsError as error:
                self._not_measured[name] = str(error)
                self._turns.pop((_BY_LIBRARY, precision, threads), None)
            else:
                turns = self._turns.setdefault((_BY_LIBRARY, precision, threads), [])
                turns.append([(0, duration_ns, float(flops))])

    def limits(self, library: str | None) -> Limits:
        """What was measured."""
        return Limits(
            kernels_version=KERNELS_VERSION,
            measured_at=self._started_at.isoformat(timespec="seconds"),
            measured_ns=round((time.monotonic() - self._began_s) * 1e9),
            cpu_model=cpu_model(),
            architecture=platform.machine(),
            usable_cores=usable_cores(),
            threads=self.threads,
            instruction_set=self._native.INSTRUCTION_SETS[0],
            gemm_library=library,
            array_bytes=self._sizes.one_bytes,
            caches=self._caches,
            flop_rates=tuple(flop_rates(self._turns)),
            bandwidths=tuple(bandwidths(self._turns)),
            strided=tuple(strided(self._turns)),
            latencies=tuple(latencies(self._turns, self._sizes)),
            not_measured=tuple(
                NotMeasured(figure=figure, reason=reason[:200])
                for figure, reason in (*self._not_measured.items(), *self._missing())
            ),
        )

    def _missing(self) -> Iterator[tuple[str, str]]:
        if not self._native.BF16:
            yield "fma bf16", "this processor has no instruction for it that there is a kernel for"
        if not self._native.STREAMS:
            yield "streaming triad", "there is no kernel with streaming stores for this processor"
        if not self._caches:
            yield "latency of caches", "the system does not tell its caches"


def _take(kernel: Kernel, turn: Turn, place: Place) -> Stretch:
    return kernel.run(place, turn)


def _amount_for_a_turn(kernel: Kernel, found: Stretch) -> int:
    if kernel.least is None:
        return 1
    began_ns, ended_ns, _ = found
    return max(kernel.least * _TURN_NS // max(ended_ns - began_ns, 1), kernel.least)
