"""Threads that do the same piece of work at the same time, one piece after the other."""

import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_Place = TypeVar("_Place")
_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[_Place, _Done]):
    """A piece of work for the first ``threads`` of a crew; the others wait."""

    work: Callable[[_Place], _Done]
    threads: int


Plan = Generator[Job[_Place, _Done], list[_Done], None]
"""Gives jobs one by one, and is sent what each thread made of the one before."""


@dataclass(kw_only=True)
class Crew(Generic[_Place, _Done]):
    """So many threads, each with a place of its own, which only it touches.

    The plan itself runs while all threads wait.
    """

    places: list[_Place]
    plan: Plan[_Place, _Done]
    _job: Job[_Place, _Done] | None = None
    _done: dict[int, _Done] = field(default_factory=dict)
    _error: BaseException | None = None

    def work(self) -> None:
        """Work through the plan; what fails in it, or on a thread, is raised here."""
        self._barrier = threading.Barrier(len(self.places), action=self._next_job)
        threads = [
            threading.Thread(target=self._work_at, args=(index,), daemon=True)
            for index in range(len(self.places))
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            self._barrier.abort()
        if self._error is not None:
            raise self._error

    def _next_job(self) -> None:
        try:
            if self._job is None:
                self._job = next(self.plan)
            else:
                done = [self._done[index] for index in range(self._job.threads)]
                self._job = self.plan.send(done)
        except StopIteration:
            self._job = None

    def _work_at(self, index: int) -> None:
        try:
            while True:
                self._barrier.wait()
                job = self._job
                if job is None:
                    return
                if index < job.threads:
                    self._done[index] = job.work(self.places[index])
        except threading.BrokenBarrierError:
            return  # another thread failed, and says why
        except BaseException as error:  # noqa: BLE001 - raised again where the work was asked for
            self._error = error
            self._barrier.abort()
