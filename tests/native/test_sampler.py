"""Stacks read from outside: what is read is what runs, whatever the program does meanwhile."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.recorders import CORE, load

core = load(CORE)
MS = 1_000_000
ALL_NATIVE = b"\1" * 256

Row = tuple[Any, ...]


@pytest.fixture
def recorder() -> Any:
    return core.Recorder()


@pytest.fixture(params=[False, True], ids=["by system call", "by file"])
def sampler(recorder: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    sampler = core.Sampler(
        scopes=recorder, interval_ns=MS, native_instructions=ALL_NATIVE, by_file=request.param
    )
    yield sampler
    sampler.stop()


class Seen:
    """What a sampler saw, with names in the place of numbers."""

    def __init__(self, sampler: Any) -> None:
        self.raw: dict[str, Any] = sampler.snapshot()
        self.rows = [
            (self._stack(row[0]), self._place(row[2]), self._place(row[3]), *row[5:]) for row in self
        ]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.raw["observations"])

    def _stack(self, node: int | None) -> tuple[str, ...]:
        names: list[str] = []
        while node is not None:
            node, function, _ = self.raw["nodes"][node]
            names.append("…" if function is None else self.raw["functions"][function][0])
        return tuple(reversed(names))

    def _place(self, place: int | None) -> tuple[str, ...]:
        names: list[str] = []
        while place is not None:
            place, name = self.raw["places"][place]
            names.append(name)
        return tuple(reversed(names))

    def inside(self, function: str) -> list[Row]:
        """The observations of stacks that end in this function."""
        return [row for row in self.rows if row[0][-1].endswith(function)]


def after(sampler: Any, *, ticks: int = 20) -> Seen:
    """What was seen once so many more looks were taken."""
    wanted = sampler.snapshot()["ticks"] + ticks
    while sampler.snapshot()["ticks"] < wanted:
        pass
    return Seen(sampler)


@contextmanager
def in_thread(work: Callable[[], object]) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=work, name="worker")
    thread.start()
    yield thread
    thread.join()


@contextmanager
def waiting_thread(work: Callable[[Callable[[], object]], object]) -> Iterator[None]:
    """A thread that waits inside what it was told to do, until the end of the block."""
    reached, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        reached.set()
        go_on.wait()

    with in_thread(lambda: work(wait)):
        reached.wait()
        yield
        go_on.set()


def threads_of_this_process() -> int:
    return len([*Path("/proc/self/task").iterdir()])


def open_files() -> set[int]:
    with os.scandir("/proc/self/fd") as folder:
        return {int(entry.name) for entry in folder if entry.is_symlink()}


def can_have_own_files() -> bool:
    """Whether the system lets a thread have a table of files of its own."""
    libc = ctypes.CDLL(None)
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(libc.unshare(0x400)))
    thread.start()
    thread.join()
    return answers == [0]


def is_status(number: int) -> bool:
    return Path(f"/proc/self/fd/{number}").readlink().name == "stat"


def made_of(source: str, file: str = "<made>", **names: Any) -> dict[str, Any]:
    """What this source defines."""
    space = {**names}
    exec(compile(source, file, "exec"), space)  # noqa: S102 - functions that no file has
    return space


# What is read.


def test_a_stack_is_read_as_the_interpreter_tells_it(sampler: Any) -> None:
    class Deeper:
        def method(self) -> tuple[Any, Any]:
            look = lambda: (sampler.own_stack(), traceback.extract_stack())  # noqa: E731 - a name of its own
            return look()  # type: ignore[no-untyped-call]

    def generator() -> Iterator[tuple[Any, Any]]:
        yield Deeper().method()

    seen, told = next(generator())
    assert [(file, line) for _, file, line in seen] == [
        (frame.filename, frame.lineno) for frame in reversed(told)
    ]
    assert [name.rpartition(".")[2] for name, _, _ in seen] == [frame.name for frame in reversed(told)]


@pytest.mark.parametrize("name", ["f", "größe", "名前", "x" * 400])
def test_names_of_any_kind_are_read(sampler: Any, name: str) -> None:
    made = made_of(f"def {name}():\n    return sampler.own_stack()", "<größe 名前 🔥>", sampler=sampler)
    assert made[name]()[0] == (name, "<größe 名前 🔥>", 2)


def test_lines_are_those_of_the_call_in_functions_of_any_length(sampler: Any) -> None:
    lines = ["def long():"]
    for number in range(300):
        lines.append(f"    x{number} = [{number},\n        {number} + 1,\n    ]")
        if number % 50 == 0:
            lines.append("    seen.append((sampler.own_stack()[0][2], sys._getframe().f_lineno))")
    seen: list[tuple[int, int]] = []
    made_of("\n".join(lines), sampler=sampler, seen=seen, sys=sys)["long"]()
    assert len(seen) == 6
    assert all(read == told for read, told in seen)


def test_functions_at_the_address_of_ones_that_are_gone_have_their_own_name(sampler: Any) -> None:
    for number in range(2_000):
        name = f"made_{number}"
        made = made_of(f"def {name}(): return sampler.own_stack()[0][0]", sampler=sampler)
        assert made[name]() == name


# What is seen.


def test_a_thread_that_waits_is_seen_waiting_where_it_waits(sampler: Any) -> None:
    def patient(wait: Callable[[], object]) -> None:
        wait()

    with waiting_thread(patient):
        assert sampler.start() is None
        seen = after(sampler)
    waiting = [row for row in seen.rows if any(name.endswith("patient") for name in row[0])]
    assert waiting
    for stack, _, _, samples, resting, native, wall_ns, running_ns in waiting:
        assert stack[:3] == ("Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run")
        assert samples == resting
        assert native == 0
        assert wall_ns > 0
        assert running_ns == 0


def test_a_thread_that_runs_is_seen_running_and_its_time_adds_up(sampler: Any) -> None:
    done = threading.Event()

    def spin() -> None:
        while not done.is_set():
            pass

    sampler.start()
    with in_thread(spin):
        met_running_ns = 0
        while met_running_ns == 0:  # this thread may keep it from running at any single look
            seen = after(sampler)
            running = [row for row in seen.rows if any(name.endswith("spin") for name in row[0])]
            met_running_ns = sum(row[7] for row in running)
        done.set()
    assert all(row[7] <= row[6] for row in seen.rows)
    assert sum(row[3] for row in seen.rows) == seen.raw["samples"]


def test_a_stack_deeper_than_is_kept_has_both_its_ends(sampler: Any) -> None:
    def recurse(depth: int, wait: Callable[[], object]) -> None:
        if depth:
            recurse(depth - 1, wait)
        else:
            bottom(wait)

    def bottom(wait: Callable[[], object]) -> None:
        wait()

    with waiting_thread(lambda wait: recurse(800, wait)):
        sampler.start()
        seen = after(sampler)
    (stack,) = {row[0] for row in seen.rows if any(name.endswith("bottom") for name in row[0])}
    assert stack.count("…") == 1
    assert len(stack) == 257
    assert stack[0] == "Thread._bootstrap"


def test_scopes_and_calls_are_known_by_their_way_down(sampler: Any, recorder: Any) -> None:
    calls = core.Recorder(suspends=False)
    for one in (recorder, calls):
        one.start()
    sampler.see_calls(calls)
    outer, inner, call = recorder.scope("outer"), recorder.scope("größer"), calls.scope("forward")

    def work(wait: Callable[[], object]) -> None:
        with outer, call, inner:
            wait()

    with waiting_thread(work):
        sampler.start()
        seen = after(sampler)
    places = {row[1:3] for row in seen.rows if any(name.endswith("work") for name in row[0])}
    assert places == {(("outer", "größer"), ("forward",))}


def test_what_a_reset_of_the_recorder_frees_is_not_taken_for_what_comes_after(
    sampler: Any, recorder: Any
) -> None:
    recorder.start()
    sampler.start()
    for number in range(50):
        with recorder.scope(f"scope {number}"):
            after(sampler, ticks=1)
        recorder.reset()
    names = {name for _, name in sampler.snapshot()["places"]}
    assert names <= {f"scope {number}" for number in range(50)}
    assert names


def test_our_own_threads_are_not_looked_at(sampler: Any) -> None:
    def ours(wait: Callable[[], object]) -> None:
        sampler.leave_out()
        wait()

    sampler.start()
    with waiting_thread(ours):
        sampler.reset()
        seen = after(sampler)
    assert not [row for row in seen.rows if any(name.endswith("ours") for name in row[0])]


def test_more_threads_than_are_kept_apart_are_seen_together(sampler: Any) -> None:
    sampler.start()
    for _ in range(270):
        with in_thread(lambda: None):
            after(sampler, ticks=1)
    seen = after(sampler, ticks=1)
    assert len(seen.raw["threads"]) <= 257


def test_the_native_function_a_thread_is_in_is_known_where_asked_for(recorder: Any) -> None:
    sampler = core.Sampler(scopes=recorder, interval_ns=MS, native_instructions=ALL_NATIVE, native=True)
    sampler.start()
    numbers = [*range(200_000)]
    names: set[str | None] = set()
    while not any(name is not None and "long" in name for name in names):
        sorted(numbers, key=int.__neg__)
        names = {name for name, _ in sampler.snapshot()["leaves"]}
    sampler.stop()
    seen = sampler.snapshot()
    met = [row for row in seen["observations"] if row[4] is not None]
    assert all(row[7] == row[5] for row in met)
    assert all(Path(library).is_absolute() for _, library in seen["leaves"] if "vdso" not in library)


# Beginning and end.


def test_after_a_stop_nothing_more_is_seen_and_it_can_go_on(sampler: Any) -> None:
    sampler.start()
    assert sampler.running
    before = after(sampler).raw["samples"]
    sampler.stop()
    assert not sampler.running
    ticks = sampler.snapshot()["ticks"]
    sampler.stop()
    sampler.start()
    assert sampler.start() is None  # it is at it already
    assert after(sampler).raw["samples"] > before
    assert sampler.snapshot()["ticks"] > ticks
    sampler.reset()
    assert sampler.snapshot()["samples"] < before


@pytest.mark.parametrize("sampler", [False], indirect=True)
def test_its_files_have_numbers_of_their_own(sampler: Any) -> None:
    if not can_have_own_files():
        pytest.skip("the system does not give a thread files of its own")
    before = open_files()
    free = os.open("/dev/null", os.O_RDONLY)
    os.close(free)
    sampler.start()
    numbers = set()
    for _ in range(300):
        # At the first look at a thread its file is opened.
        thread = threading.Thread(target=after, args=(sampler,), kwargs={"ticks": 1})
        thread.start()
        while thread.is_alive():
            numbers.add(own := os.open("/dev/null", os.O_RDONLY))
            os.close(own)
        thread.join()
    assert numbers == {free}
    assert open_files() == before


@pytest.mark.parametrize("sampler", [False], indirect=True)
def test_a_pipe_that_the_program_closes_is_closed(sampler: Any) -> None:
    reading, writing = os.pipe()
    sampler.start()
    after(sampler)
    os.close(writing)
    assert os.read(reading, 1) == b""
    os.close(reading)


# Where a thread has no files of its own, they are among the program's: as with the file of memory.


@pytest.mark.parametrize("sampler", [True], indirect=True)
def test_the_files_it_keeps_open_are_far_from_the_programs_and_gone_at_the_end(sampler: Any) -> None:
    before = open_files()
    sampler.start()
    while not any(number >= 512 for number in open_files() - before):
        after(sampler, ticks=1)
    sampler.stop()
    assert open_files() == before


@pytest.mark.parametrize("sampler", [True], indirect=True)
def test_a_program_that_closes_files_not_its_own_keeps_the_one_it_puts_there(
    sampler: Any, tmp_path: Path
) -> None:
    sampler.start()
    while not (kept := [number for number in open_files() if number >= 512 and is_status(number)]):
        after(sampler, ticks=1)
    with (tmp_path / "own").open("wb+") as own:
        os.dup2(own.fileno(), kept[0])
        assert sum(row[3] for row in after(sampler).inside("after")) > 0
        sampler.stop()
        os.write(kept[0], b"still here")
        os.close(kept[0])
        assert (tmp_path / "own").read_bytes() == b"still here"


def test_a_forked_child_has_no_sampler_and_can_start_its_own(sampler: Any) -> None:
    sampler.start()
    after(sampler)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        fine = not sampler.running and sampler.snapshot()["samples"] == 0
        fine = fine and sampler.start() is None and bool(after(sampler).rows)
        sampler.stop()
        os._exit(0 if fine else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert after(sampler).rows


def test_a_sampler_that_is_dropped_ends_its_thread(recorder: Any) -> None:
    threads = threads_of_this_process()
    sampler = core.Sampler(scopes=recorder, interval_ns=MS, native_instructions=ALL_NATIVE)
    sampler.start()
    assert threads_of_this_process() == threads + 1
    del sampler
    gc.collect()
    assert threads_of_this_process() == threads


def test_signals_stay_the_programs(sampler: Any) -> None:
    heard: list[bool] = []
    before = signal.signal(
        signal.SIGUSR1, lambda *_: heard.append(threading.current_thread() is threading.main_thread())
    )
    try:
        sampler.start()
        for _ in range(200):
            os.kill(os.getpid(), signal.SIGUSR1)
        after(sampler)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard
    assert all(heard)


@pytest.mark.parametrize("seconds", [3, pytest.param(180, marks=pytest.mark.slow)])
def test_nothing_that_makes_stacks_hard_to_read_breaks_the_program(seconds: int) -> None:
    program = Path(__file__).with_name("sampler_stress.py")
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-X", "faulthandler", str(program), str(seconds)],
        capture_output=True,
        text=True,
        timeout=seconds + 60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"interval_ns": 9_999}, "interval_ns must be from 10 microseconds to an hour"),
        ({"native_instructions": b"too few"}, "a byte for each of the 256 instructions"),
    ],
)
def test_what_makes_no_sense_is_refused(recorder: Any, changed: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        core.Sampler(**{"scopes": recorder, "interval_ns": MS, "native_instructions": ALL_NATIVE, **changed})
