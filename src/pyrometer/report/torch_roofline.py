"""How near the step, its phases and its modules come to what the machine can do."""

from collections.abc import Iterable, Iterator, Sequence

from pyrometer.analysis.roofline import FAR_BELOW_SHARE, OVERHEAD_BELOW_NS, Bound, Placed, Roofs, Work
from pyrometer.analysis.torch_roofline import Roofline
from pyrometer.report.blocks import Column, Emphasis, Lines, Row, Section, Table, notes
from pyrometer.report.cells import Style, write_known
from pyrometer.report.torch_operators import operator_name
from pyrometer.report.torch_wording import short
from pyrometer.units import format_count, format_duration, format_rate, three_digits

_COLUMNS = (
    Column(heading="time", spelled="time a step, or a call", dropped=2),
    Column(heading="FLOP/B", spelled="FLOPs a byte", dropped=1),
    Column(heading="GFLOP/s"),
    Column(heading="%", spelled="% of the FLOP/s there are"),
    Column(heading="GB/s"),
    Column(heading="%", spelled="% of the bandwidth there is"),
    Column(heading="bound", left=True),
)
_AT_LEAST = " ≥"
_ESTIMATED = " ≈"
_NAMED = 5
_MOST_OPERATORS = 8
_FAR_BELOW = f"{100 * FAR_BELOW_SHARE:.0f} %"
ROOFLINE_TITLE = "Roofline: how much of the machine is used"


def build_roofline_section(roofline: Roofline | None, style: Style, *, top: int) -> Section | None:
    """The step, its phases, modules and operators with most time; None where limits are not known."""
    if roofline is None:
        return None
    if roofline.roofs is None:
        return Section(title=ROOFLINE_TITLE, blocks=(Lines(lines=(f"Not placed: {roofline.reason}.",)),))
    modules = [one for one in roofline.modules if one.bound is not Bound.NOT_PLACED]
    steps = [] if roofline.step is None else [roofline.step]
    shown = [one for one in (*steps, *roofline.phases) if one.bound is not Bound.NOT_PLACED]
    operators = [one for one in roofline.operators if one.bound is not Bound.NOT_PLACED]
    rows = tuple(
        _row(one, style) for one in (*shown, *modules[:top], *operators[: min(top, _MOST_OPERATORS)])
    )
    lines = (*_explain(roofline, roofline.roofs, rows, style), *_not_shown(len(modules[top:])))
    table = (Table(names="", columns=_COLUMNS, rows=rows),) if rows else ()
    return Section(
        title=ROOFLINE_TITLE, blocks=(Lines(lines=(describe_roofs(roofline.roofs),)), *table, *notes(lines))
    )


def describe_roofs(roofs: Roofs) -> str:
    """What the machine can do, in one line."""
    return (
        f"{format_rate(roofs.flops_per_s, 'FLOP')} ({roofs.flops_source}) and "
        f"{format_rate(roofs.bytes_per_s, 'B')} ({roofs.bytes_source}) on "
        f"{format_count(roofs.threads, 'thread')}; they meet at {three_digits(roofs.ridge)} FLOPs a byte."
    )


def _row(placed: Placed, style: Style) -> Row:
    work = placed.work
    return Row(
        name=operator_name(work.name) if work.kind == "operator" else work.name,
        mark=(_AT_LEAST if work.at_least else "") + (_ESTIMATED if work.estimated else ""),
        cells=(
            style.duration(_time_ns(work)),
            write_known(placed.intensity, _figure),
            write_known(placed.flops_per_s, _giga),
            write_known(placed.compute_share, style.share),
            write_known(placed.bytes_per_s, _giga),
            write_known(placed.memory_share, style.share),
            placed.bound.value,
        ),
        emphasis=Emphasis.STRONG if work.kind == "step" else Emphasis.NONE,
    )


def _time_ns(work: Work) -> float:
    """Of a phase in a step, of a module in a call."""
    return work.duration_ns if work.kind in {"step", "phase"} else work.duration_ns / max(work.calls, 1)


def _giga(per_second: float) -> str:
    return _figure(per_second / 1e9)


def _figure(value: float) -> str:
    return three_digits(value) if value else "0"


def _explain(roofline: Roofline, roofs: Roofs, rows: Sequence[Row], style: Style) -> Iterator[str]:
    placed = roofline.placed
    yield from _explain_figures(roofline) if style.wordy else _explain_briefly(roofline)
    if any(one.bound is Bound.OVERHEAD for one in placed):
        yield (
            f"Overhead-bound: under {_FAR_BELOW} of both, and each call under "
            f"{format_duration(OVERHEAD_BELOW_NS)}: starting the work takes longer than doing it."
        )
    if any(one.bound is Bound.NEITHER for one in placed):
        yield f"Below both: under {_FAR_BELOW} of both in longer calls: what holds it back is neither."
    if any((one.memory_share or 0.0) > 1 for one in placed):
        yield "Above 100 % of the bandwidth: the data came from caches."
    threads = roofline.intra_op_threads
    if threads is not None and threads != roofs.threads:
        yield f"The program used {format_count(threads, 'thread')}; there are no limits for so many."
    if roofs.contended:
        yield "The limits were measured beside something else, and may be higher: pyrometer limits --fresh"
    if not rows:
        yield "Nothing could be placed."
    # Most operators have no formula, which is no news where room is short.
    operators = roofline.operators if style.wordy else ()
    yield from _not_placed((*roofline.phases, *roofline.modules, *operators))


def _explain_figures(roofline: Roofline) -> Iterator[str]:
    yield (
        "FLOPs by formula; bytes are the least there are to move: inputs, parameters, outputs, each once. "
        "Modules and operators: a call; modules forward."
    )
    if any(one.work.estimated for one in roofline.placed):
        yield "≈: each gradient, of a module's inputs or of its parameters, is taken for as much as its call."
    if any(one.work.at_least for one in roofline.placed):
        yield "≥: at least so much; some of it has no formula, or what it gives was not recorded."


def _explain_briefly(roofline: Roofline) -> Iterator[str]:
    marks = [
        *(["≈ gradients are estimated"] if any(one.work.estimated for one in roofline.placed) else []),
        *(["≥ at least"] if any(one.work.at_least for one in roofline.placed) else []),
    ]
    yield "; ".join(["FLOPs by formula, bytes the least there are to move", *marks]) + "."


def _not_placed(placed: Iterable[Placed]) -> Iterator[str]:
    """What is not placed, the names together that have the same reason."""
    reasons: dict[str, list[str]] = {}
    for one in placed:
        if one.bound is Bound.NOT_PLACED:
            reasons.setdefault(one.reason, []).append(one.work.name)
    for reason, names in list(reasons.items())[:_NAMED]:
        more = len(names) - _NAMED
        listed = ", ".join(short(name) for name in names[:_NAMED]) + (
            f" and {more:,} more" if more > 0 else ""
        )
        yield f"Not placed: {listed}: {reason}."


def _not_shown(count: int) -> Iterator[str]:
    if count:
        yield f"{format_count(count, 'more module')} not shown (see --top)."
