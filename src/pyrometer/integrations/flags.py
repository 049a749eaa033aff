"""``-p/--profile`` and ``--profile-output FILE`` for a program's own command line.

Nothing of click or typer is imported unless the program already has: what it hands over
tells which of the three it is built with.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pyrometer.errors import PyrometerError, UsageError

_P = TypeVar("_P")

_SHORT = "-p"
_FLAG = "--profile"
_OUTPUT = "--profile-output"
_FLAG_HELP = "Time the program's scopes and print the report at its end."
_OUTPUT_HELP = "Profile, and write the run to this file too."

# Not "profile": a program may have an argument of that name, and they would share one place.
_FLAG_NAME = "pyrometer_profile"
_OUTPUT_NAME = "pyrometer_profile_output"


def add_profile_flag(parser: _P, *, top: int = 20) -> _P:
    """The parser, now taking ``-p/--profile`` and ``--profile-output FILE``.

    Takes an ``argparse.ArgumentParser``, a click command or group, or a ``typer.Typer``, after
    its own options. When the user gives either option, recording starts while the command line
    is read and the report of the ``top`` scopes goes to stderr when the program ends; with an
    output file the run is written there too. Without them nothing happens at all.

    A ``-p`` of the program's own is left to it. A ``--profile`` of its own is a ``UsageError``,
    which typer programs see when typer builds their commands. argparse programs find
    ``profile`` (a bool) and ``profile_output`` (a path or None) in the namespace; commands of
    click and typer are called as before.
    """
    if isinstance(parser, argparse.ArgumentParser):
        _add_to_argparse(parser, top)
    elif _is_a(parser, "typer", "Typer"):
        _add_to_typer(parser, top)
    elif _is_a(parser, "typer.core", "TyperCommand") or _is_a(parser, "typer.core", "TyperGroup"):
        _append_options(parser, _typer_options, top)
    elif _is_a(parser, "click", "Command"):
        _append_options(parser, _click_options, top)
    else:
        raise TypeError(
            "add_profile_flag takes an argparse.ArgumentParser, a click command or group, or a typer.Typer, "
            f"not {parser!r}"
        )
    return parser


def _is_a(parser: object, module: str, name: str) -> bool:
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(parser, kind)


def _flag_names(taken: Iterable[str]) -> list[str]:
    """The flag's spellings that the program leaves free."""
    taken = set(taken)
    for name in (_FLAG, _OUTPUT):
        if name in taken:
            raise UsageError(
                f"add_profile_flag: the program already has an option {name}; "
                "rename it, or start the profiler with pyrometer.profile() instead"
            )
    return [_FLAG] if _SHORT in taken else [_SHORT, _FLAG]


def _as_path(text: str) -> Path | str:
    """An empty name stays one, and is refused; as a path it would mean the current folder."""
    return Path(text) if text else text


def _start(output: Path | str | None, top: int) -> None:
    from pyrometer import session

    session.profile_until_exit(output=output, top=top)


# argparse


class _StartProfiling(argparse.Action):
    """Starts the profiler as soon as one of the two options is read.

    Given both, the second call only adds what the first could not know: the file's name.
    """

    def __init__(self, *, top: int, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.top = top

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse passes it
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002 - argparse passes it
    ) -> None:
        namespace.profile = True
        if self.dest == "profile_output":
            namespace.profile_output = values
        try:
            _start(getattr(namespace, "profile_output", None), self.top)
        except PyrometerError as error:
            raise argparse.ArgumentError(self, str(error)) from None


def _add_to_argparse(parser: argparse.ArgumentParser, top: int) -> None:
    names = _flag_names(parser._option_string_actions)  # noqa: SLF001 - argparse has no public list
    for action in parser._actions:  # noqa: SLF001 - likewise
        if action.dest in ("profile", "profile_output"):
            raise UsageError(
                f"add_profile_flag: the program already keeps a value as {action.dest!r}; give that "
                "argument another dest, or start the profiler with pyrometer.profile() instead"
            )
    parser.add_argument(
        *names, action=_StartProfiling, top=top, dest="profile", nargs=0, default=False, help=_FLAG_HELP
    )
    parser.add_argument(
        _OUTPUT,
        action=_StartProfiling,
        top=top,
        dest="profile_output",
        type=_as_path,
        metavar="FILE",
        help=_OUTPUT_HELP,
    )


