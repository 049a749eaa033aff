"""Hotspots with what to do about them."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.hotspots import (
    HIGH_SHARE,
    MEDIUM_SHARE,
    Hotspot,
    HotspotKind,
    Priority,
)
from pyrometer.report.blocks import Column, Emphasis, Row, Section, Table, notes
from pyrometer.report.cells import Style
from pyrometer.units import format_duration

_COLUMNS = (
    Column(heading="what", left=True, widest=20),
    Column(heading="a step"),
    Column(heading="%"),
    Column(heading="priority", left=True),
)
_MOST_ADVISED = 3
_RULE = (
    f"Priority by share of the step: HIGH from {100 * HIGH_SHARE:.0f} %, MEDIUM from "
    f"{100 * MEDIUM_SHARE:.0f} %."
)
_MODULES = "A module's time is its own, and part of its phases'."


def build_hotspot_section(
    hotspots: Sequence[Hotspot], style: Style, *, advised: bool = True
) -> Section | None:
    """The hotspots by rank; None when there is none.

    Where room is short, advice is given once, on the first three, and none on what has little share.
    Without ``advised`` there is none at all: findings say what to try, from evidence.
    """
    if not hotspots:
        return None
    rows = tuple(_rows(hotspots, style, advised=advised))
    details = "likely causes, and what to try" if advised else ""
    table = Table(names="hotspot", columns=_COLUMNS, rows=rows, details=details)
    return Section(title="Hotspots", blocks=(table, *notes([f"{_RULE} {_MODULES}" if advised else _RULE])))


def _rows(hotspots: Sequence[Hotspot], style: Style, *, advised: bool) -> Iterator[Row]:
    given: set[tuple[str, ...]] = set()
    for hotspot in hotspots:
        advice = tuple(_advice(hotspot))
        spared = advice in given or hotspot.priority is Priority.LOW or hotspot.rank > _MOST_ADVISED
        given.add(advice)
        yield Row(
            name=f"{hotspot.rank}. {hotspot.name}",
            cells=(
                _kind(hotspot),
                format_duration(hotspot.ns_per_step),
                f"{100 * hotspot.share:.1f}",
                hotspot.priority.value,
            ),
            emphasis=Emphasis.STRONG if hotspot.priority is Priority.HIGH else Emphasis.NONE,
            details=() if not advised or (spared and not style.wordy) else advice,
        )


def _kind(hotspot: Hotspot) -> str:
    if hotspot.kind is HotspotKind.PHASE:
        return "phase"
    return hotspot.module_kind or "module"


def _advice(hotspot: Hotspot) -> Iterator[str]:
    if hotspot.causes:
        yield f"Likely: {'; '.join(hotspot.causes)}."
    if hotspot.to_try:
        yield f"Try: {'; '.join(hotspot.to_try)}."
