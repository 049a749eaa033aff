"""The baseline as the text of its file, and the JSON Schema of that.

Write the schema anew after a change:
``python -m pyrometer.report.baseline_file > docs/baseline.schema.json``.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from pyrometer.analysis.baseline import BASELINE_VERSION, Baseline
from pyrometer.analysis.saved_baseline import PlainBaseline, SavedBaseline, plain_baseline
from pyrometer.record.format import encode_run

_SAVED_KEYS: dict[str, Any] = {
    "name": {"type": "string", "description": "What it was saved as."},
    "saved_at": {"type": "string", "description": "ISO 8601 with the offset to UTC."},
    "runs": {
        "type": "object",
        "description": "By configuration, each run as in run.schema.json.",
        "additionalProperties": {"type": "array", "minItems": 1, "items": {"type": "object"}},
    },
}


def render_baseline(saved: SavedBaseline) -> str:
    """The text of the file: plain ASCII, what it is first, a line for each figure and for each run."""
    figures = plain_baseline(saved) if saved.figures is None else saved.figures
    content: dict[str, Any] = {"format": figures.format, "version": figures.version}
    if saved.name is not None:
        content |= {"name": saved.name, "saved_at": saved.saved_at}
    text = _readable_json(content | msgspec.to_builtins(figures), indent=2)
    if saved.runs:
        text = text.removesuffix("\n}") + ',\n  "runs": {\n' + ",\n".join(_runs(saved)) + "\n  }\n}"
    return f"{text}\n"


def _runs(saved: SavedBaseline) -> Iterator[str]:
    for key, runs in saved.runs.items():
        # On one line each: what changes in a file under version control is then one line a run.
        lines = ",\n".join("      " + _readable_json(json.loads(encode_run(run))) for run in runs)
        yield f"    {_readable_json(key)}: [\n{lines}\n    ]"


def _readable_json(content: Any, *, indent: int | None = None) -> str:
    """Plain ASCII. An argument that is not UTF-8 has question marks: escaped, few could read it again."""
    text = json.dumps(content, allow_nan=False, ensure_ascii=False)
    whole = json.loads(text.encode("utf-8", "replace"))
    return json.dumps(whole, allow_nan=False, indent=indent, separators=None if indent else (",", ":"))


def schema_text() -> str:
    """The JSON Schema of the newest version of the format."""
    forms, parts = msgspec.json.schema_components([Baseline, PlainBaseline], ref_template="#/$defs/{name}")
    for name in (Baseline.__name__, PlainBaseline.__name__):
        parts[name]["properties"] |= _SAVED_KEYS
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Pyrometer baseline, format version {BASELINE_VERSION}",
        "anyOf": list(forms),
        "$defs": parts,
    }
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
