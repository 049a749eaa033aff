"""A PyTorch program watched in this process: its phases, modules and bytes, and nothing left behind."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

import pyrometer
from pyrometer.capture import memory, recording
from pyrometer.capture.memory import MemorySeries
from pyrometer.record.torch_run import StepGroup, TorchRun
from pyrometer.record.values import ScopeNode
from pyrometer.session import _run_so_far

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("clean_recorder")]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _seen() -> TorchRun:
    run = _run_so_far().torch
    assert run is not None
    return run


def _group(run: TorchRun, kind: str = "training") -> StepGroup:
    (group,) = (group for group in run.groups if group.kind == kind)
    return group


def _phases(group: StepGroup) -> dict[str, int]:
    return dict(zip(group.phases, group.phase_ns, strict=True))


def _nodes(run: TorchRun, top: str) -> dict[str, ScopeNode]:
    """The nodes under one of the trees' top nodes, by name."""
    found = {}
    for strand in run.calls:
        tops: list[str] = []
        for node in strand.nodes:
            tops.append(node.name if node.parent is None else tops[node.parent])
            if tops[-1] == top:
                found[node.name] = node
    return found


def _net() -> Any:
    from torch import nn

    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def _loader(batches: int = 10, batch_size: int = 4, **options: Any) -> Any:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    samples = batches * batch_size
    data = TensorDataset(torch.ones(samples, 16), torch.zeros(samples, dtype=torch.long))
    return DataLoader(data, batch_size=batch_size, **options)


def _train(model: Any, loader: Any, optimizer: Any) -> None:
    import torch

    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def test_a_training_loop_has_all_its_phases_and_they_add_up() -> None:
    import torch

    model = _net()
    with pyrometer.profile():
        _train(model, _loader(), torch.optim.SGD(model.parameters(), lr=0.1))
    run = _seen()
    group = _group(run)
    assert (group.steps, group.batches, group.samples, group.backward_passes) == (10, 10, 40, 10)
    assert set(group.phases) == {
        "data", "forward", "loss", "backward", "clipping", "optimizer", "clearing", "other",
    }  # fmt: skip
    assert all(ns > 0 for ns in group.phase_ns)
    assert sum(group.phase_ns) == group.total_ns
    assert all(sum(step.phase_ns) == step.duration_ns for step in group.first)
    assert run.gpu is None


def test_modules_are_a_tree_by_qualified_name_with_their_calls() -> None:
    import torch

    model = _net()
    with pyrometer.profile():
        _train(model, _loader(), torch.optim.SGD(model.parameters(), lr=0.1))
    run = _seen()
    forward = _nodes(run, "forward")
    assert {name: node.calls for name, node in forward.items()} == {
        "forward": 10, "model": 10, "model.0": 10, "model.1": 10, "model.2": 10,
    }  # fmt: skip
    sizes = {module.name: (module.kind, module.parameters) for module in run.modules}
    assert sizes["model.0"] == ("Linear", 16 * 32 + 32)
    assert sizes["model"] == ("Sequential", 16 * 32 + 32 + 32 * 4 + 4)


def test_a_module_is_charged_the_bytes_it_allocates() -> None:
    import torch

    class Hungry(torch.nn.Module):
        def forward(self, _: Any) -> Any:
            return torch.empty(25_000)

    class Frugal(torch.nn.Module):
        def forward(self, values: Any) -> Any:
            return values

    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hungry, self.frugal = Hungry(), Frugal()

        def forward(self, values: Any) -> Any:
            return self.frugal(self.hungry(values))

    model, given = Both(), torch.ones(3)
    with pyrometer.profile():
        for _ in range(5):
            model(given)
    nodes = _nodes(_seen(), "forward")
    assert nodes["model.hungry"].allocated_bytes == 5 * 100_000
    assert nodes["model.hungry"].allocations == 5
    assert nodes["model.frugal"].allocated_bytes == 0
    assert nodes["model"].allocated_bytes == 5 * 100_000


def test_a_module_knows_the_most_a_call_of_it_held() -> None:
    import torch

    class Scratch(torch.nn.Module):
        def forward(self, _: Any) -> Any:
            torch.empty(1_000_000)
            return torch.empty(250_000)

    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scratch = Scratch()

        def forward(self, values: Any) -> Any:
            return self.scratch(values), self.scratch(values)

    model, given = Twice(), torch.ones(3)
    with pyrometer.profile(), torch.no_grad():
        for _ in range(5):
            model(given)
    nodes = _nodes(_seen(), "forward without gradients")
    scratch, twice = nodes["model.scratch"].peak_bytes, nodes["model"].peak_bytes
    assert scratch == pytest.approx(4_000_000, abs=65_536)
    assert twice == pytest.approx(1_000_000 + 4_000_000, abs=65_536)


