"""What is measured for the limits of a machine: the kernels, and the memory they work on."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pyrometer.machine.cgroup import memory_limit_bytes
from pyrometer.record.limits import PRECISIONS, PRODUCT_PRECISIONS, Cache

if TYPE_CHECKING:
    from types import ModuleType

    from pyrometer._native.kernels import Arrays, Product, Ring

STRIDES = (1, 2, 4, 8, 16, 32, 64, 256, 1_024)
MEMORY = "memory"
SLICES = 8

Stretch = tuple[int, int, float]
"""Began and ended, in nanoseconds, and how much work was done: operations, bytes, elements or loads."""

_BLOCK_BYTES = 512
_LINE_BYTES = 64
_LEAST_BYTES = 1_024 * 4 * SLICES
"""A slice has to have an element of the longest stride."""
_MOST_BYTES = 512 << 20
_BYTES_WITHOUT_CACHES = 128 << 20
_SHARE_OF_MEMORY = 4


@dataclass(slots=True, kw_only=True)
class Place:
    """The memory of one thread, which that thread is the first to touch."""

    index: int
    arrays: "Arrays | None" = None
    rings: "dict[str, Ring]" = field(default_factory=dict)
    products: "dict[str, Product]" = field(default_factory=dict)
    """By precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much memory threads work on."""

    one_bytes: int
    """Each array, when one thread works alone."""
    each_bytes: int
    """Each array of each thread, when all work."""
    ring_bytes: dict[str, int]
    """By level of memory, for each thread."""

    def part(self, turn: "Turn") -> tuple[int, int]:
        """(offset, bytes) of the slice of its arrays that each thread works on."""
        size_bytes = (self.one_bytes if turn.threads == 1 else self.each_bytes) // SLICES
        size_bytes = max(_whole_blocks(size_bytes), _BLOCK_BYTES)
        return turn.slice_number % SLICES * size_bytes, size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a kernel: how many threads take it, how much each does, and which slice of its arrays.

    A slice is a few milliseconds' work, and comes again when all the others have been worked through: a
    turn is too short for most disturbances, and never finds its slice in a cache.
    """

    threads: int
    amount: int
    slice_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """Something to measure."""

    figure: tuple[str, str | int]
    run: Callable[[Place, "Turn"], Stretch]
    least: int | None = None
    """An amount that takes microseconds, to find out how much takes milliseconds; None: not asked."""


