import pytest

from pyrometer.analysis.results import build_results
from pyrometer.analysis.torch_results import TorchResults
from pyrometer.record.format import decode_run, encode_run
from pyrometer.record.run import Run
from tests.report.sample_runs import simple_run
from tests.torch_runs import (
    MB,
    MS,
    TORCH_RUNS,
    compiled_run,
    evaluation_run,
    gpu_run,
    marked_run,
    no_steps_run,
    training_run,
)


def torch_of(run: Run) -> TorchResults:
    torch = build_results(run).torch
    assert torch is not None
    return torch


def test_a_program_without_torch_has_no_torch_results() -> None:
    assert build_results(simple_run()).torch is None


def test_the_headline_is_that_of_the_main_group() -> None:
    headline = torch_of(training_run()).headline
    assert headline is not None
    assert (headline.step_ns, headline.samples_per_second) == (10 * MS, 3_200)
    assert (headline.peak_host_bytes, headline.peak_gpu_bytes) == (520 * MB, None)
    assert headline.biggest_phase.name == "backward"


def test_of_training_and_evaluation_the_training_is_the_main_one() -> None:
    torch = torch_of(evaluation_run())
    assert torch.main is torch.groups[0]
    assert torch.headline is not None
    assert torch.headline.step_ns == 10 * MS


def test_a_gpu_is_in_the_headline_and_passed_on() -> None:
    torch = torch_of(gpu_run())
    assert torch.headline is not None
    assert torch.headline.peak_gpu_bytes == 3 << 30
    assert torch.gpu is not None
    assert torch.gpu.utilisation_percent == 73.5
    assert torch_of(training_run()).gpu is None


def test_torch_without_steps_has_no_headline() -> None:
    torch = torch_of(no_steps_run())
    assert (torch.headline, torch.main, torch.groups, torch.hotspots, torch.strengths) == (
        None,
        None,
        (),
        (),
        (),
    )
    assert torch.modules.rows == ()
    assert torch.modules.step_ns is None
    assert torch.modules.parameters is None


def test_what_torch_compile_did_and_the_window_are_passed_on() -> None:
    compilation = torch_of(compiled_run()).compilation
    assert compilation is not None
    assert compilation.graph_breaks == 1
    assert torch_of(marked_run()).window == (10, 30)


@pytest.mark.parametrize("name", TORCH_RUNS)
def test_a_run_read_from_its_file_says_the_same(name: str) -> None:
    run = TORCH_RUNS[name]()
    assert build_results(decode_run(encode_run(run))).torch == torch_of(run)
