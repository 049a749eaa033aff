"""The figures of the tables as text, written alike by every renderer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pyrometer.analysis.scope_table import ScopeSummary
from pyrometer.report.document import Document, Headline
from pyrometer.report.tree_rows import RowKind, TreeRow
from pyrometer.units import (
    compact_bytes,
    compact_count,
    compact_duration,
    compact_share,
    format_bytes,
    format_duration,
    format_share,
)

UNKNOWN_CELL = "–"

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How durations, counts, sizes and shares are written, and what is no more than a bound."""

    duration: Callable[[float], str]
    count: Callable[[int], str]
    size: Callable[[float], str]
    share: Callable[[float], str]
    at_most: str
    wordy: bool
    """Whether there is room for all there is to say."""


COMPACT = Style(
    duration=compact_duration,
    count=compact_count,
    size=compact_bytes,
    share=compact_share,
    at_most="≤",
    wordy=False,
)
SPACIOUS = Style(
    duration=format_duration,
    count="{:,}".format,
    size=format_bytes,
    share=format_share,
    at_most="≤ ",
    wordy=True,
)


def scope_cells(document: Document, scope: ScopeSummary, style: Style) -> dict[str, str]:
    """The figures of a row of the table, by the heading of their column."""
    share = write_known(scope.share if document.share_is_known else None, style.share)
    cells = {
        "calls": style.count(scope.calls),
        "total": style.duration(scope.total_ns),
        "self": style.duration(scope.self_ns),
        "avg": write_known(scope.average_ns, style.duration),
        "min": write_known(scope.min_ns, style.duration),
        "p50": write_known(scope.p50_ns, style.duration),
        "p95": write_known(scope.p95_ns, style.duration),
        "max": write_known(scope.max_ns, style.duration),
        "%": _bounded(scope, share, style),
    }
    if document.shows_allocated:
        cells["allocated"] = write_known(scope.allocated_bytes, style.size)
    return cells


def apart_cells(document: Document, scope: ScopeSummary, style: Style) -> dict[str, str]:
    """The figures of a scope that have no column in the table; nothing where there is nothing to say."""
    cells = {}
    if document.shows_open:
        cells["open calls"] = style.count(scope.open_calls) if scope.open_calls else ""
    if document.shows_suspended:
        cells["suspended"] = style.duration(scope.suspended_ns) if scope.suspended_ns else ""
    if document.shows_wall:
        wall_time = "" if scope.wall_ns is None else style.duration(scope.wall_ns)
        cells["wall time"] = _bounded(scope, wall_time, style)
    return cells


def tree_cells(row: TreeRow, style: Style) -> dict[str, str]:
    """The figures of a line of the tree."""
    share = write_known(row.share, style.share)
    return {
        "total": style.duration(row.total_ns),
        "self": "" if row.self_ns is None else style.duration(row.self_ns),
        "%": "" if row.kind is RowKind.FOLDED and row.share is None else share,
        "calls": "" if row.calls is None else style.count(row.calls),
    }


def hottest_amount(headline: Headline) -> str:
    """How much time of its own the hottest scope has; of a parallel one, summed over threads."""
    if headline.hottest is None:
        return ""
    if headline.hottest_share is None:
        return format_duration(headline.hottest.self_ns)
    return format_share(headline.hottest_share)


def _bounded(scope: ScopeSummary, figure: str, style: Style) -> str:
    """A figure made from a scope's wall time, marked where it is an upper bound; ``<0.1`` is one as it is."""
    marked = scope.wall_is_upper_bound and figure != UNKNOWN_CELL and not figure.startswith("<")
    return style.at_most + figure if marked else figure


def write_known(value: _Number | None, write: Callable[[_Number], str]) -> str:
    """The value as written, or a dash where it is unknown."""
    return UNKNOWN_CELL if value is None else write(value)
