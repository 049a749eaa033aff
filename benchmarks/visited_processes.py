"""A program in a process of its own, held still while others are measured.

It is told over standard input how many steps to make, and answers with what one took.
"""

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

START_PATIENCE_S = 60.0
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# By what a program happens to free, glibc changes its mind on which blocks are given back to the system
# at once. A block more or less, as any tool makes, then takes the convnet 10 % of its time or saves it.
STEADY_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(256 << 20)}


class NoAnswerError(Exception):
    """The process did not answer in time, or ended before it did."""


class VisitedProcess:
    """A started program that works only while it is being visited, and waits for its input in between.

    Unless ``stopped`` is false, the process that was started is stopped then, with every thread a tool
    keeps in it.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        patience_s: float,
        stopped: bool = True,
    ) -> None:
        self._command = command
        self._patience_s = patience_s
        self._stopped = stopped
        self._errors = folder / "stderr.txt"
        self._unread = b""
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env={**environment, **ONE_THREAD, **STEADY_MALLOC},
                bufsize=0,
                start_new_session=True,
            )

    def wait_until_warm(self) -> None:
        """Return when its warm-up is over; it is then held still."""
        self._answer("warm-up", patience_s=START_PATIENCE_S)
        self._hold()

    def visit(self, steps: int) -> tuple[float, float]:
        """What one of so many steps took in ns, on the clock and of processor time.

        As many are made before: they fill the caches again, and meet what a tool does by the clock and
        could not while it was held still. In a program that is never held that is met far more rarely.
        """
        self._let_go()
        self._ask(steps)
        taken_ns = self._ask(steps)
        self._hold()
        return taken_ns

    def finish(self) -> float | None:
        """Let it end; seconds from its last line to the end of the report, or None if that took too long.

        A report is what is written to stderr after that line. Where nothing is, it is the end of the
        process: taking torch down again takes longer than any report.
        """
        self._let_go()
        if self._process.stdin is not None:
            self._process.stdin.close()
            self._process.stdin = None
        try:
            self._answer("done")
            last_line_s = time.time()
            self._process.communicate(timeout=self._patience_s)
        except (NoAnswerError, subprocess.TimeoutExpired):
            return None
        reported_s = self._errors.stat().st_mtime
        return (reported_s if reported_s > last_line_s else time.time()) - last_line_s

    def kill(self) -> None:
        """End it and everything it started, at once; nothing happens if it has ended."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def _hold(self) -> None:
        if self._stopped:
            self._process.send_signal(signal.SIGSTOP)

    def _let_go(self) -> None:
        if self._stopped:
            self._process.send_signal(signal.SIGCONT)

    def _ask(self, steps: int) -> tuple[float, float]:
        if self._process.stdin is not None:
            self._process.stdin.write(b"%d\n" % steps)
        answer = self._answer(r"block (\d+) (\d+)")
        return float(answer[1]), float(answer[2])

    def _answer(self, pattern: str, *, patience_s: float | None = None) -> re.Match[str]:
        """The next line like the pattern; tools print lines of their own in between, or after it."""
        deadline = time.monotonic() + (patience_s or self._patience_s)
        while True:
            answer = re.match(pattern, self._line(deadline))
            if answer is not None:
                return answer

    def _line(self, deadline: float) -> str:
        output = self._process.stdout
        while output is not None and b"\n" not in self._unread:
            readable, _, _ = select.select([output], [], [], max(deadline - time.monotonic(), 0))
            if not readable:
                raise NoAnswerError(f"no answer in time: {' '.join(self._command)}")
            read = os.read(output.fileno(), 65_536)
            if not read:
                said = self._errors.read_text(errors="replace")[-2_000:]
                raise NoAnswerError(f"ended by itself: {' '.join(self._command)}\n{said}")
            self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode(errors="replace")
