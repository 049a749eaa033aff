"""Programs as words of a command: ``'-m pkg.train --fast'`` names one, and is no option."""

from typing import Any

import typer.core

_MODULE = "-m "


class ProgramWordsCommand(typer.core.TyperCommand):
    """A command whose argument ``words`` may hold programs, a module with its arguments among them."""

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        """Hide the dash of ``-m MODULE`` behind a space while options are looked for."""
        hidden = [f" {word}" if word.startswith(_MODULE) else word for word in arguments]
        rest = super().parse_args(context, hidden)
        words = context.params["words"]
        context.params["words"] = words and [
            word.removeprefix(" ") if word.startswith(f" {_MODULE}") else word for word in words
        ]
        return rest
