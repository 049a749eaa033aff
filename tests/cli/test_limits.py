"""pyrometer limits: measured once, kept, and reused."""

import json
import os
from datetime import datetime
from pathlib import Path

import msgspec
import pytest
import typer.testing

from pyrometer.cli import doctor
from pyrometer.cli import limits as command
from pyrometer.errors import UsageError
from pyrometer.machine.checks import Status
from pyrometer.machine.facts import cpu_model, usable_cores
from pyrometer.record.limits import Limits, machine_identity
from pyrometer.record.run import Program
from pyrometer.session import begin_run
from pyrometer.store.limits_files import limits_path
from tests.limits import make_limits

HERE = msgspec.structs.replace(make_limits(), cpu_model=cpu_model(), usable_cores=usable_cores())


class Measuring:
    """Stands for seconds of measuring, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[int | None] = []

    def __call__(self, threads: int | None = None) -> Limits:
        self.asked.append(threads)
        return HERE


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Measuring:
    measuring = Measuring()
    monkeypatch.setattr(command, "measure_limits", measuring)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return measuring


def kept_file() -> Path:
    path = limits_path(machine_identity(cpu_model=cpu_model(), usable_cores=usable_cores()), os.environ)
    assert path is not None
    return path


def limits(*arguments: str) -> typer.testing.Result:
    app = typer.Typer()
    app.command("limits")(command.limits)
    return typer.testing.CliRunner().invoke(app, arguments, catch_exceptions=False)


def run_of_now() -> Limits | None:
    program = Program(name="train.py", argv=("train.py",), working_directory="/work")
    return begin_run(program, datetime.now().astimezone()).limits


def test_they_are_measured_once_and_known_ever_after(measuring: Measuring) -> None:
    first = limits()
    assert first.exit_code == 0
    assert "FMA f32" in first.stdout
    assert "measuring" in first.stderr
    second = limits()
    assert second.stdout == first.stdout
    assert second.stderr == ""
    assert measuring.asked == [None]


def test_fresh_measures_again(measuring: Measuring) -> None:
    limits()
    limits("--fresh")
    assert measuring.asked == [None, None]


def test_on_other_threads_they_are_printed_and_not_kept(measuring: Measuring) -> None:
    assert limits("--threads", "1").exit_code == 0
    assert measuring.asked == [1]
    assert not kept_file().exists()


def test_more_threads_than_cores_are_refused(measuring: Measuring) -> None:
    with pytest.raises(UsageError, match=r"--threads is 100000, but this process may use \d+ cores"):
        limits("--threads", "100000")
    assert measuring.asked == []


@pytest.mark.parametrize(("form", "start"), [("markdown", "# Limits of"), ("json", "{")])
def test_they_are_printed_as_asked_for(measuring: Measuring, form: str, start: str) -> None:
    printed = limits("--format", form).stdout
    assert printed.startswith(start)
    if form == "json":
        assert json.loads(printed)["threads"] == 2
    assert measuring.asked == [None]


def test_a_damaged_file_is_said_and_replaced(measuring: Measuring) -> None:
    limits()
    kept_file().write_text("{")
    result = limits()
    assert "cannot be used, and are measured again" in result.stderr
    assert measuring.asked == [None, None]
    assert limits().stderr == ""


def test_where_they_cannot_be_kept_they_are_printed_all_the_same(
    measuring: Measuring, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    result = limits()
    assert result.exit_code == 0
    assert "FMA f32" in result.stdout
    assert "the limits could not be kept: " in result.stderr
    assert measuring.asked == [None]


@pytest.mark.usefixtures("measuring")
def test_a_run_carries_what_is_known_and_never_measures() -> None:
    assert run_of_now() is None
    limits()
    assert run_of_now() == HERE
    kept_file().write_text("[]")
    assert run_of_now() is None


@pytest.mark.usefixtures("measuring")
def test_doctor_tells_whether_they_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = doctor.check_limits()
    assert unknown.found in {"not measured yet", "not available: no compiled kernels"}
    limits()
    known = doctor.check_limits()
    assert (known.status, known.found) == (Status.OK, "known, measured at 2026-03-01T10:00:00+01:00")
    kept_file().write_text("{")
    damaged = doctor.check_limits()
    assert damaged.status is Status.WARNING
    assert damaged.advice == "Measure them again: pyrometer limits --fresh"
    kept_file().unlink()
    monkeypatch.setenv("PYROMETER_NATIVE", "0")
    missing = doctor.check_limits()
    assert missing.status is Status.MISSING
    assert missing.found == "not available: no compiled kernels, because PYROMETER_NATIVE=0"
