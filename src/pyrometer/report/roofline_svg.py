"""The roofline as a picture: one SVG file that needs nothing else, on logarithmic axes."""

import math
from collections.abc import Iterator, Sequence
from html import escape

from pyrometer.analysis.roofline import Bound, Placed, Roofs
from pyrometer.analysis.torch_roofline import Roofline
from pyrometer.report.safe_text import escape_controls, shorten_middle, visible
from pyrometer.report.torch_operators import operator_name
from pyrometer.report.torch_roofline import describe_roofs
from pyrometer.units import format_rate, format_share, three_digits

_WIDTH, _HEIGHT = 960, 620
_LEFT, _TOP, _END, _FLOOR = 84, 76, 936, 524
_COLORS = {
    Bound.COMPUTE: "#1f6fb4",
    Bound.MEMORY: "#b8470f",
    Bound.OVERHEAD: "#6b6b6b",
    Bound.NEITHER: "#7a4fa3",
}
_LARGEST_DOT, _SMALLEST_DOT = 11.0, 4.0
_MOST_DOTS = 300
_MOST_LABELS = 14
_LABEL_HEIGHT = 15
_LABEL_LENGTH = 28
_FARTHEST = 1e5

_STYLE = """
svg { background: #ffffff; font: 13px system-ui, sans-serif; }
text { fill: #222222; }
.small { font-size: 12px; fill: #555555; }
.title { font-size: 17px; font-weight: 600; }
.grid { stroke: #e6e6e6; stroke-width: 1; }
.axis { stroke: #888888; stroke-width: 1; }
.roof { stroke: #222222; stroke-width: 2.5; fill: none; stroke-linejoin: round; }
.ridge { stroke: #999999; stroke-dasharray: 3 4; }
.dot { stroke: #ffffff; stroke-width: 1.5; fill-opacity: 0.88; }
.leader { stroke: #bbbbbb; stroke-width: 1; }
"""


class NoPictureError(Exception):
    """Why there is nothing to draw."""


def render_roofline_svg(roofline: Roofline | None, *, title: str, styled: bool = True) -> str:
    """The picture; raises ``NoPictureError`` where nothing could be placed.

    Not ``styled`` it is a part of a page that has styles for it.
    """
    if roofline is None:
        raise NoPictureError(
            "the run does not know the limits of its machine; measure them (pyrometer limits), then run again"
        )
    if roofline.roofs is None:
        raise NoPictureError(roofline.reason)
    drawn = [one for one in roofline.placed if one.intensity and one.flops_per_s][:_MOST_DOTS]
    if not drawn:
        raise NoPictureError("no phase or module has both FLOPs and bytes")
    return _Picture(roofline, roofline.roofs, drawn).text(title, styled=styled)


