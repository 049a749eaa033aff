"""From torch's events to what each operator took, on events written by hand."""

from typing import Any

from pyrometer.capture.operator_origins import ClockLine, Place, places_over_time
from pyrometer.capture.operator_tables import record_window
from pyrometer.capture.operator_walk import OperatorWalk
from pyrometer.record.operators import MAX_OPERATORS, OperatorWindow, Origin

HERE, ELSEWHERE = 1, 2
NATIVE = {HERE: 4711, ELSEWHERE: 4712}


class Event:
    """One of torch's, as far as it is asked."""

    def __init__(self, name: str, start: int, end: int, **more: Any) -> None:
        self._facts: dict[str, Any] = {
            "name": name,
            "start_ns": start,
            "duration_ns": end - start,
            "start_thread_id": HERE,
            "sequence_nr": -1,
            "fwd_thread_id": 0,
            "scope": 0,
            "is_async": False,
            "flops": 0,
            "shapes": [],
            "dtypes": [],
            "activity_type": "cpu_op",
            "correlation_id": start,
            "linked_correlation_id": 0,
            "device_type": "DeviceType.CPU",
            **more,
        }
        self._facts["device_resource_id"] = NATIVE[self._facts["start_thread_id"]]

    def __getattr__(self, name: str) -> Any:
        return lambda: self._facts[name]


def walked(
    *events: Event,
    steps: tuple[tuple[int, int], ...] = ((0, 1_000),),
    calls: Any = (),
    scopes: Any = (),
    **more: Any,
) -> OperatorWindow:
    """The window with these events; calls and scopes are (name, depth, start, end)."""
    starts, places = places_over_time(
        [(name, 0, *rest) for name, *rest in calls],
        [(name, 0, *rest) for name, *rest in scopes],
        phases=("forward", "backward", "optimizer"),
    )
    walk = OperatorWalk(
        steps=steps, place_starts=starts, places=places, native_thread_id=NATIVE[HERE], **more
    )
    walk.walk(events)
    shapes = {name: operator.shapes for name, operator in walk.operators.items()}
    return record_window(
        walk,
        shapes,
        kind="training",
        label="Adam",
        first_step=3,
        steps=steps,
        has_devices=more.get("has_devices", False),
    )


def times(window: OperatorWindow) -> dict[str, tuple[int, int, int]]:
    """Calls, total and self of each operator."""
    return {each.name: (each.calls, each.total_ns, each.self_ns) for each in window.operators}


def origins(window: OperatorWindow, name: str) -> dict[Origin, int]:
    """For whom an operator worked, and how long."""
    (number,) = (number for number, each in enumerate(window.operators) if each.name == name)
    return {window.origins[use.origin]: use.self_ns for use in window.uses if use.operator == number}


def test_an_operators_own_time_is_without_those_it_called() -> None:
    window = walked(
        Event("linear", 100, 200),
        Event("t", 110, 130),
        Event("transpose", 115, 125),
        Event("addmm", 140, 190),
        Event("relu", 300, 310),
    )
    assert times(window) == {
        "addmm": (1, 50, 50),
        "linear": (1, 100, 30),
        "t": (1, 20, 10),
        "transpose": (1, 10, 10),
        "relu": (1, 10, 10),
    }
    assert window.covered_ns == window.thread_covered_ns == 110
    assert (window.total_ns, window.steps, window.first_step, window.events) == (1_000, 1, 3, 5)


def test_a_call_of_an_operator_by_itself_is_in_its_total_once() -> None:
    window = walked(Event("mul", 0, 100), Event("mul", 10, 60), Event("mul", 200, 210))
    assert times(window) == {"mul": (3, 110, 110)}


def test_events_in_any_order_are_taken_in_the_order_they_began() -> None:
    window = walked(Event("t", 110, 130), Event("linear", 100, 200))
    assert times(window) == {"linear": (1, 100, 80), "t": (1, 20, 20)}


def test_only_what_began_in_one_of_the_steps_counts() -> None:
    steps = ((100, 200), (300, 400))
    events = [Event("add", start, start + 10) for start in (50, 100, 190, 200, 250, 399, 400)]
    assert times(walked(*events, steps=steps)) == {"add": (3, 30, 30)}


def test_what_the_program_marks_is_no_operator_and_hides_none() -> None:
    window = walked(Event("epoch", 0, 500, scope=7), Event("add", 10, 20), Event("epoch", 500, 900, scope=7))
    assert times(window) == {"add": (1, 10, 10)}
    assert window.covered_ns == 10


def test_threads_do_not_take_from_each_other() -> None:
    window = walked(
        Event("outer", 0, 100),
        Event("mm", 10, 90, start_thread_id=ELSEWHERE),
    )
    assert times(window) == {"outer": (1, 100, 100), "mm": (1, 80, 80)}
    assert (window.covered_ns, window.thread_covered_ns) == (180, 100)


def test_a_forward_operator_belongs_to_the_innermost_module_and_scope() -> None:
    window = walked(
        Event("add", 15, 20),
        Event("add", 25, 30),
        Event("add", 35, 41),
        Event("add", 60, 61),
        calls=[("model.a", 3, 22, 32), ("model", 2, 11, 50), ("forward", 1, 10, 50)],
        scopes=[("train", 1, 0, 100)],
    )
    assert origins(window, "add") == {
        Origin("call", "forward", "model", "train"): 11,
        Origin("call", "forward", "model.a", "train"): 5,
        Origin("call", None, None, "train"): 1,
    }


