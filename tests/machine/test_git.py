"""The commit of a program's source, from real repositories."""

import subprocess
from pathlib import Path

import pytest

from pyrometer.machine import git
from pyrometer.machine.git import git_state

IDENTITY = ("-c", "user.name=Tester", "-c", "user.email=tester@localhost", "-c", "commit.gpgsign=false")


def run_git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *IDENTITY, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One commit on the branch ``work``, whatever the user's own git settings say."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    folder = tmp_path / "project"
    folder.mkdir()
    run_git(folder, "init", "--quiet", "--initial-branch=work")
    (folder / "train.py").write_text("print('training')\n")
    run_git(folder, "add", "train.py")
    run_git(folder, "commit", "--quiet", "--message=start")
    return folder


def test_a_clean_checkout_gives_its_commit_and_branch(repository: Path) -> None:
    state = git_state(repository)
    assert state is not None
    assert state.commit == run_git(repository, "rev-parse", "HEAD")
    assert (state.branch, state.dirty) == ("work", False)


def test_a_folder_inside_the_repository_gives_the_same(repository: Path) -> None:
    inner = repository / "inner"
    inner.mkdir()
    assert git_state(inner) == git_state(repository)


def test_a_changed_file_makes_it_dirty(repository: Path) -> None:
    (repository / "train.py").write_text("print('changed')\n")
    state = git_state(repository)
    assert state is not None
    assert state.dirty


def test_a_staged_file_makes_it_dirty(repository: Path) -> None:
    (repository / "model.py").write_text("")
    run_git(repository, "add", "model.py")
    state = git_state(repository)
    assert state is not None
    assert state.dirty


def test_run_files_git_does_not_know_leave_it_clean(repository: Path) -> None:
    (repository / "pyrometer-runs").mkdir()
    (repository / "pyrometer-runs" / "run.json").write_text("{}")
    state = git_state(repository)
    assert state is not None
    assert not state.dirty


def test_a_detached_head_has_no_branch(repository: Path) -> None:
    run_git(repository, "checkout", "--quiet", "--detach")
    state = git_state(repository)
    assert state is not None
    assert state.branch is None


def test_the_surrounding_hooks_repository_is_not_mistaken_for_the_folders(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = git_state(repository)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert git_state(repository) == expected


@pytest.mark.usefixtures("repository")
def test_outside_a_repository_there_is_no_state(tmp_path: Path) -> None:
    assert git_state(tmp_path) is None


def test_before_the_first_commit_there_is_no_state(repository: Path) -> None:
    fresh = repository.parent / "fresh"
    fresh.mkdir()
    run_git(fresh, "init", "--quiet")
    assert git_state(fresh) is None


def test_a_bare_repository_has_no_state(repository: Path) -> None:
    bare = repository.parent / "bare.git"
    run_git(repository, "clone", "--quiet", "--bare", str(repository), str(bare))
    assert git_state(bare) is None


def test_a_repository_git_refuses_to_trust_has_no_state(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert git_state(repository) is None


def test_without_git_there_is_no_state(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    assert git_state(repository) is None


def test_a_folder_that_is_gone_has_no_state(tmp_path: Path) -> None:
    assert git_state(tmp_path / "gone") is None


def test_a_git_that_hangs_is_given_up(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = repository.parent / "bin"
    hanging.mkdir()
    (hanging / "git").write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    (hanging / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(hanging), prepend=":")
    monkeypatch.setattr(git, "_TIMEOUT_S", 0.05)
    assert git_state(repository) is None
