"""Any program, run on both recorders with the same clock, gives the same record to the nanosecond."""

from collections import Counter
from collections.abc import Generator
from inspect import GEN_RUNNING, getgeneratorstate
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.recorders import CORE, TWIN, Clock, assert_conserved, available_recorders, load, seen

NAMES = st.sampled_from(["a", "b", "c"])
GENERATORS = st.integers(0, 2)

# A program is a list of steps: ("spend", ns), ("with", name, program), ("stray exit", name),
# ("yield",), ("catch", program), and for generators kept in numbered places: ("make", place,
# program), ("next", place), ("throw", place), ("drop", place).
Step = tuple[Any, ...]


def programs(*, inside_a_generator: bool) -> st.SearchStrategy[list[Step]]:
    simple: list[st.SearchStrategy[Step]] = [
        st.tuples(st.just("spend"), st.integers(1, 100)),
        st.tuples(st.just("next"), GENERATORS),
        st.tuples(st.just("next"), GENERATORS),
        st.tuples(st.just("throw"), GENERATORS),
        st.tuples(st.just("drop"), GENERATORS),
    ]
    if inside_a_generator:
        simple += [st.just(("yield",)), st.just(("yield",))]
    else:
        simple.append(st.tuples(st.just("stray exit"), NAMES))

    def nested(steps: st.SearchStrategy[list[Step]]) -> st.SearchStrategy[list[Step]]:
        compound: list[st.SearchStrategy[Step]] = [
            st.tuples(st.just("with"), NAMES, steps),
            st.tuples(st.just("with"), NAMES, steps),
            st.tuples(st.just("catch"), steps),
        ]
        if not inside_a_generator:
            bodies = programs(inside_a_generator=True)
            compound.append(st.tuples(st.just("make"), GENERATORS, bodies))
            compound.append(st.tuples(st.just("make"), GENERATORS, bodies))
        return st.lists(st.one_of(*simple, *compound), max_size=8)

    return st.recursive(st.lists(st.one_of(*simple), max_size=4), nested, max_leaves=12)


class Machine:
    """Carries out a program on one recorder."""

    def __init__(self, recorder: Any, clock: Clock) -> None:
        self.recorder = recorder
        self.clock = clock
        self.generators: dict[int, Any] = {}

    def run(self, program: list[Step]) -> None:
        for kind, *operands in program:
            if kind == "with":
                with self.recorder.scope(operands[0]):
                    self.run(operands[1])
            elif kind == "catch":
                self.run(operands[0])
            elif kind == "make":
                self.take("drop", operands[:1])
                self.generators.setdefault(operands[0], self.generate(operands[1]))
            else:
                self.take(kind, operands)

    def generate(self, program: list[Step]) -> Generator[None, None, None]:
        for kind, *operands in program:
            if kind == "with":
                with self.recorder.scope(operands[0]):
                    yield from self.generate(operands[1])
            elif kind == "catch":
                try:
                    yield from self.generate(operands[0])
                except KeyError:
                    self.clock.spend(1_000)
            elif kind == "yield":
                yield
            else:
                self.take(kind, operands)

    def take(self, kind: str, operands: list[Any]) -> None:
        if kind == "spend":
            self.clock.spend(operands[0])
        elif kind == "stray exit":
            self.recorder.scope(operands[0]).__exit__(None, None, None)
        elif kind == "drop":
            generator = self.generators.get(operands[0])
            if generator is None or getgeneratorstate(generator) == GEN_RUNNING:
                return
            # Closing one that waits for another is the one known difference, see docs/recorder.md.
            if generator.gi_yieldfrom is None:
                del self.generators[operands[0]]
        else:
            self.resume(kind, operands[0])

    def resume(self, kind: str, place: int) -> None:
        generator = self.generators.get(place)
        if generator is None or getgeneratorstate(generator) == GEN_RUNNING:
            return
        try:
            if kind == "next":
                next(generator)
            else:
                generator.throw(KeyError())
        except (StopIteration, KeyError):
            pass


def logged_ns(recorder: Any) -> Counter[str]:
    """By name, from single calls; in how many stretches of no length is each recorder's own affair."""
    calls, _ = recorder.take_log()
    return sum((Counter({name: end - start}) for name, _, _, start, end in calls), Counter())


def record_of(implementation: str, program: list[Step]) -> tuple[Any, ...]:
    clock = Clock()
    recorder = load(implementation).Recorder(clock=clock)
    recorder.start()
    recorder.start_log(1_000)
    machine = Machine(recorder, clock)
    machine.run(program)
    running = seen(recorder), logged_ns(recorder)
    recorder.stop()
    assert_conserved(recorder)
    snapshot = recorder.snapshot()
    return running, seen(recorder), snapshot["losses"], snapshot["profiled_ns"], snapshot["entries"]


def check(program: list[Step]) -> None:
    assert record_of(TWIN, program) == record_of(CORE, program)


@pytest.mark.skipif(CORE not in available_recorders(), reason="the C core is not built: nothing to compare")
@example(
    [("make", 0, [("with", "a", [("catch", [("with", "b", [("yield",)])])])]), ("next", 0), ("throw", 0)]
)
@settings(max_examples=300, deadline=None)
@given(programs(inside_a_generator=False))
def test_both_give_the_same_record(program: list[Step]) -> None:
    check(program)


@pytest.mark.slow
@pytest.mark.skipif(CORE not in available_recorders(), reason="the C core is not built: nothing to compare")
@settings(max_examples=5_000, deadline=None)
@given(programs(inside_a_generator=False))
def test_both_give_the_same_record_over_many_programs(program: list[Step]) -> None:
    check(program)
