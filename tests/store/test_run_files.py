import gzip
import os
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pyrometer.errors import RunFileError, UsageError
from pyrometer.record.format import encode_run
from pyrometer.store import run_files
from pyrometer.store.run_files import (
    default_run_path,
    name_of_rank,
    rank_in,
    read_run,
    replace_whole,
    resolve_output,
    write_run,
)
from tests.record.damage import damage
from tests.record.example_runs import make_node, make_run, make_strand

RUN = make_run(make_strand(make_node("step", 700)))
OTHER_RUN = make_run(make_strand(make_node("step", 800)))
STARTED_AT = datetime(2025, 3, 1, 9, 5, 7, tzinfo=UTC)


def refusal(path: Path) -> str:
    with pytest.raises(RunFileError) as caught:
        read_run(path)
    return str(caught.value)


def is_refused(path: Path) -> bool:
    """True if the file gives one clear error, False if it gives a run."""
    try:
        read_run(path)
    except RunFileError as error:
        return str(error.path) == str(path)
    return False


def output(option: Path | str | None, folder: Path) -> Path:
    return resolve_output(option, folder=folder, script_name="train.py", started_at=STARTED_AT, pid=42)


@pytest.mark.parametrize("name", ["run.json", "run.json.gz", "new/folder/run.json"])
def test_a_run_comes_back_from_its_file(tmp_path: Path, name: str) -> None:
    write_run(RUN, tmp_path / name)
    assert read_run(tmp_path / name) == RUN


def test_a_run_is_packed_if_its_name_says_so(tmp_path: Path) -> None:
    write_run(RUN, tmp_path / "run.json")
    write_run(RUN, tmp_path / "run.json.gz")
    plain = (tmp_path / "run.json").read_bytes()
    assert gzip.decompress((tmp_path / "run.json.gz").read_bytes()) == plain == encode_run(RUN)


def test_a_run_is_read_from_its_folder(tmp_path: Path) -> None:
    write_run(RUN, tmp_path / "run.json")
    assert read_run(tmp_path) == RUN


def test_a_write_that_fails_leaves_the_file_before_it_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.json"
    write_run(RUN, path)

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device", descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(RunFileError) as caught:
        write_run(OTHER_RUN, path)
    assert str(caught.value) == f"{path}: cannot be written: No space left on device"
    assert list(tmp_path.iterdir()) == [path]
    assert read_run(path) == RUN


def test_a_new_run_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_run(RUN, path)
    write_run(OTHER_RUN, path)
    assert read_run(path) == OTHER_RUN
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_to_a_run_stays_a_link(tmp_path: Path) -> None:
    write_run(RUN, tmp_path / "first.json")
    latest = tmp_path / "latest.json"
    latest.symlink_to("first.json")
    write_run(OTHER_RUN, latest)
    assert latest.is_symlink()
    assert read_run(tmp_path / "first.json") == OTHER_RUN


def test_a_run_file_is_as_readable_as_any_file_of_the_user(tmp_path: Path) -> None:
    write_run(RUN, tmp_path / "run.json")
    (tmp_path / "plain").touch()
    assert (tmp_path / "run.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_in_the_way_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    path = tmp_path / "notes" / "run.json"
    with pytest.raises(RunFileError) as caught:
        write_run(RUN, path)
    assert str(caught.value) == f"{path}: cannot be written: File exists"


def test_a_run_too_large_to_be_read_back_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_files, "MAX_FILE_BYTES", 500)
    with pytest.raises(RunFileError, match="only 500 could be read back"):
        write_run(RUN, tmp_path / "run.json")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.json") == f"{tmp_path / 'no.json'}: there is no such file"


def test_a_folder_without_a_run_is_called_that(tmp_path: Path) -> None:
    assert refusal(tmp_path) == (
        f"{tmp_path}: the folder holds no run.json; name a run file, or the folder of a run"
    )


