"""What an operator was given: shapes, bytes, and the operations torch counts for them."""

from collections.abc import Sequence
from math import prod
from typing import Any

from pyrometer.record.operators import MAX_SHAPES, Shapes

_MOST_COUNTED = 256
_LONGEST_TEXT = 200
_NO_TENSOR = ("", "Scalar", "ScalarList")
_ELEMENT_BYTES = {
    "bool": 1, "signed char": 1, "unsigned char": 1, "short": 2, "short int": 2, "int": 4, "long": 8,
    "long int": 8, "long long": 8, "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2,
    "c10::complex<float>": 8, "c10::complex<double>": 16,
}  # fmt: skip


class ShapeCounts:
    """The calls of one operator by the shapes and types of their inputs."""

    __slots__ = ("_counts", "_given_bytes", "calls", "flops", "input_bytes")

    def __init__(self) -> None:
        self.calls = 0
        self.flops = 0
        self.input_bytes: int | None = 0
        """None: not told for every call."""
        self._counts: dict[str, int] = {}
        self._given_bytes: dict[str, int | None] = {}

    def add(self, event: Any) -> None:
        """Count one call."""
        self.calls += 1
        self.flops += event.flops()
        sizes, kinds = event.shapes(), event.dtypes()
        key = f"{sizes}{kinds}"
        if key not in self._given_bytes and len(self._given_bytes) < _MOST_COUNTED:
            self._given_bytes[key] = _bytes_of(sizes, kinds)
        given = self._given_bytes[key] if key in self._given_bytes else _bytes_of(sizes, kinds)
        if self.input_bytes is not None:
            self.input_bytes = None if given is None else self.input_bytes + given
        text = shapes_as_text(sizes, kinds)
        if text and (text in self._counts or len(self._counts) < _MOST_COUNTED):
            self._counts[text] = self._counts.get(text, 0) + 1

    def records(self) -> tuple[Shapes, ...]:
        """The most frequent."""
        most = sorted(self._counts.items(), key=lambda counted: -counted[1])
        return tuple(Shapes(text, calls) for text, calls in most[:MAX_SHAPES])


def shapes_as_text(sizes: Sequence[Any], kinds: Sequence[str]) -> str:
    """The shapes of the inputs that are tensors."""
    text = " ".join(
        str(list(size)) for size, kind in zip(sizes, kinds, strict=False) if kind not in _NO_TENSOR
    )
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"


def _bytes_of(sizes: Sequence[Any], kinds: Sequence[str]) -> int | None:
    """Of the tensors among an operator's inputs; None where their size is not told."""
    total = 0
    for size, kind in zip(sizes, kinds, strict=False):
        if kind in _NO_TENSOR:
            continue
        element = _ELEMENT_BYTES.get(kind) or (1 if kind.startswith("c10::Float8") else None)
        if element is None:
            return None
        total += prod(size) * element
    return total
