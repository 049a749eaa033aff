"""What objects of the program are called, without keeping them alive."""

import weakref


class WeakNames:
    """Names by object, not by equality. What is kept grows with the objects that live, and no further."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[weakref.ref[object], str]] = {}
        self._allowed = 64

    def get(self, thing: object) -> str | None:
        """The name it was given."""
        reference, name = self._names.get(id(thing), (None, None))
        # Another one may have lived at this address.
        return name if reference is not None and reference() is thing else None

    def put(self, thing: object, name: str) -> None:
        """Give it a name."""
        if len(self._names) >= self._allowed:
            living = {key: named for key, named in list(self._names.items()) if named[0]() is not None}
            self._names = living
            self._allowed = max(64, 2 * len(living))
        self._names[id(thing)] = (weakref.ref(thing), name)
