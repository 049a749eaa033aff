"""Where stacks cannot be sampled: without the compiled core, or where it does not know the interpreter."""

from __future__ import annotations

import sys

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Sampler:
    """What the core's sampler is, without stacks."""

    running = False

    def __init__(self, **_: Any) -> None:
        """Take the same arguments."""

    def start(self) -> str:
        """Why that cannot be."""
        version = ".".join(map(str, sys.version_info[:2]))
        return (
            f"only the compiled core can read stacks, and only on Linux, from Python 3.11 to 3.13 "
            f"(this is {version} on {sys.platform})"
        )

    def stop(self) -> None:
        """Do nothing: it never runs."""

    def reset(self) -> None:
        """Forget nothing."""

    def see_calls(self, _: object) -> None:
        """Note nothing."""

    def leave_out(self) -> None:
        """Nothing is looked at anyway."""

    def own_stack(self) -> None:
        """Not to be had."""
