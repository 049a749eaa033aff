"""A program that waits for its turns, in this process; all that it is told stands ready from the start."""

import gc
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

import pyrometer
from pyrometer._native import Recorder
from pyrometer.capture import losses, pacing, recording
from pyrometer.capture.pacing import Pacer
from pyrometer.capture.turn_instructions import TurnInstructions
from pyrometer.record.turns import Farewell, Order, Turn, Word
from tests.recorders import Clock

pytestmark = pytest.mark.usefixtures("clean_recorder")


class Controller:
    """Whoever measures: it has given its orders, and reads what came of them afterwards."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()

    def order(self, *orders: Order) -> None:
        for order in orders:
            self.ours.sendall(msgspec.json.encode(order) + b"\n")

    def words(self) -> list[Word]:
        """All that the program has said so far."""
        self.ours.setblocking(False)
        said = b""
        try:
            while received := self.ours.recv(1 << 16):
                said += received
        except BlockingIOError:
            pass
        return [msgspec.json.decode(line, type=Word) for line in said.splitlines()]

    def turns(self) -> list[Turn]:
        return [word.turn for word in self.words() if word.turn is not None]


@pytest.fixture
def controller() -> Iterator[Controller]:
    controller = Controller()
    yield controller
    controller.ours.close()
    controller.theirs.close()


@pytest.fixture(autouse=True)
def few_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads along here: what torch imports, if another test has loaded it, would fill the socket."""
    imported = pacing._imported

    def without_torch() -> dict[str, str]:
        return {name: file for name, file in imported().items() if name.startswith(("tests.", "json"))}

    monkeypatch.setattr(pacing, "_imported", without_torch)


@pytest.fixture(autouse=True)
def collector_as_before() -> Iterator[None]:
    """A paced program never gets its collector of garbage back; the next test does."""
    assert gc.isenabled()
    yield
    gc.unfreeze()
    gc.enable()


def paced(controller: Controller, *, whole: bool = False, counts_live_bytes: bool = False) -> Pacer:
    return Pacer(controller.theirs.fileno(), whole=whole, counts_live_bytes=counts_live_bytes)


def test_the_first_step_is_a_turn_of_its_own(controller: Controller) -> None:
    pacer = paced(controller)
    controller.order(Order(steps=3))
    assert pacer.steps_left == 1
    pacer.steps_ended(1, samples=8)
    (first,) = controller.turns()
    assert (first.steps, first.samples) == (1, 8)
    assert pacer.steps_left == 3


def test_a_turn_is_told_when_its_steps_are_over_and_not_before(controller: Controller) -> None:
    pacer = paced(controller)
    controller.order(Order(steps=3), Order(steps=1))
    pacer.steps_ended()
    controller.turns()
    for left in (2, 1):
        pacer.steps_ended(1, samples=8)
        assert pacer.steps_left == left
        assert controller.words() == []
    pacer.steps_ended(1, samples=4)
    (turn,) = controller.turns()
    assert (turn.steps, turn.samples) == (3, 20)


def test_steps_that_lead_are_not_told(controller: Controller) -> None:
    pacer = paced(controller)
    controller.order(Order(lead=2, steps=2), Order(lead=1, steps=1), Order(steps=1))
    pacer.steps_ended(1, samples=1)
    for samples in (100, 100, 7, 7):
        pacer.steps_ended(1, samples=samples)
    for samples in (100, 5):
        pacer.steps_ended(1, samples=samples)
    assert [(turn.steps, turn.samples) for turn in controller.turns()] == [(1, 1), (2, 14), (1, 5)]


def test_several_steps_that_end_at_once_are_all_told(controller: Controller) -> None:
    pacer = paced(controller)
    controller.order(Order(steps=3), Order(steps=1))
    pacer.steps_ended(1, samples=8)
    pacer.steps_ended(5, samples=40)
    assert [(turn.steps, turn.samples) for turn in controller.turns()] == [(1, 8), (5, 40)]


def test_samples_that_are_not_known_of_one_step_are_not_known_of_the_turn(controller: Controller) -> None:
    pacer = paced(controller)
    controller.order(Order(steps=2), Order(steps=1), Order(steps=1))
    pacer.steps_ended(1, samples=8)
    pacer.steps_ended(1)
    pacer.steps_ended(1, samples=8)
    pacer.steps_ended(1, samples=8)
    assert [turn.samples for turn in controller.turns()] == [8, None, 8]


