import msgspec

from pyrometer.analysis.step_kinds import GroupKind, GroupNature
from pyrometer.analysis.steps import build_groups
from pyrometer.record.run import Run
from pyrometer.record.torch_run import StepGroup, TorchRun
from tests.torch_runs import (
    MS,
    accumulation_run,
    closure_run,
    evaluation_run,
    gan_run,
    generation_run,
    group_of,
    inference_run,
    marked_run,
    training_run,
)


def natures(run: Run) -> list[GroupNature]:
    assert run.torch is not None
    return [group.nature for group in build_groups(run.torch)]


def nature(group: StepGroup) -> GroupNature:
    (result,) = build_groups(TorchRun(torch_version="2", groups=(group,)))
    return result.nature


def training(label: str, *, batches: int, forward_calls: int, backward_passes: int) -> StepGroup:
    return group_of(
        "training",
        label,
        [{"forward": MS, "other": 0}] * 20,
        batches=batches,
        forward_calls=forward_calls,
        grad_forward_calls=forward_calls,
        backward_passes=backward_passes,
    )


def test_plain_training_is_nothing_special() -> None:
    assert natures(training_run()) == [
        GroupNature(
            kind=GroupKind.TRAINING, trains=True, optimizers=("Adam",), accumulates=None, closure=False
        )
    ]


def test_several_batches_to_one_step_are_gradient_accumulation() -> None:
    (found,) = natures(accumulation_run())
    assert (found.accumulates, found.closure) == (4, False)


def test_the_last_and_shorter_accumulation_of_an_epoch_does_not_hide_it() -> None:
    group = training("SGD", batches=4, forward_calls=4, backward_passes=4)
    shorter = msgspec.structs.replace(group, batches=77, backward_passes=77)
    assert nature(shorter).accumulates == 4


def test_accumulation_is_seen_without_a_loader_too() -> None:
    assert nature(training("SGD", batches=0, forward_calls=4, backward_passes=4)).accumulates == 4


def test_two_batches_to_one_backward_pass_are_no_accumulation() -> None:
    assert nature(training("SGD", batches=2, forward_calls=2, backward_passes=1)).accumulates is None


def test_an_optimizer_that_runs_the_batch_several_times_has_a_closure() -> None:
    (found,) = natures(closure_run())
    assert (found.closure, found.accumulates) == (True, None)
    assert nature(training("MySearch", batches=1, forward_calls=3, backward_passes=3)).closure
    assert nature(training("LBFGS", batches=0, forward_calls=20, backward_passes=20)).closure


def test_two_losses_on_one_batch_are_no_closure() -> None:
    found = nature(training("SGD", batches=1, forward_calls=1, backward_passes=2))
    assert (found.closure, found.accumulates) == (False, None)


def test_several_optimizers_in_a_step_are_named() -> None:
    alone, both = natures(gan_run())
    assert alone.optimizers == ("RMSprop",)
    assert both.optimizers == ("RMSprop", "RMSprop (2)")
    assert (both.closure, both.accumulates) == (False, None)


def test_forward_passes_are_evaluation_beside_training_and_inference_alone() -> None:
    assert [found.kind for found in natures(evaluation_run())] == [GroupKind.TRAINING, GroupKind.EVALUATION]
    (found,) = natures(inference_run())
    assert (found.kind, found.trains) == (GroupKind.INFERENCE, False)


def test_generation_and_marked_steps_are_what_they_are() -> None:
    (generating,) = natures(generation_run(cached=True))
    assert (generating.kind, generating.trains) == (GroupKind.GENERATION, False)
    (marked,) = natures(marked_run())
    assert (marked.kind, marked.trains) == (GroupKind.MARKED, True)
