"""Runs a program with Lightning's own phase timers around the calls Lightning's loop puts them around.

python phase_timers.py PROGRAM ARGUMENTS...
"""

import functools
import runpy
import sys
from collections.abc import Callable
from typing import Any

import torch
from lightning.pytorch.profilers import SimpleProfiler
from torch.utils.data.dataloader import _BaseDataLoaderIter

profiler = SimpleProfiler()


def timed(action: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The call inside the timer of that name."""

    @functools.wraps(call)
    def inside(*arguments: Any, **named: Any) -> Any:
        with profiler.profile(action):
            return call(*arguments, **named)

    return inside


def time_phases() -> None:
    """Put the timers around fetching, the root module's forward, backward, clearing and the update."""
    fetch = _BaseDataLoaderIter.__next__
    _BaseDataLoaderIter.__next__ = timed("train_dataloader_next", fetch)  # type: ignore[method-assign]
    torch.Tensor.backward = timed("backward", torch.Tensor.backward)  # type: ignore[method-assign]
    make_optimizer = torch.optim.Optimizer.__init__

    def made(optimizer: Any, *arguments: Any, **named: Any) -> None:
        make_optimizer(optimizer, *arguments, **named)
        optimizer.step = timed("optimizer_step", optimizer.step)
        optimizer.zero_grad = timed("optimizer_zero_grad", optimizer.zero_grad)

    torch.optim.Optimizer.__init__ = made  # type: ignore[method-assign,assignment]
    call_module = torch.nn.Module.__call__

    def first_called(module: Any, *arguments: Any, **named: Any) -> Any:
        # The first module called is the model: from here on only its own forward is timed.
        torch.nn.Module.__call__ = call_module  # type: ignore[method-assign]
        module.forward = timed("training_step", module.forward)
        return module(*arguments, **named)

    torch.nn.Module.__call__ = first_called  # type: ignore[method-assign]


program = sys.argv[1]
sys.argv = sys.argv[1:]
time_phases()
runpy.run_path(program, run_name="__main__")
print(profiler.summary(), file=sys.stderr)
