"""Attributes of other people's modules and classes that we have replaced, and how to put them back."""

from __future__ import annotations

import os
import threading
import weakref

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_ABSENT = object()


class _Patch:
    __slots__ = ("name", "ours", "owner", "theirs")

    def __init__(self, owner: object, name: str, theirs: Any, ours: Any) -> None:
        self.owner = owner
        self.name = name
        self.theirs = theirs
        """What stood there; ``_ABSENT`` where a class only inherits it."""
        self.ours = ours

    def put(self) -> None:
        # Somebody may have put another there since, which stays.
        if vars(self.owner).get(self.name, _ABSENT) is self.theirs:
            setattr(self.owner, self.name, self.ours)

    def take_back(self) -> None:
        # Somebody may have wrapped ours since: then it is no longer ours to remove.
        if vars(self.owner).get(self.name) is not self.ours:
            return
        if self.theirs is _ABSENT:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.theirs)


class Patches:
    """Replacements that can be taken off for a while, one for good, or all at the end.

    ``suspend()`` and ``resume()`` nest, also over threads.
    """

    def __init__(self) -> None:
        self._patches: list[_Patch] = []
        self._suspensions = 0
        self._lock = threading.RLock()
        _all_patches.add(self)

    def forget_lock(self) -> None:
        """In a forked child: a thread that held it does not exist here."""
        self._lock = threading.RLock()

    def replace(self, owner: object, name: str, wrapper: Any) -> None:
        """Put ``wrapper`` in the place of the attribute, now or when a suspension ends."""
        with self._lock:
            patch = _Patch(owner, name, vars(owner).get(name, _ABSENT), wrapper)
            self._patches.append(patch)
            if not self._suspensions:
                patch.put()

    def original(self, owner: object, name: str) -> Any:
        """What stands there without us."""
        patch = self._find(owner, name)
        theirs = _ABSENT if patch is None else patch.theirs
        return getattr(owner, name) if theirs is _ABSENT else theirs

    def is_replaced(self, owner: object, name: str) -> bool:
        """Whether ours stands there but for suspensions, or did before somebody put another there."""
        return self._find(owner, name) is not None

    def is_installed(self, owner: object, name: str) -> bool:
        """Whether ours stands there now."""
        patch = self._find(owner, name)
        return patch is not None and vars(owner).get(name) is patch.ours

    def suspend(self) -> None:
        """Take all off, until as many calls of ``resume()``."""
        with self._lock:
            self._suspensions += 1
            if self._suspensions == 1:
                self._take_all_back()

    def resume(self) -> None:
        """Undo one ``suspend()``."""
        with self._lock:
            self._suspensions = max(self._suspensions - 1, 0)
            if not self._suspensions:
                for patch in self._patches:
                    patch.put()

    def retire(self, owner: object, name: str) -> None:
        """Take one off for good."""
        with self._lock:
            patch = self._find(owner, name)
            if patch is not None:
                patch.take_back()
                self._patches.remove(patch)

    def remove(self) -> None:
        """Take all off for good."""
        with self._lock:
            self._take_all_back()
            self._patches.clear()
            self._suspensions = 0

    def __iter__(self) -> Iterator[tuple[object, str, Any]]:
        """(owner, name, what stands there without us) of each."""
        return iter(
            [(patch.owner, patch.name, self.original(patch.owner, patch.name)) for patch in self._patches]
        )

    def _find(self, owner: object, name: str) -> _Patch | None:
        return next((patch for patch in self._patches if patch.owner is owner and patch.name == name), None)

    def _take_all_back(self) -> None:
        for patch in reversed(self._patches):
            patch.take_back()


_all_patches: weakref.WeakSet[Patches] = weakref.WeakSet()


def _forget_locks() -> None:
    for patches in list(_all_patches):
        patches.forget_lock()


os.register_at_fork(after_in_child=_forget_locks)
