"""What torch is asked to do, as steps: each kind of loop is reported for what it is."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from pyrometer.capture.step_groups import StepGroups, Stretch, Taken
from pyrometer.capture.torch_generation import Token
from pyrometer.capture.torch_steps import MAX_BEFORE_OPTIMIZER, MAX_UNDECIDED, LoopStretch, StepFinder
from pyrometer.record.torch_run import MAX_FIRST_STEPS, MAX_GROUPS, MAX_SAMPLED_STEPS, StepGroup

PHASES = ["other", "data", "forward"]
_NOTHING: LoopStretch = (False, 0, None, None, 0, 0, (), None, None)


class Loop:
    """A program's loop by hand: each thing it does takes 10 ns in ``other`` and 1 ns in ``forward``."""

    def __init__(self, first: int = 0, first_not: int | None = None, *, at_once: bool = False) -> None:
        self.groups = StepGroups(phases=PHASES, counts_bytes=True, origin_ns=0)
        self.finished: list[Stretch] = []
        self.alike: list[tuple[int, int]] = []
        self._now_ns = 0
        self._taken_ns = 0
        self.finder = StepFinder(
            take=self._take,
            groups=self.groups,
            includes=lambda index: first <= index and (first_not is None or index < first_not),
            on_step=lambda _, step: self.finished.append(step),
            on_alike=self._count_alike if at_once else None,
            lock=threading.Lock(),
        )

    def _count_alike(self, last: int, _step: Stretch, taken: Sequence[Taken]) -> None:
        self.alike.append((last, len(taken)))

    def _take(self) -> Taken:
        since_ns, self._taken_ns = self._now_ns - self._taken_ns, self._now_ns
        done = since_ns // 11
        return self._now_ns, (done * 10, 0, done), (0, 0, done), (0, 0, done)

    def _do(self) -> None:
        self._now_ns += 11

    def fetch(self, samples: int | None = 4, tokens: int | None = None) -> None:
        self.finder.fetch_begun()
        self._do()
        self.finder.fetched(samples, tokens, None)

    def run_out(self) -> None:
        self.finder.fetch_begun()
        self._do()

    def forward(
        self,
        root: str = "model",
        *,
        gradients: bool = True,
        samples: int | None = None,
        continues: bool = False,
        again: bool = False,
        token: Token | None = None,
    ) -> None:
        self.finder.forward_begun(
            root, samples, None, tracks_gradients=gradients, continues=continues, again=again
        )
        self._do()
        self.finder.forward_ended(token)

    def backward(self) -> None:
        self._do()
        self.finder.backward_ended()

    def optimize(self, name: str = "Adam") -> None:
        self._do()
        self.finder.optimizer_ended(name)

    def work(self) -> None:
        self._do()

    def train(self, optimizer: str = "Adam") -> None:
        self.forward()
        self.backward()
        self.optimize(optimizer)

    def end(self) -> tuple[StepGroup, ...]:
        self.finder.end()
        return self.groups.records()


def test_a_training_step_runs_to_the_return_of_the_optimizer() -> None:
    loop = Loop()
    for _ in range(3):
        loop.fetch()
        loop.train()
        loop.work()  # logging: part of the next step, and after the last of none
    (group,) = loop.end()
    assert (group.kind, group.label, group.steps, group.batches, group.samples) == (
        "training",
        "Adam",
        3,
        3,
        12,
    )
    assert [step.duration_ns for step in group.first] == [44, 55, 55]
    assert [step.started_ns for step in group.first] == [0, 44, 99]


def test_every_phase_of_a_step_is_in_its_sum() -> None:
    loop = Loop()
    for _ in range(5):
        loop.fetch()
        loop.train()
    (group,) = loop.end()
    assert sum(group.phase_ns) == group.total_ns == sum(step.duration_ns for step in group.first)
    assert all(sum(step.phase_ns) == step.duration_ns for step in group.first)
    assert group.phases == ("forward", "other")
    assert group.phase_bytes == (20, 0)


