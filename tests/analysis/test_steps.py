from collections.abc import Sequence
from math import ceil, isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.analysis.steps import (
    GroupResult,
    WarmupEnd,
    build_groups,
    find_warmup,
    fold_phases,
    main_group,
)
from pyrometer.record.run import Run
from pyrometer.record.torch_run import StepGroup, TorchRun
from tests.torch_runs import (
    MS,
    TORCH_RUNS,
    evaluation_run,
    gan_run,
    generation_run,
    group_of,
    inference_run,
    long_run,
    marked_run,
    training_run,
    workers_run,
)

phase_ns = st.integers(0, 10**9)
step_lists = st.lists(
    st.fixed_dictionaries({"data": phase_ns, "forward": phase_ns, "augment": phase_ns, "other": phase_ns}),
    min_size=1,
    max_size=40,
)
asked = st.none() | st.integers(0, 50)


def groups_of(run: Run) -> tuple[GroupResult, ...]:
    assert run.torch is not None
    return build_groups(run.torch)


def only_group(run: Run) -> GroupResult:
    (group,) = groups_of(run)
    return group


def built(group: StepGroup, *, warmup: int | None = None) -> GroupResult:
    (result,) = build_groups(TorchRun(torch_version="2", groups=(group,), warmup=warmup))
    return result


def lasting(durations_ms: Sequence[float]) -> StepGroup:
    return group_of(
        "training", "SGD", [{"forward": round(duration * MS), "other": 0} for duration in durations_ms]
    )


@given(step_lists, asked)
def test_warm_up_and_steady_steps_make_the_group(steps: list[dict[str, int]], warmup: int | None) -> None:
    group = built(group_of("training", "SGD", steps, samples=3, tokens=7), warmup=warmup)
    assert group.warmup.steps + group.steady.steps == group.steps == len(steps)
    assert group.warmup.total_ns + group.steady.total_ns == group.total_ns
    assert group.steady.samples == 3 * group.steady.steps
    assert group.steady.tokens == 7 * group.steady.steps
    assert group.steady.steps >= 1


@given(step_lists, asked)
def test_phases_add_up_to_the_steady_steps(steps: list[dict[str, int]], warmup: int | None) -> None:
    group = built(group_of("training", "SGD", steps), warmup=warmup)
    assert sum(phase.total_ns for phase in group.phases) == group.steady.total_ns
    shares = sum(phase.share for phase in group.phases)
    assert isclose(shares, 1.0 if group.steady.total_ns else 0.0, abs_tol=1e-9)
    folded = fold_phases(group.phases)
    assert isclose(sum(phase.share for phase in folded), shares, abs_tol=1e-9)
    assert isclose(sum(phase.mean_ns for phase in folded), group.steady.mean_ns, abs_tol=1e-3)


@given(step_lists, asked)
def test_steady_figures_are_those_of_the_steps_after_the_warm_up(
    steps: list[dict[str, int]], warmup: int | None
) -> None:
    group = built(group_of("training", "SGD", steps), warmup=warmup)
    steady_ns = sorted(sum(step.values()) for step in steps[group.warmup.steps :])
    steady = group.steady
    assert (steady.min_ns, steady.max_ns, steady.extremes_are_exact) == (steady_ns[0], steady_ns[-1], True)
    for q, found_ns in ((0.50, steady.p50_ns), (0.95, steady.p95_ns)):
        exact_ns = steady_ns[max(ceil(round(q * 100) * len(steady_ns) / 100), 1) - 1]
        assert abs(found_ns - exact_ns) <= max(0.016 * exact_ns, 1)


def test_three_steps_are_left_out_when_the_rest_is_steady() -> None:
    group = only_group(training_run())
    assert (group.warmup.steps, group.warmup.total_ns, group.warmup.end) == (3, 63 * MS, WarmupEnd.STEADY)
    assert group.steady.steps == 97
    assert group.steady.mean_ns == 10 * MS
    assert group.steady.max_ns == 10 * MS
    assert group.steady_from_ns == 63 * MS


def test_warm_up_lasts_until_two_windows_of_five_agree() -> None:
    falling = [100 - 5 * index for index in range(10)]
    warmup = find_warmup(lasting([*falling, *[50] * 20]), asked_steps=None)
    # From step 7 the first window is 65, 60, 55, 50, 50, from step 8 it is 60, 55, 50, 50, 50.
    assert warmup.end is WarmupEnd.STEADY
    assert warmup.steps == 8


@pytest.mark.parametrize(("second_window_ms", "end"), [(102, WarmupEnd.STEADY), (103, WarmupEnd.NOT_REACHED)])
def test_windows_agree_within_two_percent(second_window_ms: float, end: WarmupEnd) -> None:
    warmup = find_warmup(lasting([100] * 8 + [second_window_ms] * 5), asked_steps=None)
    assert warmup.end is end


def test_a_run_that_never_settles_leaves_out_three_steps_and_says_so() -> None:
    warmup = find_warmup(lasting([1.1**index for index in range(60)]), asked_steps=None)
    assert (warmup.steps, warmup.end) == (3, WarmupEnd.NOT_REACHED)


@pytest.mark.parametrize(("steps", "left_out"), [(1, 0), (2, 1), (3, 2), (4, 3), (12, 3)])
def test_a_short_group_keeps_at_least_one_step(steps: int, left_out: int) -> None:
    warmup = find_warmup(lasting([10] * steps), asked_steps=None)
    assert (warmup.steps, warmup.end) == (left_out, WarmupEnd.TOO_SHORT)


