"""Our own command in an interpreter of its own, whatever the program has done to this one."""

import contextlib
import os
import signal
import sys
from pathlib import Path


class CleanProcess:
    """Runs our command with the path and the environment as they were when this was made."""

    def __init__(self) -> None:
        # The folder of a script stands first, and may hold a module named like one of ours.
        first, *rest = sys.path
        self._path = [*rest, str(Path(__file__).parents[2]), first]
        # PYROMETER would have that process profiled too, and report on itself, and so on.
        self._environment = {name: value for name, value in os.environ.items() if name != "PYROMETER"}

    def run(self, *arguments: str) -> bool:
        """Run the command, its output on stderr, and wait for it; returns whether it went well."""
        return self._run("from pyrometer.__main__ import main; main()", *arguments)

    def add_to_history(self, run_path: str) -> bool:
        """Add the run in this file to the history, without loading what the whole command needs."""
        code = "from pathlib import Path; from pyrometer.cli.history_adding import add_run; "
        return self._run(f"{code}add_run(Path(sys.argv[1]))", run_path)

    def _run(self, code: str, *arguments: str) -> bool:
        # What the program has printed stands above ours when both go to one file.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # whatever the program put there may refuse
                stream.flush()
        # A handler of the program for the end of its children has no business with ours.
        with contextlib.suppress(ValueError):  # only the main thread may
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # Ctrl-C ends it without a traceback, held back until that is so.
        code = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
            f"signal.pthread_sigmask(signal.SIG_SETMASK, []); sys.path[:] = {self._path!r}; {code}"
        )
        process_id = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-c", code, *arguments],
            self._environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)],
            setsigmask=[signal.SIGINT],  # and not what the checkpoints' thread holds back
        )
        try:
            _, status = os.waitpid(process_id, 0)
        except ChildProcessError:  # reaped by a program that ignores its children
            return True
        return status == 0
