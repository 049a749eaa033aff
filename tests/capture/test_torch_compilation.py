"""torch.compile does with our replacements in place what it does without."""

import functools
import io
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pyrometer.capture import losses
from pyrometer.capture.patches import Patches
from pyrometer.capture.torch_compilation import CompilationWatch
from tests.compiling import (
    Program,
    Watched,
    Wrap,
    batch,
    calls,
    compiled,
    counted,
    in_c,
    in_python,
    net,
    same_with_and_without,
)

# What torch warns of in these programs, it warns of without us too.
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(params=[in_python, in_c])
def wrap(request: pytest.FixtureRequest) -> Wrap:
    wrap: Wrap = request.param
    return wrap


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    import torch._dynamo

    yield
    torch._dynamo.reset()
    losses.failures.clear()
    calls.clear()


def test_a_compiled_model_is_the_same(wrap: Wrap) -> None:
    import torch

    def program() -> Any:
        model = compiled(net(), backend="aot_eager")
        return torch.stack([model(batch()[0]).sum() for _ in range(5)])

    recorded = same_with_and_without(program, wrap)
    assert recorded is not None
    assert recorded.graphs == 1
    assert recorded.graph_breaks == recorded.recompilations == 0
    assert recorded.compile_ns > 0


def test_a_compiled_model_of_torchs_own_class_is_the_same(wrap: Wrap) -> None:
    import torch

    def program() -> Any:
        model = compiled(net().inner, fullgraph=True)
        return torch.stack([model(batch()[0]).sum() for _ in range(5)])

    same_with_and_without(program, wrap)


def test_a_whole_graph_can_be_demanded(wrap: Wrap) -> None:
    import torch
    from torch.nn import functional

    def program() -> Any:
        model = net()

        @torch.compile(backend="eager", fullgraph=True)
        def loss_of(x: Any, y: Any) -> Any:
            return functional.cross_entropy(model(x), y)

        return torch.stack([loss_of(*batch()) for _ in range(12)])

    recorded = same_with_and_without(program, wrap)
    assert recorded is not None
    assert recorded.graphs == 1


def test_a_model_that_compiles_itself_is_the_same(wrap: Wrap) -> None:
    import torch

    def program() -> Any:
        model = net()
        model.compile(backend="eager", fullgraph=True)
        return torch.stack([model(batch()[0]).sum() for _ in range(5)])

    same_with_and_without(program, wrap)


def test_a_loss_module_inside_compiled_code_is_the_same(wrap: Wrap) -> None:
    import torch

    def program() -> Any:
        model, criterion = net(), torch.nn.CrossEntropyLoss()

        @torch.compile(backend="aot_eager")
        def loss_of(x: Any, y: Any) -> Any:
            return criterion(model(x), y)

        return torch.stack([loss_of(*batch()) for _ in range(12)])

    same_with_and_without(program, wrap)


def step_of_a_compiled_optimizer() -> Any:
    import torch
    from torch.nn import functional

    model = net()
    optimizer = torch.optim.Adam(model.parameters())

    @torch.compile(backend="eager")
    def step() -> None:
        optimizer.step()

    for _ in range(4):
        x, y = batch()
        torch.autograd.backward(functional.cross_entropy(model(x), y))
        step()
        optimizer.zero_grad()
    return model.head.weight.detach()


def compiled_training() -> Any:
    import torch
    from torch.nn import functional

    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile(backend="aot_eager")
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return torch.stack([step(*batch()) for _ in range(12)])


def step_that_is_compiled_itself() -> Any:
    import torch

    model = net()
    optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.01))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    step = torch.compile(optimizer.step, backend="eager")
    for _ in range(4):
        optimizer.zero_grad()
        model(batch()[0]).sum().backward()
        step()
        schedule.step()
    return model.head.weight.detach()


COMPILED_STEPS = [step_of_a_compiled_optimizer, step_that_is_compiled_itself, compiled_training]


@pytest.mark.parametrize("program", COMPILED_STEPS)
def test_a_compiled_training_step_is_the_same(wrap: Wrap, program: Program) -> None:
    same_with_and_without(program, wrap)


@pytest.mark.parametrize("program", COMPILED_STEPS)
def test_a_compiled_training_step_is_the_same_to_the_whole_watch(program: Program) -> None:
    import torch

    from pyrometer.capture.torch_watch import TorchWatch

    plain, plain_counters = counted(program)
    watch = TorchWatch(torch)
    watch.start()
    try:
        result, watched_counters = counted(program)
    finally:
        watch.stop()
    assert watched_counters == plain_counters
    assert torch.equal(result, plain)


def test_changing_shapes_compile_as_often(wrap: Wrap) -> None:
    import torch
    from torch.nn import functional

    def program() -> Any:
        model = net()

        @torch.compile(backend="eager")
        def loss_of(x: Any, y: Any) -> Any:
            return functional.cross_entropy(model(x), y)

        return torch.stack([loss_of(*batch(size)) for size in (16, 5, 7, 9, 16)])

    recorded = same_with_and_without(program, wrap)
    assert recorded is not None
    assert (recorded.graphs, recorded.recompilations) == (2, 1)


def test_a_function_taken_by_its_name_while_replaced_is_seen_through(wrap: Wrap) -> None:
    import torch
    import torch.nn.functional

    def program() -> Any:
        from torch.nn.functional import cross_entropy

        model = net()
        loss_function = functools.partial(cross_entropy, label_smoothing=0.1)

        @torch.compile(backend="eager", fullgraph=True)
        def loss_of(x: Any, y: Any) -> Any:
            return cross_entropy(model(x), y) + loss_function(model(x), y)

        return torch.stack([loss_of(*batch()) for _ in range(12)])

    same_with_and_without(program, wrap)


