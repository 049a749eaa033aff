"""``pyrometer compare --measure`` and ``--rev`` as they are typed, on programs that take no time."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pyrometer.cli import compare_measured
from pyrometer.cli.compare_measured import Measuring
from pyrometer.experiment.paced_process import THREAD_VARIABLES
from tests.experiment.test_worktrees import git

_PROGRAM = """\
import sys
import pyrometer

with pyrometer.scope("work"):
    print(sum(range(int(sys.argv[1]) if len(sys.argv) > 1 else 100)))
"""
_PATIENCE_S = 120


class Project:
    """A folder with a program, whose temporary files can all be seen."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.write("w.py", _PROGRAM)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, encoding="utf-8")

    def commit(self) -> None:
        if not (self.folder / ".git").exists():
            git(self.folder, "init", "--quiet", "--initial-branch", "main")
        git(self.folder, "add", "--all")
        git(self.folder, "commit", "--quiet", "--message", "a version")

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYROMETER")}
        return subprocess.Popen(
            [sys.executable, "-m", "pyrometer", "compare", *arguments],
            cwd=self.folder,
            env=environment | {"TMPDIR": str(self.temporary), "COLUMNS": "80"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def compare(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        stdout, stderr = process.communicate()
        return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)

    def check_that_nothing_is_left(self) -> None:
        assert list(self.temporary.iterdir()) == []
        if (self.folder / ".git").exists():
            assert len(git(self.folder, "worktree", "list").splitlines()) == 1


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_two_commands_are_measured_and_one_pair_can_tell_nothing(project: Project) -> None:
    done = project.compare("--measure", "--pairs", "1", "w.py 100", "python w.py 200")
    assert done.returncode == 0, done.stderr
    assert "A, before: w.py 100: 1 run" in done.stdout
    assert "B, after:  python w.py 200: 1 run" in done.stdout
    assert "arguments: 100 (A), 200 (B) [accepted]" in done.stdout
    assert "cannot tell" in done.stdout
    assert "it takes 10 or more" in " ".join(done.stdout.split())
    project.check_that_nothing_is_left()


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("c.md", "# Comparison of w.py"),
        ("c.html", "<!doctype html>"),
        ("c.json", '{\n  "format": "pyrometer-comparison"'),
        ("c.txt", "Comparison of w.py"),
    ],
)
def test_the_ending_of_the_file_says_the_format(project: Project, name: str, beginning: str) -> None:
    done = project.compare("--measure", "--pairs", "1", "-o", name, "w.py", "w.py 5")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    text = (project.folder / name).read_text(encoding="utf-8")
    assert text.startswith(beginning)
    assert "work" in text


def test_the_json_has_every_value_and_what_it_cannot_tell(project: Project) -> None:
    done = project.compare("--measure", "--pairs", "2", "--format", "json", "w.py 1", "w.py 2")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert (content["verdict"], content["metrics"][0]["change"]["doubt"]) == ("cannot tell", "undecided")
    assert content["metrics"][0]["metric"] == "profiled"
    assert len(content["trials"]["pairs"]) == 2
    assert content["trials"]["plan"]["threads"] == 1
    (scopes,) = content["tables"]
    for side in ("before", "after"):
        parts = sum(row["own"][side] for row in scopes["rows"])
        assert parts + scopes["rest"][side] == pytest.approx(scopes["whole"][side])


def test_two_revisions_are_measured(project: Project) -> None:
    project.commit()
    project.write("w.py", _PROGRAM.replace('"work"', '"other work"'))
    project.commit()
    done = project.compare("--rev", "HEAD~1", "--rev", "HEAD", "--pairs", "1", "--format", "json", "w.py")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert (content["before"]["commit"], content["after"]["commit"]) == (
        git(project.folder, "rev-parse", "HEAD~1"),
        git(project.folder, "rev-parse", "HEAD"),
    )
    (scopes,) = content["tables"]
    assert {(row["name"], row["presence"]) for row in scopes["rows"]} == {
        ("work", "vanished"),
        ("other work", "new"),
    }
    project.check_that_nothing_is_left()


