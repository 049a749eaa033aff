"""Temporary folders of measurements: gone at the end, and those of killed ones gone with the next."""

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrometer.experiment import scratch
from pyrometer.experiment.scratch import scratch_folder

HOLDING = """
import signal
from pyrometer.experiment.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "something").mkdir()
    print(folder, flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    scratch._remove_abandoned.cache_clear()
    yield
    scratch._remove_abandoned.cache_clear()


def started() -> tuple[subprocess.Popen[str], Path]:
    """A process that has such a folder, and waits."""
    process = subprocess.Popen([sys.executable, "-c", HOLDING], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_is_gone_at_the_end_whatever_is_in_it(tmp_path: Path) -> None:
    with scratch_folder() as folder:
        (folder / "file").write_text("x")
    assert not list(tmp_path.iterdir())


def test_that_of_a_killed_process_goes_with_the_next_and_that_of_a_living_one_stays() -> None:
    killed, abandoned = started()
    living, held = started()
    with killed, living:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert (abandoned / "something").is_dir()
        with scratch_folder():
            assert not abandoned.exists()
            assert (held / "something").is_dir()
        living.send_signal(signal.SIGKILL)


def test_a_folder_that_is_just_being_made_is_left_alone(tmp_path: Path) -> None:
    begun = tmp_path / f"{scratch.PREFIX}begun"
    begun.mkdir()
    with scratch_folder():
        assert begun.is_dir()


def test_a_link_to_somebodys_folder_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / ".lock").touch()
    (tmp_path / f"{scratch.PREFIX}link").symlink_to(precious)
    with scratch_folder():
        assert (precious / ".lock").exists()