def test_gradients_accumulated_over_batches_make_one_step() -> None:
    loop = Loop()
    for _ in range(3):
        for _ in range(4):
            loop.fetch()
            loop.forward()
            loop.backward()
        loop.optimize()
    (group,) = loop.end()
    assert (group.steps, group.batches, group.backward_passes, group.samples) == (3, 12, 12, 48)


def test_two_optimizers_that_take_turns_on_one_batch_make_one_step() -> None:
    loop = Loop()
    for _ in range(3):
        loop.fetch()
        loop.train("Adam")
        loop.train("Adam (2)")
    (group,) = loop.end()
    assert (group.label, group.steps, group.batches, group.samples) == ("Adam + Adam (2)", 3, 3, 12)


def test_two_optimizers_that_take_turns_without_a_loader_make_one_step() -> None:
    loop = Loop()
    for _ in range(3):
        loop.train("Adam")
        loop.train("Adam (2)")
    (group,) = loop.end()
    assert (group.label, group.steps) == ("Adam + Adam (2)", 3)


def test_an_optimizer_that_steps_more_often_than_the_other_has_steps_of_its_own() -> None:
    loop = Loop()
    for _ in range(2):
        for _ in range(2):
            loop.fetch()
            loop.train("critic")
        loop.train("generator")
    assert {group.label: group.steps for group in loop.end()} == {"critic": 2, "critic + generator": 2}


def test_several_steps_of_one_optimizer_on_a_batch_are_one_step() -> None:
    loop = Loop()
    for _ in range(3):
        loop.fetch()
        for _ in range(4):
            loop.train()
    (group,) = loop.end()
    assert (group.steps, group.backward_passes) == (3, 12)


def test_a_batch_fetched_once_does_not_make_the_whole_run_one_step() -> None:
    loop = Loop()
    loop.fetch()
    for _ in range(MAX_UNDECIDED * 3):
        loop.train()
    (group,) = loop.end()
    assert group.steps == MAX_UNDECIDED * 3


def test_a_loop_without_a_loader_steps_with_its_optimizer() -> None:
    loop = Loop()
    for _ in range(5):
        loop.forward(samples=8)
        loop.backward()
        loop.optimize()
    (group,) = loop.end()
    assert (group.kind, group.steps, group.samples) == ("training", 5, 40)


@pytest.mark.parametrize("gradients", [True, False])
def test_a_second_pass_over_a_batch_is_no_second_batch(gradients: bool) -> None:
    """For an accuracy, after the optimizer's step: slower, and not twice as many samples."""
    loop = Loop()
    for _ in range(5):
        loop.forward(samples=8)
        loop.backward()
        loop.optimize()
        loop.forward(samples=8, gradients=gradients)
    group = max(loop.end(), key=lambda group: group.steps)
    assert (group.kind, group.steps, group.samples) == ("training", 5, 40)


def test_a_pass_between_backward_and_optimizer_is_no_second_batch() -> None:
    loop = Loop()
    for _ in range(5):
        loop.forward(samples=8)
        loop.backward()
        loop.forward(samples=8)
        loop.optimize()
    (group,) = loop.end()
    assert (group.steps, group.samples) == (5, 40)


def test_accumulated_batches_are_all_counted() -> None:
    loop = Loop()
    for _ in range(5):
        for _ in range(3):
            loop.forward(samples=8)
            loop.backward()
        loop.optimize()
    (group,) = loop.end()
    assert (group.steps, group.samples) == (5, 120)


def test_samples_of_a_generator_are_what_it_was_given() -> None:
    loop = Loop()
    for _ in range(5):
        loop.forward("generator", samples=8)
        loop.forward("critic", samples=8)
        loop.forward("critic", samples=8)
        loop.backward()
        loop.optimize("critic")
        loop.forward("critic", samples=8)
        loop.backward()
        loop.optimize("generator")
    assert {(group.steps, group.samples) for group in loop.end()} == {(5, 40)}


def test_a_closure_asks_many_times_for_the_same_samples() -> None:
    loop = Loop()
    for _ in range(2):
        for _ in range(5):
            loop.forward(samples=8, again=True)
            loop.backward()
        loop.optimize("LBFGS")
    (group,) = loop.end()
    assert (group.steps, group.forward_calls, group.backward_passes, group.samples) == (2, 10, 10, 16)


