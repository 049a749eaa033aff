"""A watch under test, with a clock that moves only when told, modules and an autograd without torch."""

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from pyrometer.record.torch_run import OTHER, PHASES
from tests.recorders import CORE, Clock, Path, load, totals

NAMES = (OTHER, *PHASES)
NUMBERS = {name: number for number, name in enumerate(NAMES)}
KEPT_BY_FORWARD = ("data", "copies", "forward", "loss", "backward")


def bits(names: Iterable[str]) -> int:
    """The phases, as bits by number."""
    return sum(1 << NUMBERS[name] for name in names)


def watch_class(implementation: ModuleType) -> Any:
    """The watch that belongs to a recorder's module."""
    module = implementation if implementation.__name__ == CORE else load("pyrometer._native.twin_watch")
    return module.Watch


class Node:
    """A node of a make-believe graph: its backward part takes as long as it says."""

    def __init__(self, number: int, duration_ns: int, inputs: "tuple[Tensor, ...]") -> None:
        self.number = number
        self.duration_ns = duration_ns
        self.inputs = inputs
        self.hooks: list[Callable[..., object]] = []

    def _sequence_nr(self) -> int:
        return self.number

    def register_prehook(self, hook: Callable[..., object]) -> object:
        self.hooks.append(hook)
        return object()


class Tensor:
    """What modules pass on: it knows the node it came from."""

    def __init__(self, grad_fn: Node | None = None) -> None:
        self.grad_fn = grad_fn

    def __repr__(self) -> str:
        return "leaf" if self.grad_fn is None else f"result {self.grad_fn.number}"


class Watched:
    """A program of functions and modules under a watch, and what the watch told."""

    def __init__(self, implementation: ModuleType, clock: Clock) -> None:
        self.clock = clock
        self.recorder = implementation.Recorder(clock=clock, suspends=False)
        self.recorder.start()
        self.failures: list[BaseException] = []
        self.told: list[tuple[Any, ...]] = []
        self.tracks_gradients = True
        self.nodes_made = 0
        self.watch = watch_class(implementation)(self.recorder, NAMES, self.failures.append)
        self.watch.set_tensor_type(Tensor)
        self.watch.start()
        self.backward = self.phased("backward", self._run_backward, keeps=("data", "forward", "loss"))
        watched = self

        class Module:
            def __init__(self, name: str, forward: Callable[..., Any], *, is_loss: bool = False) -> None:
                self.name = name
                self.forward = forward
                self.is_loss = is_loss

            def call(self, *arguments: Any, **keywords: Any) -> Any:
                return self.forward(*arguments, **keywords)

            __call__ = watched.module_call(call)

        self.module: Any = Module

    # What is wrapped.

    def phased(
        self,
        phase: str,
        function: Callable[..., Any],
        *,
        keeps: Iterable[str] = (),
        begun: Any = None,
        ended: Any = None,
    ) -> Any:
        """The function, as that phase."""
        return self.watch.phased(function, NUMBERS[phase], bits(keeps), begun, ended)

    def module_call(self, call: Callable[..., Any], **changed: Any) -> Any:
        """What calls modules of ours."""
        asked: dict[str, Any] = {
            "describe": self._describe,
            "root_begun": lambda module, *told: self.told.append(("begun", module.name, *told)),
            "root_ended": lambda module, *told: self.told.append(("ended", module.name, *told)),
            "measure": lambda _module, *told: self.told.append(("measured", *told)),
            "tracks_gradients": lambda: self.tracks_gradients,
            "sequence_number": lambda: self.nodes_made,
        }
        return self.watch.module_call(call, keeps=bits(KEPT_BY_FORWARD), **{**asked, **changed})

    def _describe(self, module: Any, parent: Any) -> tuple[str, bool]:
        self.told.append(("described", module.name, None if parent is None else parent.name))
        return module.name, module.is_loss

    # What a program does.

    def spends(self, duration_ns: int, result: Any = None) -> Callable[..., Any]:
        """A function that takes so long, whatever it is given."""

        def function(*_arguments: Any, **_keywords: Any) -> Any:
            self.clock.spend(duration_ns)
            return result

        return function

    def op(self, *inputs: Tensor, backward_ns: int = 0) -> Tensor:
        """A tensor made from others; the node made for it takes its time in the backward pass."""
        if not self.tracks_gradients:
            return Tensor()
        self.nodes_made += 1
        return Tensor(Node(self.nodes_made - 1, backward_ns, inputs))

    def layer(self, name: str, backward_ns: int) -> Any:
        """A module that makes one node from what it is given."""
        return self.module(name, lambda *inputs: self.op(*inputs, backward_ns=backward_ns))

    def _run_backward(self, root: Tensor) -> None:
        """From the highest number down, as torch does on one thread."""
        found: dict[int, Node] = {}
        waiting = [root]
        while waiting:
            node = waiting.pop().grad_fn
            if node is not None and node.number not in found:
                found[node.number] = node
                waiting += node.inputs
        for number in sorted(found, reverse=True):
            for hook in found[number].hooks:
                assert hook(()) is None
            self.clock.spend(found[number].duration_ns)

    # What is seen of it.

    def taken(self) -> dict[str, int]:
        """Time by phase since it was last asked for, without the phases that took none."""
        _, taken_ns, _, _ = self.watch.take()
        return {name: ns for name, ns in zip(NAMES, taken_ns, strict=False) if ns}

    def totals(self) -> dict[Path, int]:
        """Total time by path in the tree of the calling thread."""
        return totals(self.recorder)


def chain(watched: Watched, *names: str, duration_ns: int = 1) -> Any:
    """A module that calls the next, each taking so long by itself."""
    inner: Callable[..., Any] = lambda: "result"  # noqa: E731
    for name in reversed(names):

        def forward(call: Callable[..., Any] = inner) -> Any:
            watched.clock.spend(duration_ns)
            return call()

        inner = watched.module(name, forward)
    return inner
