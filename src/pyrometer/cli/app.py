"""The ``pyrometer`` command and its subcommands, each loaded only when it is asked for."""

import contextlib
import importlib
import os
import sys
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
import typer.core
import typer.main

from pyrometer._version import __version__
from pyrometer.errors import PyrometerError, UnsupportedPlatformError

_PLATFORMS = ("linux", "darwin")
_COMMANDS = ("run", "report", "compare", "gate", "baseline", "bench", "history", "map", "limits", "doctor")


class Commands(typer.core.TyperGroup):
    """The subcommands. Loading one does not load the others: `run` must start fast."""

    def list_commands(self, _context: Any) -> list[str]:
        """Their names, in the order of use."""
        return list(_COMMANDS)

    def get_command(self, _context: Any, name: str) -> Any:
        """The command of that name: the module's function of that name, its ``COMMAND`` or its ``GROUP``."""
        if name not in _COMMANDS:
            return None
        module = importlib.import_module(f"pyrometer.cli.{name}")
        if hasattr(module, "GROUP"):
            return typer.main.get_command(module.GROUP)
        only = typer.Typer(add_completion=False, rich_markup_mode=None)
        only.command(name, **getattr(module, "COMMAND_OPTIONS", {}))(
            getattr(module, "COMMAND", None) or getattr(module, name)
        )
        return typer.main.get_command(only)


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if wanted:
        print(f"pyrometer {__version__}")
        raise typer.Exit


@app.callback()
def pyrometer(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find the hot paths of neural-network code."""


def run_command(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code. What a user did wrong is one line on stderr."""
    _replace_closed_streams()
    code = 0
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
        return code or 1
    except OSError as error:
        discard(sys.stdout)
        problem = "the output cannot be written" if error.filename is None else str(error.filename)
        _complain(f"{problem}: {error.strerror or error}")
        return PyrometerError.exit_code
    return code


def _run(arguments: list[str] | None) -> int:
    try:
        if sys.platform not in _PLATFORMS:
            raise UnsupportedPlatformError(
                f"pyrometer runs on Linux and macOS, not on {sys.platform!r}; on Windows use it inside WSL"
            )
        app(args=arguments, prog_name="pyrometer")
    except PyrometerError as error:
        _complain(str(error))
        return error.exit_code
    except SystemExit as exit_request:
        return exit_request.code if isinstance(exit_request.code, int) else 0
    except KeyboardInterrupt:
        return 130
    return 0


def _replace_closed_streams() -> None:
    """Started with ``>&-``, Python has no stream there; none of ours reaches a program that is run."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - for the process


def discard(stream: TextIO) -> None:
    """Let what the stream still holds go nowhere, or Python would try to write it again, and complain."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _complain(problem: str) -> None:
    from pyrometer.report.safe_text import for_terminal

    try:
        lines = "\n".join(map(for_terminal, problem.split("\n")))
        print(f"pyrometer: {lines}", file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)
