"""The stacks of both sides of a comparison as one flame graph: as wide as after, coloured by the change.

A frame is grey where its share changed by no more than samples vary by themselves.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyrometer.analysis.comparison.model import FrameDiff
from pyrometer.analysis.comparison.samples import frame_shares
from pyrometer.analysis.frame_tree import TOP
from pyrometer.report.flamegraph import LETTER, MARGIN, Look, draw_flamegraph
from pyrometer.report.safe_text import escape_controls, shorten_middle, visible
from pyrometer.report.sample_wording import frame_name
from pyrometer.stats.shares import share_interval
from pyrometer.units import format_share

MOST_VANISHED = 10
_LEAST_VANISHED_SHARE = 0.001
_LONGEST_NAME = 80
_LEGEND_Y = 72

# From the largest loss to the largest gain: blue and red, which nearly all eyes can tell apart.
_SHADES = (
    ("#5b9fd6", "shrank ≥ 5 points"),
    ("#93c4e8", "≥ 1"),
    ("#cbe3f3", "less"),
    ("#d9d6cf", "same, as far as samples tell"),
    ("#f9cfc0", "grew less"),
    ("#f29f86", "≥ 1"),
    ("#e8694f", "≥ 5 points"),
)
_SAME = 3
_ALL = len(_SHADES)
_STEPS = (0.01, 0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanished:
    """A frame that is in no stack of after, with all below it."""

    name: str
    module: str
    share: float
    """Before."""


def render_diff_flamegraph(diff: FrameDiff, program: str) -> str:
    """The flame graph as an SVG file of its own."""
    return draw_flamegraph(diff.after, diff_look(diff, program))


def diff_look(diff: FrameDiff, program: str) -> Look:
    """What it shows beside the frames."""
    shares = frame_shares(diff)
    shades = [_shade(before, after, diff) for before, after in shares]
    notes = [f"before {format_share(before)} ({_points(before, after)})" for before, after in shares]
    before, after = diff.samples
    return Look(
        title=f"What changed in {shorten_middle(escape_controls(visible(program)), _LONGEST_NAME)}",
        measures={"cpu": f"as wide as after: shares of CPU time by {before:,} and {after:,} samples"},
        effective_samples=diff.effective_samples,
        styles=_styles(),
        legend=_legend(),
        kind_of=lambda node: _ALL if node == TOP else shades[node],
        note_of=lambda node: "all of both sides" if node == TOP else notes[node],
        below=tuple(_vanished_lines(find_vanished(diff))),
    )


def find_vanished(diff: FrameDiff) -> tuple[Vanished, ...]:
    """Frames met only before, largest first, without those below another one of them."""
    tree, shares = diff.after, frame_shares(diff)
    found = []
    for node, (before, after) in enumerate(shares):
        parent = tree.parents[node]
        is_outermost = parent == TOP or shares[parent][1] > 0
        if before >= _LEAST_VANISHED_SHARE and after == 0 and is_outermost:
            frame = tree.frames[tree.frame_of[node]]
            found.append(Vanished(name=frame_name(frame), module=frame.module, share=before))
    return tuple(sorted(found, key=lambda one: -one.share))


def _vanished_lines(vanished: Sequence[Vanished]) -> Iterator[str]:
    if not vanished:
        return
    yield "Vanished, with what they took before:"
    for one in vanished[:MOST_VANISHED]:
        name = f"{one.name} ({one.module})" if one.module else one.name
        yield f"{format_share(one.share)} {shorten_middle(escape_controls(name), _LONGEST_NAME)}"
    if len(vanished) > MOST_VANISHED:
        yield f"and {len(vanished) - MOST_VANISHED:,} more"


def _shade(before: float, after: float, diff: FrameDiff) -> int:
    """The colour of a change of share; that of no change where both margins hold it."""
    change = after - before
    # Before has about as many samples for each effective one as after has.
    per_sample = diff.effective_samples / diff.samples[1] if diff.samples[1] else 0.0
    margins = (
        share_interval(before, diff.samples[0] * per_sample).margin,
        share_interval(after, diff.effective_samples).margin,
    )
    if abs(change) <= math.hypot(*margins):
        return _SAME
    size = 1 + sum(abs(change) >= step for step in _STEPS)
    return _SAME + (size if change > 0 else -size)


def _points(before: float, after: float) -> str:
    return f"{100 * (after - before):+.1f} points"


def _styles() -> str:
    shades = (f".k{index} rect {{ fill: {colour}; }}" for index, (colour, _) in enumerate(_SHADES))
    return "\n".join((*shades, f".k{_ALL} rect {{ fill: #e6e2da; }}", ""))


def _legend() -> str:
    x, parts = MARGIN, []
    for colour, text in _SHADES:
        parts.append(f'<rect x="{x}" y="{_LEGEND_Y - 10}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 17}" y="{_LEGEND_Y}">{text}</text>')
        x += 17 + round(LETTER * len(text)) + 14
    return f'<g class="legend">{"".join(parts)}</g>'
