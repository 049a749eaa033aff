"""Products of matrices by torch or numpy, in a process of its own: whoever asks imports neither."""

import os
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

_PROGRAM = Path(__file__).with_name("gemm_program.py")
_ANSWER_WITHIN_S = 5.0


class NoProductsError(Exception):
    """Why matrices are not multiplied here."""


class GemmProcess:
    """A process that multiplies matrices when asked; it is ended with the ``with`` statement."""

    def __init__(self, *, python: str = sys.executable, threads: int) -> None:
        self._python = python
        self._threads = threads
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self.library: str | None = None

    def __enter__(self) -> Self:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYROMETER")}
        environment |= {"OMP_NUM_THREADS": str(self._threads), "OPENBLAS_NUM_THREADS": str(self._threads)}
        try:
            self._process = subprocess.Popen(
                # -P: a torch.py in the current folder is not torch.
                [self._python, "-P", str(_PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        except OSError:
            self._process = None
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def wait_until_ready(self, timeout_s: float) -> None:
        """Wait for its library, whose name it then has; raises ``NoProductsError`` where there is none."""
        answer = self._next_line(timeout_s)
        if answer is None:
            return
        if not answer.startswith("ready "):
            raise NoProductsError("neither torch nor numpy is installed")
        self.library = answer.removeprefix("ready ")[:100]

    def multiply(self, precision: str, threads: int) -> tuple[int, int]:
        """(operations, nanoseconds) of one product; raises ``NoProductsError`` where there is none."""
        process = self._process
        if process is None or process.stdin is None:
            raise NoProductsError("the process that multiplies has ended")
        try:
            process.stdin.write(f"{precision} {threads}\n".encode())
            process.stdin.flush()
        except OSError:
            raise NoProductsError("the process that multiplies has ended") from None
        answer = self._next_line(_ANSWER_WITHIN_S)
        if answer is None:
            # A late answer would be taken for a later one's.
            self.__exit__(None, None, None)
            raise NoProductsError(f"no answer within {_ANSWER_WITHIN_S:.0f} s")
        if answer.startswith("no "):
            raise NoProductsError(answer.removeprefix("no "))
        try:
            flops, duration_ns = map(int, answer.split())
        except ValueError:
            raise NoProductsError(f"the process that multiplies answered {answer[:40]!r}") from None
        return flops, duration_ns

    def _next_line(self, timeout_s: float) -> str | None:
        """The next line it writes; None where there is none in time."""
        process = self._process
        if process is None or process.stdout is None:
            raise NoProductsError(f"{self._python} could not be started")
        until = time.monotonic() + timeout_s
        while b"\n" not in self._unread:
            readable, _, _ = select.select([process.stdout], [], [], max(until - time.monotonic(), 0))
            if not readable:
                return None
            received = os.read(process.stdout.fileno(), 4_096)
            if not received:
                raise NoProductsError("the process that multiplies has ended")
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode("utf-8", "replace")
