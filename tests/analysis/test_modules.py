from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.analysis.modules import ModulePlace, ModuleRow, ModuleTable, build_modules
from pyrometer.record.operators import Operators, OperatorWindow
from pyrometer.record.run import Run
from pyrometer.record.torch_run import Module, TorchRun
from pyrometer.record.values import ScopeNode, Strand, StrandParent
from tests.report.sample_runs import main_strand
from tests.torch_runs import (
    KB,
    MS,
    TORCH_RUNS,
    US,
    call,
    compiled_run,
    evaluation_run,
    gan_run,
    group_of,
    inference_run,
    training_run,
)


def modules_of(run: Run) -> ModuleTable:
    assert run.torch is not None
    return build_modules(run.torch)


def row(table: ModuleTable, name: str) -> ModuleRow:
    (found,) = [candidate for candidate in table.rows if candidate.name == name]
    return found


def table_of(
    *nodes: ScopeNode, modules: tuple[Module, ...] = (), passes: int = 0, timed: int = 0
) -> ModuleTable:
    """The modules of ten training steps of 10 ms with these calls."""
    group = group_of("training", "SGD", [{"forward": 6 * MS, "backward": 4 * MS, "other": 0}] * 10)
    return build_modules(
        TorchRun(
            torch_version="2",
            groups=(group,),
            calls=(main_strand(*nodes),),
            modules=modules,
            backward_passes=passes,
            timed_backward_passes=timed,
        )
    )


@st.composite
def forward_strands(draw: st.DrawFn) -> Strand:
    """Trees of modules under forward and loss: each node has its own time and that of those below."""
    own = draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=15))
    names = draw(st.lists(st.sampled_from("abcde"), min_size=len(own), max_size=len(own)))
    parents = [0] + [draw(st.integers(0, index)) for index in range(1, len(own))]
    totals = list(own)
    for index in range(len(own) - 1, 0, -1):
        if parents[index]:
            totals[parents[index] - 1] += totals[index]
    # Parents count the phase as 0, the modules from 1.
    top = sum(total for total, parent in zip(totals, parents, strict=True) if not parent)
    nodes = [call("forward", None, 1, top + 5)]
    nodes += [
        call(name, parent, 1, total) for name, parent, total in zip(names, parents, totals, strict=True)
    ]
    return main_strand(*nodes)


@given(forward_strands())
def test_self_times_add_up_to_the_time_in_modules(strand: Strand) -> None:
    table = build_modules(TorchRun(torch_version="2", calls=(strand,)))
    in_modules_ns = strand.nodes[0].total_ns - 5
    assert sum(found.forward.self_ns for found in table.rows) == in_modules_ns
    assert sum(place.forward.self_ns for _, place in table.walk()) == in_modules_ns
    assert sum(root.forward.total_ns for root in table.roots) == in_modules_ns
    for _, place in table.walk():
        below_ns = sum(child.forward.total_ns for child in place.children)
        assert place.forward.self_ns + below_ns == place.forward.total_ns


@given(forward_strands())
def test_every_call_stands_in_one_row(strand: Strand) -> None:
    table = build_modules(TorchRun(torch_version="2", calls=(strand,)))
    assert sum(found.forward.calls for found in table.rows) == len(strand.nodes) - 1
    assert len({found.name for found in table.rows}) == len(table.rows)


@pytest.mark.parametrize("name", TORCH_RUNS)
def test_rows_and_tree_of_every_run_say_the_same(name: str) -> None:
    table = modules_of(TORCH_RUNS[name]())
    places = [place for _, place in table.walk()]
    assert {place.name for place in places} == {found.name for found in table.rows}
    for sort in ("forward", "without_gradients", "backward", "recomputed"):
        assert sum(getattr(found, sort).self_ns for found in table.rows) == sum(
            getattr(place, sort).self_ns for place in places
        )


