"""The line of progress of ``pyrometer run``, on a terminal."""

import os
import signal
from pathlib import Path

import pytest

from tests.capture.terminals import run_on_terminal, screen_after
from tests.cli.running import PROFILED, Folder

pytestmark = pytest.mark.torch

# The line is made due by hand, so that no test has to wait for it.
TRAINING = """
    import os, signal, sys
    import torch
    from pyrometer import session

    line = session._active._live
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters())
    print("begin")
    for step, inputs in enumerate(torch.utils.data.DataLoader(torch.ones(40, 4), batch_size=8)):
        model(inputs).sum().backward()
        if line is not None:
            line._due_ns = 0
        optimizer.step()
    {end}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    for name in ("CI", "NO_COLOR"):
        folder.environment.pop(name, None)
    folder.environment["TERM"] = "xterm"
    return folder


def on_terminal(folder: Folder, *options: str, end: str = "") -> tuple[str, int]:
    folder.write("program.py", TRAINING.format(end=end))
    command = [*PROFILED, "--no-report", "-o", str(folder.run_file), *options, "program.py"]
    return run_on_terminal(command, folder=folder.programs, environment=folder.environment)


def test_it_is_shown_while_the_program_trains_and_gone_at_its_end(folder: Folder) -> None:
    written, code = on_terminal(folder)
    assert code == 0
    assert "step 3 · " in written
    assert " samples/s · " in written
    begin, told, rest = screen_after(written, columns=500)
    assert (begin, rest) == ("begin", "")
    assert told == f"pyrometer: run written to {folder.run_file}"


@pytest.mark.parametrize(
    ("options", "environment"),
    [(["--no-live"], {}), (["--quiet"], {}), ([], {"CI": "true"}), ([], {"TERM": "dumb"})],
)
def test_it_is_not_shown_where_it_is_not_wanted(
    folder: Folder, options: list[str], environment: dict[str, str]
) -> None:
    folder.environment.update(environment)
    written, code = on_terminal(folder, *options)
    assert code == 0
    assert screen_after(written, columns=500)[0] == "begin"
    assert "step" not in written
    assert "\x1b" not in written


def test_a_program_that_is_terminated_leaves_no_line_behind(folder: Folder) -> None:
    written, code = on_terminal(folder, end="os.kill(os.getpid(), signal.SIGTERM); signal.pause()")
    assert code == -signal.SIGTERM
    assert "step 3 · " in written
    assert screen_after(written, columns=500) == [
        "begin",
        f"pyrometer: run written to {folder.run_file}",
        "",
    ]


def test_a_program_that_is_interrupted_leaves_only_its_traceback(folder: Folder) -> None:
    written, code = on_terminal(folder, end="signal.raise_signal(signal.SIGINT)")
    assert code == -signal.SIGINT
    assert "step 3 · " in written
    begin, traceback, *_, interrupt, told, rest = screen_after(written, columns=500)
    assert (begin, traceback) == ("begin", "Traceback (most recent call last):")
    assert (interrupt, rest) == ("KeyboardInterrupt", "")
    assert told == f"pyrometer: run written to {folder.run_file}"


def test_a_forked_child_prints_on_a_clear_line(folder: Folder) -> None:
    end = "os.fork() or (os.write(1, b'child\\n'), os._exit(0)); os.wait(); print('parent')"
    written, _ = on_terminal(folder, end=end)
    assert "step 3 · " in written
    assert screen_after(written, columns=500)[:3] == ["begin", "child", "parent"]


def test_asked_for_without_a_terminal_it_is_lines_of_their_own(folder: Folder) -> None:
    folder.write("program.py", TRAINING.format(end=""))
    ended = folder.profiled("--live", "program.py")
    assert (ended.stdout, ended.code) == ("begin\n", 0)
    lines = ended.stderr.splitlines()
    # Steps in a row may be counted together: not each has its line, however often it is due.
    steps = [int(line.split(" · ")[0].removeprefix("step ")) for line in lines]
    assert len(steps) > 1
    assert steps == sorted(set(steps))
    assert set(steps) <= {1, 2, 3, 4, 5}
    assert "\x1b" not in ended.stderr


def test_a_program_without_steps_has_no_line(folder: Folder) -> None:
    folder.write("program.py", "print('it ran')")
    command = [*PROFILED, "--quiet", "--live", "-o", str(folder.run_file), "program.py"]
    written, _ = run_on_terminal(command, folder=folder.programs, environment=folder.environment)
    assert written == f"it ran{os.linesep}"