def test_a_model_asked_twice_before_the_backward_pass_is_one_step() -> None:
    loop = Loop()
    for _ in range(3):
        loop.forward()
        loop.forward()
        loop.backward()
        loop.optimize()
    (group,) = loop.end()
    assert (group.kind, group.steps, group.forward_calls) == ("training", 3, 6)


def test_evaluation_between_epochs_is_apart_from_training() -> None:
    loop = Loop()
    for _ in range(2):
        for _ in range(3):
            loop.fetch()
            loop.train()
        loop.run_out()
        for _ in range(2):
            loop.fetch()
            loop.forward(gradients=False)
        loop.run_out()
    training, evaluation = loop.end()
    assert (training.kind, training.steps, training.batches) == ("training", 6, 6)
    assert (evaluation.kind, evaluation.steps, evaluation.batches) == ("forward", 4, 4)
    assert evaluation.grad_forward_calls == 0


def test_inference_over_a_loader_steps_from_batch_to_batch() -> None:
    loop = Loop()
    for _ in range(50):
        loop.fetch(samples=2)
        loop.forward("encoder", gradients=False)
        loop.forward("decoder", gradients=False)
    loop.run_out()
    (group,) = loop.end()
    assert (group.kind, group.label, group.steps, group.samples) == ("forward", "encoder + decoder", 50, 100)


def test_a_call_after_training_is_a_step_though_nothing_follows_it() -> None:
    loop = Loop()
    loop.fetch()
    loop.train()
    loop.fetch(samples=2)
    loop.forward(gradients=False)
    loop.work()  # after the last call of all: in no step
    training, forward = loop.end()
    assert (training.kind, training.steps, training.total_ns) == ("training", 1, 44)
    assert (forward.kind, forward.steps, forward.samples, forward.total_ns) == ("forward", 1, 2, 22)


@pytest.mark.parametrize("gradients", [True, False])
def test_a_program_that_only_calls_its_model_steps_from_call_to_call(gradients: bool) -> None:
    loop = Loop()
    for _ in range(40):
        loop.forward(samples=3, gradients=gradients)
        loop.work()
    (group,) = loop.end()
    assert (group.kind, group.steps, group.samples) == ("forward", 40, 120)
    assert group.first[-1].duration_ns == 11  # what comes after the last call is in no step
    assert {step.duration_ns for step in group.first[:-1]} == {22}


def test_many_calls_without_gradients_before_training_are_steps_of_their_own() -> None:
    loop = Loop()
    for _ in range(3):
        for _ in range(40):
            loop.forward(gradients=False)
        for _ in range(4):
            loop.train()
    groups = {group.kind: group.steps for group in loop.end()}
    assert groups == {"forward": 120, "training": 12}


def test_a_few_calls_without_gradients_belong_to_the_training_step() -> None:
    loop = Loop()
    for _ in range(10):
        loop.forward("teacher", gradients=False)
        loop.forward("teacher", gradients=False)
        loop.train()
    (group,) = loop.end()
    assert (group.kind, group.steps, group.forward_calls) == ("training", 10, 30)


def _tokens(count: int) -> Iterator[Token]:
    for place in range(count):
        yield Token(
            model="model", position=5 + place, sequences=2, starts=place == 0, cached=False, duration_ns=11
        )


def test_each_token_is_a_step_of_generation() -> None:
    loop = Loop()
    for _ in range(3):
        for token in _tokens(20):
            loop.forward(gradients=False, samples=2, continues=not token.starts, token=token)
    (group,) = loop.end()
    assert (group.kind, group.steps, group.tokens) == ("generation", 60, 120)


def test_generation_for_each_batch_of_a_loader_is_generation() -> None:
    loop = Loop()
    for _ in range(3):
        loop.fetch()
        for token in _tokens(10):
            loop.forward(gradients=False, continues=not token.starts, token=token)
    loop.run_out()
    (group,) = loop.end()
    assert (group.kind, group.steps) == ("generation", 30)