def test_a_module_has_total_and_self_time_forward_and_backward() -> None:
    model = row(modules_of(training_run()), "model")
    assert (model.forward.calls, model.forward.total_ns, model.forward.self_ns) == (100, 323 * MS, 3 * MS)
    assert (model.backward.total_ns, model.backward.self_ns) == (64 * MS, 2 * MS)
    assert (model.backward_ns_per_pass, model.backward_self_ns_per_pass) == (3.2 * MS, 0.1 * MS)


def test_time_per_step_scales_backward_from_the_timed_passes_to_all() -> None:
    table = modules_of(training_run())
    fc1 = row(table, "model.fc1")
    # 2 ms forward a step, and 36 ms backward in 20 of 100 passes.
    assert isclose(fc1.ns_per_step, 3.8 * MS)
    assert (table.steps, table.step_ns) == (100, 10.33 * MS)
    assert fc1.share is not None
    assert isclose(fc1.share, 3.8 / 10.33)
    assert (table.backward_passes, table.timed_backward_passes) == (100, 20)


def test_modules_with_most_time_come_first() -> None:
    names = [found.name for found in modules_of(training_run()).rows]
    assert names == ["model", "model.fc1", "model.fc2", "criterion", "model.act"]


def test_sizes_are_those_of_the_record() -> None:
    table = modules_of(training_run())
    fc1 = row(table, "model.fc1")
    assert (fc1.kind, fc1.parameters, fc1.parameter_bytes) == ("Linear", 200_960, 803_840)
    assert fc1.output_bytes_per_call == 32 * 256 * 4
    assert (fc1.forward.allocated_bytes, fc1.backward.allocated_bytes) == (100 * 300 * KB, 20 * 350 * KB)
    assert row(table, "model").forward.self_allocated_bytes == 100 * 10 * KB
    assert (table.parameters, table.parameter_bytes) == (203_530, 814_120)


def test_operations_are_counted_with_the_modules_below() -> None:
    table = modules_of(training_run())
    linear = 2 * 32 * 784 * 256
    assert (row(table, "model.fc1").flops_per_call, row(table, "model.fc1").flops_are_at_least) == (
        linear,
        False,
    )
    # Net has no formula of its own: what it computes beside its layers is not counted.
    model = row(table, "model")
    assert (model.flops_per_call, model.flops_are_at_least) == (linear + 2 * 32 * 256 * 10, True)
    criterion = row(table, "criterion")
    assert (criterion.flops_per_call, criterion.flops_are_at_least) == (None, False)


def test_a_layer_called_three_times_in_a_container_counts_three_times() -> None:
    table = table_of(
        call("forward", None, 10, 50 * MS),
        call("net", 0, 10, 50 * MS),
        call("net.0", 1, 30, 45 * MS),
        modules=(
            Module(name="net", kind="Sequential"),
            Module(name="net.0", kind="Linear", measured_calls=2, flops=2_000),
        ),
    )
    assert (row(table, "net").flops_per_call, row(table, "net").flops_are_at_least) == (3_000, False)


def test_forward_passes_without_gradients_stand_apart() -> None:
    table = modules_of(evaluation_run())
    model = row(table, "model")
    assert (model.forward.calls, model.without_gradients.calls) == (100, 20)
    assert (model.without_gradients.total_ns, model.without_gradients.self_ns) == (50 * MS, 5 * MS)
    # Time per step is that of a training step, in which they have no part.
    assert table.steps == 100
    assert model.ns_per_step == row(modules_of(training_run()), "model").ns_per_step


def test_a_run_that_does_not_train_counts_all_forward_passes() -> None:
    group = group_of("forward", "net", [{"forward": 4 * MS, "other": MS}] * 10, backward_passes=0)
    calls = main_strand(call("forward without gradients", None, 10, 40 * MS), call("net", 0, 10, 40 * MS))
    table = build_modules(TorchRun(torch_version="2", groups=(group,), calls=(calls,)))
    assert row(table, "net").share == 0.8


def test_a_module_shared_by_two_parents_has_one_row_and_two_places() -> None:
    table = modules_of(inference_run())
    norm = row(table, "encoder.norm")
    assert (norm.places, norm.forward.calls, norm.forward.total_ns) == (2, 120, 60 * MS)
    assert [place.name for _, place in table.walk()].count("encoder.norm") == 2


