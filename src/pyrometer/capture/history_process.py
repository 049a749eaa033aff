"""A clean process that does no more than add a run to the history."""

import contextlib
import os
import signal
import sys

from pyrometer.capture.clean_process import CleanProcess


class HistoryProcess(CleanProcess):
    """Runs our command like any clean process, and the one thing that is not worth a whole command.

    Loading the command's libraries would be most of its time, at the end of every program.
    """

    def add(self, run_path: str) -> None:
        """Add the run in this file, and wait until that is done."""
        # A handler of the program for the end of its children has no business with ours.
        with contextlib.suppress(ValueError):  # only the main thread may
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # Ctrl-C ends it without a traceback, held back until that is so.
        code = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
            "signal.pthread_sigmask(signal.SIG_SETMASK, []); "
            f"sys.path[:] = {self._path!r}; from pathlib import Path; "
            "from pyrometer.cli.history_adding import add_run; add_run(Path(sys.argv[1]))"
        )
        process_id = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-c", code, run_path],
            self._environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)],
            setsigmask=[signal.SIGINT],
        )
        with contextlib.suppress(ChildProcessError):  # reaped by a program that ignores its children
            os.waitpid(process_id, 0)