class _Picture:
    def __init__(self, roofline: Roofline, roofs: Roofs, drawn: Sequence[Placed]) -> None:
        self._roofs = roofs
        self._drawn = drawn
        self._without_flops = len(roofline.placed) - len(drawn)
        intensities = [one.intensity for one in drawn if one.intensity]
        rates = [one.flops_per_s for one in drawn if one.flops_per_s]
        # Whole decades with room on all sides and the ridge in sight, no more than can be told apart.
        self._x_low, self._x_high = _decades([*intensities, roofs.ridge / 4, roofs.ridge * 8], roofs.ridge)
        self._y_low, self._y_high = _decades([*rates, roofs.flops_per_s / 50], roofs.flops_per_s * 1.2)

    def text(self, title: str, *, styled: bool) -> str:
        size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{_escaped(title)}</title>",
            *([f"<style>{_STYLE}</style>"] if styled else []),
            _words("title", _LEFT, 30, title),
            _words("small", _LEFT, 51, describe_roofs(self._roofs)),
            *self._axes(),
            *self._roof(),
            *self._dots(),
            *self._labels(),
            *self._legend(),
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    def _x(self, intensity: float) -> float:
        share = (math.log10(intensity) - self._x_low) / (self._x_high - self._x_low)
        return _LEFT + min(max(share, 0.0), 1.0) * (_END - _LEFT)

    def _y(self, flops_per_s: float) -> float:
        share = (math.log10(flops_per_s) - self._y_low) / (self._y_high - self._y_low)
        return _FLOOR - min(max(share, 0.0), 1.0) * (_FLOOR - _TOP)

    def _at(self, one: Placed) -> tuple[float, float]:
        return self._x(one.intensity or 1.0), self._y(one.flops_per_s or 1.0)

    def _axes(self) -> Iterator[str]:
        for exponent in range(self._x_low, self._x_high + 1):
            x = self._x(10.0**exponent)
            yield _line("grid", x, _TOP, x, _FLOOR)
            yield _words("small", x, _FLOOR + 19, _power(exponent), anchor="middle")
        for exponent in range(self._y_low, self._y_high + 1):
            y = self._y(10.0**exponent)
            yield _line("grid", _LEFT, y, _END, y)
            yield _words("small", _LEFT - 8, y + 4, _round_rate(10.0**exponent), anchor="end")
        yield _line("axis", _LEFT, _FLOOR, _END, _FLOOR)
        yield _line("axis", _LEFT, _TOP, _LEFT, _FLOOR)
        yield _words("", (_LEFT + _END) / 2, _FLOOR + 42, "FLOPs a byte", anchor="middle")
        yield _words("", _LEFT - 70, _TOP - 8, "FLOP/s")

    def _roof(self) -> Iterator[str]:
        """Bandwidth up to the ridge, arithmetic from there on; cut off at the lower edge."""
        roofs = self._roofs
        low = max(10.0**self._x_low, 10.0**self._y_low / roofs.bytes_per_s)
        corners = [
            (self._x(low), self._y(low * roofs.bytes_per_s)),
            (self._x(roofs.ridge), self._y(roofs.flops_per_s)),
            (_END, self._y(roofs.flops_per_s)),
        ]
        (foot_x, foot_y), (ridge_x, top), _ = corners
        yield _line("ridge", ridge_x, top, ridge_x, _FLOOR)
        yield f'<polyline class="roof" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in corners)}"/>'
        peak = f"{format_rate(roofs.flops_per_s, 'FLOP')}, {roofs.flops_source}"
        yield _words("", _END - 4, top - 9, peak, anchor="end")
        x, y = (foot_x + ridge_x) / 2, (foot_y + top) / 2
        rise = math.degrees(math.atan2(foot_y - top, ridge_x - foot_x))
        bandwidth = f"{format_rate(roofs.bytes_per_s, 'B')}, {roofs.bytes_source}"
        turned = f' transform="rotate({-rise:.1f} {x:.1f} {y:.1f})"'
        yield _words("", x, y - 10, bandwidth, anchor="middle", more=turned)

    def _dots(self) -> Iterator[str]:
        modules = [one for one in self._drawn if one.work.kind == "module"]
        longest_ns = max([1.0, *(one.work.duration_ns for one in modules)])
        # The small ones last, so that none is hidden.
        for one in sorted(self._drawn, key=lambda one: (not _is_of_steps(one), -one.work.duration_ns)):
            x, y = self._at(one)
            hint = f"<title>{_escaped(_describe(one))}</title>"
            fill = f'class="dot" fill="{_COLORS[one.bound]}"'
            if one.work.kind == "operator":
                yield f'<rect {fill} x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10">{hint}</rect>'
            elif not _is_of_steps(one):
                radius = max(_LARGEST_DOT * math.sqrt(one.work.duration_ns / longest_ns), _SMALLEST_DOT)
                yield f'<circle {fill} cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">{hint}</circle>'
            else:
                turned = f'transform="rotate(45 {x:.1f} {y:.1f})"'
                place = f'x="{x - 7:.1f}" y="{y - 7:.1f}" width="14" height="14"'
                yield f"<rect {fill} {place} {turned}>{hint}</rect>"

    def _labels(self) -> Iterator[str]:
        """Names beside the dots that matter most, moved down where something stands already."""
        taken = [(x - 8, x + 8, y + 4) for x, y in map(self._at, self._drawn)]
        for one in self._drawn[:_MOST_LABELS]:
            name = shorten_middle(escape_controls(visible(operator_name(one.work.name))), _LABEL_LENGTH)
            dot_x, dot_y = self._at(one)
            width = 7.2 * len(name)
            leftwards = dot_x + 14 + width > _END
            start = dot_x - 14 - width if leftwards else dot_x + 14
            y = dot_y + 4
            while any(
                abs(y - other_y) < _LABEL_HEIGHT and start < other_end and other_start < start + width
                for other_start, other_end, other_y in taken
            ):
                y += _LABEL_HEIGHT
            if y > _FLOOR - 4:
                continue
            taken.append((start, start + width, y))
            near, far = (start + width, start) if leftwards else (start, start + width)
            if y > dot_y + 5:
                yield _line("leader", dot_x, dot_y, near + (2 if far < near else -2), y - 4)
            yield _words("", near, y, name, anchor="end" if leftwards else "start")

    def _legend(self) -> Iterator[str]:
        x, y = float(_LEFT), _HEIGHT - 34
        for bound, color in _COLORS.items():
            yield f'<circle cx="{x + 6:.0f}" cy="{y - 4}" r="6" fill="{color}"/>'
            yield _words("small", x + 18, y, bound.value)
            x += 140
        words = "diamonds: step and phases; discs: modules, by time; squares: operators"
        if self._without_flops:
            words += f"; {self._without_flops} that do no FLOPs are left out"
        yield _words("small", _LEFT, y + 20, words)


def _is_of_steps(one: Placed) -> bool:
    return one.work.kind in {"step", "phase"}


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _words(kind: str, x: float, y: float, text: str, *, anchor: str = "start", more: str = "") -> str:
    looks = f' class="{kind}"' if kind else ""
    return f'<text{looks} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{_escaped(text)}</text>'


def _describe(one: Placed) -> str:
    return (
        f"{one.work.name}: {format_rate(one.flops_per_s or 0.0, 'FLOP')}, "
        f"{format_share(one.compute_share or 0.0)} of the arithmetic; "
        f"{format_rate(one.bytes_per_s or 0.0, 'B')}, "
        f"{format_share(one.memory_share or 0.0)} of the bandwidth; "
        f"{three_digits(one.intensity or 0.0)} FLOPs a byte; {one.bound.value}"
    )


def _decades(values: Sequence[float], middle: float) -> tuple[int, int]:
    """The exponents of ten around all values, as far as they are within some decades of the middle."""
    most, least = middle * _FARTHEST, middle / _FARTHEST
    low = math.floor(math.log10(max(min(*values, middle), least)))
    high = math.ceil(math.log10(min(max(*values, middle), most)))
    return low, max(high, low + 2)


def _power(exponent: int) -> str:
    return f"{10**exponent:,}" if exponent >= 0 else f"{10.0**exponent:.{-exponent}f}"


def _round_rate(flops_per_s: float) -> str:
    number, _, unit = format_rate(flops_per_s, "FLOP").partition(" ")
    return f"{float(number):g} {unit.removesuffix('FLOP/s')}".strip()


def _escaped(text: str) -> str:
    return escape(escape_controls(text))