def test_the_user_says_how_many_steps_are_warm_up() -> None:
    group = only_group(marked_run())
    assert (group.warmup.steps, group.warmup.end, group.warmup.asked_steps) == (5, WarmupEnd.GIVEN, 5)
    assert find_warmup(lasting([10] * 20), asked_steps=0).steps == 0


def test_more_warm_up_than_there_are_steps_is_cut_short_and_shows() -> None:
    warmup = find_warmup(lasting([10] * 20), asked_steps=30)
    assert (warmup.steps, warmup.asked_steps) == (19, 30)


def test_of_a_long_run_only_steps_kept_one_by_one_are_left_out() -> None:
    warmup = find_warmup(lasting([10] * 400), asked_steps=300)
    assert (warmup.steps, warmup.asked_steps) == (256, 300)


def test_in_a_long_run_a_longest_step_in_the_warm_up_leaves_the_maximum_near_but_not_exact() -> None:
    steady = only_group(long_run()).steady
    assert steady.steps == 997
    assert steady.total_ns == 9_970 * MS
    assert steady.min_ns == 10 * MS
    assert not steady.extremes_are_exact
    assert abs(steady.max_ns - 10 * MS) <= 0.016 * 10 * MS


def test_in_a_long_run_extremes_outside_the_warm_up_are_exact() -> None:
    steady = built(lasting([11] * 300 + [25] + [11] * 600 + [7])).steady
    assert (steady.min_ns, steady.max_ns, steady.extremes_are_exact) == (7 * MS, 25 * MS, True)


def test_phases_have_their_time_share_and_bytes() -> None:
    group = only_group(training_run())
    forward = group.phase("forward")
    assert forward is not None
    assert forward.mean_ns == 3 * MS
    assert isclose(forward.share, 0.3)
    assert (forward.allocated_bytes_per_step, forward.allocations_per_step) == (400_000, 10)
    assert group.biggest_phase.name == "backward"
    assert group.phase("augment") is None


def test_the_biggest_phase_is_other_where_that_has_most_time() -> None:
    assert built(group_of("training", "SGD", [{"data": 9, "other": 1}] * 5)).biggest_phase.name == "data"
    assert built(group_of("training", "SGD", [{"data": 1, "other": 9}] * 5)).biggest_phase.name == "other"


def test_the_baseline_table_folds_copies_loss_clearing_and_clipping() -> None:
    folded = {phase.name: phase.mean_ns for phase in fold_phases(only_group(training_run()).phases)}
    assert folded == {
        "data": 1.4 * MS,
        "forward": 3.4 * MS,
        "backward": 3.5 * MS,
        "optimizer": 1.6 * MS,
        "other": 0.1 * MS,
    }


def test_the_baseline_table_has_all_rows_and_counts_own_phases_as_other() -> None:
    folded = {phase.name: phase.mean_ns for phase in fold_phases(only_group(marked_run()).phases)}
    assert folded == {"data": 0, "forward": 4 * MS, "backward": 4 * MS, "optimizer": 0, "other": 2 * MS}


def test_rates_are_over_the_steady_steps() -> None:
    steady = only_group(training_run()).steady
    assert (steady.samples_per_second, steady.steps_per_second, steady.batches_per_second) == (
        3_200,
        100,
        100,
    )
    assert steady.tokens_per_second is None
    assert steady.allocated_bytes_per_step == 1_004_000
    assert only_group(inference_run()).steady.tokens_per_second == 409_600
    assert only_group(inference_run()).steady.batches_per_second is None


def test_a_generation_step_makes_a_token_for_each_sequence_of_its_batch() -> None:
    steady = only_group(generation_run(cached=True)).steady
    assert steady.samples is None
    assert steady.tokens == 157


def test_the_first_step_is_told_beside_the_steady_ones() -> None:
    first = only_group(training_run()).first_step
    assert (first.duration_ns, first.extra_ns, first.ratio) == (40 * MS, 30 * MS, 4.0)


def test_the_work_of_loader_workers_is_told_per_step() -> None:
    assert only_group(workers_run(slow=True)).steady.worker_ns_per_step == 40 * MS
    assert only_group(training_run()).steady.worker_ns_per_step is None


def test_gradients_recorded_for_nothing_are_noticed() -> None:
    assert only_group(inference_run()).records_unused_gradients
    assert only_group(inference_run()).grad_forward_share == 1
    training, evaluation = groups_of(evaluation_run())
    assert not training.records_unused_gradients
    assert not evaluation.records_unused_gradients
    assert evaluation.grad_forward_share == 0


def test_steps_that_took_no_time_have_no_rates_and_no_shares() -> None:
    group = built(lasting([0] * 5))
    assert group.steady.steps_per_second is None
    assert group.first_step.ratio is None
    assert {phase.share for phase in group.phases} == {0.0}


def test_the_main_group_is_the_training_with_most_time() -> None:
    groups = groups_of(gan_run())
    assert main_group(groups) is groups[0]
    assert main_group(()) is None


def test_training_goes_before_a_longer_evaluation() -> None:
    evaluation = group_of("forward", "model", [{"forward": 90 * MS, "other": 0}] * 50, backward_passes=0)
    torch = TorchRun(torch_version="2", groups=(evaluation, lasting([1] * 50)))
    main = main_group(build_groups(torch))
    assert main is not None
    assert main.label == "SGD"


@pytest.mark.parametrize("name", TORCH_RUNS)
def test_the_series_holds_the_kept_steps_in_order(name: str) -> None:
    for group in groups_of(TORCH_RUNS[name]()):
        assert len(group.series) == min(group.steps, 256 + 512)
        assert [step.index for step in group.series] == sorted(step.index for step in group.series)