# click, and what typer builds


def _append_options(
    command: Any, make_options: Callable[[list[str], Callable[..., None]], list[Any]], top: int
) -> None:
    taken = [name for param in command.params for name in (*param.opts, *param.secondary_opts)]

    def note(context: Any, parameter: Any, value: Any) -> None:
        """Starts the profiler once both values are known; each is passed here, given or not."""
        values = context.meta.setdefault(f"pyrometer {context.command_path}", {})
        values[parameter.name] = value
        asked = values.get(_FLAG_NAME) or values.get(_OUTPUT_NAME) is not None
        if len(values) == 2 and asked and not context.resilient_parsing:
            try:
                _start(values[_OUTPUT_NAME], top)
            except PyrometerError as error:
                context.fail(f"{_OUTPUT}: {error}")

    command.params.extend(make_options(_flag_names(taken), note))


def _click_options(flag_names: list[str], note: Callable[..., None]) -> list[Any]:
    import click

    shared: dict[str, Any] = {"is_eager": True, "expose_value": False, "callback": note}
    file: Any = _as_path
    return [
        click.Option([_FLAG_NAME, *flag_names], is_flag=True, help=_FLAG_HELP, **shared),
        click.Option([_OUTPUT_NAME, _OUTPUT], type=file, metavar="FILE", help=_OUTPUT_HELP, **shared),
    ]


def _typer_options(flag_names: list[str], note: Callable[..., None]) -> list[Any]:
    """Made by typer itself: how it builds an option changes from version to version."""
    import typer

    shared: dict[str, Any] = {"is_eager": True, "expose_value": False, "callback": note}
    flag = typer.Option(*flag_names, help=_FLAG_HELP, **shared)
    file = typer.Option(_OUTPUT, parser=_as_path, metavar="FILE", help=_OUTPUT_HELP, **shared)

    def options(
        *,
        pyrometer_profile: Annotated[bool, flag] = False,
        pyrometer_profile_output: Annotated[Path | None, file] = None,
    ) -> None:
        """Never called: typer reads its parameters."""

    app = typer.Typer(add_completion=False)
    app.command()(options)
    return list(typer.main.get_command(app).params)


def _add_to_typer(app: Any, top: int) -> None:
    """Have typer build the app's program from classes that take the options.

    Commands can be registered before and after, and whether a command is the program
    itself or one of several is known only when typer builds it.
    """
    import typer.core

    def add_to_group(group: Any) -> None:
        _append_options(group, _typer_options, top)

    def add_to_lone_command(command: Any) -> None:
        if not (
            app.registered_callback
            or app.info.callback
            or app.registered_groups
            or len(app.registered_commands) > 1
        ):
            _append_options(command, _typer_options, top)

    def command_class(base: Any) -> Any:
        return _extended(base or typer.core.TyperCommand, add_to_lone_command)

    register_command, register_callback = app.command, app.callback

    def command(*args: Any, cls: Any = None, **keywords: Any) -> Any:
        return register_command(*args, cls=command_class(cls), **keywords)

    def callback(*args: Any, **keywords: Any) -> Any:
        if keywords.get("cls"):
            keywords["cls"] = _extended(keywords["cls"], add_to_group)
        return register_callback(*args, **keywords)

    app.command, app.callback = command, callback
    for registered in app.registered_commands:
        registered.cls = command_class(registered.cls)
    # Where no class was chosen typer keeps a false placeholder.
    app.info.cls = _extended(app.info.cls or typer.core.TyperGroup, add_to_group)
    if app.registered_callback and app.registered_callback.cls:
        app.registered_callback.cls = _extended(app.registered_callback.cls, add_to_group)


def _extended(base: Any, add_options: Callable[[Any], None]) -> Any:
    """The class, its instances given the options when they are made."""

    def initialise(self: Any, *args: Any, **keywords: Any) -> None:
        base.__init__(self, *args, **keywords)
        add_options(self)

    return type(base.__name__, (base,), {"__init__": initialise})
