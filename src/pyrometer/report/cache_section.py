"""Caches and memory: how often they miss, what strides cost, how much of the bandwidth is used."""

from collections.abc import Iterator

from pyrometer.analysis.counters import CounterResults, HardwareResult
from pyrometer.analysis.torch_roofline import Roofline
from pyrometer.record.limits import Limits
from pyrometer.report.blocks import Block, Column, Row, Section, Table, notes
from pyrometer.report.cells import SPACIOUS, UNKNOWN_CELL, write_known
from pyrometer.report.document import Document
from pyrometer.units import format_count, format_rate, format_share, three_digits

CACHES_TITLE = "Caches and memory bandwidth"

_STRIDE = 16
_NOT_COUNTED = "Not counted in this run: pyrometer run --counters (hardware), or --cachegrind (simulated)."
_NO_L2 = "L2 is told only by processors that count it; a simulation has no level between D1 and LL."
_NO_LIMITS = (
    "The limits of the machine were not known when the run began: pyrometer limits measures them once."
)
_NO_BYTES = "Bytes are counted of PyTorch modules on the processor only."
_CACHES = (("L1d", "D1, both"), ("L1i", "I1, instructions"), ("L2", None), ("LL", "LL, behind I1 and D1"))
_HARDWARE = {"L1d": ("L1d loads", "L1d load misses"), "LL": ("LLC loads", "LLC load misses")}


def build_cache_section(document: Document) -> Section:
    """Miss rates, sequential against strided reads, peak and achieved bandwidth; unknown cells say so."""
    limits = document.run.limits
    roofline = None if document.torch is None else document.torch.roofline
    return Section(
        title=CACHES_TITLE,
        blocks=(
            *_miss_rates(document.counters),
            *_strides(limits),
            *_bandwidth(limits, roofline),
        ),
    )


def _miss_rates(counters: CounterResults | None) -> Iterator[Block]:
    columns = (
        Column(heading="references"),
        Column(heading="misses"),
        Column(heading="miss rate"),
        Column(heading="source", left=True),
    )
    rows = tuple(row for name, simulated in _CACHES for row in _cache_rows(counters, name, simulated))
    known = any(row.cells[0] != UNKNOWN_CELL for row in rows)
    yield Table(names="cache", columns=columns, rows=rows)
    yield from notes([_NO_L2] if known else [_NOT_COUNTED])


def _cache_rows(counters: CounterResults | None, name: str, simulated: str | None) -> Iterator[Row]:
    found: list[Row] = []
    if counters is not None and counters.hardware is not None:
        found += _hardware_row(counters.hardware, name)
    if counters is not None and counters.simulated is not None and simulated is not None:
        found += [
            Row(
                name=name,
                cells=(
                    SPACIOUS.count(cache.references),
                    SPACIOUS.count(cache.misses),
                    write_known(cache.rate, format_share),
                    "simulated",
                ),
            )
            for cache in counters.simulated.caches
            if cache.name == simulated
        ]
    yield from found or [Row(name=name, cells=(UNKNOWN_CELL,) * 4)]


def _hardware_row(hardware: HardwareResult, name: str) -> Iterator[Row]:
    if name in _HARDWARE:
        references, misses = (hardware.process[counter] for counter in _HARDWARE[name])
        if misses is not None and misses.count is not None:
            cells = (
                write_known(None if references is None else references.count, SPACIOUS.count),
                SPACIOUS.count(misses.count),
                write_known(misses.rate, format_share),
                "hardware",
            )
            yield Row(name=name, cells=cells)


def _strides(limits: Limits | None) -> Iterator[Block]:
    columns = (
        Column(heading="sequential", spelled="sequential, ns an element"),
        Column(heading=f"stride {_STRIDE}", spelled=f"stride {_STRIDE}, ns an element"),
        Column(heading="slower"),
    )
    if limits is None:
        row = Row(name="reads of f32", cells=(UNKNOWN_CELL,) * 3)
        yield Table(names="access", columns=columns, rows=(row,))
        yield from notes([_NO_LIMITS])
        return
    found = {(one.stride, one.threads): one.best_ns_per_element for one in limits.strided}
    rows = []
    for threads in sorted({1, limits.threads}):
        first, strided = found.get((1, threads)), found.get((_STRIDE, threads))
        slower = UNKNOWN_CELL if not first or not strided else f"{strided / first:.1f} ×"
        cells = (write_known(first, three_digits), write_known(strided, three_digits), slower)
        rows.append(Row(name=f"reads of f32, {format_count(threads, 'thread')}", cells=cells))
    yield Table(names="access", columns=columns, rows=tuple(rows))


def _bandwidth(limits: Limits | None, roofline: Roofline | None) -> Iterator[Block]:
    columns = (
        Column(heading="peak", spelled="peak, measured on this machine"),
        Column(heading="achieved"),
        Column(heading="used", spelled="utilisation"),
    )
    peak = None
    if roofline is not None and roofline.roofs is not None:
        peak = roofline.roofs.bytes_per_s
    elif limits is not None and limits.bandwidths:
        peak = max(one.best_bytes_per_s for one in limits.bandwidths)
    placed = [] if roofline is None or roofline.step is None else [roofline.step, *roofline.phases]
    rows = [
        Row(
            name=one.work.name,
            cells=(
                write_known(peak, _bytes_rate),
                write_known(one.bytes_per_s, _bytes_rate),
                write_known(one.memory_share, format_share),
            ),
        )
        for one in placed
        if one.bytes_per_s is not None
    ]
    if not rows:
        rows.append(Row(name="step", cells=(write_known(peak, _bytes_rate), UNKNOWN_CELL, UNKNOWN_CELL)))
    yield Table(names="bandwidth", columns=columns, rows=tuple(rows))
    if all(row.cells[1] == UNKNOWN_CELL for row in rows):
        yield from notes([_NO_BYTES])


def _bytes_rate(per_second: float) -> str:
    return format_rate(per_second, "B")
