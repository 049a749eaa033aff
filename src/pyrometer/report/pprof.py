"""The sampled stacks as a file for pprof: its ``profile.proto`` as bytes, packed with gzip.

Written by hand, since the few kinds of fields that it uses are simpler than a library for all of them.
Values are samples, CPU time and wall time; each stack has its thread and its phase as labels.
"""

import gzip
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from pyrometer.analysis.frame_tree import native_frame, parts_of
from pyrometer.analysis.sample_results import find_phases
from pyrometer.record.run import Run
from pyrometer.record.samples import Observation, StackSamples
from pyrometer.report.safe_text import escape_controls, visible

_SECOND_NS = 1_000_000_000
_Value = TypeVar("_Value")
_Function = tuple[str, str, int]
"""Name, file, first line."""
_Location = tuple[_Function, int]
"""Function and line."""
_VALUES = (("samples", "count"), ("cpu", "nanoseconds"), ("wall", "nanoseconds"))


def render_pprof(run: Run, samples: StackSamples) -> bytes:
    """The file, the same for the same run."""
    return gzip.compress(_Profile(run, samples).encode(), mtime=0)


def encode_varint(value: int) -> bytes:
    """A whole number as protobuf has it: seven bits a byte, the lowest first."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _number(field: int, value: int) -> bytes:
    return encode_varint(field << 3) + encode_varint(value) if value else b""


def _bytes(field: int, content: bytes) -> bytes:
    return encode_varint(field << 3 | 2) + encode_varint(len(content)) + content


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _bytes(field, b"".join(map(encode_varint, values)))


class _Numbers(Generic[_Value]):
    """Numbers from ``first`` on for values, each the first time it is asked for."""

    def __init__(self, first: int) -> None:
        self.numbers: dict[_Value, int] = {}
        self._first = first

    def __getitem__(self, value: _Value) -> int:
        return self.numbers.setdefault(value, self._first + len(self.numbers))


class _Profile:
    def __init__(self, run: Run, samples: StackSamples) -> None:
        self._run = run
        self._samples = samples
        self._phases = find_phases(run, samples)
        self._strings = _Numbers[str](0)
        self._functions = _Numbers[_Function](1)
        self._locations = _Numbers[_Location](1)
        # The format asks for it.
        self._text("")

    def encode(self) -> bytes:
        """All fields of a ``Profile``."""
        stacks = b"".join(self._stacks())
        locations = b"".join(map(self._location, self._locations.numbers))
        functions = b"".join(map(self._function, self._functions.numbers))
        kinds = b"".join(_bytes(1, self._value_type(*kind)) for kind in _VALUES)
        period = _bytes(11, self._value_type("wall", "nanoseconds"))
        period += _number(12, round(_SECOND_NS / self._samples.samples_per_s))
        default = _number(14, self._text("cpu"))
        duration = _number(10, self._run.profiled_ns)
        texts = b"".join(_bytes(6, text.encode("utf-8")) for text in self._strings.numbers)
        return kinds + stacks + locations + functions + texts + duration + period + default

    def _text(self, text: str) -> int:
        return self._strings[escape_controls(text)]

    def _value_type(self, kind: str, unit: str) -> bytes:
        return _number(1, self._text(kind)) + _number(2, self._text(unit))

    def _stacks(self) -> Iterator[bytes]:
        for seen in self._samples.observations:
            parts = parts_of(seen)
            stack = list(self._stack(seen))
            labels = b"".join(self._labels(seen))
            rest = (
                parts.samples - parts.native,
                parts.cpu_ns - parts.native_ns,
                parts.wall_ns - parts.native_ns,
            )
            if any(rest):
                yield _bytes(2, _packed(1, stack) + _packed(2, rest) + labels)
            if parts.native:
                native = self._locations[self._native_location(seen.leaf)]
                values = (parts.native, parts.native_ns, parts.native_ns)
                yield _bytes(2, _packed(1, (native, *stack)) + _packed(2, values) + labels)

    def _stack(self, seen: Observation) -> Iterator[int]:
        """Places from the innermost outwards."""
        index: int | None = seen.stack
        while index is not None:
            node = self._samples.nodes[index]
            function = self._samples.functions[node.function]
            line = function.first_line if node.line is None else node.line
            yield self._locations[(function.name, function.file, function.first_line), line]
            index = node.parent

    def _native_location(self, leaf: int | None) -> _Location:
        frame = native_frame(self._samples, leaf)
        return (frame.name, frame.file, 0), 0

    def _labels(self, seen: Observation) -> Iterator[bytes]:
        yield self._label("thread", self._samples.threads[seen.thread])
        if seen.call is not None:
            yield self._label("phase", self._phases[seen.call])

    def _label(self, key: str, text: str) -> bytes:
        return _bytes(3, _number(1, self._text(key)) + _number(2, self._text(visible(text))))

    def _location(self, location: _Location) -> bytes:
        function, line = location
        line_content = _number(1, self._functions[function]) + _number(2, line)
        return _bytes(4, _number(1, self._locations[location]) + _bytes(4, line_content))

    def _function(self, function: _Function) -> bytes:
        name, file, first_line = function
        text = self._text(visible(name))
        content = _number(1, self._functions[function]) + _number(2, text) + _number(3, text)
        return _bytes(5, content + _number(4, self._text(file)) + _number(5, first_line))
