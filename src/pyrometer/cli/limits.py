"""``pyrometer limits``: what this machine reaches at best."""

import os
import sys
from enum import StrEnum
from typing import Annotated

import typer

from pyrometer.cli.printing import print_text, screen_for
from pyrometer.errors import UsageError
from pyrometer.machine.facts import cpu_model, usable_cores
from pyrometer.machine.limits import measure_limits
from pyrometer.record.limits import Limits, machine_identity
from pyrometer.report.limits_report import (
    render_limits_json,
    render_limits_markdown,
    render_limits_terminal,
)
from pyrometer.store.limits_files import KeptLimitsError, limits_path, read_limits, write_limits


class LimitsFormat(StrEnum):
    """The forms in which limits are printed."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    JSON = "json"


def limits(
    *,
    limits_format: Annotated[LimitsFormat, typer.Option("--format", help="How to print them.")] = (
        LimitsFormat.TERMINAL
    ),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again, even if they are known from earlier.")
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Measure on 1 and on N threads; printed, not kept. By default all cores there are to use.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Measure what this machine reaches: arithmetic, memory, latencies; once, in less than 10 s.

    The figures are kept in the user's cache folder. Runs recorded afterwards carry them, and their
    reports say how much of the machine each part uses.
    """
    known = None if fresh or threads is not None else kept_limits()
    found = known or measure_anew(threads)
    if limits_format is LimitsFormat.JSON:
        text = render_limits_json(found)
    elif limits_format is LimitsFormat.MARKDOWN:
        text = render_limits_markdown(found)
    else:
        screen = screen_for()
        text = render_limits_terminal(
            found, width=screen.width, color=screen.color, ascii_only=screen.ascii_only
        )
    print_text(text)


def kept_limits() -> Limits | None:
    """What is known of this machine; what cannot be read is said, and is to be measured again."""
    identity = machine_identity(cpu_model=cpu_model(), usable_cores=usable_cores())
    try:
        return read_limits(limits_path(identity, os.environ), identity=identity)
    except KeptLimitsError as error:
        _say(f"the limits kept from earlier cannot be used, and are measured again: {error}")
        return None


def measure_anew(threads: int | None) -> Limits:
    """Measure, and keep what is true of the whole machine."""
    usable = usable_cores()
    if threads is not None and usable is not None and threads > usable:
        raise UsageError(
            f"--threads is {threads}, but this process may use {usable} cores; give at most that"
        )
    _say("measuring for some seconds; other programs at work would lower the figures")
    found = measure_limits(threads)
    if threads is None:
        try:
            write_limits(found, limits_path(found.identity, os.environ))
        except KeptLimitsError as error:
            _say(f"the limits could not be kept: {error}")
    return found


def _say(text: str) -> None:
    print(f"pyrometer: {text}", file=sys.stderr, flush=True)
