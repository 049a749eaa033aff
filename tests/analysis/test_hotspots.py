import pytest

from pyrometer.analysis.hotspot_texts import PHASE_ADVICE
from pyrometer.analysis.hotspots import (
    Hotspot,
    HotspotKind,
    Priority,
    Strength,
    StrengthKind,
    find_hotspots,
    priority_of,
)
from pyrometer.analysis.modules import build_modules
from pyrometer.analysis.results import build_results
from pyrometer.analysis.steps import build_groups, main_group
from pyrometer.record.run import Run
from pyrometer.record.torch_run import OTHER, PHASES, TorchRun
from tests.torch_runs import (
    MS,
    TORCH_RUNS,
    compiled_run,
    evaluation_run,
    generation_run,
    group_of,
    inference_run,
    marked_run,
    no_steps_run,
    torch_run,
    training_run,
    workers_run,
)


def hotspots(run: Run) -> tuple[Hotspot, ...]:
    torch = build_results(run).torch
    assert torch is not None
    return torch.hotspots


def strengths(run: Run) -> dict[StrengthKind, Strength]:
    torch = build_results(run).torch
    assert torch is not None
    return {strength.kind: strength for strength in torch.strengths}


def test_phases_and_modules_are_ranked_together_by_share() -> None:
    assert [(spot.rank, spot.kind, spot.name, spot.priority) for spot in hotspots(training_run())] == [
        (1, HotspotKind.MODULE, "model.fc1", Priority.HIGH),
        (2, HotspotKind.PHASE, "backward", Priority.HIGH),
        (3, HotspotKind.PHASE, "forward", Priority.HIGH),
        (4, HotspotKind.MODULE, "model.fc2", Priority.MEDIUM),
        (5, HotspotKind.PHASE, "optimizer", Priority.MEDIUM),
    ]


def test_a_hotspot_has_its_time_per_step() -> None:
    first, second, *_ = hotspots(training_run())
    assert first.ns_per_step == pytest.approx(3.8 * MS)
    assert first.module_kind == "Linear"
    assert second.share == pytest.approx(0.35)
    assert (second.ns_per_step, second.module_kind) == (3.5 * MS, None)


@pytest.mark.parametrize(
    ("share", "priority"),
    [
        (1.0, Priority.HIGH),
        (0.30, Priority.HIGH),
        (0.2999, Priority.MEDIUM),
        (0.10, Priority.MEDIUM),
        (0.0999, Priority.LOW),
        (0.0, Priority.LOW),
    ],
)
def test_priority_is_high_from_thirty_percent_and_medium_from_ten(share: float, priority: Priority) -> None:
    assert priority_of(share) is priority


@pytest.mark.parametrize("name", TORCH_RUNS)
def test_hotspots_are_at_most_five_with_causes_and_what_to_try(name: str) -> None:
    found = hotspots(TORCH_RUNS[name]())
    assert len(found) <= 5
    assert [spot.rank for spot in found] == list(range(1, len(found) + 1))
    shares = [spot.share for spot in found]
    assert shares == sorted(shares, reverse=True)
    assert all(spot.share > 0 and spot.causes and spot.to_try for spot in found)


def test_every_phase_has_advice_of_its_own() -> None:
    assert set(PHASE_ADVICE) == {*PHASES, OTHER}


def test_a_phase_the_program_named_and_a_hidden_module_are_told_as_such() -> None:
    own = next(spot for spot in hotspots(marked_run()) if spot.name == "augment")
    assert own.causes == ("the program's own phase: what runs in it",)
    hidden = next(spot for spot in hotspots(compiled_run()) if spot.name == "model.body")
    assert hidden.causes == ("compiled or scripted code, whose inside cannot be seen",)


def test_there_are_no_hotspots_without_steps() -> None:
    assert hotspots(no_steps_run()) == ()


def test_the_caller_may_ask_for_more() -> None:
    torch = training_run().torch
    assert torch is not None
    found = find_hotspots(main_group(build_groups(torch)), build_modules(torch), most=20)
    assert len(found) == 9 + 5


def test_a_modules_time_is_its_own_without_the_modules_below() -> None:
    torch = training_run().torch
    assert torch is not None
    found = find_hotspots(main_group(build_groups(torch)), build_modules(torch), most=20)
    (model,) = [spot for spot in found if spot.name == "model"]
    # 3 ms in 100 forward passes, and 2 ms in the 20 backward passes that were timed.
    assert model.ns_per_step == pytest.approx(0.13 * MS)


def test_strengths_come_with_their_evidence() -> None:
    found = strengths(workers_run(slow=False))
    assert set(found) == {
        StrengthKind.DATA_READY,
        StrengthKind.LITTLE_OTHER,
        StrengthKind.EVEN_STEPS,
        StrengthKind.WORKERS_AHEAD,
    }
    data = found[StrengthKind.DATA_READY]
    assert data.value == pytest.approx(0.1 / 8.1)
    assert data.limit == 0.05
    assert data.text == "the steps hardly wait for data: 1.2 % of their time"
    ahead = found[StrengthKind.WORKERS_AHEAD]
    assert (ahead.subject, ahead.value) == ("DataLoader(ImageFolder)", 0.98)


def test_a_slow_loader_is_no_strength() -> None:
    found = strengths(workers_run(slow=True))
    assert StrengthKind.DATA_READY not in found
    assert StrengthKind.WORKERS_AHEAD not in found


def test_data_that_no_phase_waits_for_is_no_strength() -> None:
    assert StrengthKind.DATA_READY not in strengths(inference_run())


@pytest.mark.parametrize(("slow_ms", "even"), [(11, True), (13, False)])
def test_steps_are_even_when_the_slow_ones_are_near_the_median(slow_ms: int, even: bool) -> None:
    steps = [{"forward": duration * MS, "other": 0} for duration in ([10] * 9 + [slow_ms]) * 10]
    torch = TorchRun(torch_version="2", groups=(group_of("training", "SGD", steps),), warmup=0)
    found = strengths(torch_run(torch))
    assert (StrengthKind.EVEN_STEPS in found) is even


def test_a_few_steps_cannot_be_called_even() -> None:
    steps = [{"forward": 10 * MS, "other": 0}] * 20
    torch = TorchRun(torch_version="2", groups=(group_of("training", "SGD", steps),))
    assert StrengthKind.EVEN_STEPS not in strengths(torch_run(torch))


def test_a_cache_and_forward_passes_without_gradients_are_strengths() -> None:
    found = strengths(generation_run(cached=True))
    assert found[StrengthKind.CACHE_USED].value == 1
    assert StrengthKind.CACHE_USED not in strengths(generation_run(cached=False))
    assert strengths(evaluation_run())[StrengthKind.NO_UNUSED_GRADIENTS].subject == "model"
    assert StrengthKind.NO_UNUSED_GRADIENTS not in strengths(inference_run())
