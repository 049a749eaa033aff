"""A window of steps with every operator: when it opens, what it holds, and that nothing else changes."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import pyrometer
from pyrometer.capture import losses, recording, torch_watch
from pyrometer.capture.torch_kineto import is_profiling
from pyrometer.record.operators import Operators, OperatorWindow, Origin
from tests.torch_programs import compiled, failures, forget_compiled, loader, net, seen, train

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("clean_recorder")]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _see_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrometer.capture.torch_operators._ALIKE", 1e9)
    ask(monkeypatch)


def ask(monkeypatch: pytest.MonkeyPatch, ops: int = 5, **more: Any) -> None:
    """Have operators seen in so many steps."""
    monkeypatch.setattr(torch_watch, "settings", torch_watch.Settings(ops=ops, **more))
    pyrometer.reset()


def operators() -> Operators:
    found = seen().operators
    assert found is not None
    return found


def only_window() -> OperatorWindow:
    (window,) = operators().windows
    assert operators().reason is None
    return window


def calls_of(window: OperatorWindow, name: str) -> int:
    return sum(operator.calls for operator in window.operators if operator.name == name)


def origins_of(window: OperatorWindow, name: str) -> dict[Origin, int]:
    """For whom, and how often."""
    return {
        window.origins[use.origin]: use.calls
        for use in window.uses
        if window.operators[use.operator].name == name
    }


def test_a_window_holds_whole_steps_after_the_warm_up_and_every_operator_in_them() -> None:
    with pyrometer.profile():
        train(net(), loader(20))
    window = only_window()
    # Three of warm-up, one for shapes, one in which the window opened.
    assert (window.kind, window.label, window.first_step, window.steps) == ("training", "SGD", 5, 5)
    assert calls_of(window, "aten::linear") == 2 * 5
    assert calls_of(window, "AddmmBackward0") == 2 * 5
    assert 0 < window.thread_covered_ns <= window.total_ns
    assert failures() == []


def test_the_steps_it_slowed_are_in_no_group() -> None:
    with pyrometer.profile():
        train(net(), loader(20))
    (group,) = seen().groups
    assert [step.index for step in group.first] == [0, 1, 2, *range(11, 20)]
    assert operators().left_out_steps == 8


def test_operators_are_linked_to_the_modules_that_caused_them() -> None:
    model = net()
    with pyrometer.profile():
        train(model, loader(20))
    window = only_window()
    names = {use.module for use in origins_of(window, "aten::addmm")}
    assert len(names) == 2
    first, second = sorted(name for name in names if name is not None)
    assert (first[-2:], second[-2:]) == (".0", ".2")
    assert origins_of(window, "aten::addmm") == {
        Origin("call", "forward", first, None): 5,
        Origin("call", "forward", second, None): 5,
    }
    # The weights' gradients of both, and the inputs' of the second.
    assert origins_of(window, "aten::mm") == {
        Origin("backward", "backward", first, None): 5,
        Origin("backward", "backward", second, None): 10,
    }
    adding = origins_of(window, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad")
    assert adding == {Origin("accumulation", "backward", None, None): 4 * 5}


def test_and_to_the_programs_own_scopes(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    ask(monkeypatch, 2)
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight])
    with pyrometer.profile():
        for _ in loader(12):
            with pyrometer.scope("score"):
                loss = weight.exp().sum()
            loss.backward()
            optimizer.step()
    window = only_window()
    assert set(origins_of(window, "aten::exp")) == {Origin("call", None, None, "score")}
    assert {origin.scope for origin in origins_of(window, "ExpBackward0")} == {"score"}


def test_flops_shapes_and_bytes_come_from_one_step() -> None:
    with pyrometer.profile():
        train(net(), loader(20))
    addmm = next(operator for operator in only_window().operators if operator.name == "aten::addmm")
    assert (addmm.calls, addmm.shaped_calls) == (10, 2)
    assert addmm.flops == 2 * 4 * (16 * 32 + 32 * 4)
    assert {(shapes.shapes, shapes.calls) for shapes in addmm.shapes} == {
        ("[32] [4, 16] [16, 32]", 1),
        ("[4] [4, 32] [32, 4]", 1),
    }
    assert addmm.input_bytes == 4 * (32 + 4 * 16 + 16 * 32 + 4 + 4 * 32 + 32 * 4)


def test_a_short_program_gets_the_steps_there_are() -> None:
    with pyrometer.profile():
        train(net(), loader(7))
    assert (only_window().first_step, only_window().steps) == (5, 2)


def test_a_program_that_ends_before_is_told_why_there_is_none() -> None:
    with pyrometer.profile():
        train(net(), loader(4))
    assert operators().windows == ()
    assert operators().reason == "the program made 4 steps of a kind, and a window needs 5 before its first"


def test_without_a_loader_the_window_holds_whole_steps_too() -> None:
    import torch

    model = net()
    optimizer = torch.optim.SGD(model.parameters())
    with pyrometer.profile():
        for _ in range(20):
            optimizer.zero_grad()
            model(torch.ones(4, 16)).sum().backward()
            optimizer.step()
    window = only_window()
    assert window.steps == 5
    assert calls_of(window, "aten::addmm") == 10


def test_each_kind_of_step_has_a_window_of_its_own() -> None:
    import torch

    model = net()
    with pyrometer.profile():
        train(model, loader(12))
        with torch.no_grad():
            for inputs, _ in loader(12):
                model(inputs)
    kinds = {window.kind: window for window in operators().windows}
    assert set(kinds) == {"training", "forward"}
    assert calls_of(kinds["forward"], "aten::addmm") == 2 * kinds["forward"].steps
    assert calls_of(kinds["forward"], "AddmmBackward0") == 0


def train_and_evaluate(model: Any, *, every: int, steps: int) -> None:
    import torch

    def after_step() -> None:
        counted[0] += 1
        if counted[0] % every == 0:
            with torch.no_grad():
                model(torch.ones(4, 16))

    counted = [0]
    train(model, loader(steps), after_step=after_step)


def test_steps_that_come_one_at_a_time_get_no_window_nor_disturb_others() -> None:
    with pyrometer.profile():
        train_and_evaluate(net(), every=10, steps=90)
    assert [window.kind for window in operators().windows] == ["training"]
    assert operators().left_out_steps == 8


def test_kinds_that_take_turns_have_a_window_each() -> None:
    with pyrometer.profile():
        train_and_evaluate(net(), every=1, steps=40)
    windows = {window.kind: window for window in operators().windows}
    assert {kind: window.steps for kind, window in windows.items()} == {"training": 5, "forward": 5}
    assert calls_of(windows["training"], "AddmmBackward0") == 2 * 5
    assert calls_of(windows["forward"], "AddmmBackward0") == 0


def test_a_kind_for_which_no_step_comes_in_time_is_given_up() -> None:
    import torch

    model = net()
    with pyrometer.profile():
        for _ in range(8):
            with torch.no_grad():
                for _ in range(4):
                    model(torch.ones(4, 16))
            train(model, loader(20))
    (window,) = operators().windows
    assert window.kind == "training"
    # Three tries: two steps of the kind, one more of others than there may be, and the one after.
    assert operators().left_out_steps <= 8 + 3 * (2 + 5 + 1)


def test_opening_and_closing_a_window_is_in_no_figure_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    # Which the first optimizer would import else, inside the scope.
    import torch._dynamo  # noqa: F401

    from pyrometer import session
    from pyrometer.capture.torch_kineto import KinetoSession

    true_stop = KinetoSession.stop

    def slow_stop(self: KinetoSession) -> Any:
        until_ns = time.perf_counter_ns() + 20_000_000
        bytearray(64 * 1024 * 1024)
        while time.perf_counter_ns() < until_ns:
            pass
        return true_stop(self)

    monkeypatch.setattr(KinetoSession, "stop", slow_stop)
    began_ns = time.perf_counter_ns()
    with pyrometer.profile():
        with pyrometer.scope("epoch"):
            train(net(), loader(20))
        run = session._run_so_far()
    elapsed_ns = time.perf_counter_ns() - began_ns
    (epoch,) = [node for node in run.scopes() if node.name == "epoch"]
    # For shapes and for times, 20 ms each.
    assert run.cost.window_ns > 2 * 20_000_000
    assert epoch.total_ns + run.cost.window_ns < elapsed_ns
    assert run.profiled_ns + run.cost.window_ns < elapsed_ns
    assert run.cost.hook_ns is not None
    if run.allocations is not None and epoch.heap_bytes is not None:
        assert epoch.heap_bytes < 64 * 1024 * 1024
        assert run.allocations.heap_bytes < 64 * 1024 * 1024
        assert run.allocations.peak_bytes < 64 * 1024 * 1024


def test_steady_steps_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrometer.capture.torch_operators._ALIKE", 0.0)
    with pyrometer.profile():
        train(net(), loader(40))
    assert only_window().first_step == 22


def test_a_programs_own_profiler_goes_before_ours() -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile

    with pyrometer.profile(), profile(activities=[ProfilerActivity.CPU]) as theirs:
        train(net(), loader(20))
    assert any(event.name == "aten::addmm" for event in theirs.events())
    assert operators().windows == ()
    assert "torch.profiler" in str(operators().reason)
    assert any("torch.profiler" in reason for _, reason in losses.failures)
    assert not is_profiling(torch)


def test_one_that_starts_in_our_window_finds_the_place_free() -> None:
    from torch.profiler import ProfilerActivity, profile

    model, counted = net(), 0

    def after_step() -> None:
        nonlocal counted
        counted += 1
        if counted == 8:
            with profile(activities=[ProfilerActivity.CPU]) as theirs:
                model(next(iter(loader(1)))[0])
            assert any(event.name == "aten::addmm" for event in theirs.events())

    with pyrometer.profile():
        train(model, loader(20), after_step=after_step)
    assert only_window().steps == 2
    assert counted == 20


def test_a_fork_in_the_window_closes_it() -> None:
    import torch

    counted = 0

    def after_step() -> None:
        nonlocal counted
        counted += 1
        if counted == 8:
            child = os.fork()
            if not child:
                os._exit(int(is_profiling(torch)))
            assert os.waitpid(child, 0)[1] == 0

    with pyrometer.profile():
        train(net(), loader(20), after_step=after_step)
    assert only_window().steps == 2
    assert failures() == []


def test_nothing_is_left_behind() -> None:
    import torch

    profiler: Any = sys.modules["torch.autograd.profiler"]
    before = profiler._enable_profiler
    with pyrometer.profile():
        assert profiler._enable_profiler is not before
        train(net(), loader(7))
        assert is_profiling(torch)
    assert profiler._enable_profiler is before
    assert not is_profiling(torch)
    assert recording.recorder.take_log() == ([], 0)


def test_not_asked_for_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ask(monkeypatch, 0)
    with pyrometer.profile():
        train(net(), loader(20))
    assert seen().operators is None


def test_weights_and_random_numbers_are_the_same_to_the_last_bit() -> None:
    import torch

    def weights() -> list[Any]:
        torch.manual_seed(0)
        model = net()
        model.append(torch.nn.Dropout())
        train(model, loader(20), torch.optim.Adam(model.parameters()))
        return [*(parameter.detach().clone() for parameter in model.parameters()), torch.rand(3)]

    plain = weights()
    with pyrometer.profile():
        watched = weights()
    assert only_window().steps == 5
    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))


@pytest.mark.filterwarnings("ignore")
def test_torch_compiles_what_it_compiles_without_a_window() -> None:
    import torch._dynamo

    def counters() -> dict[str, Any]:
        forget_compiled()
        torch._dynamo.utils.counters.clear()
        model = net()
        train(compiled(model), loader(20), torch.optim.SGD(model.parameters()))
        return {name: dict(counted) for name, counted in torch._dynamo.utils.counters.items()}

    plain = counters()
    with pyrometer.profile():
        watched = counters()
    forget_compiled()
    assert only_window().steps == 5
    assert plain == watched
    assert plain["stats"]["unique_graphs"] == 1


def test_a_window_may_be_asked_for_from_another_thread_while_training_goes_on() -> None:
    found: list[Operators] = []
    counted = 0

    def after_step() -> None:
        nonlocal counted
        counted += 1
        if counted == 15:
            asking = threading.Thread(target=lambda: found.append(operators()))
            asking.start()
            asking.join()

    with pyrometer.profile():
        train(net(), loader(20), after_step=after_step)
    assert found[0].windows == (only_window(),)


def test_steps_phases_modules_scopes_and_operators_are_tracks_of_one_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask(monkeypatch, 2, keeps_events=True)
    with pyrometer.profile(), pyrometer.scope("epoch"):
        train(net(), loader(12))
    only_window()
    watch = recording.torch_watch()
    assert watch is not None
    pieces = watch.trace()
    assert pieces is not None
    events = json.loads("".join(pieces))["traceEvents"]
    tracks = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    spans: dict[str, list[Any]] = {name: [] for name in tracks.values()}
    for event in events:
        if event["ph"] == "X":
            spans[tracks[event["tid"]]].append((event["name"], event["ts"], event["ts"] + event["dur"]))
    steps = spans["steps"]
    assert [name for name, *_ in steps] == ["step 5 (training)", "step 6 (training)"]
    assert [name for name, *_ in spans["scopes"]] == ["epoch"]
    assert {"forward", "backward", "optimizer"} <= {name for name, *_ in spans["phases and modules"]}
    (operators_track,) = (name for name in spans if name.startswith("operators"))
    products = [times for name, *times in spans[operators_track] if name == "aten::addmm"]
    forwards = [times for name, *times in spans["phases and modules"] if name == "forward"]
    in_steps = [each for each in products if any(start <= each[0] < end for _, start, end in steps)]
    assert len(in_steps) == 4
    # On one clock: each product lies in a forward pass.
    assert all(any(start <= each[0] and each[1] <= end for start, end in forwards) for each in in_steps)
