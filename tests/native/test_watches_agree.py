"""Any program under both watches, with the same clock, gives the same phases, trees and callbacks."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recorders import CORE, TWIN, Clock, assert_conserved, available_recorders, load, seen
from tests.watches import NAMES, NUMBERS, Tensor, Watched

# A program is a list of steps: ("spend", ns), ("raise",), ("phase", name, program), ("module",
# place, program), ("enter", number, hold, program), ("catch", program), ("op", ns), ("backward",),
# ("use", number of a tensor made before), ("detail", level), ("gradients", whether), ("make", place),
# ("take",), ("stray leave", token), and what switches things: ("reset",), ("restart",), ("stop",),
# ("start",), ("recorder", what).
Step = tuple[Any, ...]
PLACES = st.integers(0, 4)
KEPT = {
    "data": (),
    "forward": ("data", "loss", "backward"),
    "loss": ("data", "forward", "backward"),
    "backward": ("data", "forward", "loss"),
    "clearing": ("forward", "backward"),
}


def programs(depth: int = 4) -> st.SearchStrategy[list[Step]]:
    """Mostly what a training loop does; now and then something is switched."""
    work: st.SearchStrategy[Step] = st.one_of(
        st.tuples(st.just("spend"), st.integers(1, 100)),
        st.tuples(st.just("op"), st.integers(1, 50)),
        st.tuples(st.just("op"), st.integers(1, 50)),
        st.just(("backward",)),
    )
    switches: st.SearchStrategy[Step] = st.one_of(
        st.sampled_from([("take",), ("raise",), ("reset",), ("restart",), ("stop",), ("start",)]),
        st.tuples(st.just("detail"), st.sampled_from([0, 1, 1, 2])),
        st.tuples(st.just("gradients"), st.booleans()),
        st.tuples(st.just("make"), PLACES),
        st.tuples(st.just("use"), st.integers(0, 20)),
        st.tuples(st.just("stray leave"), st.integers(-1, 2**40)),
        st.tuples(st.just("recorder"), st.sampled_from(["stop", "start", "reset"])),
    )
    if depth == 0:
        return st.lists(work, max_size=3)
    inner = programs(depth - 1)
    module = st.tuples(st.just("module"), PLACES, inner)
    phase = st.tuples(st.just("phase"), st.sampled_from(sorted(KEPT)), inner)
    enter = st.tuples(st.just("enter"), st.integers(0, len(NAMES)), st.booleans(), inner)
    catch = st.tuples(st.just("catch"), inner)
    return st.lists(
        st.one_of(work, work, work, module, module, module, phase, enter, catch, switches), max_size=5
    )


class Machine:
    """Carries out a program under one watch."""

    def __init__(self, implementation: str) -> None:
        self.clock = Clock()
        self.watched = Watched(load(implementation), self.clock)
        self.watch = self.watched.watch
        self.watch.phase("mine")
        self.seen: list[Any] = []
        self.functions = {
            name: self.watched.phased(
                name,
                self.run,
                keeps=keeps,
                begun=lambda _: self.clock.spend(3),
                ended=lambda _first, result, *told: self.seen.append((result, *told)),
            )
            for name, keeps in KEPT.items()
        }
        self.made = 0
        self.modules: list[Any] = []
        for place in range(5):
            self.modules.append(None)
            self.make(place)
        self.tensor = Tensor()
        self.tensors = [self.tensor]
        self.watch.detail = 1

    def make(self, place: int) -> None:
        self.made += 1
        self.modules[place] = self.watched.module(f"module {self.made}", self.forward, is_loss=place == 4)

    def forward(self, value: Tensor, program: list[Step]) -> Tensor:
        self.tensor = value
        self.run(program)
        return self.tensor

    def run(self, program: list[Step]) -> None:
        for kind, *operands in program:
            if kind == "phase":
                self.functions[operands[0]](operands[1])
            elif kind == "module":
                self.tensor = self.modules[operands[0]](self.tensor, program=operands[1])
            elif kind == "enter":
                token = self.watch.enter(operands[0], operands[1])
                self.seen.append(token)
                try:
                    self.run(operands[2])
                finally:
                    self.watch.leave(token)
            elif kind == "catch":
                try:
                    self.run(operands[0])
                except KeyError:
                    self.clock.spend(1_000)
            else:
                self.take(kind, operands)

    def take(self, kind: str, operands: list[Any]) -> None:
        if kind == "spend":
            self.clock.spend(operands[0])
        elif kind == "raise":
            raise KeyError
        elif kind == "op":
            self.tensor = self.watched.op(self.tensor, backward_ns=operands[0])
            self.tensors.append(self.tensor)
        elif kind == "use":
            self.tensor = self.tensors[operands[0] % len(self.tensors)]
        elif kind == "backward":
            self.watched.backward(self.tensor)
        elif kind == "take":
            self.seen.append(self.watch.take())
        elif kind == "make":
            self.make(operands[0])
        elif kind == "stray leave":
            self.watch.leave(operands[0])
        else:
            self.switch(kind, operands)

    def switch(self, kind: str, operands: list[Any]) -> None:
        if kind == "detail":
            self.watch.detail = operands[0]
        elif kind == "gradients":
            (self.watched.tracks_gradients,) = operands
        elif kind == "recorder":
            getattr(self.watched.recorder, operands[0])()
        elif kind == "restart":
            self.watch.stop()
            self.watch.start()
        else:
            getattr(self.watch, kind)()


def record_of(implementation: str, program: list[Step]) -> tuple[Any, ...]:
    machine = Machine(implementation)
    try:
        machine.run(program)
    except KeyError:
        machine.seen.append("raised")
    watch, recorder = machine.watch, machine.watched.recorder
    running = seen(recorder)
    while recorder.enabled:
        recorder.stop()
    assert_conserved(recorder)
    return (
        running,
        seen(recorder),
        recorder.snapshot()["losses"],
        watch.take(),
        watch.hook_ns,
        (watch.active, watch.detail, watch.timed_backward_passes, watch.timed_backward_ns),
        machine.seen,
        [repr(told) for told in machine.watched.told],
        [repr(error) for error in machine.watched.failures],
    )


def check(program: list[Step]) -> None:
    assert record_of(TWIN, program) == record_of(CORE, program)


def test_a_program_that_does_much_is_recorded_at_all() -> None:
    """What the others compare is not two empty records."""
    program = [("detail", 1), ("module", 0, [("module", 1, [("op", 7)]), ("op", 5)]), ("backward",)]
    running, _, losses, (_, taken_ns, _, _), _, counts, _, told, failures = record_of(TWIN, program)
    assert running["backward", "module 1", "module 2"].total_ns == 7
    assert taken_ns[NUMBERS["backward"]] == 12
    assert counts == (True, 1, 1, 12)
    assert len(told) == 6
    assert failures == []
    assert not any(losses.values())


@pytest.mark.skipif(CORE not in available_recorders(), reason="the C core is not built: nothing to compare")
@settings(max_examples=300, deadline=None)
@given(programs())
def test_both_give_the_same(program: list[Step]) -> None:
    check(program)


@pytest.mark.slow
@pytest.mark.skipif(CORE not in available_recorders(), reason="the C core is not built: nothing to compare")
@settings(max_examples=5_000, deadline=None)
@given(programs())
def test_both_give_the_same_over_many_programs(program: list[Step]) -> None:
    check(program)
