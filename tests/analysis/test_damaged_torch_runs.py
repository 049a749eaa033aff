import random
from collections.abc import Callable

import pytest

from pyrometer.errors import RunFileError
from pyrometer.record.format import decode_run, encode_run
from pyrometer.record.run import Run
from pyrometer.report import render_json, render_markdown, render_terminal
from tests.record.damage import damage
from tests.torch_runs import TORCH_RUNS


@pytest.mark.parametrize("name", TORCH_RUNS)
def test_the_example_runs_hold_together(name: str) -> None:
    run = TORCH_RUNS[name]()
    assert decode_run(encode_run(run)) == run


def test_a_damaged_run_of_a_torch_program_is_refused_or_reported() -> None:
    originals = [encode_run(make()) for make in TORCH_RUNS.values()]
    reports: list[Callable[[Run], str]] = [render_json, render_terminal, render_markdown]
    still_runs = 0
    for seed in range(2_000):
        chance = random.Random(seed)
        try:
            run = decode_run(damage(originals[seed % len(originals)], chance), path="train.json")
        except RunFileError:
            continue
        still_runs += 1
        assert reports[seed % 3](run)
    assert still_runs > 50
