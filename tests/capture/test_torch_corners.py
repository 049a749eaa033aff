"""PyTorch programs in unusual shapes: their results stay theirs, and no step is lost or counted twice."""

import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pyrometer
from pyrometer.capture import losses, recording, torch_watch
from pyrometer.record.torch_run import StepGroup, TorchRun
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


def _groups(run: TorchRun) -> dict[tuple[str, str], StepGroup]:
    return {(group.kind, group.label): group for group in run.groups}


def _net() -> Any:
    from torch import nn

    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def _loader(batches: int = 10) -> Any:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    samples = batches * 4
    data = TensorDataset(torch.ones(samples, 16), torch.zeros(samples, dtype=torch.long))
    return DataLoader(data, batch_size=4)


def _train(model: Any, loader: Any, optimizer: Any = None, after_step: Callable[[], object] = int) -> None:
    import torch

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if optimizer is None else optimizer
    for inputs, targets in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        after_step()


def _compiled(function: Any) -> Any:
    import torch

    return torch.compile(function, backend="eager")


def _forget_compiled() -> None:
    import torch

    dynamo: Any = torch._dynamo
    dynamo.reset()


def _on_a_thread(work: Callable[..., object], *arguments: Any) -> None:
    thread = threading.Thread(target=work, args=arguments)
    thread.start()
    thread.join()


