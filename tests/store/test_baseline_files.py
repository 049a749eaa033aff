import json
import os
from pathlib import Path

import pytest

from pyrometer.analysis.baseline import measure
from pyrometer.analysis.saved_baseline import SavedBaseline, add_figures
from pyrometer.errors import UsageError
from pyrometer.report.baseline_file import render_baseline
from pyrometer.store.baseline_files import read_baseline, resolve_baseline, write_baseline
from tests.torch_runs import training_run


@pytest.fixture
def baseline() -> SavedBaseline:
    run = training_run()
    return add_figures(None, [(run.program, measure(run, file_name="baseline.json"))])


def test_what_is_written_is_read_again(tmp_path: Path, baseline: SavedBaseline) -> None:
    path = tmp_path / "new" / "baseline.json"
    write_baseline(render_baseline(baseline), path)
    assert read_baseline(path) == baseline
    assert [entry.name for entry in path.parent.iterdir()] == ["baseline.json"]


def test_no_file_and_an_empty_one_hold_no_baseline(tmp_path: Path) -> None:
    assert read_baseline(tmp_path / "none.json") is None
    (tmp_path / "empty.json").touch()
    assert read_baseline(tmp_path / "empty.json") is None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("notes", "JSON is malformed"),
        ("[1, 2]", "Expected `object`, got `array`"),
        ("{}", 'it has no "format": "pyrometer-baseline"'),
        ('{"format": "pyrometer-run", "version": 1}', 'it has no "format": "pyrometer-baseline"'),
        ('{"format": "pyrometer-baseline", "version": 2}', "its version is 2, and this Pyrometer knows 1"),
        ('{"format": "pyrometer-baseline", "version": 1}', "Object missing required field"),
        ('{"a":' * 100_000, "recursion"),
    ],
)
def test_a_file_of_anything_else_is_refused_and_stays(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        resolve_baseline("baseline.json", folder=tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{path} exists and is not a baseline that could be added to (")
    assert problem in message
    assert message.endswith("; name another file, or remove this one")
    assert path.read_text(encoding="utf-8") == content


def test_a_baseline_that_lost_a_figure_is_refused_with_its_place(
    tmp_path: Path, baseline: SavedBaseline
) -> None:
    content = json.loads(render_baseline(baseline))
    del content["aggregates"]["latency_ms"]["avg"]
    (tmp_path / "baseline.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UsageError, match=r"missing required field `avg` - at `\$\.aggregates\.latency_ms`"):
        read_baseline(tmp_path / "baseline.json")


def test_something_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(UsageError, match=r"folder\.json: .*; name another file"):
        resolve_baseline("folder.json", folder=tmp_path)
    with pytest.raises(UsageError, match=r"pipe\.json exists and .* \(not a regular file\)"):
        resolve_baseline("pipe.json", folder=tmp_path)


@pytest.mark.parametrize("option", ["", "benchmarks/"])
def test_a_name_that_is_none_of_a_file_is_refused(tmp_path: Path, option: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_baseline(option, folder=tmp_path)
    assert str(caught.value) == f"--baseline is {option!r}, but must name a file, such as baseline.json"


def test_the_folder_of_a_new_baseline_is_made(tmp_path: Path) -> None:
    assert resolve_baseline("benchmarks/baseline.json", folder=tmp_path) == (
        tmp_path / "benchmarks" / "baseline.json"
    )
    assert (tmp_path / "benchmarks").is_dir()


def test_a_place_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"^cannot write a baseline to file/b\.json: .*; name another file$"):
        resolve_baseline("file/b.json", folder=tmp_path)


def test_each_rank_has_a_baseline_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert resolve_baseline("baseline.json", folder=tmp_path).name == "baseline-rank1.json"
