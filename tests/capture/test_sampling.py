"""Samples in a record: where they point, what is said when there are none, and that forks are survived."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import pyrometer
from pyrometer import session
from pyrometer._native import KIND
from pyrometer.capture import losses, recording, sampling
from pyrometer.record.run import Run
from pyrometer.record.samples import Observation, StackSamples
from pyrometer.record.validation import first_problem
from tests.recorders import CORE, load

pytestmark = [
    pytest.mark.usefixtures("clean_recorder", "_own_sampler"),
    pytest.mark.skipif(KIND != "native", reason="only the compiled core samples"),
]


@pytest.fixture
def _own_sampler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sampling, "active", None)
    monkeypatch.setattr(sampling, "samples_per_s", 2_000.0)
    yield
    if sampling.active is not None:
        sampling.active.stop()


def run_so_far() -> Run:
    run = session._run_so_far()
    assert first_problem(run) is None
    return run


def samples_of(run: Run) -> StackSamples:
    assert run.samples is not None
    return run.samples


def until_sampled(inside: str, count: int = 5) -> Run:
    """The run once so many samples were taken in a function."""
    while True:
        run = run_so_far()
        if sum(seen.samples for seen in met_in(samples_of(run), inside)) >= count:
            return run


def met_in(samples: StackSamples, function: str) -> list[Observation]:
    return [seen for seen in samples.observations if function in stack_of(samples, seen)]


def stack_of(samples: StackSamples, seen: Observation) -> list[str]:
    names: list[str] = []
    node: int | None = seen.stack
    while node is not None:
        names.append(samples.functions[samples.nodes[node].function].name)
        node = samples.nodes[node].parent
    return names[::-1]


def test_a_sample_points_at_the_scope_it_was_taken_in() -> None:
    with pyrometer.profile(), pyrometer.scope("outer"), pyrometer.scope("inner"):
        run = until_sampled("until_sampled")
    found = {seen.scope for seen in met_in(samples_of(run), "until_sampled")}
    named = {None if place is None else run.strands[place[0]].nodes[place[1]].name for place in found}
    assert "inner" in named
    assert named <= {"inner", "outer", None}


@pytest.mark.torch
def test_a_sample_points_at_the_phase_and_module_it_was_taken_in() -> None:
    import torch

    class Slow(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            end = time.perf_counter() + 0.02
            while time.perf_counter() < end:
                x = x + 0
            return x

    with pyrometer.profile():
        model = torch.nn.Sequential(Slow())
        for _ in range(20):
            model(torch.ones(2, 2))
        run = run_so_far()
    assert run.torch is not None
    called = set()
    for seen in samples_of(run).observations:
        if seen.call is not None and stack_of(samples_of(run), seen)[-1].endswith("Slow.forward"):
            strand, node = seen.call
            called.add(run.torch.calls[strand].nodes[node].name)
    assert "0" in {name.rpartition(".")[2] for name in called}


def test_threads_have_their_names_also_once_they_have_ended() -> None:
    enough, go_on = threading.Event(), threading.Event()

    def work() -> None:
        enough.set()
        go_on.wait()

    with pyrometer.profile():
        thread = threading.Thread(target=work, name="loader of batches")
        thread.start()
        enough.wait()
        until_sampled("Thread.run")
        go_on.set()
        thread.join()
        run = run_so_far()
    assert "loader of batches" in samples_of(run).threads


def test_without_samples_there_is_no_thread_and_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "samples_per_s", 0.0)
    with pyrometer.profile():
        assert run_so_far().samples is None
    assert recording.sampling() is None


def test_stacks_that_are_not_read_correctly_are_not_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong:
        running = False

        def __init__(self, **_: object) -> None: ...

        def own_stack(self) -> list[tuple[str, str, int]]:
            return [("Sampling.why_not", __file__, 1), ("nonsense", "nowhere.py", 7)]

        def stop(self) -> None: ...

    monkeypatch.setattr(sampling, "Sampler", Wrong)
    with pyrometer.profile():
        assert run_so_far().samples is None
    assert (
        "sampler",
        "no stacks are sampled: this interpreter's stacks are not read correctly",
    ) in losses.failures


def test_where_stacks_cannot_be_read_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyrometer._native import unsampled

    monkeypatch.setattr(sampling, "Sampler", unsampled.Sampler)
    with pyrometer.profile():
        assert run_so_far().samples is None
    ((collector, reason),) = losses.failures
    assert collector == "sampler"
    assert "only the compiled core can read stacks, and only on Linux" in reason


def test_sampling_goes_on_in_the_parent_after_a_fork_and_a_child_records_its_own() -> None:
    with pyrometer.profile():
        until_sampled("until_sampled")
        child = os.fork()
        if child == 0:
            active = recording.sampling()
            os._exit(0 if active is not None and not active.running else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        active = recording.sampling()
        assert active is not None
        assert active.running
        before = samples_of(run_so_far()).samples
        until_sampled("until_sampled", before + 5)


def test_what_a_thread_ran_is_shared_out_to_where_it_was_met_running() -> None:
    snapshot = {
        "threads": [(1, 30), (2, 500), (3, 7)],
        "observations": [
            (0, 0, None, None, None, 2, 0, 0, 40, 40),
            (1, 0, None, None, None, 1, 0, 0, 20, 20),
            (2, 1, None, None, None, 1, 0, 0, 100, 100),
            (3, 2, None, None, None, 1, 1, 0, 50, 0),
        ],
    }
    # Half of the time it could have; never more than the time that went by; and nothing where it was not met.
    assert sampling._processor_shares(snapshot) == [0.5, 1.0, 0.0]


def test_a_reset_forgets_the_samples() -> None:
    with pyrometer.profile():
        before = samples_of(until_sampled("until_sampled", 200)).samples
        pyrometer.reset()
        assert samples_of(run_so_far()).samples < before


def test_instructions_that_call_other_code_are_known_and_plain_ones_are_not() -> None:
    import opcode

    native = sampling.native_instructions()
    assert native[opcode.opmap["CALL_FUNCTION_EX"]]
    assert native[opcode.opmap["BINARY_OP"]]
    assert not native[opcode.opmap["LOAD_FAST"]]
    assert not native[opcode.opmap["RETURN_VALUE"]]
    assert sum(native) < 100


def test_the_core_has_a_sampler_on_this_system() -> None:
    assert hasattr(load(CORE), "Sampler") == (sys.platform == "linux" and sys.version_info < (3, 14))
