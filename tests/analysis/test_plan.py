"""Findings as a plan: totals are bounds, and count no time twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.analysis.findings.model import Effort, Finding, GainOf, Place
from pyrometer.analysis.plan import Horizon, Plan, build_plan
from pyrometer.analysis.torch_results import TorchResults, build_torch_results
from tests.findings import make_finding, training_findings
from tests.torch_runs import training_run

# Of a step of 10 ms: data 1, forward 3, backward 3.5, optimizer 1.3 ms.
MAIN = "Adam"


def training() -> TorchResults:
    results = build_torch_results(training_run())
    assert results is not None
    return results


def in_phase(phase: str | None, gain: float, *, effort: Effort = Effort.MINUTES) -> Finding:
    return make_finding(place=Place(phase=phase), gain=gain, effort=effort)


def optimistic(*found: Finding) -> float | None:
    (total,) = build_plan(found, training()).totals
    return total.optimistic


def test_effort_is_the_horizon() -> None:
    plan = build_plan(training_findings().found, training())
    assert [(stage.horizon, [finding.rank for finding in stage.findings]) for stage in plan.stages] == [
        (Horizon.IMMEDIATE, [2, 3]),
        (Horizon.SHORT_TERM, [1, 5]),
        (Horizon.LONG_TERM, [4]),
    ]


def test_the_conservative_total_is_the_largest_single_bound() -> None:
    plan = build_plan([in_phase("data", 0.1), in_phase("forward", 0.25)], training())
    assert plan.totals[0].conservative == 0.25


def test_bounds_of_different_phases_add_up() -> None:
    assert optimistic(in_phase("data", 0.1), in_phase("forward", 0.2)) == pytest.approx(0.3)


def test_bounds_of_one_phase_add_up_to_no_more_than_it_takes() -> None:
    assert optimistic(in_phase("forward", 0.2), in_phase("forward", 0.25)) == pytest.approx(0.3)


def test_bounds_that_make_up_all_of_the_time_are_none() -> None:
    assert optimistic(in_phase(None, 0.6), in_phase(None, 0.7)) is None


def test_memory_is_in_no_total() -> None:
    found = make_finding(place=Place(), gain=0.9, of=GainOf.MEMORY)
    assert build_plan([found], training()).totals == ()


def test_what_nothing_bounds_is_in_no_total() -> None:
    assert build_plan([make_finding(gain=None)], training()).totals == ()


def test_shares_of_a_step_and_of_the_run_are_not_added() -> None:
    of_run = make_finding(place=Place(), gain=0.2, of=GainOf.RUN)
    totals = build_plan([of_run, in_phase("data", 0.1)], training()).totals
    assert [(total.of, total.group) for total in totals] == [(GainOf.STEP, MAIN), (GainOf.RUN, None)]
    assert [total.optimistic for total in totals] == pytest.approx([0.1, 0.2])


def test_steps_of_another_kind_have_a_total_of_their_own() -> None:
    elsewhere = make_finding(place=Place(group="evaluation"), gain=0.5)
    totals = build_plan([elsewhere, in_phase("data", 0.1)], training()).totals
    assert [total.group for total in totals] == [MAIN, "evaluation"]


def test_a_speedup_is_what_is_left() -> None:
    (total,) = build_plan([in_phase("forward", 0.2)], training()).totals
    assert total.speedups == pytest.approx((1.25, 1.25))


def test_without_torch_there_are_totals_all_the_same() -> None:
    (total,) = build_plan([make_finding(place=Place(), gain=0.3, of=GainOf.RUN)], None).totals
    assert (total.conservative, total.optimistic) == (0.3, 0.3)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([None, "data", "forward", "backward", "not a phase"]),
            st.floats(0, 1),
            st.sampled_from(Effort),
        )
    )
)
def test_totals_stay_between_the_largest_bound_and_all_of_the_time(
    drawn: list[tuple[str | None, float, Effort]],
) -> None:
    found = [in_phase(phase, gain, effort=effort) for phase, gain, effort in drawn]
    plan: Plan = build_plan(found, training())
    for total in (*plan.totals, *(total for stage in plan.stages for total in stage.totals)):
        assert 0 < total.conservative <= 1
        assert total.optimistic is None or total.conservative <= total.optimistic < 1
    assert sum(len(stage.findings) for stage in plan.stages) == len(found)
