"""PyTorch programs in unusual shapes: no step is lost, merged or counted twice, nothing is left behind."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pyrometer
from pyrometer.capture import losses, recording, torch_watch
from tests.accuracy.training import spin
from tests.torch_programs import (
    compiled,
    failures,
    forget_compiled,
    groups_by_label,
    loader,
    net,
    seen,
    train,
)

MS = 1_000_000

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("clean_recorder")]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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
    model = net()
    with pyrometer.profile():
        for _ in range(5):
            _on_a_thread(train, model, loader(30))
    (group,) = seen().groups
    assert (group.steps, group.samples) == (150, 600)
    assert not failures()


def test_what_one_thread_began_is_no_part_of_another_s_step() -> None:
    import torch

    model = net()

    def go_half_way() -> None:
        model(torch.ones(4, 16)).sum().backward()

    with pyrometer.profile():
        for _ in range(4):
            _on_a_thread(go_half_way)
        _on_a_thread(train, model, loader(3))
    group = groups_by_label(seen())["training", "SGD"]
    assert (group.steps, group.backward_passes, group.forward_calls) == (3, 3, 3)


def test_a_report_in_the_middle_holds_every_step_so_far() -> None:
    steps: list[int] = []

    def count() -> None:
        steps.append(sum(group.steps for group in seen().groups))

    with pyrometer.profile():
        train(net(), loader(12), after_step=count)
    # The latest one ends with whatever comes next: it may belong to a larger step.
    assert [count - number for number, count in enumerate(steps)] == [0] * 12


def test_optimizers_made_one_after_another_go_on_under_one_name() -> None:
    import torch

    with pyrometer.profile():
        for _ in range(30):
            model = net()
            train(model, loader(2), torch.optim.Adam(model.parameters()))
            del model
    groups = groups_by_label(seen())
    assert {label: group.steps for (_, label), group in groups.items()} == {"Adam": 60}


def test_optimizers_that_live_side_by_side_are_told_apart() -> None:
    import torch

    model = net()
    first, second = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
    with pyrometer.profile():
        train(model, loader(2), first)
        train(model, loader(3), second)
    assert {label: group.steps for (_, label), group in groups_by_label(seen()).items()} == {
        "SGD": 2,
        "SGD (2)": 3,
    }


@pytest.mark.parametrize("made", ["before", "inside"])
@pytest.mark.parametrize("scheduled", [False, True])
def test_steps_of_an_optimizer_are_seen_whenever_it_was_made(made: str, *, scheduled: bool) -> None:
    import torch

    def make() -> tuple[Any, Any]:
        class Own(torch.optim.SGD):
            def step(self, *arguments: Any, **keywords: Any) -> Any:
                spin(MS)
                return super().step(*arguments, **keywords)

        model = net()
        optimizer = Own(model.parameters(), lr=0.1)
        if scheduled:  # it takes hold of the step
            torch.optim.lr_scheduler.StepLR(optimizer, 2)
        return model, optimizer

    if made == "before":
        model, optimizer = make()
    with pyrometer.profile():
        if made == "inside":
            model, optimizer = make()
        train(model, loader(3), optimizer)
    (group,) = groups_by_label(seen()).values()
    assert (group.kind, group.steps) == ("training", 3)
    assert group.phase_ns[group.phases.index("optimizer")] >= 3 * MS
    assert not losses.failures


def test_what_torch_does_around_its_hooks_is_part_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    class SlowToEnter(torch.autograd.profiler.record_function):
        def __enter__(self) -> Any:
            if self.name.startswith("Optimizer.step"):
                spin(MS)
            return super().__enter__()  # type: ignore[no-untyped-call]

    monkeypatch.setattr(torch.autograd.profiler, "record_function", SlowToEnter)
    model = net()
    with pyrometer.profile():
        train(model, loader(3), torch.optim.SGD(model.parameters(), lr=0.1))
    (group,) = groups_by_label(seen()).values()
    assert group.phase_ns[group.phases.index("optimizer")] >= 3 * MS


def test_a_step_that_the_program_took_hold_of_goes_on_when_the_watch_has_ended() -> None:
    import torch

    model = net()
    with pyrometer.profile():
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = optimizer.step
        train(model, loader(2), optimizer)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    model(torch.ones(2, 16)).sum().backward()
    step()
    assert not any(map(torch.equal, before, model.parameters()))
    assert type(vars(torch.optim.SGD)["step"]).__name__ == "function"
    assert [group.steps for group in groups_by_label(seen()).values()] == [2]


def test_kinds_of_steps_beyond_those_kept_apart_are_put_together_and_none_is_lost() -> None:
    import torch

    with pyrometer.profile():
        for number in range(40):
            with pyrometer.step(f"marked {number}"):
                torch.ones(1)

        def forward_only() -> None:
            model = net()
            with torch.no_grad():
                for inputs, _ in loader(3):
                    model(inputs)

        _on_a_thread(forward_only)
        _on_a_thread(train, net(), loader(3))
    run = seen()
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
    model = net()
    with pyrometer.profile():
        train(model, loader(2), after_step=pyrometer.reset)
    assert before == (guards.CheckFunctionManager.__init__, handler.run_start_callbacks)


def test_what_is_compiled_and_loaded_after_a_reset_is_counted() -> None:
    import torch

    forget_compiled()
    model = net()
    with pyrometer.profile():
        train(model, loader(2))
        pyrometer.reset()
        train(model, loader(3))
        compiled(net())(torch.ones(1, 16))
    run = seen()
    assert [(loader.iterators, loader.batches) for loader in run.loaders] == [(1, 3)]
    assert run.compilation is not None
    assert run.compilation.graphs == 1


def test_what_was_compiled_in_one_stretch_is_not_forgotten_in_the_next() -> None:
    import torch

    forget_compiled()
    for function in (lambda values: values + 1, lambda values: values * 2):
        with pyrometer.profile():
            compiled(function)(torch.ones(1, 16))
    compilation = seen().compilation
    assert compilation is not None
    assert compilation.graphs == 2


# Ends.


def test_a_start_that_fails_half_way_leaves_torch_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def fail(*_: Any) -> None:
        raise RuntimeError("no hooks today")

    call = torch.nn.Module.__call__
    monkeypatch.setattr(torch_watch, "OptimizerHooks", fail)
    with pyrometer.profile():
        train(net(), loader(2))
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
        asked.append(len(seen().groups))  # as a signal handler may, between any two lines
        return True

    monkeypatch.setattr(torch_watch.Settings, "includes", includes)
    training = threading.Thread(target=train, args=(net(), loader(3)), daemon=True)
    with pyrometer.profile():
        training.start()
        training.join(30)
        stuck = training.is_alive()
        if stuck:
            os._exit(1)
    assert asked


def test_a_forked_child_records_only_its_own_steps() -> None:
    model = net()

    def train_in_child() -> bool:
        before = recording.torch_watch()
        while recording.recorder.enabled:
            recording.stop()
        with pyrometer.profile():
            train(model, loader(4))
        (group,) = seen().groups
        names = [
            (strand.nodes[node.parent].name, node.name)
            for strand in seen().calls
            for node in strand.nodes
            if node.parent is not None
        ]
        below_forward = {name for parent, name in names if parent == "forward"}
        once = not {(name, name) for name in below_forward} & set(names)
        return before is None and group.steps == 4 and once and not failures()

    with pyrometer.profile():
        train(model, loader(3))
        _in_a_child(train_in_child)


@pytest.mark.parametrize("lock", ["steps", "replacements"])
def test_a_child_forked_while_a_lock_of_ours_is_held_can_go_on(lock: str) -> None:
    model = net()
    with pyrometer.profile():
        train(model, loader(3))
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
                train(model, loader(4))
            (group,) = seen().groups
            return group.steps == 4

        try:
            _in_a_child(train_in_child)
        finally:
            done.set()
            holding.join()


# What the program says itself.


def test_phases_left_in_another_order_do_not_stick() -> None:
    first, second = pyrometer.phase("first"), pyrometer.phase("second")
    model = net()
    with pyrometer.profile():
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # as two coroutines may
        second.__exit__(None, None, None)
        train(model, loader(5))
    group = next(group for group in seen().groups if group.kind == "training")
    assert {"data", "forward", "backward", "optimizer"} <= set(group.phases)
    later = [step.phase_ns[group.phases.index("forward")] for step in group.first]
    assert all(later)


def test_one_phase_may_be_entered_by_several_threads_at_once() -> None:
    shared = pyrometer.phase("shared")
    entered, left = threading.Event(), threading.Event()
    model = net()

    def hold_it() -> None:
        with shared:
            entered.set()
            left.wait()
        train(model, loader(3))

    with pyrometer.profile():
        holding = threading.Thread(target=hold_it)
        with pyrometer.phase("outer"):
            with shared:
                holding.start()
                entered.wait()
            left.set()
            holding.join()
    group = next(group for group in seen().groups if group.kind == "training")
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
    (group,) = seen().groups
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
    (generation,) = seen().generations
    assert (generation.sequences, generation.passes, generation.prompt_tokens) == (2, 12, 23)
