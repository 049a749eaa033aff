"""One finder of steps for each thread of the program."""

import sys
import threading
from collections.abc import Callable, Iterable

from pyrometer.capture.torch_steps import StepFinder

# Threads come and go; what the ended ones left undecided is settled when there are so many.
_MAX_FINDERS = 256


class StepFinders:
    """Finders by thread, made when a thread first needs one.

    A thread that has ended may have had the number of one that lives: what it left undecided is
    settled, and never a part of the other's steps.
    """

    def __init__(self, make: Callable[[], StepFinder], failed: Callable[[Exception], None]) -> None:
        self._make = make
        self._failed = failed
        self._here = threading.local()
        self._finders: dict[int, StepFinder] = {}

    def here(self) -> StepFinder:
        """That of the calling thread."""
        finder: StepFinder | None = getattr(self._here, "finder", None)
        if finder is None:
            thread_id = threading.get_ident()
            ended = {thread_id} & self._finders.keys()
            if len(self._finders) >= _MAX_FINDERS:
                ended |= self._finders.keys() - sys._current_frames().keys()  # noqa: SLF001
            self._end(ended)
            finder = self._here.finder = self._finders[thread_id] = self._make()
        return finder

    def of(self, thread_id: int) -> StepFinder | None:
        """That of the thread which had this number last, as far as is known."""
        finder = self._finders.get(thread_id)
        return self.here() if finder is None and thread_id == threading.get_ident() else finder

    def end(self) -> None:
        """Nothing more comes, on any thread; what comes all the same begins anew."""
        self._here = threading.local()
        self._end(self._finders.keys())

    def _end(self, thread_ids: Iterable[int]) -> None:
        for thread_id in list(thread_ids):
            try:
                self._finders.pop(thread_id).end()
            except Exception as error:  # noqa: BLE001 - its thread may be at work meanwhile
                self._failed(error)