def test_one_revision_is_measured_beside_the_working_tree(project: Project) -> None:
    project.commit()
    project.write("w.py", _PROGRAM.replace('"work"', '"other work"'))
    done = project.compare("--rev", "main", "--pairs", "1", "--", "w.py", "7")
    assert done.returncode == 0, done.stderr
    assert "A, before: main: 1 run, commit" in done.stdout
    assert "with uncommitted changes" in done.stdout
    assert "scope other work: new" in done.stdout
    # What is set for a checkout is nothing that the user has typed.
    assert "variables" not in done.stdout
    project.check_that_nothing_is_left()


def test_data_that_git_does_not_know_is_linked(project: Project) -> None:
    project.write("w.py", "print(open('data.txt').read())\n")
    project.commit()
    project.write("data.txt", "7")
    without = project.compare("--rev", "main", "--pairs", "1", "w.py")
    assert without.returncode == 5
    assert "FileNotFoundError" in without.stderr
    project.check_that_nothing_is_left()
    linked = project.compare("--rev", "main", "--pairs", "1", "--link", "data.txt", "w.py")
    assert linked.returncode == 0, linked.stderr
    assert (project.folder / "data.txt").read_text() == "7"
    project.check_that_nothing_is_left()


def test_of_a_folder_that_git_knows_in_part_the_rest_is_linked(project: Project) -> None:
    project.write("w.py", "print(*(open(f'data/{n}').read() for n in ('own', 'deep/few', 'many')))\n")
    project.write("data/own", "1")
    project.write("data/deep/kept", "")
    project.write(".gitignore", "many\n")
    project.commit()
    for name in ("deep/few", "many"):
        project.write(f"data/{name}", "7")
    project.write("data/own", "2")
    linked = project.compare("--rev", "main", "--pairs", "1", "--link", "data", "w.py")
    assert linked.returncode == 0, linked.stderr
    project.check_that_nothing_is_left()
    twice = ("--link", "data/many", "--link", "data", "--link", "data/deep/few")
    again = project.compare("--rev", "main", "--pairs", "1", *twice, "w.py")
    assert again.returncode == 0, again.stderr
    tracked = project.compare("--rev", "main", "--pairs", "1", "--link", "data/own", "w.py")
    assert (tracked.returncode, "'data/own' is tracked by git" in tracked.stderr) == (2, True)
    project.check_that_nothing_is_left()


def test_a_folder_that_only_the_other_revision_tracks_is_linked_into_it(project: Project) -> None:
    project.write("w.py", "print(open('data/many').read())\n")
    project.write("data/.gitkeep", "")
    project.commit()
    git(project.folder, "rm", "--quiet", "--cached", "data/.gitkeep")
    git(project.folder, "commit", "--quiet", "--message", "no data")
    project.write("data/many", "7")
    linked = project.compare("--rev", "HEAD~1", "--pairs", "1", "--link", "data", "w.py")
    assert linked.returncode == 0, linked.stderr
    project.check_that_nothing_is_left()


def test_an_interpreter_in_which_the_profiler_cannot_start_is_told_first(project: Project) -> None:
    project.write("w.py", "raise SystemExit('it ran')\n")
    project.write("bin/python3", "#!/bin/sh\necho 'no module msgspec' >&2\nexit 1\n")
    (project.folder / "bin/python3").chmod(0o755)
    done = project.compare("--measure", "--pairs", "1", "w.py", "bin/python3 w.py")
    assert done.returncode == 2
    assert "in which Pyrometer cannot start (no module msgspec); install it there" in done.stderr
    assert "it ran" not in done.stderr


