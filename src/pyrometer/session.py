"""One profiled run of a program, from its start to the report: capture, machine, store and report together.

Everything the end needs is imported at the start: by then the program's folder stands first on
``sys.path``, and a ``rich.py`` or ``random.py`` there would be taken for ours. For the same reason
the report is printed by another process, which has only our own path.
"""

import atexit
import contextlib
import functools
import os
import shlex
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pyrometer._native import KIND
from pyrometer._version import __version__
from pyrometer.capture import (
    allocations,
    counting,
    garbage,
    memory,
    pacing,
    recording,
    sampling,
    termination,
    torch_watch,
)
from pyrometer.capture.checkpoints import Checkpoints
from pyrometer.capture.clean_process import CleanProcess
from pyrometer.capture.descriptors import move_high
from pyrometer.capture.live import LiveLine, open_line
from pyrometer.capture.losses import note_loss
from pyrometer.capture.outcomes import last_error, outcome_since
from pyrometer.capture.own_cost import scope_cost_ns
from pyrometer.capture.snapshots import losses_in, strands_in
from pyrometer.capture.stderr import describe, say
from pyrometer.capture.turn_instructions import TurnInstructions
from pyrometer.errors import UsageError
from pyrometer.machine.facts import collect_machine, collect_software
from pyrometer.machine.git import git_state
from pyrometer.machine.source import source_sha256
from pyrometer.record.format import encode_part
from pyrometer.record.limits import Limits, machine_identity
from pyrometer.record.run import Loss, Machine, Outcome, OwnCost, Program, Run
from pyrometer.record.samples import StackSamples
from pyrometer.record.values import Strand
from pyrometer.store.limits_files import KeptLimitsError, limits_path, read_limits
from pyrometer.store.run_files import (
    current_folder,
    default_run_path,
    rank_in,
    read_run,
    resolve_output,
    write_run,
)
from pyrometer.store.trace_files import write_trace

if TYPE_CHECKING:
    from pyrometer.analysis.results import Results

DEFAULT_TOP = 20
CHECKPOINT_INTERVAL_S = 5.0
"""Half of the ten seconds that a killed program may lose: writing takes time too."""


_LONGEST_TICK_S = 1.0
"""Collections wait to be added up meanwhile, and only so many can."""

_RUNNING = Outcome(status="running")
_FINISHED = Outcome(status="finished")
_TERMINATED = Outcome(status="signal", detail="SIGTERM")


# What the running process has recorded so far.


def results() -> "Results":
    """What has been recorded so far, by name, as a tree and by thread."""
    from pyrometer.analysis.results import build_results

    return build_results(_run_so_far())


def report(top: int = DEFAULT_TOP, *, by_thread: bool = False) -> str:
    """The report of what has been recorded so far, with the ``top`` largest scopes."""
    from pyrometer.report.terminal import render_terminal

    if type(top) is not int or top < 1:
        raise UsageError(f"report: top is {top!r}, but must be a whole number from 1")
    return render_terminal(_run_so_far(), top=top, by_thread=by_thread)


def _run_so_far() -> Run:
    facts = _active.facts if _active is not None else begin_run(_this_program(), datetime.now().astimezone())
    with garbage.OwnCollections():
        return record_run(facts)


def begin_run(program: Program, started_at: datetime) -> Run:
    """A run in which nothing has happened yet: the facts alone."""
    return Run(
        pyrometer_version=__version__,
        recorder=KIND,
        started_at=started_at.isoformat(timespec="milliseconds"),
        profiled_ns=0,
        program=program,
        machine=_machine(),
        software=collect_software(),
        outcome=_RUNNING,
        limits=_known_limits(_machine()),
        cost=OwnCost(scope_ns=scope_cost_ns(), scope_entries=0),
    )


def record_run(
    facts: Run,
    *,
    outcome: Outcome = _RUNNING,
    checkpoint_ns: int = 0,
    kept: Callable[[Any], Any] = lambda part: part,
) -> Run:
    """The run as it stands now: the facts, and what the recorder holds.

    ``kept`` is what becomes of each large part before the next is made.
    """
    snapshot = recording.recorder.snapshot()
    watch = recording.torch_watch()
    seen = None if watch is None else watch.seen()
    strands = strands_in(snapshot)
    samples, samples_lost = _record_samples(strands, seen)
    samples = kept(samples)
    torch = None if seen is None else kept(seen.run)
    hook_ns, window_ns, seen_losses = (
        (None, 0, None) if seen is None else (seen.hook_ns, seen.window_ns, seen.losses)
    )
    del seen
    collections, collections_lost = garbage.watch.record()
    return msgspec.structs.replace(
        facts,
        recorder=KIND,
        profiled_ns=snapshot["profiled_ns"],
        software=collect_software(),
        outcome=outcome,
        strands=strands,
        memory=memory.series.record(),
        allocations=kept(allocations.record() if watch is None else watch.allocations()),
        torch=torch,
        samples=samples,
        counters=counting.record(),
        garbage=collections,
        losses=(*losses_in(snapshot, seen_losses), *samples_lost, *collections_lost),
        cost=OwnCost(
            scope_ns=scope_cost_ns(),
            scope_entries=snapshot["entries"],
            startup_ns=facts.cost.startup_ns,
            checkpoint_ns=checkpoint_ns,
            hook_ns=hook_ns,
            window_ns=window_ns,
        ),
    )


