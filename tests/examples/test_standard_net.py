import re
from pathlib import Path

import pytest

from tests.examples.programs import EXAMPLES, run_program

pytestmark = pytest.mark.torch

PROGRAM = EXAMPLES / "standard_net.py"


@pytest.mark.parametrize(
    ("options", "described"),
    [
        ([], "67,210 parameters, 23 batches of 32"),
        (["--batch-size", "64", "--batches", "10"], "67,210 parameters, 13 batches of 64"),
    ],
)
def test_the_standard_configurations_have_three_batches_to_warm_up(
    tmp_path: Path, options: list[str], described: str
) -> None:
    ended = run_program([PROGRAM, *options], tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[0] == described


def test_the_net_learns(tmp_path: Path) -> None:
    ended = run_program([PROGRAM, "--batches", "60"], tmp_path)
    [loss] = re.findall(r"loss of the last batch: ([\d.]+)", ended.stdout)
    assert float(loss) < 1.0  # ln 10 = 2.3 for a net that guesses


def test_an_option_out_of_range_is_told_with_its_value(tmp_path: Path) -> None:
    refused = run_program([PROGRAM, "--batch-size", "0"], tmp_path)
    assert refused.returncode == 2
    assert "argument --batch-size: must be a whole number from 1 on, not '0'" in refused.stderr
