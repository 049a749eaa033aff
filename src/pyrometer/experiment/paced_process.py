"""A program in a process of its own that takes turns when it is told to."""

import contextlib
import ctypes
import math
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec

from pyrometer import _startup
from pyrometer.experiment.errors import ProgramFailedError
from pyrometer.record.turns import MAX_LINE_BYTES, Farewell, Order, Turn, Word

# What a neighbour does to two threads of torch differs from second to second.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip

_SHOWN_LINES = 15
_PATIENCE_AT_THE_END_S = 10.0
_BETWEEN_LOOKS_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the programs to compare: what python is to run, where, and what it is called."""

    name: str
    arguments: tuple[str, ...]
    """What stands behind ``python`` on the command line."""
    folder: Path
    program_folder: Path
    """What python puts first on the program's path."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What is different in its environment."""
    interpreter: str = sys.executable
    shown: tuple[str, ...] = ()
    """Its name and argv, where they are not those of a script or module."""

    @property
    def program(self) -> tuple[str, ...]:
        """What the run is called, and its argv, as ``pyrometer run`` would write them down."""
        if self.shown:
            return self.shown
        if self.arguments[:1] == ("-m",):
            return (self.arguments[1], f"-m {self.arguments[1]}", *self.arguments[2:])
        script, *rest = self.arguments
        return (Path(script).name, script, *rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is the same for the sides of a pair."""

    hash_seed: int
    whole: bool = False
    """Whether programs are measured as a whole, and take no turns."""
    threads: int | None
    """What libraries may use; None: what they choose by themselves."""
    count_live_bytes: bool = False
    valgrind: tuple[str, ...] = ()
    """The command that stands before python's."""
    callgrind_file: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    """What else is set in the environment, unless the user has."""
    bytecode: Path | None = None
    """Where bytecode is kept; None: beside the code."""

    def environment(self, side: Side) -> dict[str, str]:
        """The program's, before our start-up is added to it."""
        environment = {**self.variables, **os.environ, "PYTHONHASHSEED": str(self.hash_seed)}
        environment.pop("PYROMETER", None)
        if self.bytecode is not None:
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            environment["PYTHONPYCACHEPREFIX"] = str(self.bytecode)
        if self.threads is not None:
            environment |= dict.fromkeys(THREAD_VARIABLES, str(self.threads))
        return environment | dict(side.variables)


_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def _die_with_parent() -> None:
    """Should the one who measures be killed, a program that is halted would stay for ever."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class PacedProcess:
    """A running program that waits at the end of a step; to be used in a ``with``, and gone after it."""

    def __init__(self, side: Side, surroundings: Surroundings, scratch: Path) -> None:
        self.side = side
        self.run_file = scratch / "run.json"
        self._output_file = scratch / "output.txt"
        self._buffer = b""
        self._is_stopped = False
        self._is_gone = False
        self._farewell: Farewell | None = None
        ours, theirs = socket.socketpair()
        self._socket = ours
        with theirs, self._output_file.open("wb") as output:
            environment = _startup.launch_environment(
                surroundings.environment(side),
                program_folder=str(side.program_folder),
                turns_fd=theirs.fileno(),
                output=str(self.run_file),
                program=side.program,
                whole=surroundings.whole,
                count_live_bytes=surroundings.count_live_bytes,
                callgrind_file=None
                if surroundings.callgrind_file is None
                else str(surroundings.callgrind_file),
            )
            self._process = subprocess.Popen(
                [*surroundings.valgrind, side.interpreter, *side.arguments],
                cwd=side.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(),),
                # Not a session of its own: should the one who measures be killed, the system then wakes
                # and ends whom it has halted, loader workers too.
                process_group=0,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one call of the system, no lock is taken
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def first_turn(self) -> Turn | None:
        """Waits until the first step has ended, or the whole program; None where it ended without one."""
        return self.receive()

    def order(self, order: Order) -> None:
        """Let it go on; ``receive`` tells what came of it."""
        if self._is_gone:
            return
        self._wake()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(msgspec.json.encode(order) + b"\n")

    def take_turn(self, *, steps: int, lead: int = 0) -> Turn | None:
        """Let it make so many steps, and wait for them; None where the program ended before."""
        self.order(Order(lead=lead, steps=steps))
        return self.receive()

    def end(self) -> Farewell | None:
        """Have the program end as by ``sys.exit()``, and wait for that."""
        self.order(Order(ends=True))
        return self.wait_for_the_end()

    def wait_for_the_end(self) -> Farewell | None:
        """Its last words; None where it did not find any within some seconds, or went on instead."""
        word = self._next_word(patience_s=_PATIENCE_AT_THE_END_S)
        if word is not None and word.farewell is not None:
            self._farewell = word.farewell
            self._wait(_PATIENCE_AT_THE_END_S)
        # One that goes on with its steps instead has swallowed the exit, and would for ever.
        self.kill()
        return self._farewell

    def _wait(self, patience_s: float | None) -> None:
        """Wait until it has ended, and leave its number its own: the group is still to be killed."""
        if self._is_gone:
            return
        try:
            ended = os.pidfd_open(self._process.pid)
        except ProcessLookupError:
            return
        except (AttributeError, OSError):
            # Not on macOS, nor on Linux before 5.3, nor in containers that forbid what they do not know.
            deadline_s = math.inf if patience_s is None else time.monotonic() + patience_s
            while not self._has_ended() and time.monotonic() < deadline_s:
                time.sleep(_BETWEEN_LOOKS_S)
            return
        try:
            select.select([ended], [], [], patience_s)
        finally:
            os.close(ended)

    def stay_on(self, core: int) -> None:
        """Let its main thread run on this core only."""
        with contextlib.suppress(OSError):  # where that is not allowed, it runs where it likes
            os.sched_setaffinity(self._process.pid, {core})

    def stop(self) -> None:
        """Halt it and all it has started, until its next turn."""
        if not self._is_stopped and not self._has_ended():
            self._is_stopped = True
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGSTOP)

    def _wake(self) -> None:
        if self._is_stopped:
            self._is_stopped = False
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGCONT)

    def _has_ended(self) -> bool:
        if self._is_gone:
            return True
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self._process.poll() is not None
        found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return found is not None

    def kill(self) -> None:
        """End it at once, with all that it has started and left behind."""
        if self._is_gone:
            return
        # Before it is waited for: its number is nobody else's until then.
        self._is_gone = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._socket.close()

    def receive(self) -> Turn | None:
        """The turn that was ordered, once it is over; None where the program ended before."""
        word = self._next_word()
        if word is not None and word.turn is not None:
            return word.turn
        if word is not None and word.farewell is not None:
            self._farewell = word.farewell
        self.check_success()
        return None

    def check_success(self) -> None:
        """Wait for the program's end; ``ProgramFailedError`` where its exit code is not 0."""
        self._wait(None)
        self.kill()
        code = self._process.returncode
        if code != 0:
            raise ProgramFailedError(self.side.name, code, self.last_words())

    def last_words(self) -> str:
        """The end of what the program has written."""
        lines = self._output_file.read_bytes()[-65_536:].decode(errors="replace").splitlines()
        return "\n".join(lines[-_SHOWN_LINES:])

    def _next_word(self, *, patience_s: float = math.inf) -> Word | None:
        deadline = time.monotonic() + patience_s
        while b"\n" not in self._buffer and not self._is_gone:
            received = self._read(deadline)
            if not received:
                return None
            self._buffer += received
            if len(self._buffer) > MAX_LINE_BYTES:
                raise ProgramFailedError(self.side.name, None, "it says more of one turn than can be")
        line, found, self._buffer = self._buffer.partition(b"\n")
        return msgspec.json.decode(line, type=Word) if found else None

    def _read(self, deadline: float) -> bytes:
        """What it says next; nothing once it has ended, even if something it has started lives on."""
        while time.monotonic() < deadline:
            readable, _, _ = select.select([self._socket], [], [], 0.2)
            if readable:
                try:
                    return self._socket.recv(1 << 16)
                except ConnectionResetError:
                    return b""
            if self._has_ended() and not select.select([self._socket], [], [], 0)[0]:
                break
        return b""


@contextlib.contextmanager
def running(
    sides: Mapping[str, Side], surroundings: Surroundings, scratch: Path
) -> Iterator[dict[str, PacedProcess]]:
    """All of them started, by name; ended together at the end, whatever happens."""
    processes: dict[str, PacedProcess] = {}
    with contextlib.ExitStack() as started:
        for name, side in sides.items():
            # Of equal length: where a process's memory lies depends on its environment, too.
            folder = Path(tempfile.mkdtemp(dir=scratch))
            processes[name] = started.enter_context(PacedProcess(side, surroundings, folder))
        yield processes
