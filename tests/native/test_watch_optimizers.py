"""Steps of optimizers: a phase from the hook before to the hook after, also when a step raises."""

from types import ModuleType

import pytest

from tests.recorders import Clock, losses
from tests.watches import NUMBERS, Watched


class Optimizer:
    """Calls hooks around its step, as torch's optimizers do."""

    def __init__(self, watched: Watched, duration_ns: int, error: Exception | None = None) -> None:
        self.watched = watched
        self.duration_ns = duration_ns
        self.error = error
        self.inner: Optimizer | None = None

    def step(self) -> None:
        self.before()
        self.work()
        self.after()

    def before(self) -> None:
        self.watched.watch.optimizer_begun(self)

    def after(self) -> None:
        self.watched.told.append((self.watched.watch.optimizer_ended(self),))

    def work(self) -> None:
        self.watched.clock.spend(self.duration_ns)
        if self.inner is not None:
            self.inner.step()
        if self.error is not None:
            raise self.error


@pytest.fixture
def watched(implementation: ModuleType, clock: Clock) -> Watched:
    return Watched(implementation, clock)


def test_a_step_is_the_optimizer_phase_and_its_end_is_to_be_noted(watched: Watched) -> None:
    Optimizer(watched, 5).step()
    watched.clock.spend(1)
    assert watched.taken() == {"optimizer": 5, "other": 1}
    assert watched.totals() == {("optimizer",): 5}
    assert watched.told == [(False,)]
    assert not watched.watch.is_stepping


def test_an_optimizer_inside_anothers_step_is_part_of_it(watched: Watched) -> None:
    outer = Optimizer(watched, 5)
    outer.inner = Optimizer(watched, 3)
    outer.step()
    assert watched.taken() == {"optimizer": 8}
    assert watched.told == [(True,), (False,)]


def test_a_step_that_raised_ends_where_the_next_thing_begins(watched: Watched) -> None:
    with pytest.raises(KeyError):
        Optimizer(watched, 5, KeyError()).step()
    assert watched.watch.is_stepping
    watched.clock.spend(2)
    watched.phased("data", watched.spends(3), begun=lambda _: None)()
    watched.clock.spend(4)
    Optimizer(watched, 6).step()
    # From the error on nobody has said that the step is over.
    assert watched.taken() == {"optimizer": 7 + 6, "data": 3, "other": 4}
    assert watched.told == [(False,)]
    assert losses(watched.recorder) == {}


def test_a_function_called_by_the_step_does_not_end_it(watched: Watched) -> None:
    fetch = watched.phased("data", watched.spends(3), begun=lambda _: None)

    class Fetching(Optimizer):
        def work(self) -> None:
            fetch()
            self.watched.clock.spend(self.duration_ns)

    Fetching(watched, 5).step()
    assert watched.taken() == {"optimizer": 5, "data": 3}
    assert watched.told == [(False,)]


def test_an_end_without_a_beginning_changes_nothing(watched: Watched) -> None:
    optimizer = Optimizer(watched, 5)
    optimizer.after()
    watched.clock.spend(1)
    assert watched.told == [(True,)]
    assert watched.taken() == {"other": 1}


def test_a_step_stands_once_though_the_program_has_named_the_phase_itself(watched: Watched) -> None:
    token = watched.watch.enter(NUMBERS["optimizer"], True)
    Optimizer(watched, 5).step()
    watched.watch.leave(token)
    assert watched.taken() == {"optimizer": 5}
    assert watched.totals() == {("optimizer",): 5}


def test_while_the_watch_is_off_nothing_is_noted(watched: Watched) -> None:
    watched.watch.stop()
    Optimizer(watched, 5).step()
    assert watched.totals() == {}
    assert not watched.watch.is_stepping