def test_the_backward_pass_is_charged_to_the_module_that_works_in_it() -> None:
    import torch

    class SlowGradient(torch.autograd.Function):
        @staticmethod
        def forward(_: Any, values: Any) -> Any:
            return values.clone()

        @staticmethod
        def backward(_: Any, gradient: Any) -> Any:
            for _ in range(200):
                gradient = gradient + torch.ones(100)
            return gradient

    class Slow(torch.nn.Module):
        def forward(self, values: Any) -> Any:
            return SlowGradient.apply(values)  # type: ignore[no-untyped-call]

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.slow, self.after = torch.nn.Linear(100, 100), Slow(), torch.nn.Linear(100, 100)

        def forward(self, values: Any) -> Any:
            return self.after(torch.relu(self.slow(torch.relu(self.before(values)))))

    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pyrometer.profile():
        for _ in range(20):
            model(torch.ones(2, 100)).sum().backward()
            optimizer.step()
    run = _seen()
    backward = _nodes(run, "backward")
    slow, others = backward["model.slow"], (backward["model.before"], backward["model.after"])
    assert run.timed_backward_passes > 1
    assert slow.calls == run.timed_backward_passes
    # Each of its 200 additions takes two tensors of 400 bytes, and nothing else allocates so often.
    assert slow.allocations == 400 * run.timed_backward_passes
    assert all(
        other.allocations is not None and other.allocations < slow.allocations / 10 for other in others
    )
    forward = _nodes(run, "forward")
    assert forward["model.slow"].total_ns < slow.total_ns / slow.calls * forward["model.slow"].calls


def test_a_closure_s_work_counts_as_forward_and_backward() -> None:
    import torch

    model = _net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(torch.ones(2, 16)).pow(2).mean()
        loss.backward()
        return loss

    with pyrometer.profile():
        for _ in range(4):
            optimizer.step(closure)
    group = _group(_seen())
    assert (group.label, group.steps) == ("LBFGS", 4)
    assert group.forward_calls == group.backward_passes > 4
    assert {"forward", "backward", "optimizer", "clearing"} <= set(group.phases)


def test_the_program_s_own_phases_go_before_those_found() -> None:
    import torch

    model = _net()
    with pyrometer.profile():
        for _ in range(5):
            with pyrometer.step("round", samples=3), pyrometer.phase("rollout"):
                model(torch.ones(2, 16))
    group = _group(_seen(), "marked")
    assert (group.label, group.steps, group.samples) == ("round", 5, 15)
    assert set(group.phases) == {"rollout", "other"}


def test_steps_and_phases_do_nothing_while_nothing_is_recorded() -> None:
    with pyrometer.step(), pyrometer.phase("rollout"):
        pass
    assert not _seen_or_none_groups()


def _seen_or_none_groups() -> tuple[StepGroup, ...]:
    run = _run_so_far().torch
    return () if run is None else run.groups


@pytest.mark.parametrize("name", ["", 3, None])
def test_a_phase_without_a_name_is_refused_with_the_reason(name: Any) -> None:
    with pytest.raises(TypeError, match="must be a str that is not empty"):
        pyrometer.phase(name)


def test_everything_is_put_back_at_the_end() -> None:
    import torch
    from torch.optim import optimizer as optimizers
    from torch.utils.data import dataloader

    def places() -> list[object]:
        owners = (torch.nn.Module, torch.nn.functional, torch.nn.utils, torch.autograd, torch.optim.Optimizer,
                  torch.Tensor, dataloader.DataLoader, dataloader._BaseDataLoaderIter)  # fmt: skip
        return [dict(vars(owner)) for owner in owners]

    before = places()
    hooks = (
        dict(optimizers._global_optimizer_pre_hooks),
        dict(optimizers._global_optimizer_post_hooks),
        list(sys.meta_path),
    )
    with pyrometer.profile():
        model = _net()
        _train(model, _loader(), torch.optim.SGD(model.parameters(), lr=0.1))
        assert vars(torch.nn.Module)["__call__"] is not before[0]["__call__"]  # type: ignore[index]
    assert places() == before
    assert hooks == (
        dict(optimizers._global_optimizer_pre_hooks),
        dict(optimizers._global_optimizer_post_hooks),
        list(sys.meta_path),
    )


