"""Trees of sources, written for a test."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

from pyrometer.codemap.mapping import make_map
from pyrometer.record.code_map import CodeMap


def write_tree(root: Path, files: Mapping[str, str]) -> Path:
    """Files by their paths; the root."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    return root


def map_of(root: Path, files: Mapping[str, str], *, below: str = "") -> CodeMap:
    """The map of such a tree, or of a folder in it."""
    write_tree(root, files)
    return make_map((root / below).resolve(), project=root.resolve())[0]