def test_a_turn_tells_what_was_called_in_it(controller: Controller) -> None:
    recording.recorder.start()
    try:
        pacer = paced(controller)
        controller.order(Order(lead=1, steps=2), Order(steps=1))
        for _ in range(4):
            with pyrometer.scope("work"), pyrometer.scope("part \udcff"):
                pass
            pacer.steps_ended()
    finally:
        recording.recorder.stop()
    _, turn = controller.turns()
    # A name that is no text in any encoding has a question mark there.
    assert {node.path: node.calls for node in turn.nodes} == {
        ("scope", "work"): 2,
        ("scope", "work", "part ?"): 2,
    }
    assert 0 < sum(node.self_ns for node in turn.nodes) <= turn.duration_ns


def test_waiting_is_in_no_scope(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    recorder = Recorder(clock=clock)
    monkeypatch.setattr(recording, "recorder", recorder)
    monkeypatch.setattr(pacing, "time", SimpleNamespace(perf_counter_ns=clock))
    # In each wait garbage is collected, which takes long.
    monkeypatch.setattr(gc, "collect", lambda: clock.spend(5_000_000))
    recorder.start()
    pacer = paced(controller)
    controller.order(Order(steps=1), Order(lead=1, steps=2), Order(steps=1))
    with recorder.scope("loop"):
        for spent_ns in (100, 20, 3_000, 7, 1):
            clock.spend(spent_ns)
            pacer.steps_ended()
    recorder.stop()
    # The scope is open all the time, and has what the turns took: 3,000 led the last one.
    turns = controller.turns()
    assert [turn.duration_ns for turn in turns] == [100, 20, 8]
    assert [[node.self_ns for node in turn.nodes] for turn in turns] == [[100], [20], [8]]


def test_a_program_that_is_told_to_end_ends_with_success(controller: Controller) -> None:
    pacer = paced(controller)
    controller.order(Order(ends=True))
    with pytest.raises(SystemExit) as end:
        pacer.steps_ended()
    assert end.value.code == 0


def test_a_program_that_nobody_measures_any_more_ends_with_an_error(controller: Controller) -> None:
    pacer = paced(controller)
    controller.order(Order(steps=1))
    controller.ours.shutdown(socket.SHUT_WR)
    pacer.steps_ended()
    with pytest.raises(SystemExit) as end:
        pacer.steps_ended()
    assert end.value.code == 1


def test_so_does_one_that_cannot_say_what_it_did(controller: Controller) -> None:
    pacer = paced(controller)
    controller.ours.close()
    with pytest.raises(SystemExit) as end:
        pacer.steps_ended()
    assert end.value.code == 1


def test_an_order_may_come_in_pieces(controller: Controller) -> None:
    pacer = paced(controller)
    text = msgspec.json.encode(Order(steps=7)) + b"\n"
    controller.ours.sendall(text[:5])
    waiting = threading.Thread(target=pacer.steps_ended)
    waiting.start()
    controller.ours.sendall(text[5:])
    waiting.join()
    assert pacer.steps_left == 7


def test_a_forked_child_has_no_turns(controller: Controller) -> None:
    pacer = paced(controller)
    controller.ours.shutdown(socket.SHUT_WR)
    child = os.fork()
    if child == 0:
        try:
            pacer.steps_ended(5)  # would end here, for want of orders
            pacer.finish()
            os._exit(7)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert controller.words() == []


def test_steps_of_other_threads_do_not_count(controller: Controller) -> None:
    pacer = paced(controller)
    controller.order(Order(steps=2), Order(steps=1))
    pacer.steps_ended()
    other = threading.Thread(target=pacer.steps_ended, args=(100,))
    other.start()
    other.join()
    assert pacer.steps_left == 2
    pacer.steps_ended(2)
    assert [turn.steps for turn in controller.turns()] == [1, 2]


def test_a_whole_program_never_waits_and_is_one_turn(controller: Controller) -> None:
    pacer = paced(controller, whole=True)
    assert pacer.steps_left == sys.maxsize
    pacer.steps_ended(50, samples=3)
    assert controller.words() == []
    pacer.note = "checksum"
    pacer.finish()
    turn, farewell = controller.words()
    assert turn.turn is not None
    assert (turn.turn.steps, turn.turn.samples, turn.turn.note) == (1, None, "checksum")
    assert farewell.farewell is not None
    assert gc.isenabled()


def test_the_last_word_tells_the_projects_modules_and_what_was_lost(controller: Controller) -> None:
    losses.note_loss("modules", "too many to keep")
    paced(controller).finish()
    (word,) = controller.words()
    assert isinstance(word.farewell, Farewell)
    assert "modules: too many to keep" in word.farewell.losses
    assert word.farewell.imported["tests.capture.test_pacing"] == str(Path(__file__).resolve())
    assert "json" not in word.farewell.imported
    assert "pyrometer" not in word.farewell.imported


def test_what_a_turn_says_of_the_program(controller: Controller) -> None:
    pacer = paced(controller)
    waited_for = []
    pacer.before_reading_the_clock = lambda: waited_for.append("the GPU")
    pacer.prefetched_batches, pacer.has_gpu, pacer.note = 4, True, "hello"
    controller.order(Order(steps=1))
    release = threading.Event()
    helper = threading.Thread(target=release.wait)
    helper.start()
    pacer.steps_ended()
    release.set()
    helper.join()
    (turn,) = controller.turns()
    assert (turn.helpers, turn.prefetched_batches, turn.has_gpu, turn.note) == (1, 4, True, "hello")
    assert turn.peak_bytes is not None
    assert turn.peak_bytes > 1 << 20
    assert turn.peak_live_bytes is None
    # Where the turn ends, and where the next begins.
    assert waited_for == ["the GPU"] * 2


class TestGarbage:
    def test_the_collector_runs_between_turns_and_not_in_them(self, controller: Controller) -> None:
        pacer = paced(controller)
        controller.order(Order(steps=1), Order(steps=1), Order(steps=1))
        collections: list[str] = []
        gc.callbacks.append(lambda phase, _: collections.append(phase))
        try:
            pacer.steps_ended()
            assert not gc.isenabled()
            assert gc.get_freeze_count() > 0
            gc.enable()  # a program that turns it on again
            frozen = gc.get_freeze_count()
            collections.clear()
            pacer.steps_ended()
            assert collections == ["start", "stop"]
            assert not gc.isenabled()
            # What the first rest has set aside is not set aside again.
            assert gc.get_freeze_count() == frozen
        finally:
            gc.callbacks.pop()

    def test_a_program_without_a_collector_keeps_to_that(self, controller: Controller) -> None:
        pacer = paced(controller)
        controller.order(Order(steps=1))
        collections: list[str] = []
        gc.disable()
        gc.callbacks.append(lambda phase, _: collections.append(phase))
        try:
            pacer.steps_ended()
        finally:
            gc.callbacks.pop()
        assert collections == []

    def test_where_live_bytes_are_counted_garbage_is_the_programs_own(self, controller: Controller) -> None:
        pacer = paced(controller, counts_live_bytes=True)
        controller.order(Order(steps=1))
        pacer.steps_ended()
        assert gc.isenabled()


class FakeInstructions:
    """Counts nothing, and says when it was asked to."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def begin(self) -> None:
        self.calls.append("begin")

    def end(self) -> int:
        self.calls.append("end")
        return 1_000 * len(self.calls)


def test_instructions_are_counted_in_timed_steps_only(controller: Controller) -> None:
    counter = FakeInstructions()
    pacer = Pacer(controller.theirs.fileno(), instructions=cast("TurnInstructions", counter))
    controller.order(Order(lead=1, steps=1), Order(steps=1))
    pacer.steps_ended()
    assert counter.calls == ["end"]
    pacer.steps_ended()
    assert counter.calls == ["end", "begin"]
    pacer.steps_ended()
    assert counter.calls == ["end", "begin", "end", "begin"]
    assert [turn.instructions for turn in controller.turns()] == [1_000, 3_000]


def test_instructions_of_a_whole_program_are_counted_from_its_start(controller: Controller) -> None:
    counter = FakeInstructions()
    pacer = Pacer(controller.theirs.fileno(), whole=True, instructions=cast("TurnInstructions", counter))
    assert counter.calls == ["begin"]
    pacer.finish()
    assert [turn.instructions for turn in controller.turns()] == [2_000]


def test_without_valgrind_no_instructions_are_told_and_it_is_said(tmp_path: Path) -> None:
    counter = TurnInstructions(tmp_path / "callgrind.out")
    counter.begin()
    assert counter.end() is None
    assert losses.failures["instructions", "not counted: the program does not run on valgrind"] == 1