def _note_missing_steps() -> None:
    """A program that is to end after some steps, and makes none, is not ended: that is to be told."""
    if torch_watch.settings.max_steps is None:
        return
    watch = recording.torch_watch()
    if watch is None or not watch.steps:
        note_loss("torch", "steps: none was seen, so that --max-steps could not end the program")


def _leave_this_thread_out() -> None:
    counting.leave_thread_out()
    active = recording.sampling()
    if active is not None:
        active.leave_out()


def _record_samples(
    strands: Sequence[Strand], seen: torch_watch.Seen | None
) -> tuple[StackSamples | None, tuple[Loss, ...]]:
    active = recording.sampling()
    if active is None:
        return None, ()
    return active.record(scopes=strands, calls=() if seen is None else seen.run.calls)


def _tick() -> float:
    allocations.look_for_libraries()
    garbage.watch.time_waiting()
    return min(memory.series.tick(), _LONGEST_TICK_S)


@functools.cache
def _machine() -> Machine:
    return collect_machine()


def _known_limits(machine: Machine) -> Limits | None:
    """What earlier measurements say of this machine: a run never takes the time to measure."""
    identity = machine_identity(cpu_model=machine.cpu_model, usable_cores=machine.usable_cores)
    try:
        return read_limits(limits_path(identity, os.environ), identity=identity)
    except KeptLimitsError:
        return None  # `pyrometer doctor` and `pyrometer limits` say what is wrong with the file


def _this_program(*, with_code: bool = False) -> Program:
    script = Path(sys.argv[0] if sys.argv else "")
    folder = current_folder()
    return Program(
        name=script.name or "python",
        argv=tuple(sys.argv),
        working_directory=str(folder),
        git=git_state((folder / script).parent) if with_code else None,
        source_sha256=source_sha256(folder / script) if with_code else None,
        rank=rank_in(os.environ),
    )


# A run that lasts until the process ends.


