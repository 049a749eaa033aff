"""What every tree on a page shares: the lines that lead to its rows, and which rows are folded together."""

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol, TypeVar


class _Node(Protocol):
    @property
    def children(self) -> Sequence[object]: ...


NodeT = TypeVar("NodeT", bound=_Node)
EntryT = TypeVar("EntryT")


def with_guides(entries: Sequence[EntryT], guide: str) -> Iterator[tuple[EntryT, str, str]]:
    """Each entry below a row with its own guide, and the guide of what stands below it."""
    for position, entry in enumerate(entries, start=1):
        last = position == len(entries)
        yield entry, guide + ("└─ " if last else "├─ "), guide + ("   " if last else "│  ")


def folded_together(siblings: Sequence[NodeT], chosen: Collection[int]) -> list[NodeT | list[NodeT]]:
    """What stands for the siblings not chosen, by ``id``: nothing, one of them, or a list to fold."""
    folded = [node for node in siblings if id(node) not in chosen]
    # A fold of one leaf would take the line that the leaf itself takes.
    if len(folded) == 1 and not folded[0].children:
        return [folded[0]]
    return [folded] if folded else []