def test_the_time_of_a_module_that_calls_itself_is_counted_once() -> None:
    table = table_of(
        call("forward", None, 10, 60 * MS),
        call("tree", 0, 10, 60 * MS),
        call("tree", 1, 20, 40 * MS),
        call("tree", 2, 40, 30 * MS),
    )
    tree = row(table, "tree")
    assert (tree.forward.calls, tree.forward.total_ns, tree.forward.self_ns) == (70, 60 * MS, 60 * MS)
    assert tree.share == 0.6


def test_a_closures_modules_stand_where_they_stand_otherwise() -> None:
    table = table_of(
        call("optimizer", None, 10, 90 * MS),
        call("forward", 0, 30, 30 * MS),
        call("net", 1, 30, 30 * MS),
        call("forward", None, 10, 10 * MS),
        call("net", 3, 10, 10 * MS),
        modules=(Module(name="net", kind="Net"),),
    )
    (net,) = table.roots
    assert (net.name, net.forward.calls, net.forward.total_ns) == ("net", 40, 40 * MS)


def test_a_copy_inside_a_module_is_its_own_time() -> None:
    table = table_of(
        call("forward", None, 10, 30 * MS),
        call("net", 0, 10, 30 * MS),
        call("copies", 1, 10, 10 * MS),
        call("net.fc", 1, 10, 15 * MS),
    )
    assert row(table, "net").forward.self_ns == 15 * MS
    assert {found.name for found in table.rows} == {"net", "net.fc"}


def test_a_module_may_be_called_like_a_phase() -> None:
    table = table_of(
        call("loss", None, 10, 30 * MS),
        call("loss", 0, 10, 20 * MS),
        modules=(Module(name="loss", kind="MSELoss"),),
    )
    assert row(table, "loss").forward.total_ns == 20 * MS


def test_what_the_backward_pass_computes_again_stands_apart_and_is_not_scaled() -> None:
    table = table_of(
        call("forward", None, 10, 20 * MS),
        call("net", 0, 10, 20 * MS),
        call("net.block", 1, 10, 10 * MS),
        call("backward", None, 10, 60 * MS),
        call("recomputed forward", 3, 8, 8 * MS),
        call("net.block", 4, 8, 8 * MS),
        call("net", 3, 2, 10 * MS),
        call("net.block", 6, 2, 6 * MS),
        call("recomputed forward", 7, 2, 2 * MS),
        call("net.block", 8, 2, 2 * MS),
        passes=10,
        timed=2,
    )
    block = row(table, "net.block")
    assert (block.places, block.forward.calls, block.recomputed.calls) == (1, 10, 10)
    assert (block.recomputed.total_ns, block.backward.total_ns, block.backward.self_ns) == (
        10 * MS,
        4 * MS,
        4 * MS,
    )
    # 1 ms forward, 1 ms again, and 4 ms in 2 of 10 backward passes.
    assert isclose(block.ns_per_step, 4 * MS)
    net = row(table, "net")
    assert (net.backward.total_ns, net.backward.self_ns) == (8 * MS, 4 * MS)
    # Only the block is called again, and that is inside the net.
    assert (net.recomputed.calls, net.recomputed.total_ns, net.recomputed.self_ns) == (0, 10 * MS, 0)


def test_modules_on_other_threads_stand_under_the_one_that_started_them() -> None:
    worker = Strand(
        thread_id=2,
        thread_name="replica",
        parent=StrandParent(strand=0, node=1),
        nodes=(
            ScopeNode(name="forward", calls=1, total_ns=9, min_ns=9, max_ns=9, wall_ns=9, buckets=((9, 1),)),
            ScopeNode(
                name="net.0", parent=0, calls=1, total_ns=8, min_ns=8, max_ns=8, wall_ns=8, buckets=((8, 1),)
            ),
        ),
    )
    main = main_strand(call("forward", None, 1, 10), call("net", 0, 1, 10))
    (net,) = build_modules(TorchRun(torch_version="2", calls=(main, worker))).roots
    assert (net.forward.total_ns, net.forward.self_ns) == (10, 10)
    assert [(child.name, child.forward.total_ns) for child in net.children] == [("net.0", 8)]