def test_a_model_of_tokens_that_never_goes_on_is_no_generator() -> None:
    loop = Loop()
    for _ in range(5):
        loop.fetch()
        loop.forward(gradients=False, token=next(_tokens(1)))
    loop.run_out()
    (group,) = loop.end()
    assert (group.kind, group.steps) == ("forward", 5)


def test_text_sampled_while_training_does_not_disturb_the_steps() -> None:
    loop = Loop()
    for _ in range(4):
        loop.train()
        for token in _tokens(5):
            loop.forward(gradients=False, continues=not token.starts, token=token)
    groups = {group.kind: group.steps for group in loop.end()}
    assert groups["training"] == 4
    assert groups["generation"] == 20


def test_marked_steps_are_the_only_ones() -> None:
    loop = Loop()
    for _ in range(4):
        loop.finder.mark_begun("round", 16)
        for _ in range(3):
            loop.fetch()
            loop.train()
        loop.finder.mark_ended()
        loop.work()  # between two marked steps: in none
    (group,) = loop.end()
    assert (group.kind, group.label, group.steps, group.samples) == ("marked", "round", 4, 64)
    assert {step.duration_ns for step in group.first} == {3 * 44}


def test_a_mark_ended_twice_counts_once() -> None:
    loop = Loop()
    loop.finder.mark_begun("round", None)
    loop.train()
    loop.finder.mark_ended()
    loop.finder.mark_ended()
    assert [group.steps for group in loop.end()] == [1]


def test_a_batch_of_unknown_size_leaves_the_samples_unknown() -> None:
    loop = Loop()
    loop.fetch(samples=4)
    loop.train()
    loop.fetch(samples=None)
    loop.train()
    (group,) = loop.end()
    assert group.samples is None
    assert [step.samples for step in group.first] == [4, None]


def test_only_the_steps_of_the_window_are_kept() -> None:
    loop = Loop(first=2, first_not=5)
    for _ in range(10):
        loop.fetch()
        loop.train()
    (group,) = loop.end()
    assert [step.index for step in group.first] == [2, 3, 4]
    assert loop.groups.steps == 10


