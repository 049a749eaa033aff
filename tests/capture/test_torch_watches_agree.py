"""Any loop gives the same record whether the core follows it by itself or Python is told of everything.

The core adds up what happens in a loop of the usual shape, and Python catches up on many steps at
once; the twin tells Python of each thing as it happens. On one clock both must come to the same.
"""

import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from pyrometer.capture import allocations, torch_watch
from pyrometer.record.torch_run import TorchRun
from pyrometer.record.values import ScopeNode
from tests.recorders import CORE, TWIN, Clock, available_recorders, load
from tests.watches import watch_class

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        CORE not in available_recorders(), reason="the C core is not built: nothing to compare"
    ),
]

# A program is a list of loops: (how often, what is done each time). "rest" takes longer than the core
# lets Python wait before it catches up.
THINGS = (
    "fetch", "fetch", "fetch pairs", "fetch nothing", "forward", "forward", "forward other", "evaluate",
    "backward", "backward", "step", "step", "step other", "step and fail", "closure", "zero", "spend", "rest",
    "phase", "mark",
)  # fmt: skip
Program = list[tuple[int, list[str]]]
PROGRAMS = st.lists(
    st.tuples(st.integers(1, 25), st.lists(st.sampled_from(THINGS), min_size=1, max_size=7)),
    min_size=1,
    max_size=3,
)
USUAL = ["fetch", "zero", "forward", "backward", "step"]


class World:
    """Models, data and optimizers that take known times on a clock, and what can be done with them."""

    def __init__(self, watch: torch_watch.TorchWatch, clock: Clock) -> None:
        import torch

        self.torch = torch
        self.watch = watch
        self.clock = clock
        self.model, self.other = self._model(10), self._model(20)
        self.optimizer, self.second = self._optimizer(self.model, 7), self._optimizer(self.other, 9)
        self.loader = self._loader(lambda index: (torch.full((3,), float(index)), index))
        self.pairs = self._loader(lambda index: {"tokens": torch.tensor([index] * 5), "why": "text"})
        self.iterators: dict[int, Iterator[Any]] = {}
        self.loss: Any = None

    def _model(self, duration_ns: int) -> Any:
        clock, torch = self.clock, self.torch

        class Tick(torch.autograd.Function):  # type: ignore[misc, name-defined]
            @staticmethod
            def forward(_context: Any, value: Any) -> Any:
                clock.spend(duration_ns)
                return value * 1

            @staticmethod
            def backward(_context: Any, gradient: Any) -> Any:
                clock.spend(2 * duration_ns)
                return gradient * 1

        class Layer(torch.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(3))

            def forward(self, value: Any) -> Any:
                # A copy: an optimizer may step before the backward pass.
                return Tick.apply(value * self.weight.clone())

        return torch.nn.Sequential(Layer(), torch.nn.ReLU(), Layer())

    def _optimizer(self, model: Any, duration_ns: int) -> Any:
        clock = self.clock

        class Slow(self.torch.optim.SGD):  # type: ignore[misc, name-defined]
            fails = False

            def step(self, closure: Any = None) -> Any:
                clock.spend(duration_ns)
                if self.fails:
                    raise ArithmeticError
                return super().step(closure)

        return Slow(model.parameters(), lr=0.0)

    def _loader(self, item: Any) -> Any:
        clock = self.clock

        class Data(self.torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
            def __len__(self) -> int:
                return 12

            def __getitem__(self, index: int) -> Any:
                clock.spend(3)
                return item(index)

        return self.torch.utils.data.DataLoader(Data(), batch_size=4)

    def run(self, program: Program) -> None:
        for times, body in program:
            for _ in range(times):
                for thing in body:
                    getattr(self, thing.replace(" ", "_"))()
                self.clock.spend(1)

    def _next(self, number: int, loader: Any) -> None:
        if number not in self.iterators:
            self.iterators[number] = iter(loader)
        try:
            next(self.iterators[number])
        except StopIteration:
            del self.iterators[number]

    def fetch(self) -> None:
        self._next(0, self.loader)

    def fetch_pairs(self) -> None:
        self._next(1, self.pairs)

    def fetch_nothing(self) -> None:
        list(self._loader(lambda _: self.torch.ones(1))).clear()

    def forward(self) -> None:
        model = self.model
        self.loss = model(self.torch.ones(2, 3)).sum() + (0 if self.loss is None else self.loss)

    def forward_other(self) -> None:
        other = self.other
        self.loss = other(self.torch.ones(2, 3)).sum() + (0 if self.loss is None else self.loss)

    def evaluate(self) -> None:
        model = self.model
        with self.torch.no_grad():
            model(self.torch.ones(2, 3))

    def backward(self) -> None:
        if self.loss is not None:
            self.loss.backward()
            self.loss = None

    def step(self) -> None:
        self.optimizer.step()

    def step_other(self) -> None:
        self.second.step()

    def step_and_fail(self) -> None:
        self.optimizer.fails = True
        with pytest.raises(ArithmeticError):
            self.optimizer.step()
        self.optimizer.fails = False

    def closure(self) -> None:
        def work() -> Any:
            self.optimizer.zero_grad()
            self.backward()
            self.forward()
            return self.loss

        self.optimizer.step(work)

    def zero(self) -> None:
        self.optimizer.zero_grad()

    def spend(self) -> None:
        self.clock.spend(5)

    def rest(self) -> None:
        self.clock.spend(60_000_000)

    def phase(self) -> None:
        token = self.watch.enter_phase("mine")
        self.clock.spend(4)
        self.watch.leave_phase(token)

    def mark(self) -> None:
        self.watch.mark_begun("marked", None)
        self.forward()
        self.watch.mark_ended()


def record_of(implementation: str, program: Program) -> TorchRun:
    import torch

    clock = Clock()
    recorder = load(implementation)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch_watch, "Recorder", functools.partial(recorder.Recorder, clock=clock))
        patch.setattr(torch_watch, "Watch", watch_class(recorder))
        patch.setattr(allocations, "_wanted", False)
        patch.setattr(
            torch_watch, "memory", SimpleNamespace(series=SimpleNamespace(elapsed_ns=0, begun=False))
        )
        failures: list[BaseException] = []
        patch.setattr(torch_watch.TorchWatch, "_note_failure", lambda _, error: failures.append(error))
        watch = torch_watch.TorchWatch(torch)
        world = World(watch, clock)
        watch.start()
        try:
            world.run(program)
        finally:
            watch.stop()
        assert failures == []
        return watch.seen().run


