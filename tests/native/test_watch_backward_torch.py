"""The backward pass by module on torch's own graphs: nodes that tick a clock by known amounts."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.recorders import Clock, Path, assert_conserved, losses, seen, totals
from tests.watches import KEPT_BY_FORWARD, NAMES, NUMBERS, bits, watch_class

pytestmark = pytest.mark.torch


class Training:
    """Torch's modules under a watch, and layers whose backward part takes a known time."""

    def __init__(self, implementation: ModuleType, clock: Clock) -> None:
        import torch

        self.torch = torch
        self.clock = clock
        self.recorder = implementation.Recorder(clock=clock, suspends=False)
        self.recorder.start()
        self.failures: list[BaseException] = []
        self.watch = watch_class(implementation)(self.recorder, NAMES, self.failures.append)
        self.watch.set_tensor_type(torch.Tensor)
        self.watch.start()
        self.watch.detail = 1
        self.names: dict[Any, str] = {}
        self.call = self.watch.module_call(
            vars(torch.nn.Module)["__call__"],
            keeps=bits(KEPT_BY_FORWARD),
            describe=lambda module, _parent: (self.names.get(module, type(module).__name__), False),
            root_begun=lambda *_: None,
            root_ended=lambda *_: None,
            measure=lambda *_: None,
            tracks_gradients=torch.is_grad_enabled,
            sequence_number=torch._C._autograd._get_sequence_nr,
        )
        self.backward = self.watch.phased(
            torch.autograd.backward, NUMBERS["backward"], bits(["data", "forward", "loss"]), None, None
        )

    def tick(self, value: Any, duration_ns: int) -> Any:
        """The value, through a node that takes so long in the backward pass."""
        clock = self.clock

        class Tick(self.torch.autograd.Function):  # type: ignore[misc, name-defined]
            @staticmethod
            def forward(_context: Any, value: Any) -> Any:
                return value * 2

            @staticmethod
            def backward(_context: Any, gradient: Any) -> Any:
                clock.spend(duration_ns)
                return gradient * 2

        return Tick.apply(value)

    def layer(self, duration_ns: int) -> Any:
        """A module of three nodes, the middle one of which takes its time, and with a parameter."""
        training = self

        class Layer(self.torch.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.weight = training.torch.nn.Parameter(training.torch.ones(4))

            def forward(self, value: Any) -> Any:
                return training.tick(value * self.weight, duration_ns).relu()

        return Layer()

    def model(self, forward: Any, **children: Any) -> Any:
        """A module of the given parts, named from the root."""

        class Model(self.torch.nn.Module):  # type: ignore[misc, name-defined]
            def forward(self, value: Any) -> Any:
                return forward(self, value)

        model = Model()
        for name, child in children.items():
            model.add_module(name, child)
        for name, module in model.named_modules():
            self.names[module] = f"net.{name}" if name else "net"
        return model

    def part(self) -> dict[Path, int]:
        """Total time by path below the backward phase, without what took none."""
        return {path[1:]: ns for path, ns in totals(self.recorder).items() if path[0] == "backward" and ns}

    def value(self) -> Any:
        return self.torch.ones(4)


@pytest.fixture
def training(implementation: ModuleType, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Training]:
    import torch

    training = Training(implementation, clock)
    monkeypatch.setattr(torch.nn.Module, "__call__", training.call)
    yield training
    assert training.failures == []
    assert losses(training.recorder) == {}
    assert_conserved(training.recorder)


def graph_of(result: Any) -> list[str]:
    """The names of all nodes, in the order they are found."""
    found, waiting = [], [result.grad_fn]
    seen_nodes = set()
    while waiting:
        node = waiting.pop(0)
        if node is not None and node not in seen_nodes:
            seen_nodes.add(node)
            found.append(node.name())
            waiting += [following for following, _ in node.next_functions]
    return found


def test_each_module_of_a_chain_has_exactly_its_ticks(training: Training) -> None:
    net = training.model(
        lambda self, value: self.c(self.b(self.a(value))),
        a=training.layer(1),
        b=training.layer(10),
        c=training.layer(100),
    )
    training.backward(net(training.value()).sum())
    assert training.part() == {
        (): 111,
        ("net",): 111,
        ("net", "net.a"): 1,
        ("net", "net.b"): 10,
        ("net", "net.c"): 100,
    }
    assert (training.watch.timed_backward_passes, training.watch.timed_backward_ns) == (1, 111)


def test_the_first_layer_is_not_charged_with_what_came_before_the_model(training: Training) -> None:
    value = training.tick(training.torch.ones(4, requires_grad=True), 1_000)
    training.backward(training.model(lambda self, value: self.a(value), a=training.layer(1))(value).sum())
    assert training.part() == {(): 1_001, ("net",): 1, ("net", "net.a"): 1}


def test_residual_connections_and_functions_between_modules(training: Training) -> None:
    def forward(self: Any, value: Any) -> Any:
        first = self.a(value)
        return training.tick(first + self.b(training.tick(first, 100)), 1_000)

    net = training.model(forward, a=training.layer(1), b=training.layer(10))
    training.backward(training.tick(net(training.value()), 10_000).sum())
    assert training.part() == {
        (): 11_111,
        ("net",): 1_111,
        ("net", "net.a"): 1,
        ("net", "net.b"): 10,
    }


def test_a_module_called_twice(training: Training) -> None:
    net = training.model(
        lambda self, value: self.shared(self.other(self.shared(value))),
        shared=training.layer(1),
        other=training.layer(10),
    )
    training.backward(net(training.value()).sum())
    assert training.part()["net", "net.shared"] == 2
    assert training.part()["net", "net.other"] == 10


def test_nested_containers(training: Training) -> None:
    block = training.torch.nn.Sequential(training.layer(1), training.torch.nn.Sequential(training.layer(10)))
    net = training.model(
        lambda self, value: self.head(self.block(value)), block=block, head=training.layer(100)
    )
    training.backward(net(training.value()).sum())
    assert training.part() == {
        (): 111,
        ("net",): 111,
        ("net", "net.head"): 100,
        ("net", "net.block"): 11,
        ("net", "net.block", "net.block.0"): 1,
        ("net", "net.block", "net.block.1"): 10,
        ("net", "net.block", "net.block.1", "net.block.1.0"): 10,
    }


def test_several_inputs_and_outputs(training: Training) -> None:
    def forward(self: Any, value: Any) -> Any:
        one, two = self.a(value), self.b(value)
        return {"outputs": [one, two]}

    net = training.model(forward, a=training.layer(1), b=training.layer(10))
    one, two = net(training.value())["outputs"]
    training.backward((one + two).sum())
    assert training.part() == {(): 11, ("net",): 11, ("net", "net.a"): 1, ("net", "net.b"): 10}


def test_no_node_is_added_and_gradients_are_the_same(training: Training) -> None:
    net = training.model(
        lambda self, value: self.b(training.torch.nn.functional.relu(self.a(value), inplace=True)),
        a=training.torch.nn.Linear(4, 4),
        b=training.torch.nn.Linear(4, 4),
    )
    graphs, gradients = [], []
    for active in (True, False):
        if not active:
            training.watch.stop()
        net.zero_grad()
        result = net(training.value())
        graphs.append(graph_of(result))
        training.backward(result.sum())
        gradients.append([parameter.grad.tolist() for parameter in net.parameters()])
    assert graphs[0] == graphs[1]
    assert gradients[0] == gradients[1]
    assert training.watch.timed_backward_passes == 1


def test_a_graph_that_is_kept_is_timed_each_time(training: Training) -> None:
    net = training.model(lambda self, value: self.a(value), a=training.layer(3))
    loss = net(training.value()).sum()
    training.backward(loss, retain_graph=True)
    training.backward(loss)
    assert training.part() == {(): 6, ("net",): 6, ("net", "net.a"): 6}
    assert training.watch.timed_backward_passes == 2
    assert seen(training.recorder)["backward", "net"].calls == 2


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_checkpointed_block_is_worked_out_again_inside_the_backward_pass(
    training: Training, use_reentrant: bool
) -> None:
    from torch.utils.checkpoint import checkpoint

    net = training.model(
        lambda self, value: self.c(checkpoint(self.b, self.a(value), use_reentrant=use_reentrant)),
        a=training.layer(1),
        b=training.layer(10),
        c=training.layer(100),
    )
    training.backward(net(training.value()).sum())
    part = training.part()
    assert part[()] == part["net",] == 111
    assert part["net", "net.a"] == 1
    assert part["net", "net.c"] == 100
    again = [path for path in seen(training.recorder) if path[-2:] == ("recomputed forward", "net.b")]
    assert len(again) == 1
    assert again[0][:2] == ("backward", "net")


def test_a_step_without_detail_leaves_the_graph_alone(training: Training) -> None:
    training.watch.detail = 0
    net = training.model(lambda self, value: self.a(value), a=training.layer(3))
    training.backward(net(training.value()).sum())
    assert training.part() == {(): 3}
    assert training.watch.timed_backward_passes == 0


def test_gradients_of_inputs_alone_are_timed_too(training: Training) -> None:
    torch = training.torch
    grad = training.watch.phased(torch.autograd.grad, NUMBERS["backward"], 0, None, None)
    value = torch.ones(4, requires_grad=True)
    net = training.model(lambda self, value: self.a(value), a=training.layer(3))
    (gradient,) = grad(net(value).sum(), value)
    assert gradient.tolist() == [2.0] * 4
    assert training.part() == {(): 3, ("net",): 3, ("net", "net.a"): 3}
