"""How the wrappers around other people's functions are pickled, in C and in Python alike."""

from __future__ import annotations

import sys
from types import FunctionType

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def reduced(wrapper: Any, function: Callable[..., Any]) -> str | tuple[Any, ...]:
    """What ``__reduce__`` of a wrapper gives: what is pickled is what the function alone would be.

    Under the function's own name stands this wrapper, or the function, or another wrapper of it.
    """
    if not isinstance(function, FunctionType):
        return function.__reduce_ex__(4)
    module, name = wrapper.__module__, wrapper.__qualname__
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is wrapper or found != wrapper:
        return str(name)
    from pkgutil import resolve_name

    return resolve_name, (f"{module}:{name}",)