class Session:
    """Records from ``start()`` to the end of the process, then writes the run and prints the report.

    ``output`` None: only the report, made with ``report_options``; those None: no report either. The
    program's exit code, output and signals stay its own; a failure of ours is one line on stderr. A
    forked child is left alone: it records for itself what it may ask for, and writes nothing.
    """

    def __init__(
        self,
        facts: Run,
        *,
        output: Path | None,
        report_options: Sequence[str] | None = (),
        quiet: bool = False,
        live: LiveLine | None = None,
        baseline: str | None = None,
        trace: str | None = None,
        history: bool = False,
        checkpoint_interval_s: float = CHECKPOINT_INTERVAL_S,
    ) -> None:
        self.facts = facts
        self._outputs = () if output is None else (output,)
        self._report_options = None if sys.__stderr__ is None else report_options
        self._quiet = quiet
        self._live = live
        self._baseline = baseline
        self._trace = trace
        self._history = history
        self._process_id = os.getpid()
        self._ended = False
        self._run: Run | None = None
        self._written: tuple[Path, ...] = ()
        self._forking = threading.Lock()
        self._forking_thread: int | None = None
        self._terminating_thread: int | None = None
        self._error_before = last_error()
        self._clean_process = CleanProcess()
        self._checkpoints = Checkpoints(
            save=self._save,
            terminated=self._on_termination,
            interval_s=checkpoint_interval_s,
            begun=_leave_this_thread_out,
            tick=_tick,
        )

    def start(self) -> None:
        """Begin to record; called on the main thread."""
        memory.series.begin()
        recording.start()
        # Registered before the program's own callbacks, so called after them.
        atexit.register(self._on_exit)
        os.register_at_fork(
            before=self._before_fork, after_in_parent=self._after_fork, after_in_child=self._in_child
        )
        self._checkpoints.watch_termination()
        self._checkpoints.start()
        counting.start()

    def add_output(self, path: Path) -> None:
        """Write the run there too."""
        if path not in self._outputs:
            self._outputs = (*self._outputs, path)

    def _save(self) -> None:
        if self._outputs and not self._ended:
            run = record_run(self.facts, checkpoint_ns=self._checkpoints.cost_ns, kept=encode_part)
            write_run(run, self._outputs[0])

    # The ends a program can come to.

    def _on_exit(self) -> None:
        if os.getpid() != self._process_id:
            return
        with contextlib.suppress(KeyboardInterrupt):  # it may end the report, and no more
            with termination.holding_interrupts_back():
                # Waits for the thread, and with it for a SIGTERM it may be acting on: then this is the end.
                with self._forking:
                    self._checkpoints.stop()
                    self._ended = True
                self._give_way_to_termination()
                terminated = self._checkpoints.heard_termination()
                if terminated:
                    self._terminating_thread = threading.get_ident()
                self._write(_TERMINATED if terminated else outcome_since(self._error_before))
            self._tell()
        terminated = self._checkpoints.heard_termination()
        self._checkpoints.close()
        if terminated:
            os.kill(self._process_id, signal.SIGTERM)

    def _on_termination(self) -> None:
        """Called on the checkpoints' thread: the program goes on meanwhile, and ends by the signal."""
        self._terminating_thread = threading.get_ident()
        if not self._ended:
            self._write(_TERMINATED)
            self._tell()
        termination.end_process()

    def _give_way_to_termination(self) -> None:
        if self._terminating_thread not in (None, threading.get_ident()):
            termination.wait_for_the_end()

    def _write(self, outcome: Outcome) -> None:
        self._ended = True
        try:
            if self._live is not None:
                self._live.close()
            counting.stop()
            recording.stop()
            _note_missing_steps()
            self._run = record_run(self.facts, outcome=outcome, checkpoint_ns=self._checkpoints.cost_ns)
        except Exception as error:  # noqa: BLE001 - the program's end is not ours to change
            say(f"the run could not be kept: {describe(error)}")
            return
        for path in self._outputs:
            try:
                write_run(self._run, path)
            except Exception as error:  # noqa: BLE001 - likewise, and the report can still be shown
                say(f"the run could not be kept: {describe(error)}")
            else:
                self._written = (*self._written, path)

    def _tell(self) -> None:
        try:
            wanted = self._report_options is not None or self._baseline is not None
            if self._run is not None and (wanted or (self._history and self._written)):
                self._report(self._run)
        except Exception as error:  # noqa: BLE001 - the program's end is not ours to change
            say(f"the report could not be shown: {describe(error)}")
        if not self._quiet:
            for path in self._written:
                say(f"run written to {path}")
        if self._trace is not None:
            self._write_trace(Path(self._trace))

    def _write_trace(self, path: Path) -> None:
        try:
            watch = recording.torch_watch()
            pieces = None if watch is None else watch.trace()
            if pieces is None:
                say("no trace: the program did not use PyTorch")
                return
            write_trace(pieces, path)
        except Exception as error:  # noqa: BLE001 - the program's end is not ours to change
            say(f"the trace could not be written: {describe(error)}")
        else:
            if not self._quiet:
                say(f"trace written to {path}")

    def _report(self, run: Run) -> None:
        with contextlib.ExitStack() as until_shown:
            if self._written:
                path = self._written[0]
            else:
                folder = until_shown.enter_context(tempfile.TemporaryDirectory(prefix="pyrometer-"))
                path = Path(folder) / "run.json"
                write_run(run, path)
            keeps = self._history and bool(self._written)
            if self._report_options is not None:
                before = ("history", "add", str(path), "--") if keeps else ()
                self._clean_process.run(*before, "report", str(path), *self._report_options)
            elif keeps:
                self._clean_process.add_to_history(str(path))
            if self._baseline is not None:
                self._make_baseline(run, path, self._baseline)

    def _make_baseline(self, run: Run, path: Path, baseline: str) -> None:
        make = ("report", str(path), "--format", "baseline", "-o", baseline)
        if run.outcome.status != "finished":
            say(f"no baseline of a program that failed; if it should be: {shlex.join(('pyrometer', *make))}")
        elif self._clean_process.run(*make) and not self._quiet:
            say(f"baseline written to {baseline}")

    # Around forks.

    def _before_fork(self) -> None:
        # A child forked now would not get the SIGTERM of its process group, and outlive it.
        self._give_way_to_termination()
        if self._ended:
            return
        if self._live is not None:
            self._live.clear()
        self._forking.acquire()
        self._forking_thread = threading.get_ident()
        self._checkpoints.stop()
        if self._checkpoints.heard_termination():
            self._on_termination()

    def _after_fork(self) -> None:
        if self._forking_thread == threading.get_ident():
            self._forking_thread = None
            if not self._ended:
                self._checkpoints.start()
            self._forking.release()

    def _in_child(self) -> None:
        if not self._ended:
            self._ended = True
            if self._live is not None:
                self._live.close()
            termination.unwatch()
            counting.abandon()
            self._checkpoints.abandon()


_active: Session | None = None