def without_own_times(run: TorchRun) -> TorchRun:
    """Without what loaders time by themselves, of as many batches as they like."""
    untimed = {"timed_batches": 0, "work_ns": None, "collate_ns": None, "first_batch_ns": None}
    loaders = tuple(structs.replace(loader, **untimed) for loader in run.loaders)
    return structs.replace(run, loaders=loaders)


def without_close_ups(run: TorchRun) -> TorchRun:
    """Without what was only looked at in chosen steps.

    Steps are chosen by what the one before was, which Python may learn too late of one the core
    followed: where a loop turns from one kind of step to another, a choice may come to nothing.
    """
    unmeasured = {
        "measured_calls": 0,
        "input_bytes": None,
        "input_dtype": None,
        "output_bytes": None,
        "flops": None,
        "gradient_products": None,
    }
    modules = tuple(structs.replace(module, **unmeasured) for module in run.modules)
    calls = tuple(structs.replace(strand, nodes=above_backward(strand.nodes)) for strand in run.calls)
    untimed = {"timed_backward_passes": 0, "timed_backward_ns": 0}
    return structs.replace(run, modules=modules, calls=calls, **untimed)


def above_backward(nodes: tuple[ScopeNode, ...]) -> tuple[ScopeNode, ...]:
    """All but the modules that the backward pass is divided into. Their nodes lose their parents."""
    inside: list[bool] = []
    for node in nodes:
        parent = node.parent
        inside.append(parent is not None and (inside[parent] or nodes[parent].name == "backward"))
    kept = (node for node, is_inside in zip(nodes, inside, strict=True) if not is_inside)
    return tuple(structs.replace(node, parent=None) for node in kept)


def check(program: Program) -> None:
    followed, told = record_of(CORE, program), record_of(TWIN, program)
    assert followed.groups == told.groups
    assert without_close_ups(without_own_times(followed)) == without_close_ups(without_own_times(told))


def test_a_usual_loop_is_recorded_at_all() -> None:
    run = record_of(TWIN, [(30, USUAL)])
    (group,) = run.groups
    assert (group.kind, group.steps, run.backward_passes) == ("training", 30, 30)


@pytest.mark.parametrize(
    "program",
    [
        [(100, USUAL)],
        [(40, USUAL), (3, ["fetch", "evaluate"]), (40, USUAL)],
        [(30, ["fetch", "forward", "backward", "fetch", "forward", "backward", "step", "zero"])],
        [(30, ["fetch", "forward", "forward other", "backward", "step", "step other"])],
        [(30, ["fetch", "closure"]), (5, ["fetch", "step and fail"]), (30, [*USUAL, "rest"])],
    ],
)
def test_usual_loops_give_the_same_record_in_every_detail(program: Program) -> None:
    assert without_own_times(record_of(CORE, program)) == without_own_times(record_of(TWIN, program))


@settings(max_examples=60)
@given(PROGRAMS)
def test_both_give_the_same_record(program: Program) -> None:
    check(program)


@pytest.mark.slow
@settings(max_examples=500)
@given(PROGRAMS)
def test_both_give_the_same_record_over_many_programs(program: Program) -> None:
    check(program)
