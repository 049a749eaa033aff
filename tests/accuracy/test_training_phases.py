"""Time and bytes are charged to the phase and the module in which a program is made to spend them.

A part spins until the clock says that it has taken so long, so it has taken at least that; the least
any step took in a phase tells the other phases from it whatever the machine does in between.
"""

from collections.abc import Iterator

import pytest

from pyrometer.record.torch_run import TorchRun
from pyrometer.record.values import ScopeNode
from tests.accuracy.training import BATCH_SIZE, FEATURES, spin, training_group, watch_training

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("clean_recorder")]

STEPS = 40
SPIN_NS = 4_000_000
# The program's clock and the recorder's agree to much better than this.
SPUN_NS = SPIN_NS * 0.99
PARTS = ("data", "forward", "loss", "backward", "optimizer", "other")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def modules_in(seen: TorchRun, phase: str) -> dict[str, ScopeNode]:
    """The modules of a phase, by name."""
    (strand,) = seen.calls
    tops: list[str] = []
    for node in strand.nodes:
        tops.append(node.name if node.parent is None else tops[node.parent])
    return {
        node.name: node
        for top, node in zip(tops, strand.nodes, strict=True)
        if top == phase and node.parent is not None
    }


@pytest.mark.parametrize("part", PARTS)
def test_time_spent_in_a_part_is_charged_to_its_phase_and_to_no_other(part: str) -> None:
    group = training_group(watch_training(STEPS, **{part: lambda: spin(SPIN_NS)}))
    assert group.steps == STEPS
    least_ns = {
        phase: min(step.phase_ns[place] for step in group.first) for place, phase in enumerate(group.phases)
    }
    assert set(least_ns) == {*PARTS, "clearing"}
    charged = {phase for phase, ns in least_ns.items() if ns >= SPUN_NS}
    assert charged == {part}


@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_time_a_module_spends_is_charged_to_it_and_to_no_other(phase: str) -> None:
    seen = watch_training(STEPS, **{phase: lambda: spin(SPIN_NS)})
    for other in ("forward", "backward"):
        modules = modules_in(seen, other)
        assert {"model", "model.0", "model.1", "model.2"} <= modules.keys()
        charged = {name for name, node in modules.items() if (node.min_ns or 0) >= SPUN_NS}
        assert charged == ({"model", "model.1"} if other == phase else set())


def test_a_loss_module_is_charged_the_time_it_spends() -> None:
    seen = watch_training(STEPS, loss=lambda: spin(SPIN_NS))
    modules = modules_in(seen, "loss")
    assert modules.keys() == {"loss_function"}
    assert modules["loss_function"].calls == STEPS
    assert modules["loss_function"].total_ns >= STEPS * SPUN_NS


def test_time_in_each_of_two_parts_stands_in_both_phases_apart() -> None:
    seen = watch_training(STEPS, forward=lambda: spin(SPIN_NS), backward=lambda: spin(3 * SPIN_NS))
    group = training_group(seen)
    totals = dict(zip(group.phases, group.phase_ns, strict=True))
    assert totals["forward"] >= STEPS * SPUN_NS
    assert totals["backward"] >= 3 * STEPS * SPUN_NS
    least_ns = min(step.phase_ns[group.phases.index("forward")] for step in group.first)
    assert least_ns < 3 * SPUN_NS


@pytest.mark.parametrize("size", [1, 4_096, 1_234_567])
@pytest.mark.parametrize("part", ["data", "forward", "loss", "backward", "optimizer", "other"])
def test_bytes_allocated_in_a_part_are_charged_to_its_phase(part: str, size: int) -> None:
    import torch

    plain = bytes_by_phase(watch_training(STEPS))
    with_more = bytes_by_phase(watch_training(STEPS, **{part: lambda: torch.empty(size, dtype=torch.uint8)}))
    assert {phase: with_more[phase] - plain[phase] for phase in plain} == {
        phase: STEPS * size if phase == part else 0 for phase in plain
    }


def bytes_by_phase(seen: TorchRun) -> dict[str, int]:
    """The bytes of each phase over all steps; what was recorded so far is forgotten."""
    import pyrometer

    group = training_group(seen)
    pyrometer.reset()
    assert group.phase_bytes is not None
    return dict(zip(group.phases, group.phase_bytes, strict=True))


def test_the_bytes_of_every_module_are_those_of_the_tensors_it_makes() -> None:
    import torch

    seen = watch_training(STEPS, forward=lambda: torch.empty(1_000, dtype=torch.float64))
    modules = modules_in(seen, "forward")
    float_bytes = 4
    first, part, last = BATCH_SIZE * FEATURES * float_bytes, 8_000, BATCH_SIZE * float_bytes
    assert {name: node.allocated_bytes for name, node in modules.items()} == {
        "model": STEPS * (first + part + last),
        "model.0": STEPS * first,
        "model.1": STEPS * part,
        "model.2": STEPS * last,
    }
    assert modules["model.1"].allocations == STEPS
