"""Collections of garbage: timed, counted, on the steps' clock, and without a trace in the program."""

import gc
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import pyrometer
from pyrometer.capture import memory
from pyrometer.capture.garbage import FIRST_INTERVAL_NS, MAX_INTERVALS, MAX_PAUSES, MAX_WAITING, GarbageWatch
from pyrometer.capture.memory import MemorySeries
from pyrometer.capture.own_work import OwnWork
from pyrometer.record.format import decode_run, encode_run
from pyrometer.record.garbage import GarbageCollections
from pyrometer.record.run import Loss
from pyrometer.session import _run_so_far
from tests.recorders import Clock


class Program:
    """A program whose collections take as long as the test says."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.watch = GarbageWatch(clock_ns=self.clock)
        self._takes_ns = 0

    def start(self) -> None:
        self.watch.start()
        # After ours at the start of a collection: its time passes while it is under way.
        gc.callbacks.append(self._collecting)

    def stop(self) -> None:
        self.watch.stop()
        if self._collecting in gc.callbacks:
            gc.callbacks.remove(self._collecting)

    def _collecting(self, phase: str, _: object) -> None:
        if phase == "start":
            self.clock.spend(self._takes_ns)

    def collects(self, generation: int, duration_ns: int) -> None:
        self._takes_ns = duration_ns
        gc.collect(generation)
        self._takes_ns = 0

    def seen(self) -> GarbageCollections:
        garbage, lost = self.watch.record()
        assert garbage is not None
        assert lost == ()
        return garbage

    def lost(self) -> int:
        _, lost = self.watch.record()
        return sum(loss.count for loss in lost)


@pytest.fixture
def program() -> Iterator[Program]:
    """No collection happens in it but those that the test asks for."""
    was_on = gc.isenabled()
    gc.disable()
    gc.collect()
    program = Program()
    program.start()
    yield program
    program.stop()
    if was_on:
        gc.enable()


def make_cycle() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)


def collections_of(garbage: GarbageCollections) -> list[int]:
    return [generation.collections for generation in garbage.generations]


def test_each_generation_has_its_collections_their_time_and_the_longest(program: Program) -> None:
    program.collects(0, 5)
    program.collects(0, 7)
    program.collects(2, 100)
    youngest, middle, oldest = program.seen().generations
    assert (youngest.collections, youngest.total_ns, youngest.max_ns) == (2, 12, 7)
    assert (middle.collections, middle.total_ns, middle.max_ns) == (0, 0, 0)
    assert (oldest.collections, oldest.total_ns, oldest.max_ns) == (1, 100, 100)


def test_what_was_freed_is_counted(program: Program) -> None:
    make_cycle()
    make_cycle()
    program.collects(0, 1)
    assert program.seen().generations[0].collected == 2


def test_pauses_have_the_time_since_recording_began(program: Program) -> None:
    program.clock.spend(30)
    program.collects(1, 5)
    program.clock.spend(200)
    program.collects(0, 9)
    assert [(each.started_ns, each.duration_ns, each.generation) for each in program.seen().longest] == [
        (30, 5, 1),
        (235, 9, 0),
    ]


def test_pauses_are_on_the_axis_of_memory_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    series = MemorySeries(clock_ns=clock, read_bytes=lambda: 1, read_peak_bytes=lambda: 1)
    monkeypatch.setattr(memory, "series", series)
    series.begin()
    clock.spend(500)
    watch = GarbageWatch(clock_ns=clock)
    watch.start()
    clock.spend(20)
    gc.collect()
    watch.stop()
    garbage, _ = watch.record()
    assert garbage is not None
    assert {pause.started_ns for pause in garbage.longest} == {520}


def test_only_the_longest_pauses_are_kept_in_order_of_time(program: Program) -> None:
    durations_ns = [1 + (index * 37) % 200 for index in range(200)]
    for duration_ns in durations_ns:
        program.collects(0, duration_ns)
    longest = program.seen().longest
    assert sorted(each.duration_ns for each in longest) == sorted(durations_ns)[-MAX_PAUSES:]
    assert [each.started_ns for each in longest] == sorted(each.started_ns for each in longest)


def test_pauses_over_time_stay_bounded_and_lose_nothing(program: Program) -> None:
    for index in range(2 * MAX_INTERVALS):
        program.collects(0, index)
        program.clock.spend(FIRST_INTERVAL_NS)
    garbage = program.seen()
    assert len(garbage.interval_pause_ns) <= MAX_INTERVALS
    assert sum(garbage.interval_pause_ns) == garbage.total_ns == sum(range(2 * MAX_INTERVALS))
    assert garbage.interval_ns == 2 * FIRST_INTERVAL_NS
    assert garbage.interval_pause_ns[1] == 2 + 3


def test_one_pause_after_a_very_long_time_finds_its_interval(program: Program) -> None:
    program.clock.spend(10**18)
    program.collects(0, 3)
    garbage = program.seen()
    assert (len(garbage.interval_pause_ns), sum(garbage.interval_pause_ns)) == (
        10**18 // garbage.interval_ns + 1,
        3,
    )
    assert len(garbage.interval_pause_ns) <= MAX_INTERVALS


def test_a_program_that_clears_the_callbacks_has_its_collections_counted_and_a_loss(
    program: Program,
) -> None:
    program.collects(0, 5)
    gc.callbacks.clear()
    program.collects(0, 7)
    program.collects(2, 9)
    garbage, lost = program.watch.record()
    assert garbage is not None
    assert collections_of(garbage) == [2, 0, 1]
    assert garbage.timed_collections == 1
    assert garbage.total_ns == 5
    assert [(loss.collector, loss.count) for loss in lost] == [("garbage", 2)]


@pytest.mark.parametrize("index", [0, 1])
def test_a_program_that_takes_one_of_our_callbacks_away_mixes_nothing_up(
    program: Program, index: int
) -> None:
    program.collects(2, 5)
    del gc.callbacks[index]
    program.collects(0, 7)
    garbage, lost = program.watch.record()
    assert garbage is not None
    assert collections_of(garbage) == [1, 0, 1]
    assert [generation.total_ns for generation in garbage.generations] == [0, 0, 5]
    assert sum(loss.count for loss in lost) == 1


def test_starts_without_stops_and_stops_without_starts_raise_nothing(
    program: Program, capfd: pytest.CaptureFixture[str]
) -> None:
    callbacks: list[Any] = [*gc.callbacks[:2]]
    found = {"generation": 0, "collected": 0, "uncollectable": 0}
    for phase in ("start", "start", "stop", "stop", "else", "stop"):
        for callback in callbacks:
            callback(phase, found)
    callbacks[1]("stop", {})
    # One pair of them looked like a collection, of which the interpreter knows nothing.
    assert program.seen().timed_collections == 1
    assert decode_run(encode_run(run_with(program.seen()))).garbage == program.seen()
    assert capfd.readouterr() == ("", "")


def run_with(garbage: GarbageCollections) -> Any:
    from tests.record.example_runs import make_run

    return make_run(garbage=garbage)


def test_recording_that_begins_in_a_collection_misses_it(program: Program) -> None:
    program.stop()
    program.watch.reset()

    class StartsOurs:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            program.start()

    StartsOurs()
    gc.collect()
    assert program.lost() == 1
    program.collects(0, 5)
    assert program.lost() == 1


def test_recording_that_ends_in_a_collection_forgets_it(program: Program) -> None:
    class EndsOurs:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            program.stop()

    EndsOurs()
    gc.collect()
    program.start()
    program.collects(0, 5)
    assert program.seen().timed_collections == 1
    assert program.seen().total_ns == 5


def test_a_record_taken_in_a_collection_calls_nothing_lost(program: Program) -> None:
    records: list[tuple[GarbageCollections | None, tuple[Loss, ...]]] = []
    gc.callbacks.append(lambda _phase, _found: records.append(program.watch.record()))
    gc.callbacks.insert(0, gc.callbacks[-1])
    try:
        program.collects(0, 5)
    finally:
        gc.callbacks.pop(0)
        gc.callbacks.pop()
    assert [lost for _, lost in records] == [(), (), (), ()]


def test_more_collections_than_may_wait_are_counted_but_not_timed(program: Program) -> None:
    for _ in range(MAX_WAITING // 2 + 10):
        gc.collect(0)
    garbage, lost = program.watch.record()
    assert garbage is not None
    assert collections_of(garbage) == [MAX_WAITING // 2 + 10, 0, 0]
    assert garbage.timed_collections == MAX_WAITING // 2
    assert [loss.count for loss in lost] == [10]


def test_what_waits_is_added_up_before_it_is_too_much(program: Program) -> None:
    for _ in range(MAX_WAITING // 2 + 10):
        gc.collect(0)
        program.watch.time_if_many()
    assert program.seen().timed_collections == MAX_WAITING // 2 + 10


def test_collections_in_our_own_work_are_not_the_program_s(program: Program) -> None:
    program.collects(0, 1)
    program.watch.begin_own_work()
    program.watch.begin_own_work()
    make_cycle()
    program.collects(0, 50)
    program.watch.end_own_work()
    program.collects(2, 60)
    program.watch.end_own_work()
    program.collects(0, 2)
    garbage = program.seen()
    assert collections_of(garbage) == [2, 0, 0]
    assert (garbage.total_ns, garbage.generations[0].collected) == (3, 0)


def test_another_thread_s_collections_are_the_program_s_while_we_work(program: Program) -> None:
    program.watch.begin_own_work()
    other = threading.Thread(target=program.collects, args=(0, 4))
    other.start()
    other.join()
    program.watch.end_own_work()
    assert program.seen().total_ns == 4


def test_a_reset_forgets_and_goes_on(program: Program) -> None:
    program.collects(0, 5)
    program.watch.reset()
    program.clock.spend(10)
    program.collects(1, 3)
    garbage = program.seen()
    assert collections_of(garbage) == [0, 1, 0]
    assert garbage.longest[0].started_ns == 10


def test_while_nothing_is_watched_nothing_is_counted(program: Program) -> None:
    program.stop()
    program.collects(0, 5)
    program.start()
    program.collects(0, 7)
    assert (program.seen().total_ns, collections_of(program.seen())) == (7, [1, 0, 0])


def test_what_was_never_watched_is_unknown() -> None:
    watch = GarbageWatch()
    watch.wanted = False
    watch.start()
    assert watch.record() == (None, ())


def test_a_program_that_counts_its_objects_does_not_see_more_with_every_collection(
    program: Program,
) -> None:
    def objects_left() -> int:
        make_cycle()
        gc.collect()
        return len(gc.get_objects())

    before, *_, after = [objects_left() for _ in range(50)]
    assert after - before < 10
    assert program.seen().collections == 50


# In a program.


@pytest.mark.usefixtures("clean_recorder")
def test_the_program_s_callbacks_are_as_they_were_after_profiling() -> None:
    class Unequal:
        def __call__(self, *_: object) -> None: ...

        def __eq__(self, other: object) -> bool:
            raise AssertionError("compared")

        __hash__ = object.__hash__

    before, own, late = [*gc.callbacks], Unequal(), Unequal()
    gc.callbacks.append(own)
    with pyrometer.profile(), pyrometer.profile():
        gc.callbacks.append(late)
    left = [*map(id, gc.callbacks)]
    del gc.callbacks[-2:]
    assert left == [*map(id, before), id(own), id(late)]
    assert [*map(id, gc.callbacks)] == [*map(id, before)]


@pytest.mark.usefixtures("clean_recorder")
def test_a_profiled_program_s_collections_are_in_its_run() -> None:
    with pyrometer.profile():
        gc.freeze()
        gc.disable()
        try:
            make_cycle()
            gc.collect()
        finally:
            gc.enable()
            gc.unfreeze()
    garbage = _run_so_far().garbage
    assert garbage is not None
    oldest = garbage.generations[2]
    assert oldest.collections == oldest.timed_collections >= 1
    assert oldest.collected >= 1
    assert garbage.total_ns > 0


@pytest.mark.usefixtures("clean_recorder")
def test_our_own_work_around_a_program_is_left_out() -> None:
    gc.disable()
    try:
        with pyrometer.profile():
            with OwnWork():
                gc.collect()
            gc.collect(0)
            garbage = _run_so_far().garbage
    finally:
        gc.enable()
    assert garbage is not None
    assert collections_of(garbage) == [1, 0, 0]


@pytest.mark.usefixtures("clean_recorder")
def test_a_forked_child_has_its_own_collections() -> None:
    read_end, write_end = os.pipe()
    gc.disable()
    try:
        with pyrometer.profile():
            gc.collect()
            child = os.fork()
            if child == 0:
                gc.collect(0)
                garbage = _run_so_far().garbage
                os.write(write_end, repr(garbage and collections_of(garbage)).encode())
                os._exit(0)
            os.waitpid(child, 0)
            garbage = _run_so_far().garbage
    finally:
        gc.enable()
    assert os.read(read_end, 1_000) == b"[1, 0, 0]"
    assert garbage is not None
    assert collections_of(garbage) == [0, 0, 1]
    os.close(read_end)
    os.close(write_end)


@pytest.mark.usefixtures("clean_recorder")
@pytest.mark.torch
def test_a_slow_step_and_the_pause_in_it_are_on_one_clock() -> None:
    import torch

    from tests.torch_programs import net, seen

    model = net()
    optimizer = torch.optim.SGD(model.parameters())
    kept: list[list[int]] = [[] for _ in range(200_000)]
    with pyrometer.profile():
        for index in range(4):
            model(torch.ones(4, 16)).sum().backward()
            if index == 2:
                gc.collect()
            optimizer.step()
    (group,) = seen().groups
    garbage = _run_so_far().garbage
    assert garbage is not None
    pause = max(garbage.longest, key=lambda each: each.duration_ns)
    step = group.first[2]
    assert pause.generation == 2
    assert step.started_ns <= pause.started_ns
    assert pause.started_ns + pause.duration_ns <= step.started_ns + step.duration_ns
    del kept


@pytest.mark.parametrize("native", ["0", "1"])
def test_an_interrupt_in_a_collection_reaches_the_program(native: str) -> None:
    """The collector swallows what its callbacks raise: ours must not be where a handler runs."""
    program = """
        import gc, signal, pyrometer

        def interrupt(*_):
            raise KeyboardInterrupt

        gc.disable()
        with pyrometer.profile():
            big = [[] for _ in range(1_000_000)]
            signal.signal(signal.SIGALRM, interrupt)
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            try:
                gc.collect()
                while True:
                    pass
            except KeyboardInterrupt:
                print("interrupted")
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYROMETER_NATIVE": native},
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("interrupted\n", "", 0)
