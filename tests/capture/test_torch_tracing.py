"""Export, scripting, tracing and copies give with our replacements in place what they give without."""

import copy
import pickle
from typing import Any

import pytest

from tests.compiling import Wrap, batch, compiled, in_c, in_python, net, same_with_and_without

# What torch warns of in these programs, it warns of without us too.
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(params=[in_python, in_c])
def wrap(request: pytest.FixtureRequest) -> Wrap:
    wrap: Wrap = request.param
    return wrap


@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_model_is_the_same(wrap: Wrap, strict: bool) -> None:
    import torch

    codes = []

    def program() -> Any:
        exported = torch.export.export(net(), (torch.ones(2, 8),), strict=strict)
        codes.append(exported.graph_module.code)
        return exported.module()(torch.ones(2, 8)).detach()

    same_with_and_without(program, wrap)
    assert codes[0] == codes[1]


def test_a_traced_model_is_the_same(wrap: Wrap) -> None:
    import torch

    codes = []

    def program() -> Any:
        trace: Any = torch.jit.trace
        traced = trace(net(), torch.ones(2, 8))
        codes.append(traced.code)
        return traced(torch.ones(2, 8)).detach()

    same_with_and_without(program, wrap)
    assert codes[0] == codes[1]


def test_a_scripted_model_is_the_same(wrap: Wrap) -> None:
    import torch
    from torch.nn import functional

    codes = []

    def program() -> Any:
        local = functional

        def loss_of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return local.cross_entropy(x, y)

        scripted = torch.jit.script(loss_of)
        criterion = torch.jit.script(torch.nn.CrossEntropyLoss())
        model = torch.jit.script(net())
        codes.append((scripted.code, criterion.code, model.code))
        x, y = batch()
        return scripted(model(x), y) + criterion(model(x), y)

    same_with_and_without(program, wrap)
    assert codes[0] == codes[1]


def test_a_symbolically_traced_model_is_the_same(wrap: Wrap) -> None:
    import torch
    from torch.nn import functional

    class WithLoss(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return functional.cross_entropy(self.net(x), y)

    graphs = []

    def program() -> Any:
        traced = torch.fx.symbolic_trace(WithLoss())
        graphs.append([(node.op, node.target) for node in traced.graph.nodes])
        return traced(*batch())

    same_with_and_without(program, wrap)
    assert [type(target) for _, target in graphs[0]] == [type(target) for _, target in graphs[1]]
    assert graphs[0] == graphs[1]


def test_a_compiled_model_can_still_be_copied_and_pickled(wrap: Wrap) -> None:
    import torch

    def program() -> Any:
        inner = torch.nn.Linear(8, 4)
        model = copy.deepcopy(compiled(inner))
        again = pickle.loads(pickle.dumps(inner))  # noqa: S301 - our own
        return torch.stack([model(torch.ones(8)).sum(), again(torch.ones(8)).sum()])

    same_with_and_without(program, wrap)
