"""The dependencies between modules for other programs: mermaid and DOT; ``colors`` are those of a run."""

import re
from collections.abc import Mapping, Sequence

from pyrometer.analysis.codemap.results import Level
from pyrometer.report.safe_text import escape_controls

_INK = "#1f1b16"
"""Read well on every colour of heat, on a dark page too."""


def render_mermaid(level: Level, colors: Mapping[str, str]) -> str:
    """A flowchart, from who imports down to what is imported, with the number of statements."""
    ids = _ids(level.names)
    lines = ["flowchart TD"]
    lines += (f'    {ids[name]}["{_quoted(name)}"]' for name in level.names)
    lines += (f"    {ids[edge.importer]} -->|{edge.weight}| {ids[edge.imported]}" for edge in level.edges)
    lines += (f"    style {ids[name]} fill:{color},color:{_INK}" for name, color in colors.items())
    return "\n".join(lines) + "\n"


def render_dot(level: Level, colors: Mapping[str, str]) -> str:
    """A digraph for Graphviz, a rank for each layer."""
    ids = _ids(level.names)
    lines = ["digraph modules {", "    rankdir=TB;", "    node [shape=box];"]
    lines += (
        f'    {ids[name]} [label="{_quoted(name)}"{_filled(colors.get(name))}];' for name in level.names
    )
    lines += (
        f"    {{ rank=same; {' '.join(f'{ids[name]};' for name in layer)} }}"
        for layer in level.layers
        if layer
    )
    lines += (
        f"    {ids[edge.importer]} -> {ids[edge.imported]} [label={edge.weight}, weight={edge.weight}];"
        for edge in level.edges
    )
    return "\n".join((*lines, "}")) + "\n"


def _filled(color: str | None) -> str:
    return "" if color is None else f', style=filled, fillcolor="{color}"'


def _ids(names: Sequence[str]) -> dict[str, str]:
    """Names that both languages take, whatever a module is called."""
    return {name: f"m{number}_{re.sub(r'[^A-Za-z0-9]', '_', name)}" for number, name in enumerate(names)}


def _quoted(name: str) -> str:
    return escape_controls(name).replace("\\", "/").replace('"', "'")
