"""Both recorders under test, a clock that moves only when told, and a readable view of a snapshot."""

import importlib
import importlib.util
from types import ModuleType
from typing import Any, NamedTuple

TWIN = "pyrometer._native.twin"
CORE = "pyrometer._native.core"

Path = tuple[str, ...]


def available_recorders() -> list[str]:
    """The twin always, and the C core where it was built."""
    return [TWIN, CORE] if importlib.util.find_spec(CORE) is not None else [TWIN]


def load(name: str) -> ModuleType:
    return importlib.import_module(name)


class Clock:
    """Stands still until the program spends time."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000

    def __call__(self) -> int:
        return self.now_ns

    def spend(self, duration_ns: int) -> None:
        self.now_ns += duration_ns


class Seen(NamedTuple):
    """What the recorder says of one node."""

    calls: int
    open_calls: int
    total_ns: int
    min_ns: int
    max_ns: int
    suspended_ns: int
    wall_ns: int
    buckets: tuple[tuple[int, int], ...]
    allocated_bytes: int
    allocations: int
    heap_bytes: int
    heap_allocations: int
    freed_bytes: int
    kept_bytes: int
    python_bytes: int
    python_allocations: int
    peak_bytes: int


def seen_in_strand(strand: tuple[Any, ...]) -> dict[Path, Seen]:
    """The nodes of one strand by path."""
    paths: list[Path] = []
    seen: dict[Path, Seen] = {}
    for parent, name, *figures in strand[4]:
        path = (*(paths[parent] if parent >= 0 else ()), name)
        paths.append(path)
        seen[path] = Seen(*figures)
    return seen


def seen(recorder: Any) -> dict[Path, Seen]:
    """The nodes of the first strand by path."""
    strands = recorder.snapshot()["strands"]
    return seen_in_strand(strands[0]) if strands else {}


def totals(recorder: Any) -> dict[Path, int]:
    """Total time by path in the first strand."""
    return {path: node.total_ns for path, node in seen(recorder).items()}


def losses(recorder: Any) -> dict[str, int]:
    """The losses that are not zero."""
    return {kind: count for kind, count in recorder.snapshot()["losses"].items() if count}


def assert_conserved(recorder: Any) -> None:
    """In every strand no node's children take longer than it did."""
    for strand in recorder.snapshot()["strands"]:
        in_strand = seen_in_strand(strand)
        for path, node in in_strand.items():
            children = sum(child.total_ns for other, child in in_strand.items() if other[:-1] == path)
            assert children <= node.total_ns, path
