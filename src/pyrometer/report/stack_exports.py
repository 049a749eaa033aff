"""The sampled stacks in the formats of other tools: collapsed stacks and speedscope's JSON."""

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

from pyrometer._version import __version__
from pyrometer.analysis.frame_tree import TOP, Frame, FrameKind, FrameTree
from pyrometer.record.run import Run
from pyrometer.report.safe_text import escape_controls, visible

# More frames than that no tool shows, and a record may hold 200,000 stacks.
DEEPEST = 1_000
_LEFT_OUT = "(frames left out)"


class Weight(StrEnum):
    """What a stack's value says."""

    CPU = "cpu"
    """Nanoseconds of CPU time."""
    WALL = "wall"
    """Nanoseconds that went by on its threads, waiting too."""
    SAMPLES = "samples"


def frame_text(frame: Frame) -> str:
    """A frame in one line: ``Linear.forward (torch.nn.modules.linear)``, ``sgemm [libblas.so]``."""
    name = escape_controls(visible(frame.name))
    if not frame.module or (frame.kind is FrameKind.NATIVE and frame.module in frame.name):
        return name
    brackets = "[]" if frame.kind is FrameKind.NATIVE else "()"
    return f"{name} {brackets[0]}{escape_controls(frame.module)}{brackets[1]}"


def collapsed_lines(tree: FrameTree, weight: Weight) -> Iterator[str]:
    """Each stack in a line, frames from the outermost with semicolons between them, then its value."""
    texts = [frame_text(frame).replace(";", ":") for frame in tree.frames]
    for node, value in _valued(tree, weight):
        stack = _stack(tree, node)
        start = [_LEFT_OUT] if tree.parents[stack[0]] != TOP else []
        names = ";".join((*start, *(texts[tree.frame_of[index]] for index in stack)))
        yield f"{names} {value}\n"


def render_speedscope(run: Run, tree: FrameTree) -> str:
    """A file for speedscope, with CPU time, wall time and samples to choose from."""
    titles = {Weight.CPU: "CPU time", Weight.WALL: "wall time", Weight.SAMPLES: "samples"}
    content = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": escape_controls(run.program.name),
        "exporter": f"pyrometer {__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": [_speedscope_frame(frame) for frame in tree.frames]},
        "profiles": [_speedscope_profile(tree, weight, title) for weight, title in titles.items()],
    }
    return json.dumps(content, separators=(",", ":"), allow_nan=False) + "\n"


def _speedscope_frame(frame: Frame) -> dict[str, Any]:
    content: dict[str, Any] = {"name": frame_text(frame)}
    if frame.file:
        content["file"] = frame.file
    if frame.first_line is not None:
        content["line"] = frame.first_line
    return content


def _speedscope_profile(tree: FrameTree, weight: Weight, title: str) -> dict[str, Any]:
    valued = list(_valued(tree, weight))
    return {
        "type": "sampled",
        "name": title,
        "unit": "none" if weight is Weight.SAMPLES else "nanoseconds",
        "startValue": 0,
        "endValue": sum(value for _, value in valued),
        "samples": [[tree.frame_of[index] for index in _stack(tree, node)] for node, _ in valued],
        "weights": [value for _, value in valued],
    }


def _valued(tree: FrameTree, weight: Weight) -> Iterator[tuple[int, int]]:
    """The nodes that have a value themselves."""
    values: Sequence[int] = {
        Weight.CPU: tree.cpu_ns,
        Weight.WALL: tree.wall_ns,
        Weight.SAMPLES: tree.samples,
    }[weight]
    return ((node, value) for node, value in enumerate(values) if value)


def _stack(tree: FrameTree, node: int) -> list[int]:
    """The nodes from the outermost to this one; of a very deep stack the innermost."""
    stack: list[int] = []
    index = node
    while index != TOP and len(stack) < DEEPEST:
        stack.append(index)
        index = tree.parents[index]
    stack.reverse()
    return stack
