"""What ``pyrometer run`` says of options it cannot use, and how those it can reach the program's start."""

import json
from pathlib import Path
from typing import Any

import pytest

from pyrometer.store.run_files import read_run
from tests.cli.running import PROFILED, Folder

WARMUP = "a whole number from 0 to 256: so many first steps are kept one by one"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.write("program.py", "print('it ran')")
    return folder


def launch_options(folder: Folder, *options: str) -> dict[str, Any]:
    """What the program's start is told, as a start of our own hears it."""
    folder.write(
        "main.py",
        """
        import os, sys
        from pyrometer.__main__ import main
        os.execve = lambda _path, _command, environment: print(environment["PYROMETER_LAUNCH"])
        main()
        """,
    )
    ended = folder.plain("main.py", "run", "-o", str(folder.run_file), *options, "program.py")
    assert ended.code == 0, ended.stderr
    options_seen: dict[str, Any] = json.loads(ended.stdout)
    return options_seen


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            ["--steps", "5"],
            "--steps is '5', but must be A:B with whole numbers, such as '100:200', '100:' or ':200'",
        ),
        (["--steps", "9:4"], "--steps is '9:4', which holds no step; end it at 10 or later"),
        (
            ["--warmup", "257"],
            f"--warmup is 257, but must be {WARMUP}",
        ),
        (
            ["--warmup", "-1"],
            f"--warmup is -1, but must be {WARMUP}",
        ),
    ],
)
def test_a_value_that_cannot_be_used_is_one_line_and_nothing_is_run(
    folder: Folder, options: list[str], problem: str
) -> None:
    ended = folder.run(*PROFILED, *options, "program.py")
    assert (ended.stdout, ended.stderr, ended.code) == ("", f"pyrometer: {problem}\n", 2)
    assert not (folder.programs / "pyrometer-runs").exists()


def test_without_options_nothing_is_chosen_for_the_user(folder: Folder) -> None:
    chosen = launch_options(folder)
    assert (chosen["window"], chosen["warmup"], chosen["live"]) == (None, None, None)


def test_the_options_reach_the_programs_start(folder: Folder) -> None:
    chosen = launch_options(folder, "--steps", "10:", "--warmup", "0", "--live")
    assert (chosen["window"], chosen["warmup"], chosen["live"]) == ([10, None], 0, True)


def test_the_settings_do_too_and_options_overrule_them(folder: Folder) -> None:
    folder.write("pyproject.toml", '[tool.pyrometer.run]\nsteps = ":60"\nwarmup = 5\nlive = true\n')
    chosen = launch_options(folder)
    assert (chosen["window"], chosen["warmup"], chosen["live"]) == ([0, 60], 5, True)
    chosen = launch_options(folder, "--steps", "1:2", "--warmup", "6", "--no-live")
    assert (chosen["window"], chosen["warmup"], chosen["live"]) == ([1, 2], 6, False)


def test_deep_is_off_unless_asked_for(folder: Folder) -> None:
    assert launch_options(folder)["ops"] == 0
    assert launch_options(folder, "--deep")["ops"] == 5
    folder.write("pyproject.toml", "[tool.pyrometer.run]\ndeep = true\n")
    assert launch_options(folder)["ops"] == 5
    assert launch_options(folder, "--no-deep")["ops"] == 0


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ((), ["--format", "terminal"]),
        (("--deep", "--top", "3"), ["--format", "terminal", "--top", "3"]),
        (("--html",), ["--format", "terminal", "--html"]),
        (("--open",), ["--format", "terminal", "--open"]),
        (("--quiet", "--html"), ["--quiet", "--html"]),
        (("--no-report", "--open"), ["--quiet", "--open"]),
        (("--quiet",), None),
        (("--no-report",), None),
    ],
)
def test_what_is_made_of_the_run_at_its_end(
    folder: Folder, options: tuple[str, ...], made: list[str] | None
) -> None:
    assert launch_options(folder, *options)["report_options"] == made


def test_targets_that_cannot_be_read_are_known_before_the_program_runs(folder: Folder) -> None:
    folder.write("pyproject.toml", '[tool.pyrometer.targets]\nthroughput = "a lot"\n')
    ended = folder.run(*PROFILED, "program.py")
    assert (ended.stdout, ended.code) == ("", 2)
    assert "throughput is 'a lot'" in ended.stderr
    assert not (folder.programs / "pyrometer-runs").exists()


