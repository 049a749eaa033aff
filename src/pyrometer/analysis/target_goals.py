"""What a figure is to be, as people write it: ``+30%``, ``<1 GiB``, ``50..65 ms``, ``5..9x less``."""

import re
from dataclasses import dataclass
from enum import Enum

from pyrometer.errors import UsageError

_LONGEST_GOAL = 80
_LARGEST = 1e30

_TIME_UNITS = {
    "ns": 1.0,
    "us": 1e3,
    "µs": 1e3,
    "\u03bcs": 1e3,  # the Greek letter, which looks the same
    "ms": 1e6,
    "s": 1e9,
    "min": 60e9,
    "h": 3_600e9,
}
_BYTE_UNITS = {
    "B": 1.0,
    "kB": 1e3,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "TiB": 2.0**40,
}


class Quantity(Enum):
    """What a figure is measured in; its base unit is the value."""

    DURATION = "ns"
    SIZE = "bytes"
    SAMPLES_RATE = "samples/s"
    TOKENS_RATE = "tokens/s"

    @property
    def units(self) -> dict[str, float]:
        """Each unit it can be written in, with how many of the base unit that is."""
        match self:
            case Quantity.DURATION:
                return _TIME_UNITS
            case Quantity.SIZE:
                return _BYTE_UNITS
            case _:
                # A rate is a number; "a second" goes without saying.
                noun = self.value.removesuffix("/s")
                return {"": 1.0, "/s": 1.0, f"{noun}/s": 1.0, "/min": 1 / 60, f"{noun}/min": 1 / 60}


_EXAMPLES = {
    Quantity.DURATION: "'<5 ms', '50..65 ms', '-20%' or '2x'; units: ns, us, ms, s, min, h",
    Quantity.SIZE: "'<1 GiB', '5..10 MB', '-20%' or '5..9x less'; units: B, KB, MB, GB, KiB, MiB, GiB",
    Quantity.SAMPLES_RATE: "'>20000', '15..20', '+30%' or '2x'; units: samples/s, samples/min",
    Quantity.TOKENS_RATE: "'>50', '15..20', '+100%' or '2x'; units: tokens/s, tokens/min",
}

