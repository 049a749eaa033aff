"""The command as a whole: its version, its help, its errors."""

import re

import pytest

import pyrometer
from pyrometer.cli.app import run_command
from pyrometer.cli.launch import interpreter_options


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["--version"]) == 0
    assert capsys.readouterr().out == f"pyrometer {pyrometer.__version__}\n"


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["--help"]) == 0
    listed = re.findall(r"^  (\w+)  ", capsys.readouterr().out, re.MULTILINE)
    assert listed == [
        "run",
        "report",
        "compare",
        "gate",
        "baseline",
        "bench",
        "history",
        "map",
        "limits",
        "doctor",
    ]


@pytest.mark.parametrize(
    "command", ["run", "report", "compare", "gate", "baseline", "bench", "history", "map", "limits", "doctor"]
)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command([command, "--help"]) == 0
    assert f"Usage: pyrometer {command}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["burn"], ["run", "--burn", "x.py"], ["run", "--top", "0", "x.py"]])
def test_a_wrong_word_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_another_platform_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    assert run_command(["--version"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pyrometer: pyrometer runs on Linux and macOS, not on 'win32'")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("command_line", "options"),
    [
        ("python -m pyrometer run x.py", []),
        ("python /usr/bin/pyrometer run -u x.py", []),
        ("python -O -W error -X dev -m pyrometer run x.py", ["-O", "-W", "error", "-X", "dev"]),
        ("python -Werror -Xdev -um pyrometer run x.py", ["-Werror", "-Xdev", "-u"]),
        ("python -mpyrometer run x.py", []),
        (
            "python --check-hash-based-pycs always -B /bin/pyrometer",
            ["--check-hash-based-pycs", "always", "-B"],
        ),
    ],
)
def test_options_of_python_itself_are_told_from_ours(command_line: str, options: list[str]) -> None:
    assert interpreter_options(command_line.split()) == options
