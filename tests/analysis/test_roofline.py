"""Placing work below the roofs, with figures that can be worked out by hand."""

import msgspec
import pytest

from pyrometer.analysis.roofline import Bound, Placed, Roofs, Work, place, place_all, roofs_of
from pyrometer.analysis.torch_results import build_torch_results
from pyrometer.analysis.torch_roofline import Roofline, least_bytes
from pyrometer.record.run import Run
from pyrometer.record.torch_run import Module
from tests.limits import make_limits
from tests.placed_runs import placed_run
from tests.torch_runs import MB, evaluation_run, gpu_run, net_operators, operators_run, training_run

ROOFS = Roofs(
    threads=1,
    precision="f32",
    flops_per_s=100e9,
    flops_source="FMA f32",
    bytes_per_s=20e9,
    bytes_source="triad",
    contended=False,
)


def work(*, calls: float = 1, ns: float = 1e9, flops: float | None, moved: float | None) -> Work:
    return Work(name="work", kind="operator", calls=calls, duration_ns=ns, flops=flops, moved_bytes=moved)


def test_the_roofs_meet_where_both_are_reached() -> None:
    assert ROOFS.ridge == 5.0
    both = place(work(flops=100e9, moved=20e9), ROOFS)
    assert (both.compute_share, both.memory_share, both.roof_share) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("flops", "moved", "bound"),
    [
        (50e9, 5e9, Bound.COMPUTE),  # half of the arithmetic, a quarter of the bandwidth
        (50e9, 15e9, Bound.MEMORY),  # three quarters of the bandwidth
        (30e9, 0.1e9, Bound.COMPUTE),  # just near enough
        (29e9, 0.1e9, Bound.NEITHER),
        (0.0, 6e9, Bound.MEMORY),
        (0.0, 5.9e9, Bound.NEITHER),
    ],
)
def test_the_nearer_roof_holds_work_back(flops: float, moved: float, bound: Bound) -> None:
    assert place(work(flops=flops, moved=moved), ROOFS).bound is bound


def test_short_calls_far_below_both_roofs_are_overhead() -> None:
    # A second in calls of just less, and just as much as 50 µs.
    assert place(work(calls=20_001, flops=1e9, moved=1e9), ROOFS).bound is Bound.OVERHEAD
    assert place(work(calls=20_000, flops=1e9, moved=1e9), ROOFS).bound is Bound.NEITHER
    # Short calls near a roof are not.
    assert place(work(calls=20_001, flops=40e9, moved=1e9), ROOFS).bound is Bound.COMPUTE


def test_the_figures_of_placed_work() -> None:
    placed = place(work(ns=0.5e9, flops=10e9, moved=4e9), ROOFS)
    assert (placed.flops_per_s, placed.bytes_per_s, placed.intensity) == (20e9, 8e9, 2.5)
    assert (placed.compute_share, placed.memory_share) == (0.2, 0.4)
    assert placed.roof_share == 0.4


def test_what_is_not_known_is_not_placed_and_says_why() -> None:
    rows = [
        work(flops=None, moved=1.0),
        work(flops=1.0, moved=None),
        work(flops=1.0, moved=1.0, ns=0),
        work(flops=0.0, moved=0.0),
        Work(name="x", kind="module", calls=1, duration_ns=1, flops=None, moved_bytes=None, unknown="secret"),
    ]
    assert [(one.bound, one.reason) for one in place_all(rows, ROOFS)] == [
        (Bound.NOT_PLACED, "FLOPs and bytes are not counted"),
        (Bound.NOT_PLACED, "FLOPs and bytes are not counted"),
        (Bound.NOT_PLACED, "no time could be measured"),
        (Bound.NOT_PLACED, "nothing is computed or moved that is counted"),
        (Bound.NOT_PLACED, "secret"),
    ]
    assert all(one.roof_share is None for one in place_all(rows, ROOFS))