def test_what_is_kept_does_not_grow_with_the_run() -> None:
    loop = Loop()
    for _ in range(5_000):
        loop.fetch()
        loop.train()
    (group,) = loop.end()
    assert group.steps == 5_000
    assert len(group.first) == MAX_FIRST_STEPS
    assert len(group.sampled) == MAX_SAMPLED_STEPS
    assert [step.index for step in group.sampled] == sorted(step.index for step in group.sampled)
    # A fair choice: its middle is near the middle of what it was chosen from.
    middle = group.sampled[MAX_SAMPLED_STEPS // 2].index
    assert abs(middle - (5_000 + MAX_FIRST_STEPS) / 2) < 500


def test_kinds_of_steps_without_end_share_one_group() -> None:
    loop = Loop()
    for number in range(40):
        loop.fetch()
        loop.train(f"optimizer {number}")
    groups = loop.end()
    assert len(groups) <= MAX_GROUPS
    assert [group.label for group in groups].count("(other)") == 1
    assert sum(group.steps for group in groups) == 40


def test_an_optimizer_for_each_parameter_has_a_short_label() -> None:
    loop = Loop()
    for _ in range(2):
        loop.forward()
        for number in range(30):
            loop.optimize(f"SGD ({number})")
    assert loop.end()[0].label == "SGD (0) + SGD (1) + SGD (2) and 27 more"


def test_a_program_that_changes_its_weights_by_hand_steps_from_batch_to_batch() -> None:
    loop = Loop()
    for _ in range(5):
        loop.fetch()
        loop.forward()
        loop.backward()
        loop.work()
    loop.run_out()
    (group,) = loop.end()
    assert (group.kind, group.label, group.steps, group.samples) == ("training", "model", 5, 20)
    assert {step.duration_ns for step in group.first} == {44}


def test_by_hand_and_without_a_loader_it_steps_from_root_call_to_root_call() -> None:
    loop = Loop()
    for _ in range(MAX_BEFORE_OPTIMIZER + 10):
        loop.forward(samples=2)
        loop.backward()
        loop.work()
    (group,) = loop.end()
    assert (group.kind, group.steps) == ("training", MAX_BEFORE_OPTIMIZER + 10)
    assert group.first[0].duration_ns == 33


def test_gradients_accumulated_from_the_start_wait_for_their_optimizer() -> None:
    loop = Loop()
    for _ in range(2):
        for _ in range(100):
            loop.fetch()
            loop.forward()
            loop.backward()
        loop.optimize()
    (group,) = loop.end()
    assert (group.steps, group.batches, group.backward_passes) == (2, 200, 200)


# Steps that the core has followed by itself.


def _followed(number: int, **other: Any) -> LoopStretch:
    """One in a row: a batch, a forward and a backward pass, an optimizer, 100 ns and a few more."""
    happened = {"samples": 4, "fetch_begun": True, "optimizer": "Adam", **other}
    taken = 1_000 + 100 * number, (60 + number % 3, 30, 10 - number % 3), (0, 0, number), (0, 0, 1)
    return (
        happened["fetch_begun"],
        1,
        happened["samples"],
        None,
        1,
        1,
        ("model",),
        happened["optimizer"],
        None if happened["optimizer"] is None else taken,
    )


def _one_optimizer(count: int) -> list[LoopStretch]:
    return [_followed(number) for number in range(count)]


def _a_smaller_batch_at_times(count: int) -> list[LoopStretch]:
    return [_followed(number, samples=4 if number % 7 else 3) for number in range(count)]


def _two_optimizers_a_batch(count: int) -> list[LoopStretch]:
    return [
        _followed(number, fetch_begun=number % 2 == 0, optimizer="Adam" if number % 2 else "SGD")
        for number in range(count)
    ]


def _an_optimizer_twice_a_batch(count: int) -> list[LoopStretch]:
    return [_followed(number, fetch_begun=number % 2 == 0) for number in range(count)]


def _no_loader(count: int) -> list[LoopStretch]:
    return [_followed(number, fetch_begun=False) for number in range(count)]


@pytest.mark.parametrize("portion", [1, 2, 3, 4, 17, 2_000])
@pytest.mark.parametrize(
    "stretches",
    [
        _one_optimizer,
        _a_smaller_batch_at_times,
        _two_optimizers_a_batch,
        _an_optimizer_twice_a_batch,
        _no_loader,
    ],
)
def test_many_steps_at_once_are_what_they_are_one_by_one(
    stretches: Callable[[int], list[LoopStretch]], portion: int
) -> None:
    given = stretches(1_500)
    unfinished = _followed(1_500, optimizer=None)
    one_by_one, at_once = Loop(), Loop(at_once=True)
    for first in range(0, len(given), portion):
        now = unfinished if first + portion >= len(given) else _NOTHING
        one_by_one.finder.catch_up([*given[first : first + portion], now])
        at_once.finder.catch_up([*given[first : first + portion], now])
    assert at_once.end() == one_by_one.end()
    assert len(at_once.finished) + sum(count for _, count in at_once.alike) == len(one_by_one.finished)


def test_a_row_of_like_steps_is_told_of_at_once_with_the_number_of_the_last() -> None:
    loop = Loop(at_once=True)
    loop.finder.catch_up([*_one_optimizer(100), _NOTHING])
    # The last is not over before the next fetch.
    assert loop.alike == [(98, 99)]
    (group,) = loop.end()
    assert (group.steps, group.samples, group.total_ns) == (100, 400, 100 * 100)


def test_steps_that_the_program_marks_are_never_taken_for_others() -> None:
    loop = Loop(at_once=True)
    loop.finder.mark_begun("epoch", None)
    loop.finder.catch_up([*_one_optimizer(10), _NOTHING])
    loop.finder.mark_ended()
    (group,) = loop.end()
    assert (group.kind, group.steps, loop.alike) == ("marked", 1, [])
