"""What add_profile_flag makes of each kind of parser, with the profiler's start looked at only."""

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import click.testing
import pytest
import typer
import typer.testing

from pyrometer.errors import UsageError
from pyrometer.integrations.flags import add_profile_flag

Starts = list[tuple[Path | None, int]]


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Starts:
    """The output and top of each start of the profiler."""
    seen: Starts = []

    def note(*, output: Path | None, top: int) -> None:
        seen.append((output, top))

    monkeypatch.setattr("pyrometer.session.profile_until_exit", note)
    return seen


def run_click(command: click.Command, arguments: Sequence[str]) -> str:
    result = click.testing.CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def run_typer(app: typer.Typer, arguments: Sequence[str]) -> str:
    result = typer.testing.CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


# argparse


def test_argparse_keeps_both_values_in_the_namespace(starts: Starts) -> None:
    parser = add_profile_flag(argparse.ArgumentParser())
    assert vars(parser.parse_args([])) == {"profile": False, "profile_output": None}
    assert starts == []
    assert vars(parser.parse_args(["-p"])) == {"profile": True, "profile_output": None}
    assert starts == [(None, 20)]


@pytest.mark.parametrize("arguments", [["--profile", "--profile-output", "a"], ["--profile-output=a", "-p"]])
def test_argparse_ends_up_with_the_output_in_either_order(starts: Starts, arguments: list[str]) -> None:
    options = add_profile_flag(argparse.ArgumentParser()).parse_args(arguments)
    assert (options.profile, options.profile_output) == (True, Path("a"))
    assert starts[-1] == (Path("a"), 20)


def test_argparse_profiles_when_only_an_output_is_given(starts: Starts) -> None:
    options = add_profile_flag(argparse.ArgumentParser(), top=3).parse_args(["--profile-output", "a"])
    assert options.profile is True
    assert starts == [(Path("a"), 3)]


def test_argparse_takes_the_flag_before_a_subcommand_and_among_unknown_options(starts: Starts) -> None:
    parser = argparse.ArgumentParser()
    parser.add_subparsers(dest="command").add_parser("train").add_argument("-p", type=int)
    add_profile_flag(parser)
    options, unknown = parser.parse_known_args(["--profile", "train", "-p", "4", "--other"])
    assert (options.profile, options.command, options.p, unknown) == (True, "train", 4, ["--other"])
    assert starts == [(None, 20)]


def test_argparse_takes_the_flag_on_a_subcommand(starts: Starts) -> None:
    parser = argparse.ArgumentParser()
    add_profile_flag(parser.add_subparsers().add_parser("train"))
    assert parser.parse_args(["train", "-p"]).profile is True
    assert starts == [(None, 20)]


def test_argparse_leaves_a_taken_short_flag_to_the_program(starts: Starts) -> None:
    parser = argparse.ArgumentParser(conflict_handler="resolve")
    parser.add_argument("-p", "--port", type=int)
    add_profile_flag(parser)
    assert parser.parse_args(["-p", "80"]).port == 80
    assert starts == []
    parser.parse_args(["--profile"])
    assert starts == [(None, 20)]


def test_argparse_programs_with_a_value_of_that_name_are_refused() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("profile")
    with pytest.raises(UsageError, match="already keeps a value as 'profile'"):
        add_profile_flag(parser)


# click


def make_click_command(*names: str) -> click.Command:
    @click.command()
    @click.option(*names, type=int, default=1)
    @click.argument("profile", required=False)
    def program(**values: Any) -> None:
        click.echo(sorted(values.items(), key=str))

    return program


def test_click_commands_are_called_as_before(starts: Starts) -> None:
    command = add_profile_flag(make_click_command("--steps"))
    plain = run_click(command, ["work"])
    assert starts == []
    assert run_click(command, ["-p", "work"]) == plain == "[('profile', 'work'), ('steps', 1)]\n"
    assert starts == [(None, 20)]


