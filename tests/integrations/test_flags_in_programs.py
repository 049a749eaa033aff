"""Whole programs of the three kinds, run as a user runs them, with the flag and without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyrometer.store.run_files import read_run

WORK = """
import sys
import pyrometer

def work(code):
    for _ in range(3):
        with pyrometer.scope("training step"):
            pass
    print("result", code)
    if code < 0:
        raise ValueError("bad batch")
    sys.exit(code)
"""

PROGRAMS = {
    "argparse": """
import argparse
parser = pyrometer.add_profile_flag(argparse.ArgumentParser())
parser.add_argument("--code", type=int, default=0)
work(parser.parse_args().code)
""",
    "click": """
import click

@pyrometer.add_profile_flag
@click.command()
@click.option("--code", default=0)
def main(code):
    work(code)

main()
""",
    "click group": """
import click

@click.group(invoke_without_command=True)
@click.option("--code", default=0)
def main(code):
    work(code)

pyrometer.add_profile_flag(main)()
""",
    "typer": """
import typer
app = typer.Typer()

@app.command()
def main(code: int = 0):
    work(code)

pyrometer.add_profile_flag(app)()
""",
    "typer callback": """
import typer
app = pyrometer.add_profile_flag(typer.Typer())

@app.callback(invoke_without_command=True)
def main(code: int = 0):
    work(code)

app()
""",
}

SHORT_FLAG_TAKEN = {
    "argparse": """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("-p", "--port", type=int, default=0)
work(pyrometer.add_profile_flag(parser).parse_args().port)
""",
    "click": """
import click

@pyrometer.add_profile_flag
@click.command()
@click.option("-p", "--port", default=0)
def main(port):
    work(port)

main()
""",
    "typer": """
import typer
app = pyrometer.add_profile_flag(typer.Typer())

@app.command()
def main(port: int = typer.Option(0, "-p", "--port")):
    work(port)

app()
""",
}

every_kind = pytest.mark.parametrize("kind", PROGRAMS)
every_framework = pytest.mark.parametrize("kind", SHORT_FLAG_TAKEN)


def run_program(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(WORK + program)
    environment = {name: value for name, value in os.environ.items() if name != "PYROMETER"}
    return subprocess.run(
        [sys.executable, "program.py", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def files_left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"program.py"}


@every_kind
def test_without_the_flag_the_program_is_as_before(tmp_path: Path, kind: str) -> None:
    ended = run_program(tmp_path, PROGRAMS[kind], "--code", "3")
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "result 3\n", "")
    assert files_left(tmp_path) == set()


@every_kind
def test_with_the_flag_the_report_is_on_stderr_and_no_file_is_written(tmp_path: Path, kind: str) -> None:
    ended = run_program(tmp_path, PROGRAMS[kind], "-p", "--code", "3")
    assert (ended.returncode, ended.stdout) == (3, "result 3\n")
    assert "training step" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert files_left(tmp_path) == set()


@every_kind
def test_an_output_file_holds_the_run(tmp_path: Path, kind: str) -> None:
    ended = run_program(tmp_path, PROGRAMS[kind], "-p", "--profile-output", "run.json")
    assert (ended.returncode, ended.stdout) == (0, "result 0\n")
    assert "training step" in ended.stderr
    assert files_left(tmp_path) == {"run.json"}
    steps = [node for node in read_run(tmp_path / "run.json").scopes() if node.name == "training step"]
    assert [step.calls for step in steps] == [3]


@every_framework
def test_a_short_flag_of_the_programs_own_stays_its_own(tmp_path: Path, kind: str) -> None:
    ended = run_program(tmp_path, SHORT_FLAG_TAKEN[kind], "-p", "4")
    assert (ended.returncode, ended.stdout, ended.stderr) == (4, "result 4\n", "")
    ended = run_program(tmp_path, SHORT_FLAG_TAKEN[kind], "--profile", "-p", "4")
    assert (ended.returncode, ended.stdout) == (4, "result 4\n")
    assert "training step" in ended.stderr


@every_framework
def test_an_exception_of_the_program_ends_it_as_before_and_is_reported_on(tmp_path: Path, kind: str) -> None:
    ended = run_program(tmp_path, PROGRAMS[kind], "--profile", "--code=-1")
    assert (ended.returncode, ended.stdout) == (1, "result -1\n")
    assert "ValueError: bad batch" in ended.stderr
    assert "training step" in ended.stderr


@every_framework
def test_an_output_that_cannot_be_written_is_one_line_of_the_programs_own_kind(
    tmp_path: Path, kind: str
) -> None:
    ended = run_program(tmp_path, PROGRAMS[kind], "--profile-output", "program.py/run.json")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--profile-output" in ended.stderr
    assert "program.py" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("kind", ["argparse", "click", "typer"])
def test_an_empty_file_name_is_refused_by_its_value(tmp_path: Path, kind: str) -> None:
    sources = {
        "argparse": "import argparse\nparser = argparse.ArgumentParser()\n"
        "pyrometer.add_profile_flag(parser)\nparser.parse_args()",
        "click": "import click\n@click.command()\ndef main():\n    pass\n"
        "pyrometer.add_profile_flag(main)\nmain()",
        "typer": "import typer\napp = typer.Typer()\npyrometer.add_profile_flag(app)\n"
        "@app.command()\ndef main() -> None:\n    pass\napp()",
    }
    (tmp_path / "program.py").write_text(f"import pyrometer\n{sources[kind]}\n")
    ended = subprocess.run(
        [sys.executable, "program.py", "--profile-output", ""],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "cannot write a run to ''" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]