@pytest.mark.parametrize(
    ("options", "name"), [((), "profile-report.md"), (("--deep",), "deep-profile-report.md")]
)
def test_the_report_is_kept_beside_a_run_in_a_folder_of_its_own(
    folder: Folder, options: tuple[str, ...], name: str
) -> None:
    folder.run(*PROFILED, *options, "program.py")
    (run_folder,) = (folder.programs / "pyrometer-runs").iterdir()
    kept = {path.name for path in run_folder.iterdir() if not path.name.endswith(".svg")}
    assert kept == {"run.json", name}
    assert (run_folder / name).read_text().startswith("# Pyrometer: program.py\n")


def test_the_page_is_written_beside_the_run_and_opened_at_the_end(folder: Folder) -> None:
    folder.environment["BROWSER"] = "echo opened %s"
    ended = folder.run(*PROFILED, "--quiet", "--open", "-o", "kept.json", "program.py")
    page = folder.programs / "kept.report.html"
    assert page.read_text().startswith("<!doctype html>")
    assert f"opened {page.as_uri()}" in ended.stderr
    assert (ended.stdout, ended.code) == ("it ran\n", 0)


def test_the_report_is_printed_beside_the_page(folder: Folder) -> None:
    ended = folder.run(*PROFILED, "--html", "-o", "kept.json", "program.py")
    assert "Machine and software" in ended.stderr
    assert (folder.programs / "kept.report.html").exists()


def test_quiet_overrules_the_live_line_of_the_settings_only(folder: Folder) -> None:
    folder.write("pyproject.toml", "[tool.pyrometer.run]\nlive = true\n")
    assert launch_options(folder, "--quiet")["live"] is None
    assert launch_options(folder, "--quiet", "--live")["live"] is True


def test_a_program_without_torch_runs_with_all_of_them(folder: Folder) -> None:
    ended = folder.profiled("--steps", "1:3", "--warmup", "2", "--no-live", "-m", "program", "--steps", "x")
    assert (ended.stdout, ended.stderr, ended.code) == ("it ran\n", "", 0)
    assert folder.record().program.argv == ("-m program", "--steps", "x")


@pytest.mark.torch
def test_only_the_steps_of_the_window_are_recorded(folder: Folder) -> None:
    folder.write(
        "program.py",
        """
        import torch
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters())
        for inputs in torch.utils.data.DataLoader(torch.ones(80, 4), batch_size=8):
            model(inputs).sum().backward()
            optimizer.step()
        """,
    )
    ended = folder.profiled("--steps", "2:6", "--warmup", "1", "program.py")
    assert (ended.stderr, ended.code) == ("", 0)
    torch = folder.record().torch
    assert torch is not None
    [group] = torch.groups
    assert (torch.window, torch.warmup) == ((2, 6), 1)
    assert [step.index for step in group.first] == [2, 3, 4, 5]
    assert (group.steps, group.samples) == (4, 32)


@pytest.mark.parametrize(
    ("options", "counted", "python_memory"),
    [
        ([], True, False),
        (["--no-memory"], False, False),
        (["--python-memory"], True, True),
        (["--deep"], True, True),
        (["--deep", "--no-python-memory"], True, False),
    ],
)
def test_memory_is_counted_unless_told_not_to_and_small_objects_when_asked_for(
    folder: Folder, options: list[str], counted: bool, python_memory: bool
) -> None:
    told = launch_options(folder, *options)
    assert (told["memory_counted"], told["python_memory"]) == (counted, python_memory)


def test_a_run_without_memory_has_no_figures_and_no_loss_of_them(folder: Folder) -> None:
    folder.write("program.py", "bytearray(5_000_000)")
    assert folder.run(*PROFILED, "--no-memory", "-o", str(folder.run_file), "program.py").code == 0
    without = read_run(folder.run_file)
    assert (without.allocations, without.losses) == (None, ())


def test_under_valgrind_nothing_of_ours_is_left_on_that_would_be_counted(
    folder: Folder, tmp_path: Path
) -> None:
    valgrind = tmp_path / "valgrind"
    valgrind.write_text("#!/bin/sh\nexit 1\n")
    valgrind.chmod(0o755)
    folder.environment["PATH"] = str(tmp_path)
    chosen = launch_options(folder, "--cachegrind", "--sample-hz", "50", "--memory")
    assert (chosen["sample_hz"], chosen["native"], chosen["memory_counted"]) == (0, False, False)
    assert chosen["cachegrind"]["scope"] is None
    assert chosen["counters"] is False