@pytest.mark.parametrize("arguments", [["--profile", "--profile-output", "a"], ["--profile-output=a"]])
def test_click_starts_once_with_the_output(starts: Starts, arguments: list[str]) -> None:
    run_click(add_profile_flag(make_click_command("--steps"), top=5), arguments)
    assert starts == [(Path("a"), 5)]


def test_click_groups_take_the_flag_before_the_command(starts: Starts) -> None:
    @click.group()
    def program() -> None:
        pass

    program.command("train")(lambda: None)
    run_click(add_profile_flag(program), ["-p", "train"])
    assert starts == [(None, 20)]


def test_click_shows_the_flag_and_starts_nothing_for_help(starts: Starts) -> None:
    text = run_click(add_profile_flag(make_click_command("--steps")), ["--help", "-p"])
    assert "-p, --profile" in text
    assert "--profile-output FILE" in text
    assert starts == []


def test_click_starts_nothing_while_a_shell_completes_the_line(starts: Starts) -> None:
    command = add_profile_flag(make_click_command("--steps"))
    command.make_context("program", ["-p"], resilient_parsing=True)
    assert starts == []


def test_click_leaves_a_taken_short_flag_to_the_program(starts: Starts) -> None:
    command = add_profile_flag(make_click_command("-p", "--port"))
    assert "('port', 80)" in run_click(command, ["-p", "80"])
    assert starts == []
    run_click(command, ["--profile"])
    assert starts == [(None, 20)]


def test_the_flag_can_decorate_a_click_command(starts: Starts) -> None:
    @add_profile_flag
    @click.command()
    def program() -> None:
        pass

    run_click(program, ["-p"])
    assert starts == [(None, 20)]


# typer


def make_typer_app(*, commands: int, callback: bool = False) -> typer.Typer:
    app = typer.Typer(add_completion=False)
    if callback:
        app.callback()(lambda: typer.echo("prepared"))
    for name in ["train", "check"][:commands]:

        def program(steps: int = 1) -> None:
            typer.echo(f"{steps} steps")

        app.command(name)(program)
    return app


def add_first(**shape: Any) -> typer.Typer:
    """The flag added to an app that has no commands yet."""
    app = add_profile_flag(typer.Typer(add_completion=False))
    filled = make_typer_app(**shape)
    for command in filled.registered_commands:
        app.command(command.name)(command.callback or (lambda: None))
    if filled.registered_callback:
        app.callback()(filled.registered_callback.callback or (lambda: None))
    return app


def add_last(**shape: Any) -> typer.Typer:
    return add_profile_flag(make_typer_app(**shape))


@pytest.mark.parametrize("make", [add_first, add_last])
@pytest.mark.parametrize(
    ("shape", "command", "output"),
    [
        ({"commands": 1}, [], "2 steps\n"),
        ({"commands": 2}, ["train"], "2 steps\n"),
        ({"commands": 1, "callback": True}, ["train"], "prepared\n2 steps\n"),
        ({"commands": 2, "callback": True}, ["check"], "prepared\n2 steps\n"),
    ],
)
def test_typer_apps_of_every_shape_take_the_flag(
    starts: Starts,
    make: Callable[..., typer.Typer],
    shape: dict[str, Any],
    command: list[str],
    output: str,
) -> None:
    app = make(**shape)
    assert run_typer(app, [*command, "--steps", "2"]) == output
    assert starts == []
    assert run_typer(app, ["-p", *command, "--steps", "2"]) == output
    assert run_typer(app, ["--profile-output", "a", "--profile", *command, "--steps", "2"]) == output
    assert starts == [(None, 20), (Path("a"), 20)]


def test_typer_shows_the_flag_once_and_starts_nothing_for_help(starts: Starts) -> None:
    app = add_last(commands=2)
    assert "--profile-output" in run_typer(app, ["--help"])
    assert "--profile-output" not in run_typer(app, ["train", "--help"])
    assert starts == []