def _in_a_child(work: Callable[[], bool]) -> None:
    """Assert that the work, done in a forked child, ends and gives True."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


# Steps.


def test_every_step_of_threads_that_come_and_go_is_counted() -> None:
    model = _net()
    with pyrometer.profile():
        for _ in range(5):
            _on_a_thread(_train, model, _loader(30))
    (group,) = _seen().groups
    assert (group.steps, group.samples) == (150, 600)
    assert not losses.failures


def test_what_one_thread_began_is_no_part_of_another_s_step() -> None:
    import torch

    model = _net()

    def go_half_way() -> None:
        model(torch.ones(4, 16)).sum().backward()

    with pyrometer.profile():
        for _ in range(4):
            _on_a_thread(go_half_way)
        _on_a_thread(_train, model, _loader(3))
    group = _groups(_seen())["training", "SGD"]
    assert (group.steps, group.backward_passes, group.forward_calls) == (3, 3, 3)


def test_a_report_in_the_middle_holds_every_step_so_far() -> None:
    steps: list[int] = []

    def count() -> None:
        steps.append(sum(group.steps for group in _seen().groups))

    with pyrometer.profile():
        _train(_net(), _loader(12), after_step=count)
    # The latest one ends with whatever comes next: it may belong to a larger step.
    assert [count - number for number, count in enumerate(steps)] == [0] * 12


def test_optimizers_made_one_after_another_go_on_under_one_name() -> None:
    import torch

    with pyrometer.profile():
        for _ in range(30):
            model = _net()
            _train(model, _loader(2), torch.optim.Adam(model.parameters()))
            del model
    groups = _groups(_seen())
    assert {label: group.steps for (_, label), group in groups.items()} == {"Adam": 60}


def test_optimizers_that_live_side_by_side_are_told_apart() -> None:
    import torch

    model = _net()
    first, second = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
    with pyrometer.profile():
        _train(model, _loader(2), first)
        _train(model, _loader(3), second)
    assert {label: group.steps for (_, label), group in _groups(_seen()).items()} == {"SGD": 2, "SGD (2)": 3}


def test_kinds_of_steps_beyond_those_kept_apart_are_put_together_and_none_is_lost() -> None:
    import torch

    with pyrometer.profile():
        for number in range(40):
            with pyrometer.step(f"marked {number}"):
                torch.ones(1)

        def forward_only() -> None:
            model = _net()
            with torch.no_grad():
                for inputs, _ in _loader(3):
                    model(inputs)

        _on_a_thread(forward_only)
        _on_a_thread(_train, _net(), _loader(3))
    run = _seen()
    steps: dict[str, int] = {}
    for group in run.groups:
        steps[group.kind] = steps.get(group.kind, 0) + group.steps
    assert steps == {"marked": 40, "forward": 3, "training": 3}
    assert len(run.groups) <= 16


# Reset.


def test_a_reset_in_a_step_leaves_nothing_of_us_behind_at_the_end() -> None:
    import torch
    import torch._dynamo

    guards, handler = torch._dynamo.guards, torch._dynamo.callback.callback_handler
    before = (guards.CheckFunctionManager.__init__, handler.run_start_callbacks)
    model = _net()
    with pyrometer.profile():
        _train(model, _loader(2), after_step=pyrometer.reset)
    assert before == (guards.CheckFunctionManager.__init__, handler.run_start_callbacks)


def test_what_is_compiled_and_loaded_after_a_reset_is_counted() -> None:
    import torch

    _forget_compiled()
    model = _net()
    with pyrometer.profile():
        _train(model, _loader(2))
        pyrometer.reset()
        _train(model, _loader(3))
        _compiled(_net())(torch.ones(1, 16))
    run = _seen()
    assert [(loader.iterators, loader.batches) for loader in run.loaders] == [(1, 3)]
    assert run.compilation is not None
    assert run.compilation.graphs == 1


def test_what_was_compiled_in_one_stretch_is_not_forgotten_in_the_next() -> None:
    import torch

    _forget_compiled()
    for function in (lambda values: values + 1, lambda values: values * 2):
        with pyrometer.profile():
            _compiled(function)(torch.ones(1, 16))
    compilation = _seen().compilation
    assert compilation is not None
    assert compilation.graphs == 2


# The program's own.


def test_a_function_that_the_program_has_wrapped_stays_wrapped_after_compiling() -> None:
    import torch

    functional = torch.nn.functional
    theirs = functional.cross_entropy
    _forget_compiled()
    try:
        with pyrometer.profile():
            ours = functional.cross_entropy
            functional.cross_entropy = wrapped = functools.partial(ours)
            _compiled(_net())(torch.ones(1, 16))
            assert functional.cross_entropy is wrapped
        assert functional.cross_entropy is wrapped
    finally:
        functional.cross_entropy = theirs


def test_modules_that_compute_their_weight_are_not_made_to() -> None:
    import torch
    from torch.nn.utils import parametrizations

    def train() -> list[float]:
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

    plain = train()
    with pyrometer.profile():
        watched = train()
    assert watched == plain


def test_the_operations_of_convolutions_and_transposed_ones_are_known() -> None:
    import torch

    model = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 5), torch.nn.ConvTranspose1d(3, 4, 2))
    with pyrometer.profile(), torch.no_grad():
        model(torch.ones(1, 2, 9))
    flops = {module.name: module.flops for module in _seen().modules}
    # Each of 5 x 3 outputs takes 2 x 5 products; each of 5 x 3 inputs goes into 4 x 2 outputs.
    assert (flops["model.0"], flops["model.1"]) == (2 * 15 * 10, 2 * 15 * 8)


def test_a_mode_of_the_program_s_sees_only_what_the_program_asks_torch() -> None:
    import torch
    from torch.overrides import TorchFunctionMode

    class Listening(TorchFunctionMode):
        heard: list[str]

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.heard.append(getattr(function, "__name__", str(function)))
            return function(*args, **(kwargs or {}))

    def hear() -> list[str]:
        model, loader = _net(), _loader(12)
        listening: Any = Listening()
        listening.heard = []
        with listening:
            _train(model, loader)
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

    torch.jit.trace(_net(), torch.ones(4, 16))
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
    assert not losses.failures


def test_an_object_that_answers_anything_does_not_disturb_the_naming_of_its_model() -> None:
    import torch

    class Holder:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(f"asked for {name}")

        def call(self, model: Any) -> None:
            del self.__dict__
            model(torch.ones(4, 16))

    holder, model = Holder(), _net()
    with pyrometer.profile():
        holder.call(model)
    assert not losses.failures
    assert "model" in {module.name for module in _seen().modules}


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
    assert not losses.failures


# Ends.


def test_a_start_that_fails_half_way_leaves_torch_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def fail(*_: Any) -> None:
        raise RuntimeError("no hooks today")

    call = torch.nn.Module.__call__
    monkeypatch.setattr(torch_watch, "OptimizerHooks", fail)
    with pyrometer.profile():
        _train(_net(), _loader(2))
    assert torch.nn.Module.__call__ is call
    assert any("no hooks today" in reason for _, reason in losses.failures)


def test_a_stop_while_torch_is_being_imported_leaves_nothing_running() -> None:
    import torch

    call = torch.nn.Module.__call__
    begun = recording._begin_torch
    with pyrometer.profile():
        pass
    begun(torch)  # the import ends on another thread after the stop
    assert torch.nn.Module.__call__ is call


def test_a_record_made_inside_a_hook_of_ours_does_not_wait_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def includes(*_: object) -> bool:
        asked.append(len(_seen().groups))  # as a signal handler may, between any two lines
        return True

    monkeypatch.setattr(torch_watch.Settings, "includes", includes)
    training = threading.Thread(target=_train, args=(_net(), _loader(3)), daemon=True)
    with pyrometer.profile():
        training.start()
        training.join(30)
        stuck = training.is_alive()
        if stuck:
            os._exit(1)
    assert asked


def test_a_forked_child_records_only_its_own_steps() -> None:
    model = _net()

    def train_in_child() -> bool:
        before = recording.torch_watch()
        while recording.recorder.enabled:
            recording.stop()
        with pyrometer.profile():
            _train(model, _loader(4))
        (group,) = _seen().groups
        names = [
            (strand.nodes[node.parent].name, node.name)
            for strand in _seen().calls
            for node in strand.nodes
            if node.parent is not None
        ]
        once = ("model", "model") not in names and ("forward", "model") in names
        return before is None and group.steps == 4 and once and not losses.failures

    with pyrometer.profile():
        _train(model, _loader(3))
        _in_a_child(train_in_child)


@pytest.mark.parametrize("lock", ["steps", "replacements"])
def test_a_child_forked_while_a_lock_of_ours_is_held_can_go_on(lock: str) -> None:
    model = _net()
    with pyrometer.profile():
        _train(model, _loader(3))
        watch: Any = recording.torch_watch()
        held = watch._lock if lock == "steps" else watch._patches._lock
        taken, done = threading.Event(), threading.Event()

        def hold() -> None:
            with held:
                taken.set()
                done.wait()

        holding = threading.Thread(target=hold)
        holding.start()
        taken.wait()

        def train_in_child() -> bool:
            while recording.recorder.enabled:
                recording.stop()
            with pyrometer.profile():
                _train(model, _loader(4))
            (group,) = _seen().groups
            return group.steps == 4

        try:
            _in_a_child(train_in_child)
        finally:
            done.set()
            holding.join()


# What the program says itself.


def test_phases_left_in_another_order_do_not_stick() -> None:
    first, second = pyrometer.phase("first"), pyrometer.phase("second")
    model = _net()
    with pyrometer.profile():
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # as two coroutines may
        second.__exit__(None, None, None)
        _train(model, _loader(5))
    group = next(group for group in _seen().groups if group.kind == "training")
    assert {"data", "forward", "backward", "optimizer"} <= set(group.phases)
    later = [step.phase_ns[group.phases.index("forward")] for step in group.first]
    assert all(later)


def test_one_phase_may_be_entered_by_several_threads_at_once() -> None:
    shared = pyrometer.phase("shared")
    entered, left = threading.Event(), threading.Event()
    model = _net()

    def hold_it() -> None:
        with shared:
            entered.set()
            left.wait()
        _train(model, _loader(3))

    with pyrometer.profile():
        holding = threading.Thread(target=hold_it)
        with pyrometer.phase("outer"):
            with shared:
                holding.start()
                entered.wait()
            left.set()
            holding.join()
    group = next(group for group in _seen().groups if group.kind == "training")
    assert {"data", "forward", "backward", "optimizer"} <= set(group.phases)
    assert "outer" not in group.phases


def test_phases_named_on_many_threads_at_once_all_have_their_name() -> None:
    import torch

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def name_phases(number: int) -> None:
        with pyrometer.step():
            for each in range(3):
                with pyrometer.phase(f"{number}-{each}"):
                    torch.ones(1)

    try:
        with pyrometer.profile():
            threads = [threading.Thread(target=name_phases, args=(number,)) for number in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    (group,) = _seen().groups
    assert set(group.phases) - {"other"} == {f"{number}-{each}" for number in range(3) for each in range(3)}
    assert sum(group.phase_ns) == group.total_ns


def test_text_made_on_several_threads_side_by_side_is_told_apart() -> None:
    import torch

    model = torch.nn.Sequential(torch.nn.Embedding(9, 4))
    turns = [threading.Semaphore(1), threading.Semaphore(0)]

    def generate(number: int, prompt: int) -> None:
        with torch.no_grad():
            for length in range(prompt, prompt + 6):
                turns[number].acquire()
                model(torch.zeros(1, length, dtype=torch.long))
                turns[1 - number].release()

    with pyrometer.profile():
        threads = [threading.Thread(target=generate, args=(n, prompt)) for n, prompt in enumerate((3, 20))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    (generation,) = _seen().generations
    assert (generation.sequences, generation.passes, generation.prompt_tokens) == (2, 12, 23)