def test_the_autograd_graph_is_what_it_is_without_us() -> None:
    import torch

    def graph(tensor: Any) -> list[str]:
        names, waiting = [], [tensor.grad_fn]
        while waiting:
            node = waiting.pop()
            names.append(type(node).__name__)
            waiting += [following for following, _ in node.next_functions if following is not None]
        return names

    model = _net()
    plain = graph(model(torch.ones(2, 16)))
    with pyrometer.profile():
        watched = [graph(model(torch.ones(2, 16))) for _ in range(20)]
    assert all(names == plain for names in watched)


def test_an_error_of_the_model_reaches_the_program_and_leaves_the_phases_right() -> None:
    import torch

    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pyrometer.profile():
        for inputs, targets in _loader():
            with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
                model(torch.ones(3, 3))
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
    group = _group(_seen())
    assert (group.steps, group.forward_calls) == (10, 20)
    assert sum(group.phase_ns) == group.total_ns


def test_a_program_that_was_running_before_is_watched_from_here_on() -> None:
    import torch

    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    _train(model, _loader(), optimizer)
    with pyrometer.profile():
        _train(model, _loader(3), optimizer)
    _train(model, _loader(), optimizer)
    with pyrometer.profile():
        _train(model, _loader(4), optimizer)
    assert _group(_seen()).steps == 7


def test_reset_forgets_the_steps() -> None:
    import torch

    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pyrometer.profile():
        _train(model, _loader(5), optimizer)
        pyrometer.reset()
        _train(model, _loader(3), optimizer)
    run = _seen()
    assert _group(run).steps == 3
    assert run.backward_passes == 3


def test_modules_called_on_other_threads_stand_in_trees_of_their_own() -> None:
    import threading

    import torch

    model = _net()

    def call() -> None:
        for _ in range(5):
            model(torch.ones(2, 16))

    with pyrometer.profile():
        threads = [
            threading.Thread(target=lambda: [model(torch.ones(2, 16)) for _ in range(5)]) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    run = _seen()
    calls = sum(node.calls for strand in run.calls for node in strand.nodes if node.name == "model.0")
    assert calls == 15
    assert sum(group.steps for group in run.groups) == 15


def test_a_failure_of_ours_is_a_loss_and_the_program_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    model = _net()
    with pyrometer.profile():
        watch = recording.torch_watch()
        assert watch is not None

        def fail(*_: object, **__: object) -> None:
            raise OSError("broken")

        monkeypatch.setattr(watch._loaders, "fetched", fail)
        _train(model, _loader(), torch.optim.SGD(model.parameters(), lr=0.1))
    losses = {loss.reason: loss.count for loss in _run_so_far().losses}
    assert losses == {"a hook of ours failed: OSError: broken": 10}
    assert _group(_seen()).steps == 10


def test_the_phases_are_told_to_a_gpu_where_torch_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from pyrometer.capture import torch_watch
    from pyrometer.record.torch_run import Gpu

    told: list[str] = []

    class Device:
        def __init__(self, _: object) -> None:
            pass

        def phase_began(self, name: str) -> None:
            told.append(f"+{name}")

        def phase_ended(self, name: str) -> None:
            told.append(f"-{name}")

        def record(self) -> Gpu:
            return Gpu(name="imaginary")

    monkeypatch.setattr(torch_watch, "GpuWatch", Device)
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch_watch, "active", None)  # which goes on with the device it began with
    model = _net()
    with pyrometer.profile():
        _train(model, _loader(3), torch.optim.SGD(model.parameters(), lr=0.1))
    run = _seen()
    assert run.gpu is not None
    assert run.gpu.name == "imaginary"
    assert _group(run).steps == 3
    step = ["data", "clearing", "forward", "loss", "backward", "clipping", "optimizer"]
    one = [mark for phase in step for mark in (f"+{phase}", f"-{phase}")]
    assert told == ["+data", "-data", *one * 3, "+data", "-data"]
    monkeypatch.undo()


def test_steps_are_timed_from_when_memory_began_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    now_ns = [1_000]
    series = MemorySeries(clock_ns=lambda: now_ns[0], read_bytes=lambda: 1)
    series.begin()
    now_ns[0] += 3_600_000_000_000  # an hour until torch is there
    monkeypatch.setattr(memory, "series", series)
    pyrometer.reset()
    model = _net()
    with pyrometer.profile():
        _train(model, _loader(batches=2), torch.optim.SGD(model.parameters(), lr=0.1))
    first, second = _group(_seen()).first
    assert first.started_ns >= 3_600_000_000_000
    assert second.started_ns == first.started_ns + first.duration_ns
