"""``pyrometer doctor``: what works on this machine and what to do for the rest."""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from pyrometer import _native
from pyrometer.machine.checks import Check, Status, check_environment, find_compiler
from pyrometer.machine.facts import cpu_model, usable_cores
from pyrometer.machine.limits import why_not_available
from pyrometer.record.limits import machine_identity
from pyrometer.store.limits_files import KeptLimitsError, limits_path, read_limits
from pyrometer.units import format_duration

_READS = 20_000
_STYLES = {Status.OK: "green", Status.WARNING: "yellow", Status.MISSING: "red"}


def doctor(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Say what works on this machine and what to do for the rest."""
    checks = examine()
    if as_json:
        print(render_json(checks))
    elif sys.stdout.isatty():
        _print_table(checks)
    else:
        print(render_plain(checks))
    if any(check.is_broken for check in checks):
        raise typer.Exit(1)


def examine() -> list[Check]:
    """All checks of this machine, the recorder's first."""
    recording = [check_recorder(), check_clock(), check_scope_cost(), check_sampler()]
    return [*recording, check_limits(), *check_environment(), check_counters()]


def check_recorder() -> Check:
    """Which of the two recorders measures here, and why if it is the slow one."""
    name = "recorder"
    if _native.KIND == "native":
        return Check(name=name, status=Status.OK, found="native", required=True)
    if os.environ.get("PYROMETER_NATIVE") == "0":
        found = "Python, because PYROMETER_NATIVE=0"
        advice = "Unset PYROMETER_NATIVE: the native recorder costs far less per scope."
        return Check(name=name, status=Status.WARNING, found=found, advice=advice, required=True)
    remedy = "install pyrometer again from its source folder: pip install --force-reinstall --no-deps ."
    if find_compiler() is None:
        remedy = f"install a C compiler (gcc or clang) and {remedy}"
    found = f"Python, because the native one does not load: {_import_error()}"
    advice = f"Works, but costs more per scope. To build the native one: {remedy}"
    return Check(name=name, status=Status.WARNING, found=found, advice=advice, required=True)


def check_clock() -> Check:
    """The clock scopes are timed with, and the shortest time it tells apart.

    What a reading costs is told where Python can read the same clock; the native recorder's
    counter it cannot, and an empty scope, which holds one reading, bounds it.
    """
    if _native.KIND == "native":
        core = importlib.import_module("pyrometer._native.core")
        clock = str(getattr(core, "CLOCK", "unknown"))
    else:
        clock = "perf_counter_ns"
    found = f"{clock}; an empty scope reads {format_duration(shortest_scope_ns())}"
    if clock in {"clock_gettime", "perf_counter_ns"}:
        cost_ns = read_cost_ns(time.perf_counter_ns)
        found += f"; a read costs {format_duration(cost_ns)}"
    return Check(name="clock", status=Status.OK, found=found)


def check_scope_cost() -> Check:
    """What one enabled scope costs the program, measured here and now."""
    from pyrometer.capture.own_cost import scope_cost_ns

    return Check(name="cost of a scope", status=Status.OK, found=format_duration(scope_cost_ns()))


def check_sampler() -> Check:
    """Whether the stacks of a program's threads can be read here."""
    from pyrometer.capture.sampling import DEFAULT_HZ, Sampling

    reason = Sampling(_native.Recorder(), DEFAULT_HZ).why_not()
    if reason is None:
        return Check(name="sampler", status=Status.OK, found="reads stacks correctly")
    advice = "Everything else works; runs are without functions and flame graphs."
    return Check(name="sampler", status=Status.MISSING, found=reason, advice=advice)


def check_limits() -> Check:
    """Whether what this machine reaches is known, so that reports can say how much of it was used."""
    name = "limits"
    identity = machine_identity(cpu_model=cpu_model(), usable_cores=usable_cores())
    try:
        known = read_limits(limits_path(identity, os.environ), identity=identity)
    except KeptLimitsError as error:
        advice = "Measure them again: pyrometer limits --fresh"
        return Check(name=name, status=Status.WARNING, found=f"cannot be read: {error}", advice=advice)
    if known is not None:
        return Check(name=name, status=Status.OK, found=f"known, measured at {known.measured_at}")
    reason = why_not_available()
    if reason is not None:
        advice = "Only needed for the roofline: install a C compiler, and pyrometer again from its source."
        return Check(name=name, status=Status.MISSING, found=f"not available: {reason}", advice=advice)
    advice = "To have reports say how much of the machine is used, measure them once: pyrometer limits"
    return Check(name=name, status=Status.WARNING, found="not measured yet", advice=advice)


def check_counters() -> Check:
    """Whether the processor's counters can be read and believed: tried on work of known size."""
    from pyrometer.capture.hardware_counters import probe

    name = "hardware counters"
    found = probe()
    if found is None:
        advice = "Only needed for pyrometer run --counters: use the native recorder, on Linux."
        return Check(name=name, status=Status.MISSING, found="not to be had here", advice=advice)
    counted = [counter for counter in found.names if counter not in found.wrong]
    if not counted:
        reasons = "; ".join(dict.fromkeys(found.wrong.values()))
        return Check(name=name, status=Status.MISSING, found=f"none: {reasons}", advice=found.advice or "")
    if not found.wrong:
        return Check(name=name, status=Status.OK, found=f"{', '.join(counted)}; tried on known work")
    wrong = "; ".join(f"{counter} {reason}" for counter, reason in found.wrong.items())
    text = f"{', '.join(counted)}; but {wrong}"
    return Check(name=name, status=Status.WARNING, found=text, advice=found.advice or "")


def shortest_scope_ns() -> int:
    """What the recorder reads for a scope with nothing in it: no shorter time can be seen."""
    recorder = _native.Recorder()
    scope = recorder.scope("empty")
    recorder.start()
    for _ in range(_READS):
        with scope:
            pass
    recorder.stop()
    [(*_, nodes)] = recorder.snapshot()["strands"]
    [(_, _, _, _, _, min_ns, *_)] = nodes
    return int(min_ns)


def read_cost_ns(clock: Callable[[], int]) -> float:
    """One reading of the clock, the loop around it included."""
    started_ns = clock()
    for _ in range(_READS):
        clock()
    return (clock() - started_ns) / _READS


def render_json(checks: Sequence[Check]) -> str:
    """The checks as one JSON document, with ``ok`` false if something required is broken."""
    document = {
        "ok": not any(check.is_broken for check in checks),
        "checks": [asdict(check) for check in checks],
    }
    return json.dumps(document, indent=2)


def render_plain(checks: Sequence[Check]) -> str:
    """A line for each check, its advice on a line of its own, and the verdict."""
    width = max(len(check.name) for check in checks)
    lines: list[str] = []
    for check in checks:
        lines.append(f"{check.status:<7}  {check.name:<{width}}  {check.found}")
        if check.advice:
            lines.append(f"{'':<7}  {'':<{width}}  > {check.advice}")
    return "\n".join([*lines, "", verdict(checks)])


def verdict(checks: Sequence[Check]) -> str:
    """Whether Pyrometer works here, in one line."""
    broken = [check.name for check in checks if check.is_broken]
    if broken:
        return f"Pyrometer cannot work here: see {', '.join(broken)}."
    return "Pyrometer works here."


def _print_table(checks: Sequence[Check]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for check in checks:
        found = Text(check.found)
        if check.advice:
            found.append(f"\n{check.advice}", style="dim")
        table.add_row(Text(check.status, style=_STYLES[check.status]), Text(check.name, style="bold"), found)
    console = Console(highlight=False)
    console.print(table)
    console.print(f"\n{verdict(checks)}", markup=False)


def _import_error() -> str:
    try:
        importlib.import_module("pyrometer._native.core")
    except ImportError as error:
        return str(error)
    return "unknown reason"
