"""The page around the views: one HTML file that needs nothing else.

Its data stands in it as JSON, its script makes all there is to see from that, by text alone. A policy in
the page allows the scripts and styles in it, by their hashes, and nothing besides.
"""

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from pyrometer.report.safe_text import escape_controls, shorten_middle

_SCRIPTS = (
    "units.js", "elements.js", "files.js", "rows.js", "grid.js", "charts.js", "flame.js", "codemap.js",
    "blocks.js", "findings.js", "page.js",
)  # fmt: skip
_STYLES = ("page.css", "parts.css", "print.css")
_ASSETS = "pyrometer.report.page_assets"
_LONGEST_TITLE = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An SVG that a block of a view shows, with the script and the style that stand in it, if any."""

    key: str
    svg: str
    script: str | None = None
    style: str | None = None


def fill_page(
    *,
    subject: str,
    command: str,
    contents: dict[str, Any],
    views: Iterable[dict[str, Any]],
    pictures: Sequence[Picture] = (),
    run_data: str | None = None,
) -> str:
    """The page of these views; ``command`` prints the same as text, ``run_data`` is a run to be saved."""
    script = "".join(("(function () {\n", '"use strict";\n', *map(_asset, _SCRIPTS), "})();\n"))
    style = "".join(map(_asset, _STYLES))
    title = shorten_middle(escape_controls(subject), _LONGEST_TITLE)
    scripts = [script, *(picture.script for picture in pictures if picture.script is not None)]
    styles = [style, *(picture.style for picture in pictures if picture.style is not None)]
    parts = {
        "policy": _policy(scripts, styles),
        "title": html.escape(f"{title} – Pyrometer"),
        "style": style,
        "command": html.escape(command),
        "pictures": "\n".join(
            f'<template id="{picture.key}-picture">{picture.svg}</template>' for picture in pictures
        ),
        "contents": as_script_data(contents),
        "views": "\n".join(map(_view_data, views)),
        "run": ""
        if run_data is None
        else f'<script type="application/gzip" id="run-data">{run_data}</script>',
        "script": script,
    }
    # Each part goes to its own place: what stands in one is never looked through for another.
    pieces = _asset("page.html").split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += (parts[name], rest)
    return "".join(filled)


def as_script_data(content: Any) -> str:
    """JSON that can stand in a script element: nothing in a name ends it, or starts a comment."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _view_data(view: dict[str, Any]) -> str:
    """The blocks of a view in an element of their own: they are read when the view is first seen."""
    content = as_script_data(view["blocks"])
    return f'<script type="application/json" id="data-{view["key"]}">{content}</script>'


def _policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    return (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; "
        f"style-src {' '.join(map(_hash, styles))}; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _asset(name: str) -> str:
    return files(_ASSETS).joinpath(name).read_text(encoding="utf-8")
