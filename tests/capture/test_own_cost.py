"""What a scope is said to cost."""

from pyrometer.capture import recording
from pyrometer.capture.own_cost import scope_cost_ns


def test_a_scope_costs_something_and_far_less_than_a_millisecond() -> None:
    assert 0 < scope_cost_ns() < 1_000_000


def test_measuring_it_leaves_no_trace_in_the_programs_record() -> None:
    recording.reset()
    scope_cost_ns.cache_clear()
    scope_cost_ns()
    assert recording.recorder.snapshot()["entries"] == 0
