"""The recording of a whole session of tests, for ``--pyrometer``."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from pyrometer.capture import allocations, garbage, memory, recording
from pyrometer.errors import UsageError
from pyrometer.integrations.pytest_summary import for_worker
from pyrometer.machine.git import git_state
from pyrometer.record.run import Outcome, Program, Run
from pyrometer.session import begin_run, record_run
from pyrometer.store.run_files import rank_in, resolve_output


def output_path(named: str, config: pytest.Config) -> Path:
    """Where this process's run goes; a worker of xdist has its name in it, as in ``run-gw0.json``."""
    try:
        path = resolve_output(
            named,
            folder=config.invocation_params.dir,
            script_name="pytest",
            started_at=datetime.now().astimezone(),
            pid=os.getpid(),
        )
    except UsageError as error:
        raise pytest.UsageError(f"--pyrometer-output: {error}") from None
    worker = worker_of(config)
    return path if worker is None else for_worker(path, worker)


def worker_of(config: pytest.Config) -> str | None:
    """The name that xdist gave this process; None where it runs tests by itself."""
    given = getattr(config, "workerinput", None)
    return None if given is None else str(given["workerid"])


class SessionRecording:
    """Records from the first test to the last: each test's call is a scope named by its node id."""

    def __init__(self, root: Path) -> None:
        program = Program(
            name="pytest",
            argv=tuple(sys.argv),
            working_directory=str(root),
            git=git_state(root),
            rank=rank_in(os.environ),
        )
        self._facts = begin_run(program, datetime.now().astimezone())

    def start(self) -> None:
        """Begin to record."""
        if not memory.series.begun:
            memory.series.begin()
        recording.start()

    def look_around(self) -> None:
        """What a run's own thread looks at several times a second is looked at between tests."""
        allocations.look_for_libraries()
        garbage.watch.time_waiting()
        memory.series.sample(time.perf_counter_ns())

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Nothing is recorded meanwhile: a function timed by the thousand is no part of the tests."""
        recording.stop()
        try:
            yield
        finally:
            recording.start()

    def end(self, exit_status: int) -> Run:
        """End it; the run of the session."""
        recording.stop()
        outcome = Outcome(status="finished")
        if exit_status in {pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR}:
            outcome = Outcome(status="exception", detail=pytest.ExitCode(exit_status).name)
        return record_run(self._facts, outcome=outcome)