def test_typer_leaves_a_taken_short_flag_to_the_program(starts: Starts) -> None:
    app = typer.Typer(add_completion=False)

    @app.command()
    def program(port: int = typer.Option(1, "-p", "--port")) -> None:
        typer.echo(port)

    add_profile_flag(app)
    assert run_typer(app, ["-p", "80"]) == "80\n"
    assert starts == []
    run_typer(app, ["--profile"])
    assert starts == [(None, 20)]


def test_typer_commands_of_several_keep_options_of_that_name(starts: Starts) -> None:
    app = make_typer_app(commands=1)

    @app.command()
    def deploy(profile: str = "default") -> None:
        typer.echo(profile)

    add_profile_flag(app)
    assert run_typer(app, ["-p", "deploy", "--profile", "other"]) == "other\n"
    assert starts == [(None, 20)]


class Loud(typer.core.TyperGroup):
    """A group class of the program's own."""

    def get_usage(self, ctx: Any) -> str:
        return super().get_usage(ctx).upper()


@pytest.mark.parametrize("flag_first", [True, False])
def test_typer_keeps_the_classes_the_program_chose(starts: Starts, flag_first: bool) -> None:
    app = typer.Typer(add_completion=False)
    if flag_first:
        add_profile_flag(app)
    app.callback(cls=Loud)(lambda: None)
    app.command("train")(lambda: None)
    if not flag_first:
        add_profile_flag(app)
    assert "USAGE" in run_typer(app, ["--help"])
    run_typer(app, ["-p", "train"])
    assert starts == [(None, 20)]


def test_typer_apps_inside_others_take_the_flag_after_their_name(starts: Starts) -> None:
    outer = typer.Typer(add_completion=False)
    outer.add_typer(add_last(commands=1), name="inner")
    run_typer(outer, ["inner", "-p", "train"])
    assert starts == [(None, 20)]


def test_typer_apps_with_one_command_and_another_app_take_the_flag_once(starts: Starts) -> None:
    app = make_typer_app(commands=1)
    app.add_typer(make_typer_app(commands=1), name="other")
    add_profile_flag(app)
    run_typer(app, ["-p", "train"])
    assert "--profile" not in run_typer(app, ["train", "--help"])
    assert starts == [(None, 20)]


def test_commands_typer_has_built_take_the_flag(starts: Starts) -> None:
    command = add_profile_flag(typer.main.get_command(make_typer_app(commands=1)))
    command(["-p"], standalone_mode=False)
    assert starts == [(None, 20)]


# All


def with_own_flag(kind: str) -> Any:
    if kind == "argparse":
        parser = argparse.ArgumentParser()
        parser.add_argument("--profile", dest="other")
        return parser
    if kind == "click":
        return make_click_command("--profile", "other")
    app = typer.Typer(add_completion=False)

    @app.command()
    def program(other: str = typer.Option("", "--profile")) -> None:
        typer.echo(other)

    return app


@pytest.mark.parametrize("kind", ["argparse", "click", "typer"])
def test_a_program_with_its_own_flag_of_that_name_is_told_so(kind: str) -> None:
    def set_up_and_build() -> None:
        parser = add_profile_flag(with_own_flag(kind))
        if kind == "typer":
            typer.main.get_command(parser)

    with pytest.raises(UsageError, match="already has an option --profile; rename it"):
        set_up_and_build()


@pytest.mark.parametrize("parser", [None, "train", argparse, argparse.ArgumentParser, len])
def test_anything_else_is_answered_with_what_is_accepted(parser: object) -> None:
    accepted = r"takes an argparse.ArgumentParser, a click command or group, or a typer.Typer, not "
    with pytest.raises(TypeError, match=accepted):
        add_profile_flag(parser)


def test_an_argparse_program_loads_neither_click_nor_typer() -> None:
    program = (
        "import argparse, sys; from pyrometer.integrations.flags import add_profile_flag;"
        "add_profile_flag(argparse.ArgumentParser()).parse_args([]);"
        "print({'click', 'typer', 'rich', 'msgspec', 'pyrometer.session'} & set(sys.modules))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "set()\n"
