"""Every program computes to the last bit what it computes by itself, and its record holds together."""

import json

import pytest

from tests.integration.running import Seen, run_program

pytestmark = pytest.mark.torch

PROGRAMS = (
    ("train_net",),
    ("train_transformer",),
    ("train_lstm",),
    ("gradient_accumulation",),
    ("gan",),
    ("lbfgs",),
    ("evaluation_between_epochs",),
    ("inference_over_loader",),
    ("forward_only",),
    ("compiled",),
    ("scripted",),
    ("data_parallel",),
    ("own_hooks",),
    ("checkpointed",),
    ("loader_workers",),
    ("gpt2_trainer",),
    ("gpt2_generate",),
    ("gpt2_generate", "--no-cache"),
    ("vit_images",),
    ("lightning_module",),
    ("lightning_module", "--bar"),
    ("nhits",),
)
# Child processes are counted and said to be unseen.
# pyarrow, which neuralforecast brings along, has an allocator of its own.
EXPECTED_LOSSES = {"loader_workers": ["processes"], "nhits": ["memory"]}


@pytest.fixture(params=PROGRAMS, ids=" ".join)
def program(request: pytest.FixtureRequest) -> tuple[str, ...]:
    arguments: tuple[str, ...] = request.param
    return arguments


@pytest.fixture
def seen(program: tuple[str, ...]) -> Seen:
    return run_program(*program)


def test_weights_losses_and_whatever_it_prints_are_the_same(program: tuple[str, ...], seen: Seen) -> None:
    assert seen.plain.returncode == 0, seen.plain.stderr
    assert seen.profiled.returncode == 0, seen.profiled.stderr
    if "--bar" in program:
        # The bar shows how fast it goes.
        assert seen.profiled.stdout.splitlines()[-1] == seen.plain.stdout.splitlines()[-1]
    else:
        assert seen.profiled.stdout == seen.plain.stdout
    outcome = json.loads(seen.plain.stdout.splitlines()[-1])
    assert len(set(outcome["losses"])) > 1


def test_the_phases_of_every_step_add_up_to_it(seen: Seen) -> None:
    for group in seen.torch.groups:
        assert sum(group.phase_ns) == group.total_ns
        assert sum(calls for _, calls in group.buckets) == group.steps
        assert len(group.first) + len(group.sampled) == min(group.steps, 256 + 512)
        for step in (*group.first, *group.sampled):
            assert sum(step.phase_ns) == step.duration_ns
        assert sum(step.duration_ns for step in (*group.first, *group.sampled)) == group.total_ns
        assert sum(step.samples or 0 for step in (*group.first, *group.sampled)) == group.samples


def test_no_part_of_the_tree_takes_longer_than_the_whole(seen: Seen) -> None:
    for strand in seen.torch.calls:
        of_children = [0] * len(strand.nodes)
        for node in strand.nodes:
            if node.parent is not None:
                of_children[node.parent] += node.total_ns
        for node, children_ns in zip(strand.nodes, of_children, strict=True):
            assert children_ns <= node.total_ns


def test_bytes_are_counted_in_the_phases_that_compute(seen: Seen) -> None:
    for group in seen.torch.groups:
        assert group.phase_bytes is not None
        by_phase = dict(zip(group.phases, group.phase_bytes, strict=True))
        assert by_phase["forward"] > 0
        if group.kind == "training":
            assert by_phase["backward"] > 0


def test_nothing_is_lost_but_what_is_said_to_be(program: tuple[str, ...], seen: Seen) -> None:
    assert [loss.collector for loss in seen.run.losses] == EXPECTED_LOSSES.get(program[0], [])


def test_its_report_is_printed_and_tells_the_steps(seen: Seen) -> None:
    assert "Traceback" not in seen.profiled.stderr
    for group in seen.torch.groups:
        assert group.label in seen.profiled.stderr
