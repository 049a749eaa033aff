"""The code of other commits, and whether each side ran its own."""

import os
import subprocess
from pathlib import Path

import pytest

from pyrometer.errors import UsageError
from pyrometer.experiment.imported import find_foreign_modules, python_files
from pyrometer.experiment.scratch import scratch_folder
from pyrometer.experiment.sides import Command, command_in, contender_in
from pyrometer.experiment.worktrees import checked_out, commit_of, working_tree


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e@e", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "jobs").mkdir(parents=True)
    git(root, "init", "--quiet", "--initial-branch", "main")
    (root / "jobs" / "train.py").write_text("print('one')\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "one")
    (root / "jobs" / "train.py").write_text("print('two')\n")
    return root


def test_another_commit_is_checked_out_and_gone_again(repository: Path) -> None:
    here = working_tree(repository / "jobs")
    assert here.is_dirty
    with checked_out(here, commit_of(here.folder, "main"), name="main") as tree:
        assert (tree.folder / "train.py").read_text() == "print('one')\n"
        assert tree.folder.name == "jobs"
        assert not tree.is_dirty
    assert not tree.root.exists()
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_it_is_gone_after_a_failure_too(repository: Path) -> None:
    here = working_tree(repository)
    with (
        pytest.raises(KeyboardInterrupt),
        checked_out(here, commit_of(repository, "main"), name="main") as tree,
    ):
        raise KeyboardInterrupt
    assert not tree.root.exists()


def test_one_that_was_killed_is_no_longer_listed_after_the_next(repository: Path) -> None:
    here = working_tree(repository)
    with scratch_folder() as parent:
        git(repository, "worktree", "add", "--quiet", "--detach", str(parent / "project"))
    assert len(git(repository, "worktree", "list").splitlines()) == 2
    with checked_out(here, commit_of(repository, "main"), name="main"):
        assert len(git(repository, "worktree", "list").splitlines()) == 2


def test_a_worktree_of_the_users_that_cannot_be_seen_just_now_stays_one(
    repository: Path, tmp_path: Path
) -> None:
    """As on a drive that is not mounted, or beside a container: what is staged there is theirs."""
    theirs = tmp_path / "theirs"
    git(repository, "worktree", "add", "--quiet", "--detach", str(theirs))
    (theirs / "new.py").touch()
    git(theirs, "add", "new.py")
    theirs.rename(tmp_path / "elsewhere")
    with checked_out(working_tree(repository), commit_of(repository, "main"), name="main"):
        pass
    (tmp_path / "elsewhere").rename(theirs)
    assert git(theirs, "status", "--porcelain") == "A  new.py"


def test_untracked_inputs_are_linked_where_asked(repository: Path) -> None:
    (repository / "jobs" / "data").mkdir()
    (repository / "jobs" / "data" / "points.csv").write_text("1,2\n")
    here = working_tree(repository / "jobs")
    with checked_out(here, commit_of(repository, "main"), name="main", links=["data"]) as tree:
        assert (tree.folder / "data" / "points.csv").read_text() == "1,2\n"
        assert tree.linked == {repository / "jobs" / "data"}
    assert (repository / "jobs" / "data" / "points.csv").exists()


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("nothing", "no 'nothing'"),
        ("train.py", "tracked by git"),
        ("/etc/hostname", "outside of the repository"),
    ],
)
def test_a_link_that_makes_no_sense_is_refused(repository: Path, link: str, problem: str) -> None:
    here = working_tree(repository / "jobs")
    with (
        pytest.raises(UsageError, match=problem),
        checked_out(here, commit_of(repository, "main"), name="main", links=[link]),
    ):
        pass
    assert len(git(repository, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("revision", ["nothing-of-that-name", "", "--help", "main:jobs/train.py"])
def test_a_revision_that_is_none_is_said_to_be(repository: Path, revision: str) -> None:
    with pytest.raises(UsageError, match="revision"):
        commit_of(repository, revision)


def test_without_a_repository_there_is_no_other_revision(tmp_path: Path) -> None:
    here = working_tree(tmp_path)
    assert here.commit is None
    with pytest.raises(UsageError, match="not a git repository"), checked_out(here, "1" * 40, name="main"):
        pass
    git(tmp_path, "init", "--quiet")
    here = working_tree(tmp_path)
    with pytest.raises(UsageError, match="no commit yet"), checked_out(here, "1" * 40, name="main"):
        pass


def test_what_git_says_is_told(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a checkout that belongs to somebody else it says what to do."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(UsageError, match=r"dubious ownership.*safe\.directory"):
        commit_of(repository, "main")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="no git on the path"):
        commit_of(repository, "main")


def test_a_repository_within_the_repository_is_not_linked(repository: Path) -> None:
    git(repository, "init", "--quiet", "within")
    here = working_tree(repository)
    with (
        pytest.raises(UsageError, match="'within' is a repository of its own"),
        checked_out(here, commit_of(repository, "main"), name="main", links=["within"]),
    ):
        pass


def test_both_sides_run_the_same_words(repository: Path) -> None:
    here = working_tree(repository / "jobs")
    command = command_in([str(repository / "jobs" / "train.py"), "--fast"])
    with checked_out(here, commit_of(repository, "main"), name="main") as tree:
        before, after = contender_in(tree, command, here=here), contender_in(here, command, here=here)
        assert before.side.arguments == after.side.arguments == ("train.py", "--fast")
        assert before.side.folder == tree.folder
        assert before.side.program_folder == tree.folder.resolve()


def test_arguments_that_are_whole_paths_lead_into_the_sides_own_tree(repository: Path) -> None:
    """A configuration that was changed with the code would be read by both sides otherwise."""
    (repository / "conf.toml").touch()
    git(repository, "add", "conf.toml")
    git(repository, "commit", "--quiet", "--message", "two")
    (repository / "data.csv").touch()
    here = working_tree(repository)
    words = (
        "--config",
        f"{repository}/conf.toml",
        f"--again={repository}/conf.toml",
        f"{repository}/data.csv",
    )
    command = Command(script="jobs/train.py", module=None, arguments=words)
    with checked_out(here, commit_of(repository, "main"), name="main") as tree:
        before, after = (
            contender_in(tree, command, here=here).side,
            contender_in(here, command, here=here).side,
        )
        assert after.arguments[1:] == words
        # Data that git does not know is one and the same.
        assert before.arguments[1:] == (
            "--config",
            f"{tree.root}/conf.toml",
            f"--again={tree.root}/conf.toml",
            f"{repository}/data.csv",
        )
        # They are the same program with the same arguments all the same.
        assert before.program == after.program


def test_absolute_entries_of_pythonpath_lead_into_the_sides_own_tree(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What git does not know stays where it is.
    (repository / "built").mkdir()
    built = repository / "built"
    monkeypatch.setenv("PYTHONPATH", f"{repository / 'jobs'}:relative:/elsewhere:{built}")
    here = working_tree(repository)
    command = Command(script="jobs/train.py", module=None)
    with checked_out(here, commit_of(repository, "main"), name="main") as tree:
        before = contender_in(tree, command, here=here)
        assert before.side.variables["PYTHONPATH"] == f"{tree.root / 'jobs'}:relative:/elsewhere:{built}"
        assert contender_in(here, command, here=here).side.variables == {}


def test_each_checkout_has_torch_build_extensions_in_a_folder_of_its_own(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name they are the same on both sides, and both would load what one of them has built."""
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", "/shared")
    here = working_tree(repository)
    command = Command(script="jobs/train.py", module=None)
    with checked_out(here, commit_of(repository, "main"), name="main") as tree:
        (built := Path(contender_in(tree, command, here=here).side.variables["TORCH_EXTENSIONS_DIR"])).mkdir()
        assert not built.is_relative_to(tree.root)
        assert not built.is_relative_to(repository)
        with checked_out(here, commit_of(repository, "main"), name="again") as other:
            assert other.extensions != tree.extensions
        assert contender_in(here, command, here=here).side.variables == {}
    assert not built.exists()


def test_a_folder_whose_name_is_no_text_is_a_repository_too(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"project\xff")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system has names that are text only")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    (folder / "train.py").touch()
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "one")
    here = working_tree(folder)
    assert here.root == folder
    with checked_out(here, commit_of(folder, "main"), name="main") as tree:
        assert (tree.root / "train.py").exists()


def test_a_script_that_one_side_does_not_have_is_said(repository: Path) -> None:
    (repository / "new.py").write_text("")
    here = working_tree(repository)
    with (
        checked_out(here, commit_of(repository, "main"), name="main") as tree,
        pytest.raises(UsageError, match=r"no script 'new\.py' in main"),
    ):
        contender_in(tree, command_in(["new.py"]), here=here)


def test_a_script_outside_would_be_the_same_on_both_sides(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("")
    here = working_tree(repository)
    with pytest.raises(UsageError, match="both sides would run the same file"):
        contender_in(here, command_in([str(tmp_path / "other.py")]), here=here)


@pytest.mark.parametrize("words", [[], ["-m"], ["--fast"]])
def test_words_that_name_no_program_are_refused(words: list[str]) -> None:
    with pytest.raises(UsageError):
        command_in(words)


class TestForeignModules:
    @staticmethod
    def find(
        imported: dict[str, str], own: Path, other: Path | None = None, files: tuple[str, ...] = ()
    ) -> list[str]:
        found = find_foreign_modules(imported, own=own, other=other or own.parent / "other", files=files)
        return [name for name, _ in found]

    def test_modules_of_its_own_tree_are_fine(self, tmp_path: Path) -> None:
        own = tmp_path / "own"
        imported = {"__main__": str(own / "train.py"), "model": str(own / "model.py")}
        assert self.find(imported, own, files=("train.py", "model.py")) == []

    def test_an_editable_install_of_the_other_tree_is_found(self, tmp_path: Path) -> None:
        other = tmp_path / "other"
        imported = {"model.layers": str(other / "src" / "model" / "layers.py")}
        assert self.find(imported, tmp_path / "own", other) == ["model.layers"]

    @pytest.mark.parametrize(
        ("module", "installed", "in_the_tree"),
        [
            ("model", "model/__init__.py", "src/model/__init__.py"),
            ("model.core", "model/core.py", "src/model/core.py"),
            ("tool", "tool.py", "src/tool.py"),
            # A namespace package has no file of its own, but its modules have.
            ("space.core", "space/core.py", "space/core.py"),
            ("mono.core", "mono/core.py", "packages/mono/mono/core.py"),
            ("test", "test/__init__.py", "test/__init__.py"),
            ("plain.nets.core", "plain/nets/core.py", "src/plain/nets/core.py"),
            ("space.part", "space/part/__init__.py", "lib/space/part/__init__.py"),
        ],
    )
    def test_an_installed_copy_of_what_the_tree_has_is_found(
        self, tmp_path: Path, module: str, installed: str, in_the_tree: str
    ) -> None:
        files = (in_the_tree, "jobs/train.py", "packages/mono/mono/__init__.py", "src/model/__init__.py")
        imported = {
            module: f"/usr/lib/python3/site-packages/{installed}",
            "numpy": "/usr/lib/numpy/__init__.py",
        }
        assert self.find(imported, tmp_path / "own", files=files) == [module]

    def test_another_module_of_the_same_last_name_is_not_it(self, tmp_path: Path) -> None:
        imported = {"numpy.core": "/usr/lib/numpy/core.py", "utils": "/usr/lib/utils.py"}
        files = ("src/model/__init__.py", "src/model/core.py", "src/model/utils.py")
        assert self.find(imported, tmp_path / "own", files=files) == []

    def test_an_environment_inside_of_the_tree_is_no_project_code(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = tmp_path / "other"
        monkeypatch.setattr("sys.prefix", str(other / ".venv"))
        imported = {"requests": str(other / ".venv" / "lib" / "requests" / "__init__.py")}
        assert self.find(imported, tmp_path / "own", other) == []

    def test_the_files_of_a_tree_are_without_environments_and_other_repositories(
        self, tmp_path: Path
    ) -> None:
        for name in (
            "train.py",
            "src/model/core.py",
            ".venv/lib/x.py",
            "env/lib/y.py",
            "env/pyvenv.cfg",
            "conda/lib/z.py",
            "conda/conda-meta/history",
            "clones/flash/.git/HEAD",
            "clones/flash/src/flash/__init__.py",
            "libs/submodule/.git",
            "libs/submodule/x.py",
            "src/notes.txt",
        ):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("")
        assert python_files(tmp_path) == {"train.py", "src/model/core.py"}
