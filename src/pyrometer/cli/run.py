"""``pyrometer run``: run a program under the profiler."""

import os
from typing import Annotated, Any

import typer
import typer.core

from pyrometer.cli.launch import Options, Target, launch
from pyrometer.errors import UsageError
from pyrometer.store.run_files import current_folder
from pyrometer.store.settings import (
    DEFAULT_OPS,
    check_ops,
    check_sample_hz,
    check_warmup,
    load_run_settings,
    load_targets,
    parse_steps,
    wants_history,
)

_OPTIONS_WITH_VALUE = (
    "-o", "--output", "--top", "--steps", "--warmup", "--baseline", "--sample-hz", "--cachegrind-scope",
    "--ops", "--trace", "--max-steps",
)  # fmt: skip


class _RunCommand(typer.core.TyperCommand):
    """Leaves everything behind the script or the module's name to the program."""

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        """Put a ``--`` behind ``-m MODULE``; behind a script, typer itself stops to look for options."""
        index = 0
        while index < len(arguments):
            argument = arguments[index]
            if argument == "--" or not argument.startswith("-") or argument == "-":
                break
            if argument.startswith("-m"):
                end_of_module = index + (2 if argument == "-m" else 1)
                if end_of_module > len(arguments) or not arguments[end_of_module - 1]:
                    raise UsageError("-m needs the name of a module: pyrometer run -m MODULE")
                arguments = [*arguments[:end_of_module], "--", *arguments[end_of_module:]]
                break
            if argument == "--ops" and not _is_number(arguments[index + 1 : index + 2]):
                arguments = [*arguments[: index + 1], str(DEFAULT_OPS), *arguments[index + 1 :]]
            index += 2 if argument in _OPTIONS_WITH_VALUE else 1
        return super().parse_args(context, arguments)


def _is_number(next_word: list[str]) -> bool:
    return bool(next_word) and next_word[0].removeprefix("-").isdecimal()


COMMAND_OPTIONS = {
    "cls": _RunCommand,
    "context_settings": {"allow_interspersed_args": False},
    "options_metavar": "[OPTIONS]",
}