def test_a_replaced_function_can_itself_be_compiled(wrap: Wrap) -> None:
    import torch
    from torch.nn import functional

    def program() -> Any:
        loss_of = torch.compile(functional.mse_loss, backend="eager", fullgraph=True)
        return torch.stack([loss_of(torch.ones(3), torch.zeros(3)) for _ in range(12)])

    same_with_and_without(program, wrap)


def test_a_reset_in_the_middle_changes_nothing(wrap: Wrap) -> None:
    import torch
    from torch.nn import functional

    def program() -> Any:
        model = compiled(net(), fullgraph=True)
        losses_seen = []
        for _ in range(3):
            x, y = batch()
            losses_seen.append(functional.cross_entropy(model(x), y))
            torch._dynamo.reset()
        return torch.stack(losses_seen)

    recorded = same_with_and_without(program, wrap)
    assert recorded is not None
    assert (recorded.graphs, recorded.recompilations) == (3, 0)


def test_graph_breaks_are_counted_with_their_reasons(wrap: Wrap) -> None:
    import torch

    def program() -> Any:
        model = net()

        @torch.compile(backend="eager")
        def broken(x: Any) -> Any:
            y = model(x)
            print(end="", file=io.StringIO())
            torch._dynamo.graph_break()
            return model(y @ torch.ones(4, 8))

        return torch.stack([broken(batch()[0]).sum() for _ in range(3)])

    recorded = same_with_and_without(program, wrap)
    assert recorded is not None
    assert recorded.graph_breaks == sum(count for _, count in recorded.break_reasons) > 0
    assert "Call to `torch._dynamo.graph_break()`" in dict(recorded.break_reasons)
    assert all("\n" not in reason for reason, _ in recorded.break_reasons)


def test_an_error_while_compiling_leaves_the_replacements_in_place(wrap: Wrap) -> None:
    import torch

    def refuse(*_: Any) -> Any:
        raise ValueError("no such backend")

    with Watched(wrap) as watched:
        model = compiled(net(), backend=refuse)
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
            model(batch()[0])
        assert watched.patches.is_installed(torch.nn.Module, "__call__")
        calls.clear()
        net()(batch()[0])
    assert calls[0] == "_wrapped_call_impl"


def test_only_what_compiled_code_depends_on_is_retired(wrap: Wrap) -> None:
    import torch
    from torch.nn import functional

    model = net()

    @torch.compile(backend="eager")
    def loss_of(x: Any, y: Any) -> Any:
        return functional.cross_entropy(model(x), y)

    with Watched(wrap) as watched:
        loss_of(*batch())
        retired = [
            name
            for owner, name in (
                (functional, "cross_entropy"),
                (functional, "mse_loss"),
                (torch.nn.Module, "__call__"),
            )
            if not watched.patches.is_installed(owner, name)
        ]
    assert retired == ["cross_entropy"]
    ((collector, reason),) = losses.failures
    assert collector == "torch.compile"
    assert "torch.nn.functional.cross_entropy" in reason


def test_two_threads_that_compile_leave_the_replacements_in_place(wrap: Wrap) -> None:
    import torch

    def program() -> Any:
        models = [compiled(net()) for _ in range(2)]
        results: list[Any] = [None, None]

        def run(index: int) -> None:
            results[index] = models[index](torch.ones(2, 8)).sum().detach()

        threads = [threading.Thread(target=run, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return torch.stack(results)

    same_with_and_without(program, wrap)


def test_what_was_compiled_before_is_not_counted() -> None:
    import torch

    compiled(net())(batch()[0])
    with Watched(in_c) as watched:
        assert watched.watch.record() is None
        torch._dynamo.utils.counters.clear()
        compiled(net().head)(batch()[0])
        recorded = watched.watch.record()
    assert recorded is not None
    assert recorded.graphs == 1


def test_compiling_is_timed_by_the_given_clock() -> None:

    times = iter([1_000, 5_000])
    watch = CompilationWatch(clock_ns=lambda: next(times))
    watch.install(Patches())
    compiled(net())(batch()[0])
    recorded = watch.record()
    watch.remove()
    assert recorded is not None
    assert recorded.compile_ns == 4_000


def test_dynamo_is_waited_for_and_not_imported() -> None:
    program = """
import sys, torch
from pyrometer.capture.patches import Patches
from pyrometer.capture.torch_compilation import CompilationWatch
watch, patches = CompilationWatch(), Patches()
original = torch.nn.Module.__call__
patches.replace(torch.nn.Module, "__call__", lambda *arguments: original(*arguments))
watch.install(patches)
torch.jit.script(torch.nn.Linear(2, 2))
assert "torch._dynamo" not in sys.modules
model = torch.compile(torch.nn.Linear(2, 2), backend="eager", fullgraph=True)
model(torch.ones(2))
print(watch.record().graphs)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr


def test_removed_it_leaves_nothing_behind() -> None:
    import torch
    from torch._dynamo import convert_frame, guards
    from torch._dynamo.callback import callback_handler

    def state() -> list[object]:
        return [
            dict(vars(callback_handler)),
            guards.CheckFunctionManager.__init__,
            convert_frame.compile_frame,
            torch._dynamo.eval_frame.OptimizedModule._initialize,
            torch.fx.Tracer.trace,
            vars(torch.jit._script)["_script_impl"],
            list(sys.meta_path),
        ]

    before = state()
    with Watched(in_c):
        assert state() != before
    assert state() == before
