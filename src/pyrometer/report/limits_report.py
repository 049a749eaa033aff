"""The limits of a machine as text: for a terminal, as Markdown, and as JSON."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from pyrometer.record.limits import ACCESSES, ARITHMETIC, PRECISIONS, PRODUCT_PRECISIONS, Latency, Limits
from pyrometer.report.blocks import Bullets, Column, Pairs, Row, Section, Table, notes
from pyrometer.report.cells import UNKNOWN_CELL
from pyrometer.report.markdown_blocks import sections_as_markdown
from pyrometer.report.page import Page
from pyrometer.report.screen import DEFAULT_WIDTH
from pyrometer.units import (
    format_bytes,
    format_count,
    format_duration,
    format_rate,
    format_share,
    three_digits,
)

_NARROWEST = 40
_NAMES = {"fma": "FMA", "gemm": "GEMM", "library gemm": "library's GEMM"}
_HOW_BOUNDED = (
    "Bytes are those the program asks for: the line that a plain store reads before it writes is not "
    "counted, and streaming stores need none."
)


def render_limits_terminal(
    limits: Limits, *, width: int | None = None, color: bool = False, ascii_only: bool = False
) -> str:
    """The limits as text of at most ``width`` columns."""
    page = Page(width=max(width or DEFAULT_WIDTH, _NARROWEST), color=color, ascii_only=ascii_only)
    heading = page.paragraph(_headline(limits), style="bold")
    return page.render([heading, *(part for section in _sections(limits) for part in page.section(section))])


def render_limits_markdown(limits: Limits) -> str:
    """The limits as a page of Markdown."""
    return sections_as_markdown(_headline(limits), _sections(limits))


def render_limits_json(limits: Limits) -> str:
    """The limits as they are kept, with what is contended named besides."""
    content = {**msgspec.to_builtins(limits), "contended": list(contended_figures(limits))}
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def contended_figures(limits: Limits) -> Iterator[str]:
    """The figures whose best is far from their median: something else used the machine."""
    for rate in limits.flop_rates:
        if rate.contended:
            yield f"{_NAMES[rate.kind]} {rate.precision} on {_on(rate.threads)}"
    for bandwidth in limits.bandwidths:
        if bandwidth.contended:
            yield f"{bandwidth.kind} on {_on(bandwidth.threads)}"
    for access in limits.strided:
        if access.contended:
            yield f"stride {access.stride} on {_on(access.threads)}"
    for latency in limits.latencies:
        if latency.contended:
            yield f"latency of {latency.level} on {_on(latency.threads)}"


def _headline(limits: Limits) -> str:
    cpu = limits.cpu_model or limits.architecture
    return (
        f"Limits of this machine: {cpu}, {format_count(limits.threads, 'thread')}, {limits.instruction_set}"
    )


def _sections(limits: Limits) -> Iterator[Section]:
    counts = sorted({1, limits.threads})
    yield Section(title="Arithmetic", blocks=(_arithmetic(limits, counts),))
    yield Section(title="Memory bandwidth", blocks=(_bandwidth(limits, counts), *notes([_HOW_BOUNDED])))
    if limits.strided:
        title = "Strided reads: each n-th f32 of a long array, for each thread"
        yield Section(title=title, blocks=(_strides(limits, counts),))
    if limits.latencies:
        title = "Latency: loads that wait for each other, at random"
        yield Section(title=title, blocks=(_latency(limits, counts),))
    remarks = tuple(_remarks(limits))
    if remarks:
        yield Section(title="Mind", blocks=(Bullets(lines=remarks),))
    yield Section(title="How it was measured", blocks=(Pairs(rows=tuple(_facts(limits))),))


def _arithmetic(limits: Limits, counts: Sequence[int]) -> Table:
    rates = {(rate.kind, rate.precision, rate.threads): rate.best_flops_per_s for rate in limits.flop_rates}
    library = (limits.gemm_library or "library").split()[0]
    names = _NAMES | {"library gemm": f"{library}'s GEMM"}
    rows = []
    for kind in ARITHMETIC:
        for precision in PRODUCT_PRECISIONS if kind == "gemm" else PRECISIONS:
            found = [rates.get((kind, precision, threads)) for threads in counts]
            peaks = [rates.get(("fma", precision, threads)) for threads in counts]
            shares = [
                "" if kind == "fma" else UNKNOWN_CELL if not rate or not peak else format_share(rate / peak)
                for rate, peak in zip(found, peaks, strict=True)
            ]
            cells = [
                cell
                for rate, share in zip(found, shares, strict=True)
                for cell in (_known(rate, lambda value: format_rate(value, "FLOP")), share)
            ]
            rows.append(Row(name=f"{names[kind]} {precision}", cells=tuple(cells)))
    columns = [
        column
        for threads in counts
        for column in (
            Column(heading=_on(threads)),
            Column(heading="of FMA", spelled=f"of FMA, {_on(threads)}", dropped=1),
        )
    ]
    return Table(names="", columns=tuple(columns), rows=tuple(rows))


def _bandwidth(limits: Limits, counts: Sequence[int]) -> Table:
    found = {(one.kind, one.threads): one.best_bytes_per_s for one in limits.bandwidths}
    return _table(
        counts,
        (
            (
                kind,
                [
                    _known(found.get((kind, threads)), lambda value: format_rate(value, "B"))
                    for threads in counts
                ],
            )
            for kind in ACCESSES
        ),
    )


def _strides(limits: Limits, counts: Sequence[int]) -> Table:
    found = {(one.stride, one.threads): one.best_ns_per_element for one in limits.strided}
    rows = []
    for stride in sorted({one.stride for one in limits.strided}):
        cells = []
        for threads in counts:
            time_ns, first_ns = found.get((stride, threads)), found.get((1, threads))
            slower = UNKNOWN_CELL if not time_ns or not first_ns else f"{time_ns / first_ns:.1f} ×"
            cells += [_known(time_ns, lambda value: f"{three_digits(value)} ns"), slower]
        rows.append(Row(name=f"{stride:,}", cells=tuple(cells)))
    columns = [
        column
        for threads in counts
        for column in (
            Column(heading=_on(threads)),
            Column(heading="slower", spelled=f"slower than stride 1, {_on(threads)}"),
        )
    ]
    return Table(names="stride", columns=tuple(columns), rows=tuple(rows))


def _latency(limits: Limits, counts: Sequence[int]) -> Table:
    found = {(one.level, one.threads): one.best_ns for one in limits.latencies}
    first: dict[str, Latency] = {}
    for one in limits.latencies:
        first.setdefault(one.level, one)
    return _table(
        counts,
        (
            (
                f"{level}, over {format_bytes(one.working_set_bytes)}",
                [
                    _known(found.get((level, threads)), lambda value: f"{three_digits(value)} ns")
                    for threads in counts
                ],
            )
            for level, one in first.items()
        ),
        names="level",
    )


def _table(counts: Sequence[int], rows: Iterable[tuple[str, Sequence[str]]], *, names: str = "") -> Table:
    return Table(
        names=names,
        columns=tuple(Column(heading=_on(threads)) for threads in counts),
        rows=tuple(Row(name=name, cells=tuple(cells)) for name, cells in rows),
    )


def _remarks(limits: Limits) -> Iterator[str]:
    contended = list(contended_figures(limits))
    if contended:
        yield (
            f"Contended, the best more than 1.3 × the median: {_some(contended)}. Something else used the "
            "machine; measure again with --fresh when it is quiet."
        )
    slower = list(_slower_with_more_threads(limits))
    if slower:
        yield f"Slower on {_on(limits.threads)} than on one: {_some(slower)}. The cores are not all free."
    for missing in limits.not_measured:
        yield f"Not measured: {missing.figure}: {missing.reason}."
    last = limits.last_level_bytes
    if last is not None and limits.array_bytes < 4 * last:
        yield (
            f"The arrays have {format_bytes(limits.array_bytes)} each, less than four times the last cache "
            f"({format_bytes(last)}), for want of memory: part of the bandwidth may be the cache's."
        )


def _slower_with_more_threads(limits: Limits) -> Iterator[str]:
    if limits.threads == 1:
        return
    rates = {(one.kind, one.precision, one.threads): one.best_flops_per_s for one in limits.flop_rates}
    rates |= {(one.kind, "", one.threads): one.best_bytes_per_s for one in limits.bandwidths}
    for (kind, precision, threads), rate in rates.items():
        if threads == 1 and rates.get((kind, precision, limits.threads), rate) < rate:
            yield f"{_NAMES.get(kind, kind)} {precision}".rstrip()


def _facts(limits: Limits) -> Iterator[tuple[str, str]]:
    caches = (
        f"L{cache.level} {format_bytes(cache.size_bytes)}"
        + (f" shared by {cache.shared_by}" if cache.shared_by > 1 else "")
        for cache in limits.caches
    )
    yield "when", f"{limits.measured_at}, in {format_duration(limits.measured_ns)}"
    yield "caches", ", ".join(caches) or "not known"
    yield "arrays", f"{format_bytes(limits.array_bytes)} each, f32"
    yield "kernels", f"C, {limits.instruction_set}, version {limits.kernels_version}"
    yield "library", limits.gemm_library or "not measured"
    repetitions = [rate.repetitions for rate in limits.flop_rates]
    if repetitions:
        yield "figures", f"the best of {min(repetitions)} turns or more, kernels taking turns"


def _some(names: Sequence[str], most: int = 6) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _on(threads: int) -> str:
    return format_count(threads, "thread")


def _known(value: float | None, write: Callable[[float], str]) -> str:
    return UNKNOWN_CELL if value is None else write(value)
