"""The tree of modules: those that matter, the rest folded at their places, nothing missing."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from pyrometer.analysis.modules import ModulePlace, ModuleRow, ModuleTable
from pyrometer.report.blocks import Column, Emphasis, Row, Section, Table, notes, without_unknown_columns
from pyrometer.report.cells import UNKNOWN_CELL, Style, write_known
from pyrometer.report.safe_text import escape_controls, shorten_middle, visible
from pyrometer.report.torch_wording import (
    describe_module_steps,
    describe_timed_backward,
    format_figure,
    short,
)
from pyrometer.report.tree_guides import folded_together, with_guides
from pyrometer.units import compact_count

DEEPEST = 12
LEAST_SHARE = 0.001
NOT_COUNTED = "not counted"

_COLUMNS = (
    Column(heading="class", left=True, widest=20, dropped=6),
    Column(heading="calls", spelled="calls a step", dropped=4),
    Column(heading="forward", spelled="forward a step"),
    Column(heading="self", spelled="forward self", dropped=2),
    Column(heading="backward", spelled="backward a step", dropped=1),
    Column(heading="self", spelled="backward self", dropped=3),
    Column(heading="%", spelled="% of the step"),
    Column(heading="params", spelled="parameters", dropped=5),
    Column(heading="output", spelled="output a call", dropped=7),
    Column(heading="FLOPs", spelled="FLOPs a call", dropped=8),
    Column(heading="allocated", spelled="allocated a step", dropped=9),
)
_LONGEST_MARK = 12
_HIDDEN_NAMED = 3


def build_module_section(modules: ModuleTable, style: Style, *, top: int) -> Section | None:
    """The ``top`` modules with most time a step and all above them; None when no module was called."""
    if not modules.roots:
        return None
    shown = _ModuleRows(modules, style, top=top)
    rows = tuple(shown.rows())
    lines = [
        *shown.not_shown(),
        *describe_module_steps(modules),
        *describe_timed_backward(modules),
        *_hidden(modules),
    ]
    table = Table(names="module", columns=_COLUMNS, rows=rows)
    return Section(
        title="Modules, by time a step",
        blocks=(without_unknown_columns(table, ("", UNKNOWN_CELL)), *notes(lines)),
    )


def _hidden(modules: ModuleTable) -> Iterator[str]:
    if modules.hidden:
        names = ", ".join(short(name) for name in modules.hidden[:_HIDDEN_NAMED])
        left_out = len(modules.hidden) - _HIDDEN_NAMED
        more = f" and {left_out:,} more" if left_out > 0 else ""
        yield f"Not seen: what runs inside {names}{more}, since compiled or scripted code calls no modules."


def _largest(modules: ModuleTable, most: int) -> set[int]:
    """The ids of the places to show: those with most time first, a parent always before its children."""
    order = count()
    waiting = [(-place.ns_per_step, next(order), 0, place) for place in modules.roots]
    heapq.heapify(waiting)
    chosen: set[int] = set()
    while waiting and len(chosen) < most:
        _, _, depth, place = heapq.heappop(waiting)
        chosen.add(id(place))
        if depth + 1 < DEEPEST:
            for child in place.children:
                if (child.share or 1.0) >= LEAST_SHARE:
                    heapq.heappush(waiting, (-child.ns_per_step, next(order), depth + 1, child))
    return chosen


class _ModuleRows:
    def __init__(self, modules: ModuleTable, style: Style, *, top: int) -> None:
        self._roots = modules.roots
        self._style = style
        self._facts = {row.name: row for row in modules.rows}
        self._chosen = _largest(modules, top)
        self._folded = 0

    def rows(self) -> Iterator[Row]:
        for entry in self._entries(self._roots):
            yield from self._rows(entry, parent="", guide="", guide_below="")

    def not_shown(self) -> Iterator[str]:
        """What was folded, once the rows are made."""
        if self._folded:
            yield f"{self._folded:,} more not shown (see --top)."

    def _below(self, place: ModulePlace, guide: str) -> Iterator[Row]:
        for entry, own, below in with_guides(self._entries(place.children), guide):
            yield from self._rows(entry, parent=place.name, guide=own, guide_below=below)

    def _entries(self, places: Sequence[ModulePlace]) -> list[ModulePlace | list[ModulePlace]]:
        entries: list[ModulePlace | list[ModulePlace]] = []
        entries += (place for place in places if id(place) in self._chosen)
        return entries + folded_together(places, self._chosen)

    def _rows(
        self, entry: ModulePlace | list[ModulePlace], *, parent: str, guide: str, guide_below: str
    ) -> Iterator[Row]:
        if isinstance(entry, list):
            yield self._fold(entry, guide)
            return
        yield Row(
            name=entry.name.removeprefix(f"{parent}.") or entry.name,
            qualified_name=entry.name,
            guide=guide,
            mark=""
            if entry.hidden is None
            else f" ({shorten_middle(escape_controls(entry.hidden), _LONGEST_MARK)})",
            cells=(*self._times(entry), *self._size_cells(self._facts.get(entry.name), entry)),
        )
        yield from self._below(entry, guide_below)

    def _fold(self, places: list[ModulePlace], guide: str) -> Row:
        number = sum(1 for place in places for _ in place.walk())
        self._folded += number
        style = self._style
        return Row(
            name=f"… {number:,} more",
            guide=guide,
            emphasis=Emphasis.FAINT,
            cells=(
                "",
                "",
                style.duration(sum(place.per_step.forward_ns for place in places)),
                "",
                write_known(_sum_known(place.per_step.backward_ns for place in places), style.duration),
                "",
                write_known(_sum_known(place.share for place in places), style.share),
                *[""] * 4,
            ),
        )

    def _times(self, place: ModulePlace) -> tuple[str, ...]:
        style = self._style
        return (
            UNKNOWN_CELL if place.kind is None else visible(place.kind),
            _calls(place.per_step.calls),
            style.duration(place.per_step.forward_ns),
            style.duration(place.per_step.forward_self_ns),
            write_known(place.per_step.backward_ns, style.duration),
            write_known(place.per_step.backward_self_ns, style.duration),
            write_known(place.share, style.share),
        )

    def _size_cells(self, facts: ModuleRow | None, place: ModulePlace) -> tuple[str, ...]:
        style = self._style
        allocated = write_known(place.per_step.allocated_bytes, style.size)
        if facts is None:
            return (UNKNOWN_CELL, UNKNOWN_CELL, UNKNOWN_CELL, allocated)
        return (
            write_known(facts.parameters, style.count),
            write_known(facts.output_bytes_per_call, style.size),
            _flops(facts),
            allocated,
        )


def _calls(calls: float) -> str:
    return compact_count(round(calls)) if calls >= 100 or float(calls).is_integer() else format_figure(calls)


def _flops(facts: ModuleRow) -> str:
    if facts.flops_per_call is None:
        return NOT_COUNTED
    return f"{'≥' if facts.flops_are_at_least else ''}{compact_count(round(facts.flops_per_call))}"


def _sum_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
