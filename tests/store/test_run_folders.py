import gzip
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from pyrometer.errors import RunFileError
from pyrometer.record.run import Run
from pyrometer.store.run_files import write_run
from pyrometer.store.run_folders import read_runs
from tests.cli.running import PLAIN, PROFILED, Folder
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


def of_rank(rank: int | None, number: int = 0) -> Run:
    """A process of torchrun; of another launch by another number."""
    run = replace(simple_run(), started_at=f"2026-01-02T03:04:{number:02}+00:00")
    return replace(run, program=replace(run.program, rank=rank))


def kept_in(folder: Path, told: list[str]) -> list[str]:
    return [path.relative_to(folder).as_posix() for path, _ in read_runs(folder, tell=told.append)]


def test_of_the_ranks_in_folders_of_their_own_only_the_lowest_is_a_process(tmp_path: Path) -> None:
    for launch in range(2):
        for rank in range(3):
            write_run(of_rank(rank, launch), tmp_path / f"train-{launch}-{rank}" / "run.json")
    write_run(of_rank(None), tmp_path / "alone" / "run.json")
    told: list[str] = []
    assert kept_in(tmp_path, told) == ["alone/run.json", "train-0-0/run.json", "train-1-0/run.json"]
    [line] = told
    assert line.startswith(f"{tmp_path}: 4 runs of other ranks are left out: they are the same launches")


@pytest.mark.parametrize(
    ("command", "variables"),
    [(PROFILED, {}), (PLAIN, {"PYROMETER": "1"})],
    ids=["pyrometer run", "PYROMETER=1"],
)
def test_the_ranks_of_a_launch_without_an_output_are_one_process(
    tmp_path: Path, command: tuple[str, ...], variables: dict[str, str]
) -> None:
    folder = Folder(tmp_path)
    folder.write("program.py", "import pyrometer")
    folder.environment |= {**variables, "PYROMETER_HISTORY": "0", "WORLD_SIZE": "2"}
    for rank in ("1", "0"):
        folder.environment["RANK"] = rank
        assert folder.run(*command, "program.py").code == 0
    told: list[str] = []
    [(_, run)] = read_runs(folder.programs / "pyrometer-runs", tell=told.append)
    assert run.program.rank == 0
    assert "1 run of another rank is left out" in told[0]


def test_where_rank_0_ran_elsewhere_the_lowest_that_is_there_counts(tmp_path: Path) -> None:
    for rank in (3, 2, 4):
        write_run(of_rank(rank), tmp_path / f"train-{rank}" / "run.json")
    told: list[str] = []
    assert kept_in(tmp_path, told) == ["train-2/run.json"]
    assert "2 runs of other ranks are left out" in told[0]


def test_a_rank_in_the_name_tells_the_launch_and_goes_before_the_recorded_one(tmp_path: Path) -> None:
    for name, rank in (("1-rank0.json", 0), ("2-rank2.json", 2), ("2-rank3.json", 3)):
        write_run(of_rank(rank), tmp_path / name)
    told: list[str] = []
    assert kept_in(tmp_path, told) == ["1-rank0.json", "2-rank2.json"]
    assert "1 run of another rank is left out" in told[0]


def test_the_ranks_in_a_folder_for_each_launch_are_found_and_the_lowest_counts(tmp_path: Path) -> None:
    for launch in ("1", "2"):
        for rank in range(2):
            write_run(of_rank(rank, int(launch)), tmp_path / launch / f"run-rank{rank}.json")
    write_run(of_rank(1), tmp_path / "3" / "run-rank1.json.gz")
    told: list[str] = []
    assert kept_in(tmp_path, told) == ["1/run-rank0.json", "2/run-rank0.json", "3/run-rank1.json.gz"]
    assert "2 runs of other ranks are left out" in told[0]


def test_a_packed_run_below_a_folder_is_found_and_its_copy_is_no_further_process(tmp_path: Path) -> None:
    write_run(simple_run(), tmp_path / "1" / "run.json.gz")
    write_run(simple_run(), tmp_path / "2" / "run.json.gz")
    write_run(simple_run(), tmp_path / "2" / "run.json")
    write_run(simple_run(), tmp_path / "3" / "report.json")
    assert [path.relative_to(tmp_path).as_posix() for path, _ in read_runs(tmp_path, tell=never)] == [
        "1/run.json.gz",
        "2/run.json",
    ]


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