def test_a_backward_operator_belongs_to_the_module_that_made_its_node() -> None:
    window = walked(
        Event("linear", 10, 20, sequence_nr=7),
        # Looked at the number before, and made no node of it.
        Event("zeros", 31, 32, sequence_nr=8),
        Event("addmm", 35, 38, sequence_nr=8),
        Event(
            "autograd::engine::evaluate_function: AddmmBackward0", 60, 70, sequence_nr=8, fwd_thread_id=HERE
        ),
        Event("AddmmBackward0", 61, 69, sequence_nr=8, fwd_thread_id=HERE, scope=1),
        Event("mm", 62, 66),
        Event("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 70, 80),
        Event("mm", 72, 75),
        Event("autograd::engine::evaluate_function: XBackward0", 80, 90, sequence_nr=1, fwd_thread_id=HERE),
        calls=[
            ("model.b", 2, 34, 39),
            ("model.a", 2, 9, 33),
            ("forward", 1, 9, 40),
            ("backward", 1, 50, 100),
        ],
    )
    assert origins(window, "mm") == {
        Origin("backward", "backward", "model.b", None): 4,
        Origin("accumulation", "backward", None, None): 3,
    }
    assert origins(window, "AddmmBackward0") == {Origin("backward", "backward", "model.b", None): 4}
    assert origins(window, "autograd::engine::evaluate_function: XBackward0") == {
        Origin("backward", "backward", None, None): 10
    }


def test_what_a_backward_pass_computes_again_belongs_to_the_module_called() -> None:
    window = walked(
        Event("autograd::engine::evaluate_function: CheckpointBackward", 60, 90),
        Event("addmm", 65, 70, sequence_nr=9),
        Event("mul", 80, 85),
        calls=[("model.a", 3, 62, 75), ("recomputed forward", 2, 61, 76), ("backward", 1, 50, 100)],
    )
    assert origins(window, "addmm") == {Origin("call", "backward", "model.a", None): 5}
    assert origins(window, "mul") == {Origin("backward", "backward", None, None): 5}


def test_shapes_bytes_and_flops_are_counted_where_they_were_asked_for() -> None:
    mm = {"shapes": [[32, 64], [64, 8], []], "dtypes": ["float", "c10::BFloat16", "Scalar"], "flops": 100}
    window = walked(
        Event("mm", 0, 10, **mm),
        Event("mm", 10, 20, **mm),
        Event("mm", 20, 30, **{**mm, "shapes": [[1, 64], [64, 8], []]}),
        Event("cat", 40, 50, shapes=[[], []], dtypes=["TensorList", "Scalar"]),
        has_shapes=True,
    )
    by_name = {operator.name: operator for operator in window.operators}
    assert [(each.shapes, each.calls) for each in by_name["mm"].shapes] == [
        ("[32, 64] [64, 8]", 2),
        ("[1, 64] [64, 8]", 1),
    ]
    assert by_name["mm"].input_bytes == 2 * (32 * 64 * 4 + 64 * 8 * 2) + 64 * 4 + 64 * 8 * 2
    assert (by_name["mm"].flops, by_name["mm"].shaped_calls) == (300, 3)
    assert (by_name["cat"].flops, by_name["cat"].input_bytes) == (None, None)


def test_without_shapes_nothing_is_said_of_them() -> None:
    (operator,) = walked(Event("mm", 0, 10, flops=7)).operators
    assert (operator.flops, operator.input_bytes, operator.shapes, operator.shaped_calls) == (
        None,
        None,
        (),
        0,
    )


def test_a_gpus_time_goes_to_the_operator_that_started_the_kernel() -> None:
    window = walked(
        Event("mm", 0, 10, correlation_id=5),
        Event("cudaLaunchKernel", 2, 4, activity_type="cuda_runtime", linked_correlation_id=5),
        Event(
            "sgemm", 20, 90, activity_type="kernel", linked_correlation_id=5, device_type="DeviceType.CUDA"
        ),
        has_devices=True,
    )
    (operator,) = window.operators
    assert (operator.name, operator.self_ns, operator.device_ns) == ("mm", 10, 70)


def test_more_operators_than_are_kept_are_put_together() -> None:
    events = [Event(f"op {number}", number * 2, number * 2 + 1) for number in range(MAX_OPERATORS + 50)]
    window = walked(*events, steps=((0, 10 * MAX_OPERATORS),))
    assert len(window.operators) == MAX_OPERATORS
    assert window.operators[0].name == "(other)"
    assert window.operators[0].calls == 51
    assert window.covered_ns == window.events == MAX_OPERATORS + 50


def test_uses_add_up_to_their_operator() -> None:
    calls = [(f"model.{number}", 1, 10 * number, 10 * number + 9) for number in range(50)]
    events = [Event("add", 10 * number + 1, 10 * number + 4) for number in range(50)]
    window = walked(*events, calls=calls)
    assert len(window.uses) == len(window.origins) == 50
    assert sum(use.self_ns for use in window.uses) == window.operators[0].self_ns == 150


def test_a_place_ends_before_the_next_at_the_same_moment_begins() -> None:
    starts, places = places_over_time(
        [("a", 0, 2, 10, 20), ("forward", 0, 1, 10, 20), ("b", 0, 1, 20, 30), ("nothing", 0, 1, 25, 25)],
        [],
        phases=["forward"],
    )
    assert starts == [10, 20, 30]
    assert places == [Place("forward", "a"), Place(None, "b"), Place()]


def test_a_moment_is_led_to_torchs_clock_by_two_pairs() -> None:
    line = ClockLine((1_000, 51_000), (2_000, 52_010))
    assert [line(moment) for moment in (1_000, 1_500, 2_000)] == [51_000, 51_505, 52_010]
    assert ClockLine((1_000, 51_000), (1_000, 51_000))(1_234) == 51_234