def start_launched(
    *,
    output: str,
    report_options: list[str] | None,
    quiet: bool,
    live: bool | None,
    ops: int,
    trace: str | None,
    baseline: str | None,
    history: bool,
    warmup: int | None,
    window: tuple[int, int | None] | None,
    max_steps: int | None,
    sample_hz: float,
    native: bool,
    memory_counted: bool,
    python_memory: bool,
    startup_ns: int,
    checkpoint_interval_s: float,
    began_ns: int,
    counters: bool = False,
    cachegrind: dict[str, Any] | None = None,
) -> None:
    """Record this program for ``pyrometer run``, which has left the facts in the run file.

    ``startup_ns`` is what the command took before the program's interpreter began, and what ours
    has taken in that since ``began_ns`` is added.
    """
    global _active
    facts = read_run(Path(output))
    line = open_line(wanted=live, quiet=quiet)
    sampling.configure(sample_hz, native=native)
    allocations.configure(counted=memory_counted, python_objects=python_memory)
    counting.configure(hardware=counters, callgrind=cachegrind)
    torch_watch.configure(
        warmup=warmup,
        window=window and tuple(window),
        max_steps=max_steps,
        live=line,
        ops=ops,
        keeps_events=trace is not None,
    )
    # Under valgrind our hooks would be counted as the program's.
    recording.watch_torch(wanted=cachegrind is None)
    garbage.watch.wanted = cachegrind is None
    session = Session(
        facts,
        output=Path(output),
        report_options=report_options,
        quiet=quiet,
        live=line,
        baseline=baseline,
        trace=trace,
        history=history,
        checkpoint_interval_s=checkpoint_interval_s,
    )
    session.start()
    _active = session
    startup_ns += time.perf_counter_ns() - began_ns
    cost = msgspec.structs.replace(facts.cost, startup_ns=startup_ns)
    session.facts = msgspec.structs.replace(facts, cost=cost)


def start_paced(
    *,
    turns_fd: int,
    output: str,
    program: list[str],
    whole: bool,
    count_live_bytes: bool,
    callgrind_file: str | None,
    began_ns: int,
) -> None:
    """Record this program for one that measures it: its steps wait for their turns.

    The run is written to ``output`` at the end, without checkpoints and without a word. Stacks are not
    sampled, and allocations only counted if asked for: the turns are to be the program's own.
    """
    del began_ns
    fd = move_high(turns_fd)
    pacing.active = pacing.Pacer(
        fd,
        whole=whole,
        counts_live_bytes=count_live_bytes,
        instructions=None if callgrind_file is None else TurnInstructions(Path(callgrind_file)),
    )
    sampling.configure(0, native=False)
    allocations.configure(counted=count_live_bytes)
    torch_watch.configure(pacer=pacing.active)
    garbage.watch.wanted = False
    recording.start()
    memory.series.begin()
    started_at = datetime.now().astimezone()
    atexit.register(_end_paced, pacing.active, program, started_at, Path(output), os.getpid())


def _end_paced(
    pacer: pacing.Pacer, program: list[str], started_at: datetime, path: Path, process_id: int
) -> None:
    if os.getpid() != process_id:
        return
    try:
        pacer.finish()
        recording.stop()
        name, *argv = program
        known = msgspec.structs.replace(_this_program(with_code=True), name=name, argv=tuple(argv))
        facts = begin_run(known, started_at)
        write_run(record_run(facts, outcome=_FINISHED), path)
    except Exception as error:  # noqa: BLE001 - the program's end is not ours to change
        say(f"the run could not be kept: {describe(error)}")


def profile_until_exit(*, output: Path | str | None, top: int = DEFAULT_TOP) -> None:
    """Record from now to the end of the program, then print the report, and write the run if asked.

    Called again it only adds what the first call could not know. Under ``pyrometer run`` the
    program is recorded already, and the run goes where that says.
    """
    global _active
    started_at = datetime.now().astimezone()
    program = _this_program(with_code=_active is None)
    if output is not None:
        output = resolve_output(
            output, folder=current_folder(), script_name=program.name, started_at=started_at, pid=os.getpid()
        )
    if _active is not None:
        if output is not None:
            _active.add_output(output)
        return
    facts = begin_run(program, started_at)
    if output is not None:
        write_run(facts, output)
    _active = Session(facts, output=output, report_options=("--top", str(top)))
    _active.start()


def profile_by_environment() -> None:
    """What ``PYROMETER=1`` asks for: as under ``pyrometer run``, from the import of pyrometer on."""
    global _active
    try:
        started_at = datetime.now().astimezone()
        program = _this_program(with_code=True)
        output = default_run_path(current_folder(), program.name, started_at, os.getpid())
        session = Session(begin_run(program, started_at), output=output)
        session.start()
    except Exception as error:  # noqa: BLE001 - an environment variable must not break a program
        say(f"PYROMETER=1: the program runs unprofiled: {describe(error)}")
    else:
        _active = session
