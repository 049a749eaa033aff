"""Hot places: where the time goes, with what is known of each place."""

import pytest

from pyrometer.analysis.findings.model import Place
from pyrometer.analysis.hot_places import HotPlace, ShareOf, find_hot_places
from pyrometer.analysis.observed import observe
from pyrometer.record.run import Run
from pyrometer.record.torch_run import FORWARD_WITHOUT_GRADIENTS
from tests.findings import make_finding
from tests.report.sample_runs import MS, S, empty_run, main_strand, node, run_of
from tests.sampled_runs import OWN, STACKS, THREADS, Seen, stack_samples, with_samples
from tests.torch_runs import evaluation_run, net_operators, operators_run, training_run

# In tests.torch_runs.net_calls the first node is the phase "forward", the third the module below it.
IN_FORWARD, IN_MODULE = (0, 0), (0, 2)


def places(run: Run, *found_at: Place) -> tuple[HotPlace, ...]:
    found = [make_finding(rank=rank, place=place) for rank, place in enumerate(found_at, start=1)]
    return find_hot_places(observe(run), found).places


def sampled(*seen: Seen) -> Run:
    return with_samples(training_run(), stack_samples(*seen, threads=THREADS))


def test_hot_places_are_the_call_stacks_where_stacks_were_sampled() -> None:
    first, *_ = places(with_samples(empty_run(), stack_samples(*STACKS, threads=THREADS)))
    # 4.3 s of the 7.64 s that threads ran, less the 50 ms of the profiler's own.
    assert (first.name, first.share_of) == ("Linear.forward", ShareOf.CPU)
    assert first.duration_ns == 4_300 * MS
    assert first.share == pytest.approx(4.3 / 7.69)
    assert first.stack[0].frame.name == "<module>"


def test_what_a_place_does_adds_up_to_its_time() -> None:
    (place,) = places(sampled(Seen(stack="main;step", python=100, native=300, waiting=600)))
    assert place.split is not None
    assert place.split.python_ns + place.split.native_ns == place.duration_ns
    assert place.split.waiting_ns == 600 * MS


def test_a_place_knows_its_phases_and_modules() -> None:
    (place,) = places(
        sampled(
            Seen(stack="main;step", native=300, call=IN_MODULE),
            Seen(stack="main;step", native=100),
        )
    )
    assert place.phases == (("forward", 0.75), ("outside any phase", 0.25))
    assert place.modules == ("model.fc1",)


def test_a_finding_of_a_module_concerns_what_is_below_it_and_forward_is_one_phase() -> None:
    run = evaluation_run()
    assert run.torch is not None
    nodes = run.torch.calls[0].nodes
    top = next(at for at, call in enumerate(nodes) if call.name == FORWARD_WITHOUT_GRADIENTS)
    model = next(at for at, call in enumerate(nodes) if call.parent == top)
    layer = next(at for at, call in enumerate(nodes) if call.parent == model)
    run = with_samples(run, stack_samples(Seen(stack="main;step", native=300, call=(0, layer))))
    (place,) = places(run, Place(module="model"), Place(phase="forward"), Place(module="mode"))
    assert [finding.rank for finding in place.findings] == [1, 2]


def test_findings_stand_with_the_places_they_concern() -> None:
    run = sampled(Seen(stack="main;step", native=300, call=IN_FORWARD))
    (place,) = places(
        run,
        Place(phase="forward"),
        Place(phase="backward"),
        Place(function=f"step ({OWN}:10)"),
        Place(module="model.fc2"),
    )
    assert [finding.rank for finding in place.findings] == [1, 3]


def test_a_finding_of_a_function_concerns_no_namesake_in_another_file() -> None:
    (place,) = places(
        sampled(Seen(stack="main;forward", native=300)),
        Place(function="forward (/elsewhere/layers.py:10)"),
        Place(function=f"forward ({OWN}:10)"),
        # On another line of the same function: where it calls what was found.
        Place(function=f"main ({OWN}:27)"),
        Place(function=f"main (/elsewhere{OWN}:10)"),
    )
    assert [finding.rank for finding in place.findings] == [2, 3]


def test_a_finding_of_a_phase_of_other_steps_does_not_concern_a_place() -> None:
    run = evaluation_run()
    assert run.torch is not None
    # Training records gradients in all of its forward passes, evaluation in none.
    training, evaluation = (group.label for group in run.torch.groups)
    top_of = {call.name: at for at, call in enumerate(run.torch.calls[0].nodes) if call.parent is None}
    found_at = (Place(group=training, phase="forward"), Place(group=evaluation, phase="forward"))
    for name, ranks in (("forward", [1]), (FORWARD_WITHOUT_GRADIENTS, [2])):
        stacks = stack_samples(Seen(stack="main;step", native=300, call=(0, top_of[name])))
        (place,) = places(with_samples(run, stacks), *found_at)
        assert [finding.rank for finding in place.findings] == ranks


def test_a_hotspot_is_one_of_the_main_steps() -> None:
    run = training_run()
    assert run.torch is not None
    label = run.torch.groups[0].label
    found = places(run, Place(group=label, phase="backward"), Place(group="others", phase="backward"))
    backward = next(place for place in found if place.name == "backward")
    assert [finding.rank for finding in backward.findings] == [1]


def test_without_samples_hot_places_are_the_hotspots_of_a_step() -> None:
    run = training_run()
    hotspots = observe(run).torch
    assert hotspots is not None
    found = places(run)
    assert [(place.name, place.share) for place in found] == [
        (hotspot.name, hotspot.share) for hotspot in hotspots.hotspots
    ]
    assert found[0].stack == ()


def test_operators_are_those_that_work_for_the_place() -> None:
    found = {place.name: place.operators for place in places(operators_run(net_operators()))}
    assert found["forward"] == ("aten::addmm",)
    assert found["backward"][:2] == ("aten::mm", "autograd::engine::evaluate_function: AddmmBackward0")


def test_without_torch_or_samples_hot_places_are_scopes_by_time_of_their_own() -> None:
    run = run_of(main_strand(node("outer", None, [S]), node("inner", 0, [900 * MS])), profiled_ns=2 * S)
    assert [(place.name, place.share, place.share_of) for place in places(run)] == [
        ("inner", 0.45, ShareOf.RUN),
        ("outer", 0.05, ShareOf.RUN),
    ]


def test_what_takes_next_to_nothing_is_not_hot() -> None:
    stacks = [Seen(stack="main;busy", python=10_000), Seen(stack="main;idle", python=90)]
    assert [place.name for place in places(sampled(*stacks))] == ["busy"]


def test_more_hot_places_than_are_shown_are_counted() -> None:
    stacks = [Seen(stack=f"main;part_{index}", python=100) for index in range(14)]
    hot = find_hot_places(observe(sampled(*stacks)), (), most=10)
    assert (len(hot.places), hot.not_shown, hot.count, hot.may_be_more) == (10, 4, 14, False)
    stacks += [Seen(stack=f"main;more_{index}", python=100) for index in range(30)]
    assert find_hot_places(observe(sampled(*stacks)), ()).may_be_more


def test_all_scopes_are_known_so_there_are_never_more() -> None:
    scopes = [node(f"part_{index}", None, [40 * MS]) for index in range(25)]
    hot = find_hot_places(observe(run_of(main_strand(*scopes), profiled_ns=S)), ())
    assert (hot.count, len(hot.places), hot.may_be_more) == (25, 10, False)


def test_a_run_in_which_nothing_happened_has_no_hot_place() -> None:
    assert places(empty_run()) == ()
