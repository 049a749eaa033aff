"""What pytest's terminal summary says of tests that were measured."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrometer.analysis.scope_table import ScopeSummary, summarize_by_name
from pyrometer.integrations.pytest_measuring import TOLD_BYTES
from pyrometer.record.run import Loss, Run
from pyrometer.report.safe_text import for_terminal, shorten_end, shorten_middle
from pyrometer.units import compact_bytes, compact_count, compact_duration, format_count, format_duration

MOST_ROWS = 10
_NARROWEST = 60
_WIDEST = 120

Brought = tuple[str, dict[str, Any], str | None]
"""A test's node id, what its report brought along (see ``Measuring``), and the worker it ran on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """What one test's call took, or one stretch of it; None: not measured."""

    name: str
    duration_ns: int
    allocated_bytes: int | None
    allocations: int | None
    peak_bytes: int | None

    def cells(self) -> tuple[str, ...]:
        """It as text: time, allocated, allocations, peak."""
        return (
            compact_duration(self.duration_ns),
            "–" if self.allocated_bytes is None else compact_bytes(self.allocated_bytes),
            "–" if self.allocations is None else compact_count(self.allocations),
            self._peak(),
        )

    def _peak(self) -> str:
        if self.peak_bytes is None:
            return "–"
        # Threads tell what they hold in parts of that size.
        is_seen = self.peak_bytes >= TOLD_BYTES or not self.allocations
        return compact_bytes(self.peak_bytes) if is_seen else f"<{compact_bytes(TOLD_BYTES)}"


def _row(name: str, figures: Sequence[Any]) -> MeasuredRow:
    duration_ns, allocated_bytes, allocations, peak_bytes = figures
    return MeasuredRow(
        name=name,
        duration_ns=duration_ns,
        allocated_bytes=allocated_bytes,
        allocations=allocations,
        peak_bytes=peak_bytes,
    )


def summary_lines(
    brought: Sequence[Brought],
    *,
    run: Run | None,
    path: Path | None,
    worker_runs: Sequence[str] = (),
    is_profiled: bool,
    width: int,
) -> list[str]:
    """All of it: the slowest tests, the scopes in them, what the fixture measured, and where the run is.

    ``path`` is where that was to go, ``worker_runs`` what workers of xdist have written.
    """
    lines = []
    if is_profiled:
        tests = [_row(test, figures["call"]) for test, figures, _ in brought if figures["call"] is not None]
        lines += [*_test_lines(tests, width), ""]
    if run is not None:
        names = frozenset(test for test, _, _ in brought)
        lines += [*_scope_lines(summarize_by_name(run), names, width), *_loss_lines(run.losses, width), ""]
    lines += _stretch_lines(brought, width)
    if is_profiled and any(worker is not None for _, _, worker in brought):
        lines += _worker_lines(path, worker_runs)
    elif path is not None and run is not None:
        lines.append(f"run written to {path}; read it with: pyrometer report {shlex.quote(str(path))}")
    return lines


def for_worker(path: Path, worker: str) -> Path:
    """A worker's own file beside the one that was named: ``run-gw0.json``."""
    stem, dot, ending = path.name.partition(".json")
    return path.with_name(f"{stem}-{worker}{dot}{ending}")


def _worker_lines(path: Path | None, runs: Sequence[str]) -> list[str]:
    # Not how many there were: one that replaced another may have a run, and no test to tell of.
    said = "each worker of xdist recorded itself"
    if path is None:
        return [f"{said}; to see its scopes, have each write its run: --pyrometer-output run.json"]
    return [
        f"{said}; {'runs written to:' if runs else 'no run was written'}",
        *(f"  {run}" for run in sorted(runs)),
    ]


def _test_lines(tests: Sequence[MeasuredRow], width: int) -> list[str]:
    if not tests:
        return ["no test was called"]
    slowest = sorted(tests, key=lambda row: (-row.duration_ns, row.name))[:MOST_ROWS]
    whole_ns = sum(row.duration_ns for row in tests)
    return [
        f"{format_count(len(tests), 'test')}, {format_duration(whole_ns)} in their calls",
        *_table("slowest tests", _COLUMNS, [(row.name, *row.cells()) for row in slowest], width),
        *_left_out(len(tests) - len(slowest), "test"),
    ]


def _stretch_lines(brought: Sequence[Brought], width: int) -> list[str]:
    """What tests measured by the fixture, in their order."""
    stretches = [
        _row(f"{test} {name}", row) for test, figures, _ in brought for name, *row in figures["measured"]
    ]
    comparisons = [
        (f"{test} {name}", text) for test, figures, _ in brought for name, text in figures["compared"]
    ]
    rows = [(row.name, *row.cells()) for row in stretches[:MOST_ROWS]]
    return [
        *(_table("measured in tests", _COLUMNS, rows, width) if rows else []),
        *_left_out(len(stretches) - len(rows), "measurement"),
        *(f"{_fitting(name, _room(width))}\n  {text}" for name, text in comparisons[:MOST_ROWS]),
        *_left_out(len(comparisons) - MOST_ROWS, "comparison"),
    ]


def _scope_lines(scopes: Iterable[ScopeSummary], tests: frozenset[str], width: int) -> list[str]:
    """The scopes inside the tests with most time; without any, that."""
    inner = [scope for scope in scopes if scope.name not in tests]
    if not inner:
        return ["no scopes inside the tests; mark some with pyrometer.scope() or @pyrometer.profiled"]
    rows = [
        (
            scope.name,
            compact_count(scope.calls),
            compact_duration(scope.total_ns),
            compact_duration(scope.self_ns),
        )
        for scope in inner[:MOST_ROWS]
    ]
    return [
        *_table("top scopes", ("calls", "total", "self"), rows, width),
        *_left_out(len(inner) - len(rows), "scope"),
    ]


def _loss_lines(losses: Sequence[Loss], width: int) -> list[str]:
    """What the recording could not see."""
    lines = [
        shorten_end(for_terminal(f"not seen: {loss.reason} ({loss.count:,})"), _room(width))
        for loss in losses[:MOST_ROWS]
    ]
    return [*lines, *_left_out(len(losses) - len(lines), "loss", "losses")]


_COLUMNS = ("time", "allocated", "allocs", "peak")


def _table(title: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """The rows below their title, names cut in the middle so that all fits the width."""
    sizes = [
        max(len(heading), *(len(row[1 + index]) for row in rows)) for index, heading in enumerate(columns)
    ]
    room = _room(width) - sum(size + 2 for size in sizes)
    names = [_fitting(row[0], room) for row in rows]
    name_width = max(len(title), *map(len, names))

    def line(name: str, cells: Sequence[str]) -> str:
        return name.ljust(name_width) + "".join(
            f"  {cell:>{size}}" for cell, size in zip(cells, sizes, strict=True)
        )

    return [line(title, columns), *(line(name, row[1:]) for name, row in zip(names, rows, strict=True))]


def _room(width: int) -> int:
    return max(_NARROWEST, min(width, _WIDEST))


def _fitting(name: str, width: int) -> str:
    return shorten_middle(for_terminal(name), width)


def _left_out(number: int, singular: str, plural: str | None = None) -> list[str]:
    return [f"and {format_count(number, singular, plural)} more"] if number > 0 else []
