"""What callgrind wrote down: counts by function, in its own format."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pyrometer.record.counters import CacheCounts, CountedFunction

EVENTS = ("Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw")
"""Callgrind's names for the fields of ``CacheCounts``, in that order."""

_LONGEST_NAME = 400
_RECURSION = re.compile(r"'\d+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallgrindFile:
    """A file as read; functions with the most instructions first, and without what they call."""

    tool: str | None
    totals: CacheCounts
    functions: tuple[CountedFunction, ...]


class CallgrindFormatError(ValueError):
    """The file is not one of callgrind's, or was cut off."""


def read_callgrind(lines: Iterable[str]) -> CallgrindFile:
    """The counts in these lines; several parts of one file are added up."""
    reader = _Reader()
    for number, line in enumerate(lines, start=1):
        try:
            reader.read(line.rstrip("\n"))
        except (ValueError, IndexError) as error:
            raise CallgrindFormatError(f"line {number}, {line[:60]!r}: {error}") from error
    return reader.finished()


def read_instructions(lines: Iterable[str]) -> int:
    """The instructions in these lines, where nothing else was counted, or more; of all parts together."""
    found: int | None = None
    column = 0
    for line in lines:
        key, _, value = line.partition(":")
        if key == "events" and "Ir" in value.split():
            column = value.split().index("Ir")
        elif key == "totals":
            found = (found or 0) + int(value.split()[column])
    if found is None:
        raise CallgrindFormatError("has no totals: it was cut off")
    return found


class _Reader:
    def __init__(self) -> None:
        self._tool: str | None = None
        self._columns: list[int] = []
        self._totals: list[int] | None = None
        self._names: dict[str, dict[str, str]] = {"ob": {}, "fn": {}}
        self._library = ""
        self._function = ""
        self._after_call = False
        self._self: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * len(EVENTS))

    def read(self, line: str) -> None:
        if not line or line[0] == "#":
            return
        if line[0] in "+-*0123456789":
            self._read_costs(line)
        elif line.startswith("fn="):
            # A function that calls itself has a number behind its name: exp'2.
            self._function = _RECURSION.sub("", self._name("fn", line[3:]))
        elif line.startswith("ob="):
            self._library = self._name("ob", line[3:])
        elif line.startswith("calls="):
            # The line after it holds what the called function cost, which that has already.
            self._after_call = True
        elif line.startswith(("cfn=", "cob=")):
            self._name(line[1:3], line[4:])
        else:
            self._read_header(line)

    def _read_header(self, line: str) -> None:
        key, _, value = line.partition(":")
        if key == "creator":
            self._tool = value.strip()
        elif key == "events":
            names = value.split()
            self._columns = [EVENTS.index(name) if name in EVENTS else -1 for name in names]
        elif key == "totals":
            self._totals = self._totals or [0] * len(EVENTS)
            self._add(self._totals, value.split())

    def _read_costs(self, line: str) -> None:
        if self._after_call:
            self._after_call = False
            return
        self._add(self._self[self._function, self._library], line.split()[1:])

    def _add(self, counts: list[int], texts: list[str]) -> None:
        """Callgrind leaves out zeros at the end of a line."""
        for column, text in zip(self._columns, texts, strict=False):
            if column >= 0:
                counts[column] += int(text)

    def _name(self, kind: str, text: str) -> str:
        """``(12) name`` where it first occurs, later only ``(12)``."""
        if not text.startswith("("):
            return text
        key, _, name = text.partition(" ")
        if name:
            self._names[kind][key] = name[:_LONGEST_NAME]
        return self._names[kind].get(key, "")

    def finished(self) -> CallgrindFile:
        missing = [name for index, name in enumerate(EVENTS) if index not in self._columns]
        if missing:
            raise CallgrindFormatError(f"has no {', '.join(missing)}")
        if self._totals is None:
            raise CallgrindFormatError("has no totals: it was cut off")
        functions = [
            CountedFunction(name=name or "(unknown)", library=library, counts=CacheCounts(*counts))
            for (name, library), counts in self._self.items()
            if any(counts)
        ]
        functions.sort(key=lambda function: (-function.counts.instructions, function.name, function.library))
        return CallgrindFile(tool=self._tool, totals=CacheCounts(*self._totals), functions=tuple(functions))