@pytest.mark.parametrize("content", [b"<!doctype html>", b"import torch\n", b"%PDF-1.7", b"PK\x03\x04"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_of_another_kind_is_no_damaged_run(tmp_path: Path, content: bytes, packed: bool) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert refusal(path) == (
        f"{path}: not a run file; name the .json or .json.gz that pyrometer run wrote, or its folder"
    )


def test_a_damaged_run_is_not_taken_for_a_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(b'  {"format": NaN}')
    assert refusal(tmp_path).endswith("not JSON: invalid character (at byte 13)")
    (tmp_path / "run.json").write_bytes(b"\n")
    assert refusal(tmp_path).endswith("the file is empty")


def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    assert refusal(tmp_path / "run.json") == f"{tmp_path / 'run.json'}: not a regular file"


def test_a_device_is_refused() -> None:
    assert refusal(Path("/dev/zero")) == "/dev/zero: not a regular file"


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()
    assert refusal(tmp_path) == f"{tmp_path / 'run.json'}: cannot be read: Is a directory"


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").symlink_to("b.json")
    (tmp_path / "b.json").symlink_to("a.json")
    assert "Too many levels of symbolic links" in refusal(tmp_path / "a.json")


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A superuser may read everything, so the refusal of the system is played here.
    def deny(path: str, flags: int) -> int:
        raise PermissionError(13, "Permission denied", path, flags)

    monkeypatch.setattr(run_files, "_open_without_waiting", deny)
    write_run(RUN, tmp_path / "run.json")
    assert refusal(tmp_path / "run.json") == f"{tmp_path / 'run.json'}: cannot be read: Permission denied"


@pytest.mark.parametrize("name", ["a\0b.json", "x" * 300, "\udcff\ud800.json"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunFileError):
        read_run(tmp_path / name)
    with pytest.raises(RunFileError):
        write_run(RUN, tmp_path / name)


def test_a_file_larger_than_a_run_may_be_is_refused_without_reading_it_all(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert refusal(path) == f"{path}: larger than the 67,108,864 bytes a run file may have"


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(257):
            file.write(b" " * (1 << 20))
    assert refusal(path) == f"{path}: unpacks to more than the 268,435,456 bytes a run may have"


def test_a_packed_file_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json.gz"
    write_run(RUN, path)
    path.write_bytes(path.read_bytes()[:-12])
    assert refusal(path).startswith(f"{path}: the gzip data is damaged or cut off: ")


def test_a_damaged_packed_file_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json.gz"
    packed = gzip.compress(encode_run(RUN), mtime=0)
    refused = 0
    for seed in range(150):
        chance = random.Random(seed)
        plain = damage(encode_run(RUN), chance)
        position = chance.randrange(len(packed))
        flipped = (
            packed[:position] + bytes([packed[position] ^ 1 << chance.randrange(8)]) + packed[position + 1 :]
        )
        for data in (gzip.compress(plain, compresslevel=1), flipped, packed[:position]):
            path.write_bytes(data)
            refused += is_refused(path)
    assert refused > 300


def test_by_default_a_run_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    assert output(None, tmp_path) == tmp_path / "pyrometer-runs" / "train-20250301-090507-42" / "run.json"


def test_no_two_runs_ever_get_the_same_folder(tmp_path: Path) -> None:
    names = [default_run_path(tmp_path, "train.py", STARTED_AT, 42).parent.name for _ in range(3)]
    assert names == [
        "train-20250301-090507-42",
        "train-20250301-090507-42-2",
        "train-20250301-090507-42-3",
    ]


@pytest.mark.parametrize(
    ("script_name", "folder_name"),
    [
        ("/home/ada/my model.py", "my_model-20250301-090507-42"),
        ("package.module", "package.module-20250301-090507-42"),
        ("../../etc", "etc-20250301-090507-42"),
        ("..", "program-20250301-090507-42"),
        ("-", "program-20250301-090507-42"),
        ("", "program-20250301-090507-42"),
        ("näher\n\0\udcff.py", "n_her_-20250301-090507-42"),
        ("x" * 300, f"{'x' * 80}-20250301-090507-42"),
    ],
)
def test_a_scripts_name_is_made_fit_for_a_folder(tmp_path: Path, script_name: str, folder_name: str) -> None:
    path = default_run_path(tmp_path, script_name, STARTED_AT, 42)
    assert path == tmp_path / "pyrometer-runs" / folder_name / "run.json"


def test_a_place_where_no_folder_can_be_made_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "pyrometer-runs").touch()
    with pytest.raises(UsageError, match=r"pyrometer-runs for the run: .* is in the way; .* -o"):
        output(None, tmp_path)
    with pytest.raises(UsageError, match=r"Not a directory; name another place with -o"):
        output(None, tmp_path / "pyrometer-runs" / "deeper")


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("out.json", "out.json"),
        ("deep/out.json.gz", "deep/out.json.gz"),
        ("results", "results/run.json"),
        ("results.d/", "results.d/run.json"),
        (Path("results"), "results/run.json"),
    ],
)
def test_the_user_names_a_file_or_a_folder(tmp_path: Path, option: Path | str, expected: str) -> None:
    assert output(option, tmp_path) == tmp_path / expected


def test_an_existing_folder_gets_the_run_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "results.json").mkdir()
    assert output("results.json", tmp_path) == tmp_path / "results.json" / "run.json"