def test_the_roofs_are_those_of_the_threads_the_program_used() -> None:
    one, two = (roofs_of(make_limits(), threads=threads, precision="f32") for threads in (1, 2))
    assert one is not None
    assert two is not None
    assert (one.threads, one.flops_per_s, one.bytes_per_s) == (1, 100e9, 30e9)
    assert (two.threads, two.flops_per_s, two.bytes_per_s) == (2, 200e9, 36e9)
    # Of other numbers, and of one that is not known, those of all.
    assert roofs_of(make_limits(), threads=16, precision="f32") == two
    assert roofs_of(make_limits(), threads=None, precision="f32") == two


def test_the_roof_is_the_highest_of_its_kind() -> None:
    bf16 = roofs_of(make_limits(), threads=2, precision="bf16")
    assert bf16 is not None
    assert (bf16.flops_source, bf16.flops_per_s) == ("GEMM of a library bf16", 1.5e9)
    assert roofs_of(make_limits(), threads=2, precision="f16") is None
    without = msgspec.structs.replace(make_limits(), bandwidths=())
    assert roofs_of(without, threads=2, precision="f32") is None


def test_roofs_measured_beside_something_else_say_so() -> None:
    fair = roofs_of(make_limits(contended=True), threads=2, precision="f32")
    bad = roofs_of(make_limits(contended=True), threads=2, precision="bf16")
    assert fair is not None
    assert bad is not None
    assert (fair.contended, bad.contended) == (False, True)


# Runs.


def roofline_of(run: Run) -> Roofline:
    results = build_torch_results(run)
    assert results is not None
    assert results.roofline is not None
    return results.roofline


def by_name(placed: tuple[Placed, ...]) -> dict[str, Placed]:
    return {one.work.name: one for one in placed}


def test_each_module_is_placed_by_what_its_calls_did_and_moved() -> None:
    modules = by_name(roofline_of(placed_run()).modules)
    assert {name: one.bound for name, one in modules.items()} == {
        "net.conv": Bound.COMPUTE,
        "net.norm": Bound.MEMORY,
        "net.head": Bound.NEITHER,
        "net.own": Bound.NOT_PLACED,
        "net.act": Bound.OVERHEAD,
    }
    conv = modules["net.conv"]
    assert conv.flops_per_s == pytest.approx(150e9)
    assert conv.compute_share == pytest.approx(0.75)
    # Input, output and parameters, each once.
    assert conv.bytes_per_s == pytest.approx(2.1e6 / 2e-3)
    assert modules["net.own"].reason == "there is no formula for Own"


def test_forward_is_the_sum_of_its_modules_and_backward_that_of_their_gradients() -> None:
    phases = by_name(roofline_of(placed_run()).phases)
    forward, backward = phases["forward"], phases["backward"]
    moved = 2.1 * MB + 20 * MB + 64_000 + 2.1 * MB + 2_000
    assert forward.work.flops == pytest.approx(310e6)
    assert forward.work.moved_bytes == pytest.approx(moved)
    assert forward.flops_per_s == pytest.approx(310e6 / 4e-3)
    assert forward.work.at_least  # own has no formula
    # One gradient of conv, two of head.
    assert backward.work.flops == pytest.approx(300e6 + 2 * 10e6)
    assert backward.work.moved_bytes == pytest.approx(moved + 2.1 * MB)
    assert backward.work.estimated
    assert not forward.work.estimated
    assert (phases["optimizer"].bound, phases["optimizer"].reason) == (
        Bound.NOT_PLACED,
        "FLOPs and bytes are not counted",
    )


def test_the_step_is_placed_by_all_that_is_counted_in_it() -> None:
    step = roofline_of(placed_run()).step
    assert step is not None
    assert step.work.flops == pytest.approx(630e6)
    assert step.flops_per_s == pytest.approx(630e6 / 10e-3)


def test_losses_are_no_part_of_the_forward_phase() -> None:
    run = msgspec.structs.replace(training_run(), limits=make_limits())
    assert run.torch is not None
    modules = tuple(msgspec.structs.replace(one, input_bytes=40 * MB) for one in run.torch.modules)
    run = msgspec.structs.replace(run, torch=msgspec.structs.replace(run.torch, modules=modules))
    forward = by_name(roofline_of(run).phases)["forward"]
    # Three modules that call no other, ten MB given to each call, without the criterion's.
    assert forward.work.moved_bytes == pytest.approx(30 * MB, rel=0.05)


