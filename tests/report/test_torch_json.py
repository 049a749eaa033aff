import dataclasses
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pyrometer.analysis.observed import observe
from pyrometer.analysis.results import build_results
from pyrometer.record.run import Run
from pyrometer.report import render_json, torch_json
from tests.report.sample_runs import MS, main_strand
from tests.torch_runs import TORCH_RUNS, call, generation_run, gpu_run, marked_run, no_steps_run, training_run

GOLDEN_RUNS = (
    "training", "evaluation", "generation-cached", "workers-slow", "no-steps", "compiled", "gpu", "operators",
)  # fmt: skip


def read(run: Run) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(render_json(run))
    return content


@pytest.mark.parametrize("name", GOLDEN_RUNS)
def test_the_json_report_of_torch_work_looks_as_agreed(
    name: str, check_golden: Callable[[str, str], None]
) -> None:
    content = read(TORCH_RUNS[name]())
    for group in content["torch"]["groups"]:
        # A golden file is read by people: two steps show what all of them look like.
        group["series"] = group["series"][:2]
    check_golden(
        f"{name}.json", json.dumps({key: content[key] for key in ("torch", "memory")}, indent=2) + "\n"
    )


def test_modules_may_be_deeper_than_the_stack_of_python() -> None:
    run = training_run()
    assert run.torch is not None
    layers = (call(f"layer_{depth}", depth, 1, MS) for depth in range(2_000))
    calls = (main_strand(call("forward", None, 1, MS), *layers),)
    deep = msgspec.structs.replace(run, torch=msgspec.structs.replace(run.torch, calls=calls))
    tree = read(deep)["torch"]["modules"]["tree"]
    assert [place["depth"] for place in tree] == list(range(2_000))


def test_a_run_that_was_observed_has_the_same_json_and_is_not_worked_out_again() -> None:
    observed = observe(training_run())
    assert render_json(observed) == render_json(training_run())
    assert json.loads(render_json(dataclasses.replace(observed, torch=None)))["torch"] is None


@pytest.mark.parametrize("name", TORCH_RUNS)
def test_every_figure_of_the_analysis_is_in_the_json(name: str) -> None:
    run = TORCH_RUNS[name]()
    torch = read(run)["torch"]
    results = build_results(run).torch
    assert results is not None
    for group, found in zip(results.groups, torch["groups"], strict=True):
        assert found.keys() == {field.name for field in dataclasses.fields(group)} | {"baseline_phases"}
        assert found["steady"]["mean_ns"] == group.steady.mean_ns
        assert len(found["series"]) == len(group.series)
    for row, written in zip(results.modules.rows, torch["modules"]["rows"], strict=True):
        assert written["forward"] == dataclasses.asdict(row.forward)
        assert written["share"] == row.share
    assert [place["name"] for place in torch["modules"]["tree"]] == [
        place.name for _, place in results.modules.walk()
    ]


@pytest.mark.parametrize("name", TORCH_RUNS)
def test_the_page_on_the_format_names_every_key(name: str) -> None:
    def keys(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list) else set()

    content = read(TORCH_RUNS[name]())["torch"]
    # As in the run file, whose page names them; the first has the program's phases for keys.
    for key in ("gpu", "compilation"):
        content.pop(key)
    documented = torch_json.__doc__ or ""
    parts = {"fetch_ns_per_batch", "transform_ns_per_batch"}
    missing = {key for key in keys(content) - parts if f"``{key}``" not in documented}
    assert not missing


def test_a_module_stands_behind_its_parent() -> None:
    tree = read(training_run())["torch"]["modules"]["tree"]
    assert [(place["name"], place["parent"], place["depth"]) for place in tree] == [
        ("model", None, 0),
        ("model.fc1", 0, 1),
        ("model.fc2", 0, 1),
        ("model.act", 0, 1),
        ("criterion", None, 0),
    ]


def test_what_is_not_known_is_null() -> None:
    content = read(no_steps_run())
    assert content["torch"]["headline"] is None
    assert content["torch"]["main_group"] is None
    assert content["torch"]["gpu"] is None
    assert content["torch"]["groups"] == []
    assert content["memory"]["growth_bytes_per_second"] is None


def test_verdicts_are_words() -> None:
    torch = read(generation_run(cached=False))["torch"]
    assert torch["generations"][0]["cache"] == "without key-value cache"
    assert torch["generations"][0]["growth"]["verdict"] == "grows with context"
    assert torch["groups"][0]["nature"]["kind"] == "generation"
    assert torch["groups"][0]["warmup"]["end"] == "not reached"


def test_a_gpu_is_passed_on_with_every_key() -> None:
    content = read(gpu_run())["torch"]
    assert content["gpu"]["utilisation_percent"] == 73.5
    assert content["gpu"]["phase_device_ns"] == {"forward": 250_000_000, "backward": 330_000_000}
    assert content["headline"]["peak_gpu_bytes"] == 3 << 30


def test_the_window_and_the_cost_of_the_hooks_are_in_it() -> None:
    content = read(marked_run())
    assert content["torch"]["window"] == [10, 30]
    assert content["own_cost"]["hook_ns"] == 3_000_000