def test_a_place_that_cannot_be_written_is_known_before_the_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UsageError, match=r"notes.txt/out.json: Not a directory; name another place"):
        output("notes.txt/out.json", tmp_path)
    # A superuser may write everywhere, so the refusal of the system is played here.
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    with pytest.raises(UsageError, match=r"out.json: Permission denied; name another place"):
        output("out.json", tmp_path)


def test_an_absolute_file_is_where_it_says(tmp_path: Path) -> None:
    assert output(tmp_path / "out.json", Path("/nowhere")) == tmp_path / "out.json"


@pytest.mark.parametrize("name", ["out.json", "out", "results/run.json"])
def test_an_older_run_that_the_user_names_is_replaced(tmp_path: Path, name: str) -> None:
    write_run(RUN, tmp_path / name)
    assert output(name, tmp_path) == tmp_path / name


@pytest.mark.parametrize("name", ["config.json", "train.py", "data"])
def test_any_other_file_of_the_user_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"learning_rate": 0.1}')
    with pytest.raises(UsageError, match="exists and is not a run that could be replaced"):
        output(name, tmp_path)


def test_an_empty_file_made_for_the_run_is_used(tmp_path: Path) -> None:
    (tmp_path / "made-by-mktemp.json").touch()
    assert output("made-by-mktemp.json", tmp_path) == tmp_path / "made-by-mktemp.json"
    (tmp_path / "train.py").touch()
    with pytest.raises(UsageError, match="exists and is not a run that could be replaced"):
        output("train.py", tmp_path)


def test_a_file_that_is_no_run_is_left_alone_in_a_folder_too(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(UsageError, match="name another file, or remove this one"):
        output(tmp_path, tmp_path)


def test_a_device_is_no_place_for_a_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"/dev/null exists and .* \(not a regular file\)"):
        output("/dev/null", tmp_path)


def test_a_name_that_no_file_can_have_is_no_place_for_a_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="embedded null byte"):
        output("a\0b.json", tmp_path)


def test_an_ending_that_is_neither_is_refused_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        output("out.txt", tmp_path)
    assert str(caught.value) == (
        "cannot write a run to out.txt: name a file that ends in .json or .json.gz, or a folder"
    )


@pytest.mark.parametrize(
    ("option", "name"),
    [("out.json", "out-rank1.json"), ("o.json.gz", "o-rank1.json.gz"), ("f/", "run-rank1.json")],
)
def test_no_rank_of_torchrun_overwrites_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, name: str
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    path = resolve_output(option, folder=tmp_path, script_name="x.py", started_at=STARTED_AT, pid=1)
    assert path.name == name


def test_a_process_of_torchrun_has_its_rank() -> None:
    assert rank_in({"RANK": "3", "WORLD_SIZE": "4"}) == 3
    assert rank_in({"RANK": "0", "WORLD_SIZE": "2"}) == 0


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"RANK": "0", "WORLD_SIZE": "1"},
        {"RANK": "0"},
        {"RANK": "a/b", "WORLD_SIZE": "2"},
        {"RANK": "9" * 20, "WORLD_SIZE": "2"},  # more than a run file may hold
    ],
)
def test_a_process_by_itself_has_no_rank_and_gets_the_name_as_it_is(environment: dict[str, str]) -> None:
    assert rank_in(environment) is None
    assert name_of_rank("out.json", environment) == "out.json"


def test_a_device_is_written_to_and_not_replaced() -> None:
    reader, writer = os.openpty()
    try:
        device = Path(os.ttyname(writer))
        replace_whole(device, b"all of it")
        assert device.is_char_device()
        assert os.read(reader, 100) == b"all of it"
    finally:
        os.close(reader)
        os.close(writer)


def test_a_pipe_is_neither_waited_for_nor_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(RunFileError, match="no regular file"):
        write_run(make_run(), tmp_path / "pipe.json")
    assert (tmp_path / "pipe.json").is_fifo()
