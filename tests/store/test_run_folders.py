from pathlib import Path

import pytest

from pyrometer.errors import RunFileError
from pyrometer.store.run_files import write_run
from pyrometer.store.run_folders import read_runs
from tests.report.sample_runs import simple_run, threaded_run


def test_a_file_is_one_run(tmp_path: Path) -> None:
    write_run(simple_run(), tmp_path / "a.json")
    assert read_runs(tmp_path / "a.json") == ((tmp_path / "a.json", simple_run()),)


def test_a_folder_holds_the_runs_in_it_and_right_below_it_by_name(tmp_path: Path) -> None:
    write_run(simple_run(), tmp_path / "run-2.json")
    write_run(threaded_run(), tmp_path / "run-1.json.gz")
    write_run(simple_run(), tmp_path / "train-2026" / "run.json")
    write_run(simple_run(), tmp_path / "deep" / "deeper" / "run.json")
    assert [path.relative_to(tmp_path).as_posix() for path, _ in read_runs(tmp_path)] == [
        "run-1.json.gz",
        "run-2.json",
        "train-2026/run.json",
    ]


def test_reports_beside_a_run_are_passed_over(tmp_path: Path) -> None:
    write_run(simple_run(), tmp_path / "run.json")
    (tmp_path / "findings.json").write_text('{"format": "pyrometer-findings"}', encoding="utf-8")
    (tmp_path / "report.md").write_text("# A report", encoding="utf-8")
    assert [path.name for path, _ in read_runs(tmp_path)] == ["run.json"]


def test_a_run_that_is_damaged_is_not_passed_over(tmp_path: Path) -> None:
    write_run(simple_run(), tmp_path / "a.json")
    whole = (tmp_path / "a.json").read_bytes()
    (tmp_path / "b.json").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RunFileError, match=r"b\.json"):
        read_runs(tmp_path)


def test_a_folder_without_runs_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="holds no runs"):
        read_runs(tmp_path)


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="there is no such file"):
        read_runs(tmp_path / "gone.json")
