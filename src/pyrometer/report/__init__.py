"""Reports: a Run in, text out, for a terminal, for Markdown and for programs.

Loaded when first used: ``import pyrometer`` imports this package, so that its own ``report()`` is
not replaced by it later, and must not load what renders.
"""

from __future__ import annotations

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from pyrometer.report.json_report import render_json
    from pyrometer.report.markdown import render_markdown
    from pyrometer.report.screen import Screen
    from pyrometer.report.terminal import render_terminal

__all__ = ["Screen", "render_json", "render_markdown", "render_terminal"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pyrometer.report import json_report, markdown, screen, terminal

    globals().update(
        Screen=screen.Screen,
        render_json=json_report.render_json,
        render_markdown=markdown.render_markdown,
        render_terminal=terminal.render_terminal,
    )
    return globals()[name]
