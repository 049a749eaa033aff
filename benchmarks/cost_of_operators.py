"""What a window of operators costs, and how soon its table is there, beside torch.profiler itself.

Three comparisons, each interleaved on one core, one thread:

- steps inside a window against steps under ``torch.profiler``, both against steps without (a 3-layer net,
  ~310 operators a step; a transformer);
- from what torch's profiler hands over to a table as text, ours and that of ``key_averages()``, for a window
  of so many events; and from the end of the window, with torch's own stop;
- steps after the window, in programs of their own under ``pyrometer run --ops`` and without.

Exits with 1 unless the window is shown to cost no more than torch.profiler's own, its table is there
20 times sooner and within 2 s for 250,000 events, and after it the whole interval lies within 1.02.
"""

import argparse
import contextlib
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import program_costs
import torch
from interleaved import Ratio, Subject, measure, pin_to_one_core, ratio
from torch.profiler import ProfilerActivity, profile
from training_program import steps_of
from training_tools import CONTROL, PLAIN, Tool

import pyrometer
from pyrometer.analysis.operators import build_operators
from pyrometer.capture import recording
from pyrometer.capture.operator_windows import FinishedWindow, Session
from pyrometer.capture.torch_kineto import KinetoSession
from pyrometer.record.operators import Operators
from pyrometer.record.torch_run import PHASES
from pyrometer.report.cells import COMPACT
from pyrometer.report.torch_operators import build_operator_sections

WITHOUT, OURS, TORCHS = "no profiler", "a window of ours", "torch.profiler"
AFTER = "after the window"
LEAST_SPEED_UP = 20.0
MOST_S = 2.0
EVENTS = 250_000
MOST_AFTER = 1.02
WINDOW_NOISE = 1.01
"""By how much the window's interval may exceed torch.profiler's cost."""


@contextlib.contextmanager
def window() -> Iterator[Session]:
    """Under our window, as ``OperatorWatch`` opens it for times."""
    calls, scopes = _calls(), recording.recorder
    session = Session(KinetoSession(torch, has_shapes=False), calls.now, time.time_ns)
    calls.start_log(1_000_000)
    scopes.start_log(1_000_000)
    session.start()
    try:
        yield session
    finally:
        session.stop()
        calls.take_log()
        scopes.take_log()


@contextlib.contextmanager
def their_profiler() -> Iterator[None]:
    """Under torch.profiler, as most use it; what it saw is dropped."""
    with profile(activities=[ProfilerActivity.CPU]):
        yield


def _calls() -> Any:
    watch = recording.torch_watch()
    if watch is None:
        raise RuntimeError("the watch on torch has not begun")
    return watch.calls


def inside(name: str, *, rounds: int, shuffler: random.Random) -> tuple[Ratio, Ratio, Ratio]:
    """Ours and torch's to steps without a profiler, and ours to torch's."""
    make = steps_of(name)
    subjects = [
        Subject(name=WITHOUT, loop=make),
        Subject(name=OURS, loop=make, surroundings=window),
        Subject(name=TORCHS, loop=make, surroundings=their_profiler),
    ]
    timings = measure(subjects, rounds=rounds, sample_ns=60_000_000, shuffler=shuffler)
    return (
        ratio(timings, OURS, WITHOUT),
        ratio(timings, TORCHS, WITHOUT),
        ratio(timings, OURS, TORCHS),
    )


class Ready(NamedTuple):
    """Seconds: torch's own stop, from there to the table, and the processor's time for the latter."""

    stop_s: float
    table_s: float
    table_cpu_s: float


class _Stopwatch:
    """Begun at the end of a window; torch's stop is the first lap."""

    def __init__(self) -> None:
        self._began_s = self._stopped_s = time.perf_counter()
        self._stopped_cpu_s = time.process_time()

    def stopped(self) -> None:
        """What torch's profiler saw is handed over."""
        self._stopped_s, self._stopped_cpu_s = time.perf_counter(), time.process_time()

    def ready(self) -> Ready:
        """The table is there."""
        return Ready(
            self._stopped_s - self._began_s,
            time.perf_counter() - self._stopped_s,
            time.process_time() - self._stopped_cpu_s,
        )


def table_of_ours(make: Callable[[int], object], steps: int) -> tuple[Ready, int]:
    """When the table is there, and the events in it."""
    calls, scopes = _calls(), recording.recorder
    session = Session(KinetoSession(torch, has_shapes=False), calls.now, time.time_ns)
    calls.start_log(1_000_000)
    scopes.start_log(1_000_000)
    session.start()
    began_ns = calls.now()
    make(steps)
    session.steps.append((began_ns, calls.now()))
    watch = _Stopwatch()
    session.stop()
    watch.stopped()
    finished = FinishedWindow(
        kind="training",
        label="Adam",
        first_step=0,
        session=session,
        shapes=None,
        calls=calls.take_log()[0],
        scopes=scopes.take_log()[0],
        phases=PHASES,
    )
    record = finished.record(None, keeps_events=False)
    results = build_operators(Operators(asked_steps=1, windows=(record,)), ())
    text = str(list(build_operator_sections(results, COMPACT, top=20)))
    if "aten::addmm" not in text:
        raise RuntimeError("the table does not hold what the program did")
    return watch.ready(), record.events


