"""Runs the example programs as a user would: in a process of their own, in some folder."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pyrometer.analysis.call_tree import TreeNode, build_call_tree
from pyrometer.store.run_files import read_run

EXAMPLES = Path(__file__).parents[2] / "examples"
# A guard against a program that waits for ever, not a measurement.
GIVE_UP_AFTER_S = 600

_TREE_LINE = re.compile(r"^(?P<branches>[│├└─ ]*)(?P<name>[A-Za-z]\w*)(?: ∥)?  ")


def run_program(arguments: Sequence[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    """The finished program, started with this Python in ``folder``."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYROMETER")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=inherited | {"PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=GIVE_UP_AFTER_S,
    )


def nodes_by_path(run_file: Path) -> dict[tuple[str, ...], TreeNode]:
    """Every scope of a run, by the names from the top down to it."""
    return {node.path: node for _, node in build_call_tree(read_run(run_file)).walk()}


def paths_in_report(report: str) -> set[tuple[str, ...]]:
    """The scopes of a report's tree, by the names from the top down to them."""
    paths: set[tuple[str, ...]] = set()
    path: list[str] = []
    _, _, tree = report.partition("\nTree")
    for line in tree.splitlines():
        if (match := _TREE_LINE.match(line)) is not None:
            # A level is as wide as "├─ ".
            del path[len(match["branches"]) // 3 :]
            path.append(match["name"])
            paths.add(tuple(path))
    return paths
