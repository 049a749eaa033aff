"""Runs small programs twice: with plain Python and under ``pyrometer run``."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from pyrometer.record.run import Run
from pyrometer.store.run_files import read_run

PLAIN = (sys.executable,)
PROFILED = (sys.executable, "-m", "pyrometer", "run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a program left behind for whoever started it."""

    stdout: str
    stderr: str
    code: int


class Folder:
    """A folder with programs in it, and somewhere outside it for the run file."""

    def __init__(self, path: Path) -> None:
        self.programs = path / "programs"
        self.programs.mkdir()
        self.run_file = path / "runs" / "run.json"
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYROMETER", "PYTHON", "COV_", "PYTEST"))
        }

    def write(self, name: str, source: str) -> None:
        path = self.programs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source), encoding="utf-8")

    def start(self, command: Sequence[str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command,
            cwd=self.programs,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *command: str, given: str = "") -> Ended:
        process = self.start(command)
        stdout, stderr = process.communicate(given)
        return Ended(stdout=stdout, stderr=stderr, code=process.returncode)

    def plain(self, *arguments: str, given: str = "") -> Ended:
        return self.run(*PLAIN, *arguments, given=given)

    def profiled(self, *arguments: str, given: str = "") -> Ended:
        """Under the profiler, which is to say nothing of its own."""
        options = ("--quiet", "-o", str(self.run_file))
        return self.run(*PROFILED, *options, *arguments, given=given)

    def record(self) -> Run:
        return read_run(self.run_file)
