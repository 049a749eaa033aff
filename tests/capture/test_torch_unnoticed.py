"""PyTorch programs that look closely at themselves: watched, they see and give what they do unwatched."""

from collections.abc import Iterator
from typing import Any

import pytest

import pyrometer
from tests.torch_programs import compiled, failures, forget_compiled, loader, net, seen, train

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("clean_recorder")]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_function_that_the_program_has_wrapped_stays_wrapped_after_compiling() -> None:
    import torch

    functional: Any = torch.nn.functional
    theirs = functional.cross_entropy
    forget_compiled()
    try:
        with pyrometer.profile():
            ours = functional.cross_entropy

            def wrapped(*given: Any) -> Any:
                return ours(*given)

            functional.cross_entropy = wrapped
            compiled(net())(torch.ones(1, 16))
            assert functional.cross_entropy is wrapped
        assert functional.cross_entropy is wrapped
    finally:
        functional.cross_entropy = theirs


def test_modules_that_compute_their_weight_are_not_made_to() -> None:
    import torch
    from torch.nn.utils import parametrizations

    def losses_of_training() -> list[float]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            parametrizations.spectral_norm(torch.nn.Conv2d(2, 3, 3)),
            parametrizations.spectral_norm(torch.nn.ConvTranspose2d(3, 2, 3)),
            torch.nn.Flatten(),
            torch.nn.Linear(2 * 8 * 8, 4),
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        values = []
        for _ in range(10):
            optimizer.zero_grad()
            loss = model(torch.randn(2, 2, 8, 8)).square().mean()
            loss.backward()
            optimizer.step()
            values.append(loss.item())
        return values

    plain = losses_of_training()
    with pyrometer.profile():
        watched = losses_of_training()
    assert watched == plain


def test_the_operations_of_convolutions_and_transposed_ones_are_known() -> None:
    import torch

    model = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 5), torch.nn.ConvTranspose1d(3, 4, 2))
    with pyrometer.profile(), torch.no_grad():
        model(torch.ones(1, 2, 9))
    flops = {module.kind: module.flops for module in seen().modules}
    # Each of 5 x 3 outputs takes 2 x 5 products; each of 5 x 3 inputs goes into 4 x 2 outputs.
    assert (flops["Conv1d"], flops["ConvTranspose1d"]) == (2 * 15 * 10, 2 * 15 * 8)


def test_a_mode_of_the_program_s_sees_only_what_the_program_asks_torch() -> None:
    import torch
    from torch.overrides import TorchFunctionMode

    class Listening(TorchFunctionMode):
        heard: list[str]

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.heard.append(getattr(function, "__name__", str(function)))
            return function(*args, **(kwargs or {}))

    def hear() -> list[str]:
        model, batches = net(), loader(12)
        listening: Any = Listening()
        listening.heard = []
        with listening:
            train(model, batches)
            with torch.no_grad():
                model(torch.ones(4, 16))
        return list(listening.heard)

    plain = hear()
    with pyrometer.profile():
        watched = hear()
    assert watched == plain


def test_a_dispatch_mode_of_the_program_s_sees_only_what_the_program_does() -> None:
    import torch
    from torch.utils import _python_dispatch

    class Listening(_python_dispatch.TorchDispatchMode):
        def __init__(self) -> None:
            initialise: Any = super().__init__
            initialise()

        heard: list[str]

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.heard.append(str(function))
            return function(*args, **(kwargs or {}))

    def hear() -> list[str]:
        model = torch.nn.Sequential(torch.nn.Conv1d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(28, 4))
        listening: Any = Listening()
        listening.heard = []
        with listening:
            model(torch.ones(4, 1, 16)).sum().backward()
        return list(listening.heard)

    plain = hear()
    with pyrometer.profile():
        watched = hear()
    assert watched == plain


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace.*:DeprecationWarning")
def test_tracing_a_module_seen_for_the_first_time_notes_only_what_it_does() -> None:
    import torch

    def trace() -> str:
        model = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU())
        return str(torch.jit.trace(model, torch.ones(4, 16)).inlined_graph)

    torch.jit.trace(net(), torch.ones(4, 16))
    plain = trace()
    with pyrometer.profile():
        watched = trace()
    assert len(watched.splitlines()) == len(plain.splitlines())


@pytest.mark.parametrize("strict", [False, True])
def test_exporting_with_a_length_left_open_leaves_it_open(strict: bool) -> None:
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.layer = torch.nn.Embedding(9, 16), torch.nn.Linear(16, 4)

        def forward(self, tokens: Any) -> Any:
            return self.layer(self.table(tokens))

    batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
    with pyrometer.profile(), torch.no_grad():
        exported = torch.export.export(
            Model(),
            (torch.zeros(3, 5, dtype=torch.long),),
            dynamic_shapes={"tokens": {0: batch, 1: length}},
            strict=strict,
        )
    assert exported.module()(torch.zeros(7, 2, dtype=torch.long)).shape == (7, 2, 4)
    assert not failures()


def test_an_object_that_answers_anything_does_not_disturb_the_naming_of_its_model() -> None:
    import torch

    class Holder:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(f"asked for {name}")

        def call(self, model: Any) -> None:
            del self.__dict__
            model(torch.ones(4, 16))

    holder, model = Holder(), net()
    with pyrometer.profile():
        holder.call(model)
    assert not failures()
    assert "Sequential" in {module.kind for module in seen().modules}


def test_sparse_and_empty_results_are_no_failure() -> None:
    import torch

    class Sparse(torch.nn.Module):
        def forward(self, values: Any) -> Any:
            return values.to_sparse()

    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    with pyrometer.profile(), torch.no_grad():
        Sparse()(torch.eye(3))
        for length in (0, 3):
            values = torch.ones(0, length, 8)
            attention(values, values, values)
        torch.nn.GRU(4, 4)(torch.ones(1, 0, 4))
    assert not failures()