def test_a_run_that_does_not_know_its_limits_has_no_roofline() -> None:
    results = build_torch_results(training_run())
    assert results is not None
    assert results.roofline is None


def test_a_run_written_before_inputs_were_recorded_is_not_placed_but_says_so() -> None:
    roofline = roofline_of(msgspec.structs.replace(training_run(), limits=make_limits()))
    assert roofline.placed == ()
    assert by_name(roofline.modules)["model.fc1"].reason == "the bytes it is given were not recorded"


def test_nothing_is_placed_where_the_work_was_on_a_gpu() -> None:
    roofline = roofline_of(msgspec.structs.replace(gpu_run(), limits=make_limits()))
    assert roofline.roofs is None
    assert roofline.reason == "the program had a GPU, and the limits are those of the processor"


def test_phases_are_not_placed_where_modules_are_over_other_steps_too() -> None:
    run = evaluation_run()
    roofline = roofline_of(msgspec.structs.replace(run, limits=make_limits()))
    results = build_torch_results(run)
    assert results is not None
    assert results.main is not None
    assert (roofline.step is None) == (results.main.steps != results.modules.steps)


@pytest.mark.parametrize(("size", "precision"), [(4, "f32"), (8, "f64"), (2, "bf16"), (3, "f32")])
def test_the_precision_is_that_of_the_parameters(size: int, precision: str) -> None:
    run = placed_run()
    assert run.torch is not None
    net = msgspec.structs.replace(run.torch.modules[0], parameter_bytes=50_000 * size)
    torch = msgspec.structs.replace(run.torch, modules=(net, *run.torch.modules[1:]))
    roofs = roofline_of(msgspec.structs.replace(run, torch=torch)).roofs
    assert roofs is not None
    assert roofs.precision == precision


def test_of_an_embedding_only_the_rows_asked_for_are_read() -> None:
    embedding = Module(
        name="table",
        kind="Embedding",
        parameters=MB,
        parameter_bytes=4 * MB,
        measured_calls=2,
        input_bytes=160,
        output_bytes=2_000,
    )
    assert least_bytes(embedding) == 80 + 1_000 + 1_000
    assert least_bytes(msgspec.structs.replace(embedding, kind="Linear")) == 80 + 1_000 + 4 * MB
    assert least_bytes(Module(name="new", kind="Linear")) is None


def test_where_operators_are_known_they_are_what_a_phase_starts() -> None:
    run = placed_run()
    assert run.torch is not None
    assert by_name(roofline_of(run).phases)["forward"].work.calls == 5
    torch = msgspec.structs.replace(run.torch, operators=net_operators())
    roofline = roofline_of(msgspec.structs.replace(run, torch=torch))
    # Of the calls in two steps: two and two of addmm in forward; six of mm, two of add_, four of the engine.
    phases = by_name(roofline.phases)
    assert (phases["forward"].work.calls, phases["backward"].work.calls) == (2, 6)
    assert roofline.step is not None
    assert roofline.step.work.calls == 23 / 2


def test_operators_are_placed_by_what_they_are_given_in_a_step() -> None:
    run = msgspec.structs.replace(operators_run(net_operators()), limits=make_limits())
    results = build_torch_results(run)
    assert results is not None
    assert results.operators is not None
    placed = by_name(roofline_of(run).operators)
    (window,) = results.operators.windows
    assert list(placed) == [row.name for row in window.rows]
    for row in window.rows:
        one = placed[row.name]
        assert one.work.at_least
        assert (one.flops_per_s is None) == (row.flops_per_second is None)
        if row.flops_per_second is not None:
            assert one.flops_per_s == pytest.approx(row.flops_per_second)
    # 150,568 bytes in two of the four calls, which took 4 ms.
    assert placed["aten::addmm"].bytes_per_s == pytest.approx(2 * 150_568 / 4e-3)
    assert placed["aten::addmm"].bound is Bound.NEITHER
    assert placed["aten::mm"].reason == "what it is given was not recorded"
    assert placed["aten::add_"].reason == "torch counts no FLOPs of it"