def run(
    program: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCRIPT [ARGS]...", help="What python would run, and its own options.", show_default=False
        ),
    ] = None,
    *,
    module: Annotated[
        str | None, typer.Option("-m", metavar="MODULE", help="Run a module, like python -m.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the run there: a .json or .json.gz file, or a folder. "
            "Under torchrun each rank's file has its rank in the name.",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Show the N largest scopes (20), and as much of other tables."),
    ] = None,
    quiet: Annotated[
        bool | None, typer.Option("--quiet/--no-quiet", help="Say nothing but errors.", show_default=False)
    ] = None,
    report: Annotated[
        bool | None,
        typer.Option("--report/--no-report", help="Print the report at the end.", show_default=False),
    ] = None,
    html: Annotated[
        bool | None,
        typer.Option(
            "--html/--no-html", help="Write the page to look at beside the run file.", show_default=False
        ),
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open", help="Write that page, and open it in the browser at the end.")
    ] = False,
    steps: Annotated[
        str | None,
        typer.Option(
            metavar="A:B",
            help="Record only steps A to B (not included) of a PyTorch program, counted from 0; "
            "either may be left out.",
        ),
    ] = None,
    warmup: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Leave out the first N steps; by default 3, and more until they are steady."
        ),
    ] = None,
    max_steps: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="End the program after N steps, as sys.exit() in its loop would."
        ),
    ] = None,
    live: Annotated[
        bool | None,
        typer.Option(
            "--live/--no-live",
            help="Show a line of progress on stderr; by default on a terminal, if the program shows none.",
            show_default=False,
        ),
    ] = None,
    deep: Annotated[
        bool | None,
        typer.Option(
            "--deep/--no-deep", help="Turn on all that costs more than a few percent.", show_default=False
        ),
    ] = None,
    ops: Annotated[
        int | None,
        typer.Option(
            metavar="[N]",
            help=f"See every torch operator in N steady steps, {DEFAULT_OPS} unless given; 0: in none.",
        ),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write these operators one by one there, for Perfetto: a .json or .json.gz file.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write a baseline of the program's steps there too; one that is there is added to.",
        ),
    ] = None,
    history: Annotated[
        bool | None,
        typer.Option(
            "--history/--no-history",
            help="Add the run to those that pyrometer history shows; by default except in CI.",
            show_default=False,
        ),
    ] = None,
    sample_hz: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Look at the stacks of the program's threads N times a second; 0: never.  [default: 100]",
        ),
    ] = None,
    native: Annotated[
        bool | None,
        typer.Option(
            "--native/--no-native",
            help="Name the native functions that Python's functions are in. Sends the program's threads a "
            "signal, which interrupts their system calls.",
            show_default=False,
        ),
    ] = None,
    counters: Annotated[
        bool,
        typer.Option(
            "--counters",
            help="Count cycles, instructions, cache and branch misses, where the processor lets us.",
        ),
    ] = False,
    cachegrind: Annotated[
        bool,
        typer.Option(
            "--cachegrind",
            help="Simulate the caches, by running the program under valgrind: many times slower.",
        ),
    ] = False,
    cachegrind_scope: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The same, but count only inside scopes of that name."),
    ] = None,
    memory: Annotated[
        bool | None,
        typer.Option(
            "--memory/--no-memory", help="Count what is allocated, freed and live.", show_default=False
        ),
    ] = None,
    python_memory: Annotated[
        bool | None,
        typer.Option(
            "--python-memory/--no-python-memory",
            help="Count Python objects up to 512 bytes too; by default with --deep only.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a program under the profiler, print the report, write the run file.

    The program's output, exit code and signals are its own. [tool.pyrometer.run] in
    pyproject.toml sets defaults.
    """
    arguments = program or []
    if module is None and not arguments:
        raise UsageError(
            "nothing to run; give a script (pyrometer run SCRIPT) or a module (pyrometer run -m MODULE)"
        )
    if cachegrind or cachegrind_scope is not None:
        _check_beside_valgrind(
            counters=counters, baseline=baseline, trace=trace, history=history, max_steps=max_steps
        )
    settings = load_run_settings(current_folder())
    # Read when the report is made; that they cannot be is to be known before hours of training.
    load_targets(current_folder())
    quiet = settings.quiet if quiet is None else quiet
    deep = settings.deep if deep is None else deep
    target = Target(script=None if module is not None else arguments[0], module=module)
    launch(
        target,
        arguments if module is not None else arguments[1:],
        Options(
            output=settings.output if output is None else output,
            top=settings.top if top is None else top,
            quiet=quiet,
            show_report=settings.report if report is None else report,
            html=settings.html if html is None else html,
            open_page=open_page,
            window=settings.steps if steps is None else parse_steps("--steps", steps),
            warmup=settings.warmup if warmup is None else check_warmup("--warmup", warmup),
            max_steps=max_steps,
            live=(None if quiet else settings.live) if live is None else live,
            deep=deep,
            ops=_ops(settings.ops if ops is None else check_ops("--ops", ops), deep=deep, trace=trace),
            trace=trace,
            baseline=baseline,
            history=wants_history(asked=history, setting=settings.history, environment=os.environ),
            sample_hz=settings.sample_hz if sample_hz is None else check_sample_hz("--sample-hz", sample_hz),
            native=settings.native if native is None else native,
            counters=counters,
            cachegrind=cachegrind or cachegrind_scope is not None,
            cachegrind_scope=cachegrind_scope,
            memory=settings.memory if memory is None else memory,
            python_memory=settings.python_memory or deep if python_memory is None else python_memory,
        ),
    )


def _check_beside_valgrind(
    *,
    counters: bool,
    baseline: str | None,
    trace: str | None,
    history: bool | None,
    max_steps: int | None,
) -> None:
    if counters:
        raise UsageError(
            "--counters would count valgrind and not the program; ask for it or for --cachegrind, not both"
        )
    if max_steps is not None:
        raise UsageError("--max-steps needs steps, which are not looked for under --cachegrind")
    for option, value in (("--baseline", baseline), ("--trace", trace), ("--history", history or None)):
        if value is not None:
            raise UsageError(
                f"{option} keeps times, which mean nothing under --cachegrind; ask for one of them"
            )


def _ops(asked: int | None, *, deep: bool, trace: str | None) -> int:
    """In how many steps operators are to be seen."""
    if trace is not None and asked == 0:
        raise UsageError("--trace needs operators to write; leave --ops 0 out")
    if asked is not None:
        return asked
    return DEFAULT_OPS if deep or trace is not None else 0
