"""pyrometer doctor, on this machine and on broken ones."""

import json
import os
import subprocess
import sys

import pytest
import typer.testing

from pyrometer import _native
from pyrometer.cli import doctor as command
from pyrometer.machine.checks import Check, Status

FINE = Check(name="git", status=Status.OK, found="git 9")
LACKING = Check(name="valgrind", status=Status.MISSING, found="not found", advice="Install it.")
BROKEN = Check(name="platform", status=Status.MISSING, found="CP/M", advice="Change it.", required=True)


def invoke(monkeypatch: pytest.MonkeyPatch, checks: list[Check], *arguments: str) -> tuple[int, str]:
    monkeypatch.setattr(command, "examine", lambda: checks)
    app = typer.Typer()
    app.command("doctor")(command.doctor)
    result = typer.testing.CliRunner().invoke(app, arguments, catch_exceptions=False)
    return result.exit_code, result.output


def test_each_check_is_a_line_and_its_advice_another(monkeypatch: pytest.MonkeyPatch) -> None:
    code, output = invoke(monkeypatch, [FINE, LACKING])
    assert code == 0
    assert output == (
        "ok       git       git 9\n"
        "missing  valgrind  not found\n"
        "                   > Install it.\n"
        "\n"
        "Pyrometer works here.\n"
    )


def test_something_required_that_is_broken_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    code, output = invoke(monkeypatch, [FINE, BROKEN])
    assert code == 1
    assert output.endswith("\nPyrometer cannot work here: see platform.\n")


def test_json_holds_the_same_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    code, output = invoke(monkeypatch, [FINE, BROKEN], "--json")
    assert code == 1
    document = json.loads(output)
    assert document["ok"] is False
    assert document["checks"] == [
        {"name": "git", "status": "ok", "found": "git 9", "advice": "", "required": False},
        {
            "name": "platform",
            "status": "missing",
            "found": "CP/M",
            "advice": "Change it.",
            "required": True,
        },
    ]


def test_a_terminal_shows_the_same_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "examine", lambda: [FINE, LACKING])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    command.doctor()
    words = " ".join(capsys.readouterr().out.split())
    assert words == "ok git git 9 missing valgrind not found Install it. Pyrometer works here."


def examine_in_new_process(**environment: str) -> dict[str, dict[str, str]]:
    program = "from pyrometer.cli.doctor import examine, render_json; print(render_json(examine()))"
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return {check["name"]: check for check in json.loads(answer.stdout)["checks"]}


def test_the_python_recorder_chosen_by_the_environment_is_named_with_its_clock() -> None:
    checks = examine_in_new_process(PYROMETER_NATIVE="0")
    assert checks["recorder"]["status"] == "warning"
    assert checks["recorder"]["found"] == "Python, because PYROMETER_NATIVE=0"
    assert "Unset PYROMETER_NATIVE" in checks["recorder"]["advice"]
    assert checks["clock"]["found"].startswith("perf_counter_ns; an empty scope reads ")


def test_the_whole_examination_loads_no_torch() -> None:
    program = "import sys; from pyrometer.cli.doctor import examine; examine(); print('torch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"


def test_the_native_recorder_is_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "KIND", "native")
    check = command.check_recorder()
    assert (check.status, check.found) == (Status.OK, "native")


@pytest.mark.parametrize(
    ("compiler", "advice"),
    [
        ("/usr/bin/cc", "native one: install pyrometer again from its source folder: "),
        (None, "native one: install a C compiler (gcc or clang) and install pyrometer again from its source"),
    ],
)
def test_a_native_recorder_that_does_not_load_is_told_with_the_reason_and_the_remedy(
    monkeypatch: pytest.MonkeyPatch, compiler: str | None, advice: str
) -> None:
    monkeypatch.setattr(_native, "KIND", "python")
    monkeypatch.delenv("PYROMETER_NATIVE", raising=False)
    monkeypatch.setitem(sys.modules, "pyrometer._native.core", None)
    monkeypatch.setattr(command, "find_compiler", lambda: compiler)
    check = command.check_recorder()
    assert check.status is Status.WARNING
    assert "pyrometer._native.core" in check.found
    assert advice in check.advice
    assert check.advice.endswith(": pip install --force-reinstall --no-deps .")


def test_the_clock_and_the_cost_of_a_scope_are_measured() -> None:
    assert command.shortest_scope_ns() >= 0
    assert command.check_scope_cost().found.split()[1] in {"ns", "µs"}


def test_a_reading_costs_what_the_clock_says_passes_between_readings() -> None:
    readings = iter(range(0, 1_000_000_000, 7))
    assert round(command.read_cost_ns(lambda: next(readings))) == 7


def test_the_sampler_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyrometer._native import unsampled
    from pyrometer.capture import sampling

    if _native.KIND == "native":
        assert command.check_sampler() == Check(
            name="sampler", status=Status.OK, found="reads stacks correctly"
        )
    monkeypatch.setattr(sampling, "Sampler", unsampled.Sampler)
    check = command.check_sampler()
    assert check.status is Status.MISSING
    assert "only the compiled core can read stacks" in check.found
