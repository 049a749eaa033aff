"""What ``pyrometer run`` writes and says, however the program ends."""

import re
import signal
import sys
from pathlib import Path

import pytest

from pyrometer.errors import RunFileError
from pyrometer.record.run import Run
from tests.cli.running import PROFILED, Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


SCOPED = """
    import sys
    from pyrometer import scope
    with scope("outer"):
        for _ in range(3):
            with scope("inner"):
                pass
    {end}
"""

ENDS = {
    "to its last line": ("", "finished", None),
    "by an exit code": ("sys.exit(3)", "finished", None),
    "by an exit text": ("sys.exit('text')", "finished", None),
    "by an exception": ("{}['missing']", "exception", "KeyError"),
    "by an interrupt": ("raise KeyboardInterrupt", "exception", "KeyboardInterrupt"),
    "after an error that was handled": ("import code; code.interact(local={})", "finished", None),
}


@pytest.mark.parametrize(("end", "status", "detail"), ENDS.values(), ids=ENDS.keys())
def test_the_run_is_written_and_says_how_the_program_ended(
    folder: Folder, end: str, status: str, detail: str | None
) -> None:
    folder.write("program.py", SCOPED.format(end=end))
    folder.profiled("program.py", given="1 / 0\n")
    run = folder.record()
    assert (run.outcome.status, run.outcome.detail) == (status, detail)
    assert calls_in(run) == {"outer": 1, "inner": 3}


def test_a_syntax_error_is_how_a_program_can_end(folder: Folder) -> None:
    folder.write("program.py", "if True print(1)")
    folder.profiled("program.py")
    assert folder.record().outcome.detail == "SyntaxError"


def test_an_error_in_a_module_is_how_a_program_can_end(folder: Folder) -> None:
    folder.write("tool.py", "raise OSError('no')")
    folder.profiled("-m", "tool")
    assert folder.record().outcome.detail == "OSError"


def test_the_facts_of_the_run_are_recorded(folder: Folder) -> None:
    folder.write("program.py", SCOPED.format(end=""))
    folder.profiled("program.py", "--epochs", "3")
    run = folder.record()
    assert run.program.name == "program.py"
    assert run.program.argv == ("program.py", "--epochs", "3")
    assert run.program.working_directory == str(folder.programs)
    assert run.software.python_version == sys.version.split()[0]
    assert run.cost.scope_entries == 4
    assert run.cost.scope_ns > 0
    assert run.cost.startup_ns is not None
    assert run.profiled_ns > 0
    assert run.losses == ()


def test_children_that_worked_are_named_as_not_seen(folder: Folder) -> None:
    folder.write(
        "program.py",
        """
        import subprocess, sys
        subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
        """,
    )
    folder.profiled("program.py")
    (loss,) = folder.record().losses
    assert loss.collector == "processes"
    assert re.fullmatch(r"child processes used [1-9][\d.]* m?s of CPU time, not seen", loss.reason)


def test_forked_children_are_counted_as_not_seen(folder: Folder) -> None:
    folder.write(
        "program.py",
        """
        import os
        from pyrometer import scope
        for _ in range(2):
            if os.fork() == 0:
                with scope("in the child"):
                    raise SystemExit
            os.wait()
        """,
    )
    folder.profiled("program.py")
    run = folder.record()
    assert calls_in(run) == {}
    assert [(loss.collector, loss.count) for loss in run.losses] == [("processes", 2)]


def test_a_killed_program_leaves_a_checkpoint(folder: Folder) -> None:
    folder.environment["PYROMETER_CHECKPOINT_SECONDS"] = "0.05"
    folder.write(
        "program.py",
        """
        import os, sys
        from pyrometer import scope
        with scope("finished"):
            pass
        with scope("open"):
            print("ready", flush=True)
            while True:
                sys.stdin.read()
        """,
    )
    process = folder.start((*PROFILED, "--quiet", "-o", str(folder.run_file), "program.py"))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    while "open" not in calls_in(folder.record()):
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    run = folder.record()
    assert run.outcome.status == "running"
    assert calls_in(run) == {"finished": 1, "open": 0}
    assert {path.name for path in folder.run_file.parent.iterdir()} == {"run.json"}


