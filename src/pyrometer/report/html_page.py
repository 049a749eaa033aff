"""The report as one HTML page that needs nothing else: no network, no other file, no build.

Its data stands in it as JSON, its script makes all there is to see from that, by text alone. A policy in
the page allows that one script and its styles, by their hashes, and nothing besides.
"""

import base64
import hashlib
import html
import json
import zlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from pyrometer.analysis.findings.find import find
from pyrometer.analysis.findings.model import Findings
from pyrometer.analysis.observed import Observed, observe
from pyrometer.analysis.targets import TargetResult
from pyrometer.record.format import encode_run
from pyrometer.record.run import Run
from pyrometer.report.page_views.roofline import roofline_picture
from pyrometer.report.page_views.views import build_contents, build_views
from pyrometer.report.safe_text import escape_controls, shorten_middle

_SCRIPTS = (
    "units.js", "elements.js", "files.js", "rows.js", "grid.js", "charts.js", "flame.js", "blocks.js",
    "findings.js", "page.js",
)  # fmt: skip
_STYLES = ("page.css", "parts.css", "print.css")
_ASSETS = "pyrometer.report.page_assets"
_LONGEST_TITLE = 120
# A gzip file, so that what is downloaded where no stream can be unpacked is one that we read as well.
_GZIP = 31


def render_html(
    run: Run | Observed, *, findings: Findings | None = None, targets: Sequence[TargetResult] = ()
) -> str:
    """The page of a run; ``findings`` are found anew unless they are given."""
    observed = observe(run)
    return _fill(observed, find(observed) if findings is None else findings, targets)


def _fill(observed: Observed, findings: Findings, targets: Sequence[TargetResult]) -> str:
    program = shorten_middle(escape_controls(observed.run.program.name), _LONGEST_TITLE)
    script = "".join(("(function () {\n", '"use strict";\n', *map(_asset, _SCRIPTS), "})();\n"))
    style = "".join(map(_asset, _STYLES))
    views = build_views(observed, findings, targets)
    parts = {
        "policy": _policy(script, style),
        "title": html.escape(f"{program} – Pyrometer"),
        "style": style,
        "roofline": roofline_picture(observed) or "",
        "contents": as_script_data(build_contents(observed, views)),
        "views": "\n".join(_view_data(view) for view in views),
        "run": _packed(encode_run(observed.run)),
        "script": script,
    }
    page = _asset("page.html")
    # Each part goes to its own place: what stands in one is never looked through for another.
    pieces = page.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += (parts[name], rest)
    return "".join(filled)


def _view_data(view: dict[str, Any]) -> str:
    """The blocks of a view in an element of their own: they are read when the view is first seen."""
    content = as_script_data(view["blocks"])
    return f'<script type="application/json" id="data-{view["key"]}">{content}</script>'


def as_script_data(content: Any) -> str:
    """JSON that can stand in a script element: nothing in a name ends it, or starts a comment."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _policy(script: str, style: str) -> str:
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _packed(data: bytes) -> str:
    packer = zlib.compressobj(level=9, wbits=_GZIP)
    return base64.b64encode(packer.compress(data) + packer.flush()).decode("ascii")


def _asset(name: str) -> str:
    return files(_ASSETS).joinpath(name).read_text(encoding="utf-8")
