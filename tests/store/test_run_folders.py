import gzip
import json
from pathlib import Path

import pytest

from pyrometer.errors import RunFileError
from pyrometer.store.run_files import write_run
from pyrometer.store.run_folders import read_runs
from tests.report.sample_runs import simple_run, threaded_run


def never(text: str) -> None:
    """Nothing is left out that would have to be told."""
    pytest.fail(text)


def test_a_file_is_one_run(tmp_path: Path) -> None:
    write_run(simple_run(), tmp_path / "a.json")
    assert read_runs(tmp_path / "a.json", tell=never) == ((tmp_path / "a.json", simple_run()),)


def test_a_folder_holds_the_runs_in_it_and_right_below_it_by_name(tmp_path: Path) -> None:
    write_run(simple_run(), tmp_path / "run-2.json")
    write_run(threaded_run(), tmp_path / "run-1.json.gz")
    write_run(simple_run(), tmp_path / "train-2026" / "run.json")
    write_run(simple_run(), tmp_path / "deep" / "deeper" / "run.json")
    assert [path.relative_to(tmp_path).as_posix() for path, _ in read_runs(tmp_path, tell=never)] == [
        "run-1.json.gz",
        "run-2.json",
        "train-2026/run.json",
    ]


def test_reports_beside_a_run_are_passed_over(tmp_path: Path) -> None:
    write_run(simple_run(), tmp_path / "run.json")
    (tmp_path / "findings.json").write_text('{"format": "pyrometer-findings"}', encoding="utf-8")
    (tmp_path / "losses.json").write_text("[1, 2]", encoding="utf-8")
    (tmp_path / "report.md").write_text("# A report", encoding="utf-8")
    assert [path.name for path, _ in read_runs(tmp_path, tell=never)] == ["run.json"]


@pytest.mark.parametrize(
    "content",
    [
        b'{"displayTimeUnit":"ns","otherData":{"made_by":"pyrometer"}}',
        b"[1, 2]",
        b'{"format": "pyrometer-findings"}',
    ],
)
def test_what_is_packed_and_no_run_is_passed_over(tmp_path: Path, content: bytes) -> None:
    write_run(simple_run(), tmp_path / "run.json.gz")
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(content))
    assert [path.name for path, _ in read_runs(tmp_path, tell=never)] == ["run.json.gz"]


def test_of_the_ranks_of_one_launch_only_the_lowest_is_a_process(tmp_path: Path) -> None:
    for name in ("1-rank0.json", "1-rank1.json", "1-rank10.json", "2-rank3.json", "2-rank2.json", "3.json"):
        write_run(simple_run(), tmp_path / name)
    told: list[str] = []
    kept = [path.name for path, _ in read_runs(tmp_path, tell=told.append)]
    assert kept == ["1-rank0.json", "2-rank2.json", "3.json"]
    [line] = told
    assert line.startswith(f"{tmp_path}: 3 runs of other ranks are left out: they are the same launches")


@pytest.mark.parametrize("length", [0, 1, 10, 30, 200])
def test_a_packed_run_that_is_damaged_is_not_passed_over(tmp_path: Path, length: int) -> None:
    write_run(simple_run(), tmp_path / "a.json.gz")
    (tmp_path / "b.json.gz").write_bytes((tmp_path / "a.json.gz").read_bytes()[:length])
    with pytest.raises(RunFileError, match=r"b\.json\.gz"):
        read_runs(tmp_path, tell=never)


@pytest.mark.parametrize("length", [0, 1, 10, 24, 25, 100, 199, 200, 201, 1_000])
def test_a_run_that_is_damaged_is_not_passed_over_wherever_it_was_cut(tmp_path: Path, length: int) -> None:
    write_run(simple_run(), tmp_path / "a.json")
    whole = (tmp_path / "a.json").read_bytes()
    (tmp_path / "b.json").write_bytes(whole[:length])
    with pytest.raises(RunFileError, match=r"b\.json"):
        read_runs(tmp_path, tell=never)


def test_a_run_with_its_keys_in_another_order_is_one(tmp_path: Path) -> None:
    write_run(simple_run(), tmp_path / "a.json")
    content = json.loads((tmp_path / "a.json").read_bytes())
    (tmp_path / "a.json").write_text(json.dumps(dict(reversed(content.items()))), encoding="utf-8")
    assert [run for _, run in read_runs(tmp_path, tell=never)] == [simple_run()]


@pytest.mark.parametrize("content", ["{broken", "no JSON", '{"loss": NaN}', '{"loss": 1}\n{"loss": 0}'])
def test_a_file_that_cannot_be_read_is_left_out_by_name(tmp_path: Path, content: str) -> None:
    write_run(simple_run(), tmp_path / "run.json")
    (tmp_path / "loss.json").write_text(content, encoding="utf-8")
    told: list[str] = []
    assert [path.name for path, _ in read_runs(tmp_path, tell=told.append)] == ["run.json"]
    [line] = told
    assert line.startswith(f"{tmp_path / 'loss.json'} is left out: ")


def test_a_folder_without_runs_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="holds no runs"):
        read_runs(tmp_path, tell=never)


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="there is no such file"):
        read_runs(tmp_path / "gone.json", tell=never)
