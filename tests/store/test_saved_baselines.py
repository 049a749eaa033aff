"""Baselines by name, as files of a project."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pyrometer.analysis.baseline import measure
from pyrometer.analysis.saved_baseline import SavedBaseline, add_figures, save_runs
from pyrometer.errors import UsageError
from pyrometer.record.run import Run
from pyrometer.report.baseline_file import render_baseline
from pyrometer.store import baseline_files
from pyrometer.store.baseline_files import (
    baseline_names,
    baseline_path,
    find_baseline,
    load_baseline,
    load_saved_runs,
    read_baseline,
    remove_baseline,
    saved_baselines,
    write_baseline,
)
from pyrometer.store.projects import project_folder
from tests.report.sample_runs import simple_run
from tests.torch_runs import hostile_torch_run, training_run

AT = "2026-03-01T10:00:00+01:00"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def save(folder: Path, name: str, *runs: Run) -> SavedBaseline:
    saved = save_runs(None, runs, name=name, saved_at=AT)
    write_baseline(render_baseline(saved), baseline_path(name, folder=folder))
    return saved


def changed(folder: Path, name: str, change: dict[str, object]) -> Path:
    path = baseline_path(name, folder=folder)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    return path


@pytest.mark.parametrize("marker", ["pyproject.toml", ".git"])
def test_a_baseline_belongs_to_the_project_and_not_to_the_folder_one_stands_in(
    tmp_path: Path, marker: str
) -> None:
    inner = tmp_path / "src" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / marker).touch()
    assert baseline_path("main", folder=inner) == tmp_path / "benchmarks" / "main.json"


def test_without_a_project_it_is_the_folder_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "exists", lambda _: False)
    monkeypatch.setattr(Path, "is_file", lambda _: False)
    assert project_folder(tmp_path) == tmp_path


@pytest.mark.parametrize("run", [training_run(), simple_run(), hostile_torch_run()])
def test_what_is_saved_is_read_again(project: Path, run: Run) -> None:
    saved = save(project, "main", run)
    assert load_baseline("main", folder=project) == (baseline_path("main", folder=project), saved)
    assert load_saved_runs("main", folder=project) == saved.runs
    assert load_saved_runs("benchmarks/main.json", folder=project) == saved.runs
    assert read_baseline(baseline_path("main", folder=project)) == saved


def test_arguments_that_are_not_utf_8_leave_a_file_that_can_be_read(project: Path) -> None:
    run = training_run()
    odd = msgspec.structs.replace(run.program, argv=("train.py", os.fsdecode(b"\xff\xfe"), "ä"))
    save(project, "main", msgspec.structs.replace(run, program=odd))
    [(key, [read])] = load_saved_runs("main", folder=project).items()
    assert read.program.argv == ("train.py", "??", "ä")
    assert key == "train.py '??' 'ä'"


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../main", "a/b", "/etc/main", ".hidden", "-x", "a b", "a\n", "ä", "x" * 101, "a\0"],
)
def test_a_name_is_a_plain_word(project: Path, name: str) -> None:
    with pytest.raises(UsageError, match="a baseline cannot be named"):
        baseline_path(name, folder=project)


def test_a_name_with_the_ending_of_the_file_is_told_to_leave_it_out(project: Path) -> None:
    with pytest.raises(UsageError, match=r"leave \.json out"):
        baseline_path("main.json", folder=project)


def test_a_name_that_is_not_there_is_told_those_that_are(project: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_saved_runs("x", folder=project)
    assert str(caught.value) == (
        "No baseline named 'x' (saved: none yet). Save one with: pyrometer baseline save x RUN"
    )
    save(project, "b", training_run())
    save(project, "a", training_run())
    with pytest.raises(UsageError, match=r"No baseline named 'x' \(saved: a, b\)"):
        remove_baseline("x", folder=project)


def test_a_file_that_is_not_there_is_named(project: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no baseline in .*other\.json; save one with"):
        load_saved_runs("other.json", folder=project)


def test_a_baseline_of_run_has_no_runs_and_says_how_to_save_some(project: Path) -> None:
    run = training_run()
    figures = add_figures(None, [(run.program, measure(run, file_name="main.json"))])
    write_baseline(render_baseline(figures), baseline_path("main", folder=project))
    with pytest.raises(UsageError, match=r"no runs.*save some with: pyrometer baseline save main RUN"):
        load_saved_runs("main", folder=project)


def test_other_files_of_the_folder_are_no_baselines(project: Path) -> None:
    save(project, "main", training_run())
    folder = project / "benchmarks"
    (folder / "module_inventory.json").write_text("[]")
    (folder / "notes.json").write_text("no JSON")
    (folder / "empty.json").touch()
    (folder / "folder.json").mkdir()
    os.mkfifo(folder / "pipe.json")
    assert baseline_names(project) == ["main"]
    assert [name for name, _ in saved_baselines(project)] == ["main"]
    assert list(saved_baselines(project / "benchmarks")) == list(saved_baselines(project))


def test_where_nothing_was_saved_there_is_nothing(project: Path) -> None:
    assert list(saved_baselines(project)) == []


def test_a_damaged_baseline_is_listed_with_what_is_wrong(project: Path) -> None:
    save(project, "good", training_run())
    save(project, "newer", training_run())
    save(project, "odd", training_run())
    changed(project, "newer", {"version": 2})
    changed(project, "odd", {"version": "one"})
    [(_, good), (newer, problem), (odd, other_problem)] = saved_baselines(project)
    assert isinstance(good, SavedBaseline)
    assert (newer, odd) == ("newer", "odd")
    assert "its version is 2, and this Pyrometer knows 1" in str(problem)
    assert "got `str`" in str(other_problem)


def conflicting(text: str) -> str:
    """As git leaves a file that both branches have saved anew."""
    format_line = '  "format": "pyrometer-baseline",\n'
    return text.replace(format_line, f"<<<<<<< HEAD\n{format_line}=======\n{format_line}>>>>>>> other\n")


@pytest.mark.parametrize("damage", [conflicting, lambda text: text[:-20], lambda text: f"\xff{text}"])
def test_a_baseline_that_is_no_json_any_more_stays_one_and_tells_its_problem(
    project: Path, damage: Callable[[str], str]
) -> None:
    save(project, "main", training_run())
    path = baseline_path("main", folder=project)
    path.write_bytes(damage(path.read_text()).encode("latin-1"))
    assert baseline_names(project) == ["main"]
    [(name, problem)] = saved_baselines(project)
    assert name == "main"
    assert str(problem).startswith(f"{path} cannot be read as a baseline (")
    with pytest.raises(UsageError, match="cannot be read as a baseline"):
        load_saved_runs("main", folder=project)
    assert remove_baseline("main", folder=project) == path


def test_a_file_that_only_speaks_of_baselines_is_none(project: Path) -> None:
    folder = project / "benchmarks"
    folder.mkdir()
    (folder / "list.json").write_text('[{"format": "pyrometer-baseline"}]')
    (folder / "inner.json").write_text('{"example": {"format": "pyrometer-baseline"}}')
    assert baseline_names(project) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"runs": {"train.py --epochs 3": [{}]}}, 'there is no "format"'),
        ({"runs": {"train.py --epochs 3": [{"format": "pyrometer-run", "version": 9}]}}, "newer Pyrometer"),
        ({"runs": {"train.py": 3}}, "Expected `array`, got `int`"),
        ({"runs": [1]}, "Expected `object`, got `array`"),
        ({"name": 3}, "Expected `str | null`, got `int`"),
        ({"configurations": {}, "runs": {}, "batch_latency_ms": None}, "got `null`"),
    ],
)
def test_damage_in_a_saved_baseline_is_told_by_its_place(
    project: Path, change: dict[str, object], problem: str
) -> None:
    save(project, "main", training_run())
    path = changed(project, "main", change)
    with pytest.raises(UsageError) as caught:
        load_saved_runs("main", folder=project)
    assert str(caught.value).startswith(f"{path} cannot be read as a baseline (")
    assert problem in str(caught.value)


def test_a_run_under_the_name_of_another_configuration_is_refused(project: Path) -> None:
    save(project, "main", training_run())
    path = baseline_path("main", folder=project)
    runs = json.loads(path.read_text())["runs"]
    changed(project, "main", {"runs": {"other.py": runs["train.py --epochs 3"]}})
    with pytest.raises(UsageError, match=r"a run of 'train\.py --epochs 3' stands under 'other\.py'"):
        load_saved_runs("main", folder=project)


def test_a_file_cut_off_anywhere_gives_a_clear_error(project: Path) -> None:
    save(project, "main", simple_run())
    path = baseline_path("main", folder=project)
    whole = path.read_bytes()
    for length in range(1, len(whole) - 2, 97):
        path.write_bytes(whole[:length])
        with pytest.raises(UsageError, match="cannot be read as a baseline"):
            load_saved_runs("main", folder=project)


def test_a_file_with_more_values_than_a_run_may_have_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(project, "main", simple_run())
    monkeypatch.setattr(baseline_files, "MAX_VALUES", 10)
    with pytest.raises(UsageError, match="more than 10 values"):
        load_saved_runs("main", folder=project)


def test_a_baseline_that_could_not_be_read_back_is_not_written(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline_files, "MAX_FILE_BYTES", 1_000)
    with pytest.raises(UsageError, match="only 1,000 could be read back; save fewer runs"):
        save(project, "main", simple_run())
    assert baseline_names(project) == []


def test_only_a_baseline_is_removed(project: Path) -> None:
    save(project, "main", training_run())
    save(project, "other", training_run())
    notes = project / "benchmarks" / "notes.json"
    notes.write_text("{}")
    assert remove_baseline("main", folder=project) == project / "benchmarks" / "main.json"
    with pytest.raises(UsageError, match=r"notes\.json is not a baseline, and stays"):
        find_baseline("notes", folder=project)
    assert baseline_names(project) == ["other"]
    assert notes.exists()