def test_times_of_two_recorders_are_not_compared(project: Project) -> None:
    project.write("w.py", "print(1)\n")
    commands = ("w.py", "PYROMETER_NATIVE=0 w.py")
    refused = project.compare("--measure", "--pairs", "1", *commands)
    assert (refused.returncode, "recorder" in refused.stderr) == (4, True)
    allowed = project.compare("--measure", "--pairs", "1", "--allow", "recorder", *commands)
    assert (allowed.returncode, "recorder" in allowed.stdout) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--measure", "w.py"], "1 given, but two are compared"),
        (["--measure", "w.py", "w.py", "w.py"], "3 given, but two are compared"),
        (["--measure", "w.py", "missing.py 3"], "there is no script 'missing.py'"),
        (["--measure", "", "w.py"], "A is '', but that runs nothing; a command is [VARIABLE=value] "),
        (["--measure", "w.py", "X=1 python"], "B is 'X=1 python', but that runs nothing; "),
        (["--measure", "w.py", "python -m"], "B is 'python -m', but -m needs the name of a module; "),
        (["--measure", "w.py", "python -c 1"], "B is 'python -c 1', but '-c' is no script; "),
        (["--measure", "w.py", "w.py 'open"], "No closing quotation"),
        (["--measure", "w.py", "THREADS=2"], "B is 'THREADS=2', but that runs nothing"),
        (["--measure", "w.py", "nowhere/python w.py"], "nowhere/python"),
        (["--measure", "w.py", "python3.99 w.py"], "B is run by 'python3.99', which is not on the PATH"),
        (["--measure", "--rev", "main", "w.py", "w.py"], "leave one out"),
        (["--measure", "--link", "data", "w.py", "w.py"], "--link is for --rev"),
        (["--measure", "--flamegraph", "f.svg", "w.py", "w.py"], "--flamegraph"),
        (["--measure", "--threads", "none", "w.py", "w.py"], "--threads is 'none'"),
        (["--measure", "--allow", "luck", "w.py", "w.py"], "no fact 'luck'"),
        (["--rev", "a", "--rev", "b", "--rev", "c", "w.py"], "--rev is given 3 times"),
        (["--rev", "nowhere", "w.py"], "there is no revision 'nowhere'"),
        (["--rev", "main", "missing.py"], "there is no script 'missing.py'"),
        (["--rev", "main", "--link", "nothing", "w.py"], "no 'nothing'"),
        (["--pairs", "3", "w.py", "w.py"], "--pairs is for --measure and --rev"),
        (["--threads", "3", "w.py", "w.py"], "--threads is for --measure and --rev"),
        (["--link", "data", "w.py", "w.py"], "--link is for --measure and --rev"),
    ],
)
def test_wrong_usage_is_one_line(project: Project, arguments: list[str], problem: str) -> None:
    project.commit()
    done = project.compare(*arguments)
    assert done.returncode == 2, done.stdout
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    project.check_that_nothing_is_left()


def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(project: Project) -> None:
    project.write("w.py", "open('was-run', 'w').close()\n")
    project.write("run.json", '{"format":"pyrometer-run"')
    for name, problem in (("missing/c.md", "cannot be written"), ("run.json", "is another run")):
        done = project.compare("--measure", "--pairs", "1", "w.py", "w.py", "-o", name)
        assert done.returncode == 2
        assert problem in done.stderr
    assert not (project.folder / "was-run").exists()