def test_checkpoints_go_on_after_a_fork_and_cost_is_counted(folder: Folder) -> None:
    folder.environment["PYROMETER_CHECKPOINT_SECONDS"] = "0.02"
    folder.write(
        "program.py",
        """
        import os, sys
        from pathlib import Path
        from pyrometer import scope
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        with scope("after the fork"):
            while "after the fork" not in Path(sys.argv[1]).read_text():
                pass
        """,
    )
    assert folder.profiled("program.py", str(folder.run_file)).code == 0
    assert folder.record().cost.checkpoint_ns > 0


def test_a_second_sigterm_ends_even_a_program_that_never_lets_us_in(folder: Folder) -> None:
    # One call into C that never returns and never lets another thread run.
    folder.write("program.py", "print('ready', flush=True) or any(iter(int, 1))")
    process = folder.start((*PROFILED, "--quiet", "-o", str(folder.run_file), "program.py"))
    assert process.stdout is not None
    process.stdout.readline()
    while process.poll() is None:
        process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == -signal.SIGTERM


def test_the_report_and_the_file_go_to_stderr(folder: Folder) -> None:
    folder.write("program.py", SCOPED.format(end="print('mine'); sys.exit(3)"))
    ended = folder.run(*PROFILED, "program.py")
    assert (ended.stdout, ended.code) == ("mine\n", 3)
    assert re.search(r"^inner +3 ", ended.stderr, re.MULTILINE)
    assert ended.stderr.splitlines()[-1].startswith("pyrometer: run written to ")
    (path,) = (folder.programs / "pyrometer-runs").glob("program-*/run.json")
    assert ended.stderr.splitlines()[-1].endswith(str(path))


def test_the_report_has_as_many_scopes_as_asked_for(folder: Folder) -> None:
    folder.write("program.py", "from pyrometer import scope\nfor n in 'abc':\n    scope(n).__enter__()\n")
    ended = folder.run(*PROFILED, "--top", "1", "-o", str(folder.run_file), "program.py")
    table = ended.stderr.partition("Tree")[0]
    assert re.search(r"^a ", table, re.MULTILINE)
    assert not re.search(r"^c ", table, re.MULTILINE)


def test_no_report_still_names_the_file(folder: Folder) -> None:
    folder.write("program.py", SCOPED.format(end=""))
    ended = folder.run(*PROFILED, "--no-report", "-o", str(folder.run_file), "program.py")
    assert ended.stderr == f"pyrometer: run written to {folder.run_file}\n"


def test_the_report_is_printed_beside_modules_named_like_ours(folder: Folder) -> None:
    for name in ("rich", "typer", "msgspec", "pyrometer_report", "psutil"):
        folder.write(f"{name}.py", f"raise SystemError('{name} is not for you')")
    folder.write("program.py", "import os; os.chdir('/')")
    ended = folder.run(*PROFILED, "program.py")
    assert "Machine and software" in ended.stderr
    assert "Error" not in ended.stderr


@pytest.mark.parametrize(("native", "recorder"), [("1", "native"), ("0", "python")])
def test_a_sigterm_prints_the_report_too(folder: Folder, native: str, recorder: str) -> None:
    folder.environment["PYROMETER_NATIVE"] = native
    folder.write("program.py", "import signal\nprint('ready', flush=True)\nsignal.pause()")
    process = folder.start((*PROFILED, "-o", str(folder.run_file), "program.py"))
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate()
    assert process.returncode == -signal.SIGTERM
    assert "Machine and software" in stderr
    assert stderr.endswith(f"pyrometer: run written to {folder.run_file}\n")
    run = folder.record()
    assert (run.outcome.detail, run.recorder) == ("SIGTERM", recorder)


