"""The JSON Schema of the run format; ``docs/run.schema.json`` is this text.

Write it anew after a change of the record: ``python -m pyrometer.record.schema > docs/run.schema.json``.
"""

import json
import sys

import msgspec

from pyrometer.record.run import Run


def schema_text() -> str:
    """The JSON Schema of the newest version of the format.

    It holds the types and bounds of the fields; what must hold between them is in
    ``docs/run-format.md``.
    """
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Pyrometer run, format version 1",
        **msgspec.json.schema(Run),
    }
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
