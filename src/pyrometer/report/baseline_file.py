"""The baseline as the text of its file, and the JSON Schema of that.

Write the schema anew after a change:
``python -m pyrometer.report.baseline_file > docs/baseline.schema.json``.
"""

import json
import sys

import msgspec

from pyrometer.analysis.baseline import BASELINE_VERSION, Baseline


def render_baseline(baseline: Baseline) -> str:
    """The text of the file: plain ASCII, what it is first, a line for each figure."""
    content = {"format": baseline.format, "version": baseline.version, **msgspec.to_builtins(baseline)}
    return json.dumps(content, allow_nan=False, indent=2) + "\n"


def schema_text() -> str:
    """The JSON Schema of the newest version of the format."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Pyrometer baseline, format version {BASELINE_VERSION}",
        **msgspec.json.schema(Baseline),
    }
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