_NUMBER = r"[0-9][0-9_]*(?:\.[0-9]+)?"
_BOUND = re.compile(rf"(?P<operator><=|>=|<|>|≤|≥)?\s*(?P<number>{_NUMBER})\s*(?P<unit>[^\d\s]*)")
_RANGE = re.compile(
    rf"(?P<low>{_NUMBER})\s*(?P<low_unit>[^\d\s.]*)\s*\.\.\s*(?P<high>{_NUMBER})\s*(?P<unit>[^\d\s]*)"
)
_CHANGE = re.compile(rf"(?P<sign>[+-])\s*(?P<low>{_NUMBER})(?:\s*\.\.\s*(?P<high>{_NUMBER}))?\s*%")
_FACTOR = re.compile(
    rf"(?P<low>{_NUMBER})(?:\s*\.\.\s*(?P<high>{_NUMBER}))?\s*[x×]\s*(?P<way>less|more|faster|better)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Where a figure is to be; at least one end is set.

    ``low`` alone: at least so much. ``high`` alone: at most. Both: from the easier end on, which is
    the lower one where more is better; better than the range is well too.
    """

    written: str
    low: float | None
    high: float | None
    relative: bool = False
    """The ends are multiples of a figure measured before, else in the base unit."""
    exclusive: bool = False
    """The end itself is not enough."""

    def bounded_by(self, reference: float) -> "Goal":
        """The same in the base unit, where the figure before was ``reference``."""
        if not self.relative:
            return self
        return Goal(written=self.written, low=_times(self.low, reference), high=_times(self.high, reference))

    def edge(self, *, more_is_better: bool) -> float:
        """The end that has to be reached."""
        ends = (self.low, self.high) if more_is_better else (self.high, self.low)
        return next(end for end in ends if end is not None)

    def is_met_by(self, value: float, *, more_is_better: bool) -> bool:
        """Whether a figure is there."""
        edge = self.edge(more_is_better=more_is_better)
        if value == edge:
            return not self.exclusive
        at_least = more_is_better if self.low is not None and self.high is not None else self.low is not None
        return (value > edge) if at_least else (value < edge)


def parse_goal(value: object, *, name: str, quantity: Quantity, more_is_better: bool) -> Goal:
    """The goal that a setting's value says; ``name`` is what a ``UsageError`` calls the setting."""
    parser = _Parser(value=value, name=name, quantity=quantity, more_is_better=more_is_better)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise parser.refusal()
    if not isinstance(value, str):
        return parser.plain(value)
    if len(value) > _LONGEST_GOAL:
        raise parser.refusal()
    return parser.parse(value.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parser:
    """One value on its way to a goal, with what an error says of it."""

    value: object
    name: str
    quantity: Quantity
    more_is_better: bool

    def refusal(self, problem: str | None = None) -> UsageError:
        """The error; without a problem of its own, what is allowed."""
        shown = repr(self.value)
        if len(shown) > _LONGEST_GOAL:
            shown = f"{shown[:_LONGEST_GOAL]}…"
        return UsageError(
            f"{self.name} is {shown}, {problem or f'but must be such as {_EXAMPLES[self.quantity]}'}"
        )

    def plain(self, value: float) -> Goal:
        """A number without a unit: at least so much where more is better, else at most."""
        # One that a float cannot hold is no figure.
        if not 0 < value < _LARGEST:
            raise self.refusal("but must be above 0 and not beyond all bounds")
        if "" not in self.quantity.units:
            raise self.refusal(f"which needs a unit; write it such as {_EXAMPLES[self.quantity]}")
        at_least = self.more_is_better
        return Goal(
            written=f"{value:,}",
            low=float(value) if at_least else None,
            high=None if at_least else float(value),
        )

    def parse(self, text: str) -> Goal:
        for pattern, read in (
            (_CHANGE, self._change),
            (_FACTOR, self._factor),
            (_RANGE, self._range),
            (_BOUND, self._bound),
        ):
            match = pattern.fullmatch(text)
            if match is not None:
                return read(match, text)
        raise self.refusal()

    def _change(self, match: re.Match[str], text: str) -> Goal:
        if (match["sign"] == "+") is not self.more_is_better:
            better = "more" if self.more_is_better else "less"
            meant = ("+" if self.more_is_better else "-") + text[1:].strip()
            raise self.refusal(f"but {better} is better; did you mean {meant!r}?")
        sign = 1 if self.more_is_better else -1
        near, far = self._ends(match, text)
        if not self.more_is_better and far >= 100:
            raise self.refusal("but nothing can get smaller by 100 % or more")
        return _between(text, 1 + sign * near / 100, 1 + sign * far / 100)

    def _factor(self, match: re.Match[str], text: str) -> Goal:
        near, far = self._ends(match, text)
        if near <= 1:
            raise self.refusal("but a factor must be above 1")
        wrong = "less" if self.more_is_better else "more"
        if match["way"] == wrong:
            raise self.refusal(f"but {'more' if self.more_is_better else 'less'} is better")
        if self.more_is_better:
            return _between(text, near, far)
        return _between(text, 1 / near, 1 / far)

    def _range(self, match: re.Match[str], text: str) -> Goal:
        low = self._measured(match["low"], match["low_unit"] or match["unit"])
        high = self._measured(match["high"], match["unit"])
        if low > high:
            raise self.refusal("but must begin with its smaller end")
        return Goal(written=text, low=low, high=high)

    def _bound(self, match: re.Match[str], text: str) -> Goal:
        value = self._measured(match["number"], match["unit"])
        operator = match["operator"]
        at_least = self.more_is_better if operator is None else operator in {">", ">=", "≥"}
        return Goal(
            written=text,
            low=value if at_least else None,
            high=None if at_least else value,
            exclusive=operator in {"<", ">"},
        )

    def _ends(self, match: re.Match[str], text: str) -> tuple[float, float]:
        near = self._number(match["low"])
        far = near if match["high"] is None else self._number(match["high"])
        if near > far:
            raise self.refusal(f"but the range in {text!r} must begin with its smaller end")
        return near, far

    def _measured(self, number: str, unit: str) -> float:
        units = self.quantity.units
        if unit not in units:
            what = "needs a unit" if not unit else f"has no unit {unit!r} here"
            raise self.refusal(f"which {what}; write it such as {_EXAMPLES[self.quantity]}")
        return self._number(number) * units[unit]

    def _number(self, text: str) -> float:
        number = float(text.replace("_", ""))
        if not 0 < number < _LARGEST:
            raise self.refusal("but must be above 0 and not beyond all bounds")
        return number


def _between(written: str, one: float, other: float) -> Goal:
    return Goal(written=written, low=min(one, other), high=max(one, other), relative=True)


def _times(factor: float | None, reference: float) -> float | None:
    return None if factor is None else factor * reference
