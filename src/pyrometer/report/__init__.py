"""Reports: a Run in, text out, for a terminal, for Markdown and for programs."""

from pyrometer.report.json_report import render_json
from pyrometer.report.markdown import render_markdown
from pyrometer.report.screen import Screen
from pyrometer.report.terminal import render_terminal

__all__ = ["Screen", "render_json", "render_markdown", "render_terminal"]
