"""What the checks say about machines of every kind, made up with files, folders and small scripts."""

import importlib.metadata
import sys
import types
from pathlib import Path

import pytest

from pyrometer.machine import checks
from pyrometer.machine.checks import Check, Status


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the whole search path for commands."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("sysconfig.get_config_var", lambda _: "cc -pthread")
    # A command that is not there at all, whatever is installed here.
    monkeypatch.setitem(sys.modules, "pynvml", None)
    return folder


def write_tool(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def summary(check: Check) -> tuple[str, str]:
    return check.status.value, check.found


def test_python_3_11_is_called_tested() -> None:
    check = checks.check_python((3, 11))
    assert check.status is Status.OK
    assert check.found.endswith("tested")


def test_a_later_python_is_called_untested() -> None:
    check = checks.check_python((3, 13))
    assert check.status is Status.WARNING
    assert "tested on 3.11" in check.advice
    assert not check.is_broken


def test_an_older_python_is_broken() -> None:
    assert checks.check_python((3, 10)).is_broken


@pytest.mark.parametrize(
    ("system", "status", "broken"),
    [
        ("Linux", Status.OK, False),
        ("Darwin", Status.WARNING, False),
        ("Windows", Status.MISSING, True),
        ("", Status.MISSING, True),
    ],
)
def test_only_linux_and_macos_are_supported(system: str, status: Status, broken: bool) -> None:
    check = checks.check_platform(system)
    assert (check.status, check.is_broken) == (status, broken)


def test_the_compiler_python_was_built_with_is_found_first(tools: Path) -> None:
    write_tool(tools, "gcc", "echo gcc 1.0")
    assert checks.find_compiler() == str(tools / "gcc")
    write_tool(tools, "cc", "echo cc 2.0; echo more")
    assert summary(checks.check_compiler()) == ("ok", "cc 2.0")


def test_a_compiler_without_pythons_headers_is_a_warning(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tool(tools, "cc", "echo cc 2.0")
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tools))
    check = checks.check_compiler()
    assert summary(check) == ("warning", f"{tools / 'cc'}, but no {tools / 'Python.h'}")
    assert "python3-dev" in check.advice


@pytest.mark.usefixtures("tools")
def test_a_machine_with_no_tools_misses_each_and_is_told_what_it_is_for() -> None:
    found = [
        checks.check_compiler(),
        checks.check_git(),
        checks.check_valgrind(),
        checks.check_gpu(),
    ]
    assert [check.status for check in found] == [Status.MISSING] * 4
    assert all(check.advice for check in found)
    assert not any(check.is_broken for check in found)


def test_a_tool_that_does_not_run_is_a_warning(tools: Path) -> None:
    write_tool(tools, "valgrind", "exit 1")
    assert summary(checks.check_valgrind()) == ("warning", f"{tools / 'valgrind'} does not run")


def test_a_tool_that_runs_tells_its_version(tools: Path) -> None:
    write_tool(tools, "git", "echo; echo git version 9")
    assert summary(checks.check_git()) == ("ok", "git version 9")


def test_a_folder_that_can_be_written_to_is_left_as_it_was(tmp_path: Path) -> None:
    assert checks.check_working_directory(tmp_path).status is Status.OK
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_a_warning_with_the_way_out(tmp_path: Path) -> None:
    check = checks.check_working_directory(tmp_path / "gone")
    assert check.status is Status.WARNING
    assert "No such file or directory" in check.found
    assert "pyrometer run -o FILE" in check.advice


def test_torch_is_told_by_its_installed_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "9.9")
    assert summary(checks.check_torch()) == ("ok", "9.9")


def test_without_torch_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", refuse)
    check = checks.check_torch()
    assert check.status is Status.MISSING
    assert "pip install 'pyrometer[torch]'" in check.advice


@pytest.mark.parametrize(
    ("environment", "usable", "present", "status", "found"),
    [
        ({}, 4, 4, Status.OK, "none set; 4 usable cores"),
        ({}, 2, 64, Status.WARNING, "none set; 2 usable cores"),
        ({"OMP_NUM_THREADS": "2"}, 2, 64, Status.OK, "OMP_NUM_THREADS=2; 2 usable cores"),
        ({"MKL_NUM_THREADS": "8"}, 4, 4, Status.WARNING, "MKL_NUM_THREADS=8; 4 usable cores"),
        ({"OMP_NUM_THREADS": "4,2"}, 4, 4, Status.OK, "OMP_NUM_THREADS=4,2; 4 usable cores"),
        ({}, None, None, Status.OK, "none set; unknown usable cores"),
    ],
)
def test_more_numeric_threads_than_cores_are_warned_of(
    environment: dict[str, str], usable: int | None, present: int | None, status: Status, found: str
) -> None:
    check = checks.check_threads(environment, usable, present)
    assert (check.status, check.found) == (status, found)
    assert bool(check.advice) == (status is Status.WARNING)


class FakeNvmlError(Exception):
    """What NVML raises."""


def fake_nvml(names: list[str], *, failure: str = "") -> types.ModuleType:
    nvml = types.ModuleType("pynvml")

    def initialise() -> None:
        if failure:
            raise FakeNvmlError(failure)

    nvml.__dict__.update(
        NVMLError=FakeNvmlError,
        nvmlInit=initialise,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: len(names),
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda index: names[index],
    )
    return nvml


def test_gpus_are_named_by_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(["A100", "H100"]))
    assert summary(checks.check_gpu()) == ("ok", "A100, H100")


def test_a_gpu_nvml_cannot_reach_is_missing_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml([], failure="Driver Not Loaded"))
    assert summary(checks.check_gpu()) == ("missing", "not available: Driver Not Loaded")


def test_a_driver_without_a_gpu_is_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml([]))
    assert summary(checks.check_gpu()) == ("missing", "not available: the driver lists none")


def test_a_gpu_seen_only_by_the_drivers_command_asks_for_the_library(tools: Path) -> None:
    write_tool(tools, "nvidia-smi", "echo A100; echo H100")
    check = checks.check_gpu()
    assert summary(check) == ("warning", "A100, H100")
    assert "pip install nvidia-ml-py" in check.advice


def test_a_drivers_command_that_fails_means_no_gpu(tools: Path) -> None:
    write_tool(tools, "nvidia-smi", "echo no devices; exit 9")
    assert summary(checks.check_gpu()) == ("missing", "not available: nvidia-smi lists none")


def test_every_check_that_is_not_ok_says_what_to_do() -> None:
    for check in checks.check_environment():
        assert (check.status is Status.OK) == (check.advice == ""), check