def test_another_python_is_run_as_the_one_that_is_found(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = project.folder / "python3.99"
    other.write_text(f'#!/bin/sh\ntouch other-was-run\nexec {sys.executable} "$@"\n', encoding="utf-8")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{project.folder}{os.pathsep}{os.environ['PATH']}")
    own = f"python3.{sys.version_info.minor} w.py"
    done = project.compare("--measure", "--pairs", "1", own, "python3 w.py")
    assert done.returncode == 0, done.stderr
    assert not (project.folder / "other-was-run").exists()
    done = project.compare("--measure", "--pairs", "1", own, "python3.99 w.py")
    assert done.returncode == 0, done.stderr
    assert (project.folder / "other-was-run").exists()


def test_without_a_repository_there_is_no_other_revision(project: Project) -> None:
    done = project.compare("--rev", "main", "w.py")
    assert done.returncode == 2
    assert "not a git repository" in done.stderr


def test_a_program_that_fails_has_a_code_of_its_own(project: Project) -> None:
    project.write("bad.py", "raise SystemExit('no data here')\n")
    done = project.compare("--measure", "--pairs", "1", "w.py", "bad.py")
    assert done.returncode == 5
    assert "(bad.py)" in done.stderr
    assert "no data here" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    project.check_that_nothing_is_left()


def test_other_threads_are_refused_unless_they_are_allowed(project: Project) -> None:
    commands = ("OMP_NUM_THREADS=2 w.py", "w.py")
    refused = project.compare("--measure", "--pairs", "1", *commands)
    assert refused.returncode == 4
    assert "REFUSED: threads:" in refused.stderr
    assert "--allow threads" in refused.stderr
    assert refused.stdout == ""
    allowed = project.compare("--measure", "--pairs", "1", "--allow", "threads", *commands)
    assert allowed.returncode == 0, allowed.stderr
    assert "[accepted]" in allowed.stdout


def test_a_number_of_threads_holds_for_all_libraries_and_nothing_is_kept_on_one_core(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    options = ("--measure", "--pairs", "1", "--allow", "threads", "--format", "json")
    done = project.compare(*options, "OMP_NUM_THREADS=2 w.py", "w.py")
    assert done.returncode == 0, done.stderr
    trials = json.loads(done.stdout)["trials"]
    assert trials["plan"]["threads"] is None
    before, after = (trials[side]["identity"]["threads"] for side in ("baseline", "candidate"))
    assert "MKL_NUM_THREADS=2" in before
    assert "OMP_NUM_THREADS=2" in before
    assert "NUM_THREADS" not in after


@pytest.mark.parametrize(
    ("command", "is_given", "threads"),
    [("w.py 5", False, 1), ("MKL_NUM_THREADS=2 w.py", False, None), ("MKL_NUM_THREADS=2 w.py", True, 1)],
)
def test_threads_that_the_user_asks_for_stay(
    project: Project, monkeypatch: pytest.MonkeyPatch, command: str, is_given: bool, threads: int | None
) -> None:
    measured: list[int | None] = []

    def measure(_before: object, _after: object, measuring: Measuring, **_: object) -> None:
        measured.append(measuring.threads)

    monkeypatch.setattr(compare_measured, "_measure", measure)
    monkeypatch.setattr(compare_measured, "end_cleanly_on_termination", lambda: None)
    measuring = Measuring(allowed=frozenset(), most_pairs=1, threads=1, are_threads_given=is_given)
    compare_measured.measure_commands("w.py", command, project.folder, measuring)
    assert measured == [threads]


class TestTermination:
    """What is left when the command is told to end: nothing."""

    @pytest.fixture
    def fifo(self, project: Project) -> Path:
        """A file through which somebody down there says that it is alive."""
        path = project.temporary.parent / "alive"
        os.mkfifo(path)
        return path

    def wait_for_a_word(self, fifo: Path) -> str:
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        try:
            assert select.select([reader], [], [], _PATIENCE_S)[0], "nobody said a word"
            return os.read(reader, 100).decode()
        finally:
            os.close(reader)

    def check_the_end(self, project: Project, command: "subprocess.Popen[str]") -> None:
        command.send_signal(signal.SIGTERM)
        _, stderr = command.communicate(timeout=_PATIENCE_S)
        assert command.returncode == 128 + signal.SIGTERM
        assert "Traceback" not in stderr
        project.check_that_nothing_is_left()

    def test_measured_programs_and_folders_go_with_the_command(self, project: Project, fifo: Path) -> None:
        project.write(
            "w.py",
            "import os, signal\n"
            f"with open({str(fifo)!r}, 'w') as alive:\n"
            "    print(os.getpid(), file=alive)\n"
            "signal.pause()\n",
        )
        project.commit()
        command = project.start("--rev", "main", "--pairs", "1", "w.py")
        # Both sides are started at once, and both may have said it.
        measured = psutil.Process(int(self.wait_for_a_word(fifo).split()[0]))
        assert len(git(project.folder, "worktree", "list").splitlines()) == 2
        self.check_the_end(project, command)
        # Whoever has adopted it may not have noticed its end yet.
        assert not measured.is_running() or measured.status() == psutil.STATUS_ZOMBIE

    def test_a_folder_goes_that_is_only_being_made(self, project: Project, fifo: Path) -> None:
        release = project.temporary.parent / "release"
        os.mkfifo(release)
        # A filter of git's own, which it runs for each file that it writes.
        project.write(".gitattributes", "w.py filter=slow\n")
        project.commit()
        slow = f"echo here > '{fifo}'; read word < '{release}'; cat"
        git(project.folder, "config", "filter.slow.smudge", slow)
        command = project.start("--rev", "main", "--pairs", "1", "w.py")
        try:
            assert self.wait_for_a_word(fifo) == "here\n"
            self.check_the_end(project, command)
        finally:
            os.close(os.open(release, os.O_RDWR | os.O_NONBLOCK))
