"""The ``pyrometer`` command and its subcommands, each loaded only when it is asked for."""

import importlib
import sys
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from pyrometer._version import __version__
from pyrometer.errors import PyrometerError, UnsupportedPlatformError

_PLATFORMS = ("linux", "darwin")
_COMMANDS = ("run", "report", "doctor")


class Commands(typer.core.TyperGroup):
    """The subcommands. Loading one does not load the others: `run` must start fast."""

    def list_commands(self, _context: Any) -> list[str]:
        """Their names, in the order of use."""
        return list(_COMMANDS)

    def get_command(self, _context: Any, name: str) -> Any:
        """The command of that name: the function so named in the module so named."""
        if name not in _COMMANDS:
            return None
        module = importlib.import_module(f"pyrometer.cli.{name}")
        only = typer.Typer(add_completion=False, rich_markup_mode=None)
        only.command(name, **getattr(module, "COMMAND_OPTIONS", {}))(getattr(module, name))
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
    try:
        if sys.platform not in _PLATFORMS:
            raise UnsupportedPlatformError(
                f"pyrometer runs on Linux and macOS, not on {sys.platform!r}; on Windows use it inside WSL"
            )
        app(args=arguments, prog_name="pyrometer")
    except PyrometerError as error:
        print(f"pyrometer: {error}", file=sys.stderr)
        return error.exit_code
    except SystemExit as exit_request:
        return exit_request.code if isinstance(exit_request.code, int) else 0
    except KeyboardInterrupt:
        return 130
    return 0
