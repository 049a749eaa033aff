"""Steps of optimizers: a phase, whether we call them ourselves or know them by torch's hooks alone."""

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

    def step(self) -> str:
        self.watched.clock.spend(AROUND_HOOKS)
        self.before()
        self.work()
        self.after()
        self.watched.clock.spend(AROUND_HOOKS)
        return "stepped"

    def before(self) -> None:
        self.watched.watch.optimizer_begun(self)

    def after(self) -> None:
        self.watched.watch.optimizer_ended(self)

    def work(self) -> None:
        self.watched.clock.spend(self.duration_ns)
        if self.inner is not None:
            self.inner.step()
        if self.error is not None:
            raise self.error


AROUND_HOOKS = 100
"""What torch does outside its hooks: not seen by them."""


@pytest.fixture
def watched(implementation: ModuleType, clock: Clock) -> Watched:
    watched = Watched(implementation, clock)
    watched.watch.tell_steps(lambda optimizer: watched.told.append((optimizer,)))
    return watched


@pytest.fixture
def wrapped(watched: Watched) -> type[Optimizer]:
    """Optimizers whose step we call ourselves."""

    class Wrapped(Optimizer):
        step = watched.watch.step_call(Optimizer.step)

    return Wrapped


def test_all_of_a_step_is_the_optimizer_phase_and_its_end_is_told(
    watched: Watched, wrapped: type[Optimizer]
) -> None:
    optimizer = wrapped(watched, 5)
    assert optimizer.step() == "stepped"
    watched.clock.spend(1)
    assert watched.taken() == {"optimizer": 5 + 2 * AROUND_HOOKS, "other": 1}
    assert watched.totals() == {("optimizer",): 5 + 2 * AROUND_HOOKS}
    assert watched.told == [(optimizer,)]
    assert not watched.watch.is_stepping


def test_a_step_that_raises_is_over_and_nobody_is_told(watched: Watched, wrapped: type[Optimizer]) -> None:
    with pytest.raises(KeyError):
        wrapped(watched, 5, KeyError()).step()
    assert not watched.watch.is_stepping
    watched.clock.spend(2)
    assert watched.taken() == {"optimizer": 5 + AROUND_HOOKS, "other": 2}
    assert watched.told == []


def test_a_step_known_by_hooks_alone_that_raises_inside_ours_is_over_with_it(
    watched: Watched, wrapped: type[Optimizer]
) -> None:
    outer = wrapped(watched, 5)
    outer.inner = Optimizer(watched, 3, KeyError())
    with pytest.raises(KeyError):
        outer.step()
    assert not watched.watch.is_stepping
    watched.clock.spend(2)
    assert watched.taken() == {"optimizer": 8 + 2 * AROUND_HOOKS, "other": 2}
    assert watched.totals() == {
        ("optimizer",): 8 + 2 * AROUND_HOOKS,
        ("optimizer", "optimizer"): 3,
    }
    assert losses(watched.recorder) == {}


def test_a_step_that_calls_the_one_of_its_base_is_one_step(
    watched: Watched, wrapped: type[Optimizer]
) -> None:
    class Derived(wrapped):  # type: ignore[misc, valid-type]
        @watched.watch.step_call  # type: ignore[untyped-decorator]
        def step(self) -> object:
            watched.clock.spend(7)
            return super().step()

    optimizer = Derived(watched, 5)
    optimizer.step()
    assert watched.totals() == {("optimizer",): 12 + 2 * AROUND_HOOKS}
    assert watched.told == [(optimizer,)]


def test_what_is_called_at_the_end_of_a_step_is_part_of_it_up_to_where_it_takes(
    watched: Watched, wrapped: type[Optimizer]
) -> None:
    taken = []

    def stepped(_: object) -> None:
        watched.clock.spend(11)
        taken.append(watched.taken())
        watched.clock.spend(13)

    watched.watch.tell_steps(stepped)
    wrapped(watched, 5).step()
    assert taken == [{"optimizer": 5 + 2 * AROUND_HOOKS + 11}]
    assert watched.taken() == {"other": 13}