def test_a_handler_for_children_does_not_hear_of_ours(folder: Folder) -> None:
    folder.write(
        "program.py", "import signal; signal.signal(signal.SIGCHLD, lambda *_: print('a child has ended'))"
    )
    assert folder.run(*PROFILED, "program.py").stdout == ""


def test_a_run_that_cannot_be_written_at_the_end_is_one_line(folder: Folder) -> None:
    folder.write("program.py", "import shutil, sys\nshutil.rmtree(sys.argv[1])\nopen(sys.argv[1], 'w')")
    ended = folder.profiled("program.py", str(folder.run_file.parent))
    assert ended.code == 0
    assert ended.stderr.startswith("pyrometer: the run could not be kept: ")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "damage", ["{}", '{"python_path": null, "program_folder": null, "output": "/nowhere"}']
)
def test_a_start_that_fails_is_one_line_and_the_program_runs(folder: Folder, damage: str) -> None:
    import pyrometer._startup

    folder.environment["PYTHONPATH"] = str(Path(str(pyrometer._startup.__file__)).parent)
    folder.environment["PYROMETER_LAUNCH"] = damage
    folder.write("program.py", "import os; print('runs', 'PYROMETER_LAUNCH' in os.environ)")
    ended = folder.plain("program.py")
    assert (ended.stdout, ended.code) == ("runs False\n", 0)
    assert ended.stderr.startswith("pyrometer: the program runs unprofiled: ")
    assert ended.stderr.count("\n") == 1


def calls_in(run: Run) -> dict[str, int]:
    """Finished calls of each scope, by name."""
    return {node.name: node.calls for node in run.scopes()}


WRONG = {
    "no script": ((), "nothing to run"),
    "no module": (("-m",), "-m needs the name of a module"),
    "an empty module": (("-m", ""), "-m needs the name of a module"),
    "an empty output": (("-o", "", "program.py"), "cannot write a run to ''"),
    "a missing script": (("missing.py",), "there is no script 'missing.py'"),
    "a folder": (("empty",), "'empty' is a folder without a __main__.py"),
    "a foreign output file": (("-o", "notes.json", "program.py"), "is not a run that could be replaced"),
    "an output in a file": (("-o", "program.py/run.json", "program.py"), "program.py/run.json"),
    "an output of another kind": (("-o", "run.txt", "program.py"), "name a file that ends in .json"),
}


@pytest.mark.parametrize(("arguments", "problem"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_run_is_one_line(folder: Folder, arguments: tuple[str, ...], problem: str) -> None:
    folder.write("program.py", "print('never')")
    folder.write("empty/nothing.txt", "")
    folder.write("notes.json", "{}")
    ended = folder.run(*PROFILED, *arguments)
    assert (ended.stdout, ended.code) == ("", 2)
    assert ended.stderr.startswith("pyrometer: ")
    assert problem in ended.stderr
    assert ended.stderr.count("\n") == 1
    with pytest.raises(RunFileError):
        folder.record()


def test_isolated_mode_is_refused_with_the_reason(folder: Folder) -> None:
    folder.write("program.py", "print('never')")
    ended = folder.run(sys.executable, "-I", *PROFILED[1:], "program.py")
    assert (ended.stdout, ended.code) == ("", 2)
    assert "leave the option out" in ended.stderr


def test_settings_in_pyproject_are_the_defaults_and_options_overrule_them(folder: Folder) -> None:
    folder.write("pyproject.toml", '[tool.pyrometer.run]\noutput = "kept/run.json"\nquiet = true\n')
    folder.write("program.py", "pass")
    assert folder.run(*PROFILED, "program.py").stderr == ""
    assert (folder.programs / "kept" / "run.json").exists()
    ended = folder.run(*PROFILED, "--no-quiet", "--no-report", "-o", "other.json", "program.py")
    assert ended.stderr == f"pyrometer: run written to {folder.programs / 'other.json'}\n"