def test_what_cannot_be_seen_inside_is_said() -> None:
    table = modules_of(compiled_run())
    assert table.hidden == ("model.body", "model.head")
    assert row(table, "model.body").hidden == "compiled"


def test_parameters_of_a_part_called_by_itself_are_counted_once() -> None:
    table = table_of(
        call("forward", None, 20, 30 * MS),
        call("model", 0, 10, 20 * MS),
        call("model.encoder", 0, 10, 10 * MS),
        modules=(
            Module(name="model", kind="Net", parameters=100),
            Module(name="model.encoder", kind="Encoder", parameters=60),
        ),
    )
    assert table.parameters == 100


def test_two_models_have_their_parameters_together() -> None:
    assert modules_of(gan_run()).parameters == 1_500


def test_modules_that_the_record_says_nothing_of_still_have_their_time() -> None:
    net = row(table_of(call("forward", None, 10, 30 * MS), call("net", 0, 10, 30 * MS)), "net")
    assert (net.kind, net.parameters, net.output_bytes_per_call, net.flops_per_call) == (None,) * 4
    assert net.forward.allocated_bytes is None
    assert net.forward.total_ns == 30 * MS


def test_a_very_deep_model_is_no_trouble() -> None:
    nodes = [call("forward", None, 1, 10)]
    nodes += [call(f"layer {depth}", depth, 1, 10) for depth in range(3_000)]
    table = build_modules(TorchRun(torch_version="2", calls=(main_strand(*nodes),)))
    assert max(depth for depth, _ in table.walk()) == 2_999


def test_a_place_walks_itself_and_what_is_below() -> None:
    model: ModulePlace = modules_of(training_run()).roots[0]
    assert [(depth, place.name) for depth, place in model.walk()] == [
        (0, "model"),
        (1, "model.fc1"),
        (1, "model.fc2"),
        (1, "model.act"),
    ]


def test_steps_looked_at_closely_count_where_their_calls_are() -> None:
    step = {"forward": 4 * MS, "other": MS}
    group = group_of("forward", "model", [step] * 40, backward_passes=0)
    calls = main_strand(call("forward", None, 50, 200 * MS), call("model", 0, 50, 200 * MS))
    window = OperatorWindow(
        kind="forward",
        label="model",
        first_step=5,
        steps=5,
        total_ns=50 * MS,
        covered_ns=0,
        thread_covered_ns=0,
        events=0,
    )
    torch = TorchRun(
        torch_version="2.13.0",
        groups=(group,),
        calls=(calls,),
        modules=(Module(name="model", kind="Net"),),
        operators=Operators(asked_steps=5, left_out_steps=10, windows=(window,)),
    )
    (place,) = build_modules(torch).roots
    assert place.per_step.calls == 1
    assert place.per_step.forward_ns == 4 * MS


def test_long_passes_among_those_timed_do_not_make_a_module_take_more_than_the_phase() -> None:
    step = {"forward": 4 * MS, "backward": 3_500 * US, "other": MS}
    group = group_of("training", "SGD", [step] * 100)
    # Two passes were timed, and took twenty times as long as usual.
    calls = main_strand(
        call("forward", None, 100, 400 * MS),
        call("model", 0, 100, 400 * MS),
        call("backward", None, 100, 350 * MS),
        call("model", 2, 2, 100 * MS),
    )
    torch = TorchRun(
        torch_version="2.13.0",
        groups=(group,),
        calls=(calls,),
        modules=(Module(name="model", kind="Net"),),
        backward_passes=100,
        timed_backward_passes=2,
        timed_backward_ns=140 * MS,
    )
    (place,) = build_modules(torch).roots
    assert place.per_step.backward_ns == pytest.approx(100 / 140 * 3.5 * MS)
    assert place.share is not None
    assert place.share < 1