def table_of_theirs(make: Callable[[int], object], steps: int) -> Ready:
    """When the table of torch.profiler is there."""
    profiler = profile(activities=[ProfilerActivity.CPU])
    profiler.start()
    make(steps)
    watch = _Stopwatch()
    profiler.stop()
    watch.stopped()
    profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=20)
    return watch.ready()


def tables(*, events: int, rounds: int, shuffler: random.Random) -> tuple[Ready, Ready, int]:
    """Medians, ours and torch's, and the events in ours."""
    make = steps_of("net")
    make(10)
    _, in_ten = table_of_ours(make, 10)
    steps = round(10 * events / in_ten) + 1
    ours: list[Ready] = []
    theirs: list[Ready] = []
    seen = 0
    for _ in range(rounds):
        for is_ours in shuffler.sample([True, False], 2):
            if is_ours:
                ready, seen = table_of_ours(make, steps)
                ours.append(ready)
            else:
                theirs.append(table_of_theirs(make, steps))
    return _median(ours), _median(theirs), seen


def _median(several: list[Ready]) -> Ready:
    return Ready(*(statistics.median(each) for each in zip(*several, strict=True)))


def after(*, rounds: int, turns: int, shuffler: random.Random) -> program_costs.Row | None:
    """Steps after the window to steps of a run that never had one."""
    workload = program_costs.Workload(
        letter="a", name="net", title="3-layer net, batch 32, Adam", steps=8, limits={AFTER: MOST_AFTER}
    )
    tools = [
        Tool(name=name, command=partial(_command, ops))
        for name, ops in ((PLAIN, "0"), (CONTROL, "0"), (AFTER, "5"))
    ]
    figures = program_costs.measure(
        workload, tools, rounds=rounds, turns=turns, shuffler=shuffler, patience_s=60.0
    )
    print(f"\n{program_costs.render(workload, figures, rounds=rounds)}", flush=True)
    return figures[AFTER]


def _command(ops: str, program: list[str], folder: Path) -> list[str]:
    run = [sys.executable, "-m", "pyrometer", "run", "--no-report", "-o", str(folder / "run.json")]
    return [*run, "--ops", ops, *program]


def main() -> int:
    """Measure, print, and say whether the limits are kept."""
    parser = argparse.ArgumentParser(description="Measure what a window of operators costs.")
    parser.add_argument("--rounds", type=int, default=40, help="of steps inside (default: %(default)s)")
    parser.add_argument("--tables", type=int, default=3, help="of tables (default: %(default)s)")
    parser.add_argument("--events", type=int, default=EVENTS, help="in a table (default: %(default)s)")
    parser.add_argument("--after", type=int, default=8, help="rounds of programs (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=40, help="in each of those (default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    shuffler = random.Random(0)
    missed: list[str] = []
    print(f"Python {sys.version.split()[0]}, torch {torch.__version__}, one thread")
    if options.after:
        row = after(rounds=options.after, turns=options.turns, shuffler=shuffler)
        if row is None or row.verdict != "PASS":
            missed.append("after the window")
    print(f"\nin one process, {pin_to_one_core()}")
    with pyrometer.profile():
        for name in ("net", "transformer"):
            ours, theirs, both = inside(name, rounds=options.rounds, shuffler=shuffler)
            for what, figure in ((OURS, ours), (TORCHS, theirs), ("ours to torch's", both)):
                print(f"{name:12} {what:18} {_written(figure)}", flush=True)
            if both.low > WINDOW_NOISE:
                missed.append(f"the window's cost on {name}")
        if options.tables:
            own, torchs, events = tables(events=options.events, rounds=options.tables, shuffler=shuffler)
            # Both work on one thread: the processor's time, which a neighbour does not lengthen.
            sooner = torchs.table_cpu_s / own.table_cpu_s
            print(f"a table of {events:,} events, processor time of the table in brackets")
            for what, ready in (("ours", own), ("key_averages()", torchs)):
                print(f"{what:18} {ready.stop_s:.2f} s for torch's stop, then {ready.table_s:.2f} s ", end="")
                print(f"({ready.table_cpu_s:.2f} s)")
            print(f"so ours is there {sooner:.0f} × sooner")
            if sooner < LEAST_SPEED_UP or own.stop_s + own.table_s > MOST_S * max(events / EVENTS, 1):
                missed.append("how soon the table is there")
    print(f"\nFAIL: not shown to keep the limit: {', '.join(missed)}" if missed else "\nPASS")
    return 1 if missed else 0


def _written(figure: Ratio) -> str:
    return f"{figure.estimate:.3f} ({figure.low:.3f} to {figure.high:.3f})"


if __name__ == "__main__":
    sys.exit(main())
