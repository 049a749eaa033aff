"""Programs that compile, and how to run them with and without replacements of ours in place."""

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any, Self

from pyrometer._native import twin
from pyrometer._native.core import Before
from pyrometer.capture.patches import Patches
from pyrometer.capture.torch_compilation import CompilationWatch
from pyrometer.record.torch_run import Compilation

Program = Callable[[], Any]
Wrap = Callable[[Any], Any]


def as_ours(function: Any) -> Any:
    """The function, as if it stood in a file of the package: Dynamo leaves those alone."""
    function.__code__ = function.__code__.replace(co_filename=twin.__file__)
    return function


def in_python(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        calls.append(function.__name__)
        return function(*arguments, **named)

    return as_ours(wrapper)


def in_c(function: Any) -> Any:
    return Before(as_ours(lambda *_, **__: calls.append(function.__name__)), function)


calls: list[str] = []
"""The functions that were called while a replacement of ours stood in their place."""


class Watched:
    """Replacements in place, as a profiled run has them, and the watch under test."""

    def __init__(self, wrap: Wrap) -> None:
        import torch
        from torch.nn import functional

        self.patches = Patches()
        self.watch = CompilationWatch()
        for owner, name in (
            (torch.nn.Module, "__call__"),
            (functional, "cross_entropy"),
            (functional, "mse_loss"),
            (torch.optim.Optimizer, "zero_grad"),
            (torch.nn.utils, "clip_grad_norm_"),
            (torch.autograd, "_engine_run_backward"),
        ):
            self.patches.replace(owner, name, wrap(getattr(owner, name)))

    def __enter__(self) -> Self:
        self.watch.install(self.patches)
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.remove()
        self.patches.remove()


def counted(program: Program) -> tuple[Any, dict[str, dict[str, int]]]:
    """The program's result, and what Dynamo counted meanwhile."""
    import torch
    from torch._dynamo.convert_frame import register_bytecode_hook
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    codes = Counter[str]()
    seen = register_bytecode_hook(lambda code, _: codes.update([code.co_qualname]))
    result = program()
    seen.remove()
    kept = ("frames", "stats", "graph_break", "unimplemented", "aot_autograd")
    found = {name: dict(values) for name, values in counters.items() if name in kept}
    found["compiled"] = dict(codes)
    return result, found


def same_with_and_without(program: Program, wrap: Wrap) -> Compilation | None:
    """Check that the program does the same with our replacements, and give what was recorded."""
    import torch
    from torch.nn import functional

    theirs = torch.nn.Module.__call__, functional.cross_entropy
    plain, plain_counters = counted(program)
    with Watched(wrap) as watched:
        result, watched_counters = counted(program)
        recorded = watched.watch.record()
        assert watched.patches.is_installed(torch.nn.Module, "__call__")
    assert watched_counters == plain_counters
    assert torch.equal(torch.as_tensor(result), torch.as_tensor(plain))
    assert (torch.nn.Module.__call__, functional.cross_entropy) == theirs
    return recorded


def net() -> Any:
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
            self.head = torch.nn.Linear(8, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = self.head(self.inner(x))
            return y

    return Net()


def batch(size: int = 16) -> Any:
    import torch

    return torch.randn(size, 8), torch.randint(0, 4, (size,))


def compiled(model: Any, **options: Any) -> Any:
    import torch

    return torch.compile(model, **{"backend": "eager"} | options)