def test_a_failure_to_note_the_end_of_a_step_is_not_the_programs(
    watched: Watched, wrapped: type[Optimizer]
) -> None:
    error = RuntimeError("ours")

    def stepped(_: object) -> None:
        raise error

    watched.watch.tell_steps(stepped)
    assert wrapped(watched, 5).step() == "stepped"
    assert watched.failures == [error]
    assert not watched.watch.is_stepping


def test_a_watch_that_begins_anew_inside_a_step_sees_nothing_more_of_it(
    watched: Watched, wrapped: type[Optimizer]
) -> None:
    class Resetting(wrapped):  # type: ignore[misc, valid-type]
        def work(self) -> None:
            super().work()
            watched.watch.reset()
            watched.clock.spend(self.duration_ns)

    Resetting(watched, 5).step()
    assert watched.taken() == {"other": 5 + AROUND_HOOKS}
    assert not watched.watch.is_stepping


# Known by torch's hooks alone.


def test_a_step_is_the_optimizer_phase_between_the_hooks(watched: Watched) -> None:
    optimizer = Optimizer(watched, 5)
    optimizer.step()
    assert watched.taken() == {"optimizer": 5, "other": 2 * AROUND_HOOKS}
    assert watched.totals() == {("optimizer",): 5}
    assert watched.told == [(optimizer,)]
    assert not watched.watch.is_stepping


def test_an_optimizer_inside_anothers_step_is_part_of_it(watched: Watched) -> None:
    outer = Optimizer(watched, 5)
    outer.inner = Optimizer(watched, 3)
    outer.step()
    assert watched.taken() == {"optimizer": 8 + 2 * AROUND_HOOKS, "other": 2 * AROUND_HOOKS}
    assert watched.told == [(outer,)]


def test_a_step_that_raised_ends_where_the_next_thing_begins(watched: Watched) -> None:
    with pytest.raises(KeyError):
        Optimizer(watched, 5, KeyError()).step()
    assert watched.watch.is_stepping
    watched.clock.spend(2)
    watched.phased("data", watched.spends(3), begun=lambda _: None)()
    watched.clock.spend(4)
    optimizer = Optimizer(watched, 6)
    optimizer.step()
    # From the error on nobody has said that the step is over.
    assert watched.taken() == {"optimizer": 7 + 6, "data": 3, "other": 4 + 3 * AROUND_HOOKS}
    assert watched.told == [(optimizer,)]
    assert losses(watched.recorder) == {}


def test_a_function_called_by_the_step_does_not_end_it(watched: Watched) -> None:
    fetch = watched.phased("data", watched.spends(3), begun=lambda _: None)

    class Fetching(Optimizer):
        def work(self) -> None:
            fetch()
            self.watched.clock.spend(self.duration_ns)

    optimizer = Fetching(watched, 5)
    optimizer.step()
    assert watched.taken() == {"optimizer": 5, "data": 3, "other": 2 * AROUND_HOOKS}
    assert watched.told == [(optimizer,)]


def test_an_end_without_a_beginning_changes_nothing(watched: Watched) -> None:
    optimizer = Optimizer(watched, 5)
    optimizer.after()
    watched.clock.spend(1)
    assert watched.told == []
    assert watched.taken() == {"other": 1}


def test_a_step_stands_once_though_the_program_has_named_the_phase_itself(watched: Watched) -> None:
    token = watched.watch.enter(NUMBERS["optimizer"], True)
    Optimizer(watched, 5).step()
    watched.watch.leave(token)
    assert watched.taken() == {"optimizer": 5 + 2 * AROUND_HOOKS}
    assert watched.totals() == {("optimizer",): 5 + 2 * AROUND_HOOKS}


def test_while_the_watch_is_off_nothing_is_noted(watched: Watched) -> None:
    watched.watch.stop()
    Optimizer(watched, 5).step()
    assert watched.totals() == {}
    assert not watched.watch.is_stepping