def choose_sizes(caches: Sequence[Cache], threads: int, memory_bytes: int | None) -> Sizes:
    """Arrays of four times the last cache, if a quarter of the memory holds them all.

    A working set for a cache is well above the cache before it, and well below what each thread has of it.
    That for memory is as long as an array.
    """
    last = max(caches, key=lambda cache: cache.level, default=None)
    wanted_bytes = 4 * last.size_bytes if last else _BYTES_WITHOUT_CACHES
    all_bytes = wanted_bytes * min(last.count if last else 1, threads)
    one_bytes = min(wanted_bytes, _MOST_BYTES)
    if memory_bytes is not None:
        # Three arrays and a ring, for one thread alone and for all together.
        most_bytes = memory_bytes // _SHARE_OF_MEMORY // 4 // 2
        one_bytes, all_bytes = min(one_bytes, most_bytes), min(all_bytes, most_bytes)
    each_bytes = max(_whole_blocks(all_bytes // threads), _LEAST_BYTES)
    one_bytes = max(_whole_blocks(one_bytes), each_bytes)
    rings: dict[str, int] = {}
    smaller_bytes = 0
    for cache in caches:
        own_bytes = cache.size_bytes // min(cache.shared_by, threads)
        rings[f"L{cache.level}"] = max(min(max(own_bytes // 8, 4 * smaller_bytes), own_bytes // 2), 4_096)
        smaller_bytes = cache.size_bytes
    return Sizes(
        one_bytes=one_bytes,
        each_bytes=each_bytes,
        ring_bytes={**rings, MEMORY: one_bytes},
    )


def available_memory_bytes() -> int | None:
    """What can be used without harm; None where the system does not tell."""
    import psutil

    try:
        available: int | None = psutil.virtual_memory().available
    except (OSError, NotImplementedError):
        available = None
    return min((size for size in (available, memory_limit_bytes()) if size is not None), default=None)


def prepare(place: Place, *, sizes: Sizes, native: "ModuleType") -> Stretch:
    """Make and touch the place's memory, on the thread that calls."""
    place.arrays = native.Arrays(sizes.one_bytes if place.index == 0 else sizes.each_bytes)
    place.arrays.fill()
    for level, size_bytes in sizes.ring_bytes.items():
        shorter = place.index > 0 and level == MEMORY
        place.rings[level] = native.Ring(sizes.each_bytes if shorter else size_bytes)
    for precision in PRODUCT_PRECISIONS:
        place.products[precision] = native.Product(precision)
    return (0, 0, 0.0)


def kernels_of(native: "ModuleType", sizes: Sizes) -> Iterator[Kernel]:
    """All there is to measure here with kernels of our own."""
    for precision in PRECISIONS:
        if precision != "bf16" or native.BF16:
            yield Kernel(figure=("fma", precision), run=partial(_fma, native.fma, precision), least=1_000)
    for precision in PRODUCT_PRECISIONS:
        yield Kernel(figure=("gemm", precision), run=partial(_multiply, precision))
    yield Kernel(figure=("triad", 0), run=partial(_triad, sizes, streaming=False))
    if native.STREAMS:
        yield Kernel(figure=("streaming triad", 0), run=partial(_triad, sizes, streaming=True))
    yield Kernel(figure=("read", 0), run=partial(_read, sizes))
    for stride in STRIDES:
        yield Kernel(figure=("stride", stride), run=partial(_strided, sizes, stride))
    for level, size_bytes in sizes.ring_bytes.items():
        warm_loads = 0 if level == MEMORY else size_bytes // _LINE_BYTES
        yield Kernel(figure=("latency", level), run=partial(_walk, level, warm_loads), least=1_000)


def _fma(
    fma: Callable[[str, int], tuple[int, int, int, float]],
    precision: str,
    _place: Place,
    turn: Turn,
) -> Stretch:
    began_ns, ended_ns, flops, _ = fma(precision, turn.amount)
    return began_ns, ended_ns, flops


def _multiply(precision: str, place: Place, _turn: Turn) -> Stretch:
    # As with latencies: the matrices are not in the caches any more.
    place.products[precision].multiply()
    return place.products[precision].multiply()


def _triad(sizes: Sizes, place: Place, turn: Turn, *, streaming: bool) -> Stretch:
    offset_bytes, size_bytes = sizes.part(turn)
    began_ns, ended_ns = _arrays(place).triad(offset_bytes, size_bytes, streaming)
    return began_ns, ended_ns, 3 * size_bytes


def _read(sizes: Sizes, place: Place, turn: Turn) -> Stretch:
    offset_bytes, size_bytes = sizes.part(turn)
    began_ns, ended_ns, _ = _arrays(place).read(offset_bytes, size_bytes)
    return began_ns, ended_ns, size_bytes


def _strided(sizes: Sizes, stride: int, place: Place, turn: Turn) -> Stretch:
    began_ns, ended_ns, elements, _ = _arrays(place).read_strided(*sizes.part(turn), stride)
    return began_ns, ended_ns, elements


def _walk(level: str, warm_loads: int, place: Place, turn: Turn) -> Stretch:
    # All that ran since the last turn has put other things into the caches.
    place.rings[level].walk(warm_loads)
    began_ns, ended_ns, _ = place.rings[level].walk(turn.amount)
    return began_ns, ended_ns, turn.amount


def _arrays(place: Place) -> "Arrays":
    if place.arrays is None:
        raise RuntimeError("a kernel runs before its memory was made")
    return place.arrays


def _whole_blocks(size_bytes: int) -> int:
    return size_bytes // _BLOCK_BYTES * _BLOCK_BYTES
