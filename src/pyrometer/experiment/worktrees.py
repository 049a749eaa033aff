"""The code of another commit, checked out beside the working tree."""

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyrometer.errors import UsageError
from pyrometer.experiment.scratch import PREFIX, scratch_folder
from pyrometer.machine.git import git_environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A tree of files of one repository: the working tree, or a commit's."""

    name: str
    root: Path
    folder: Path
    """Where in it programs are run: as far down as the user stands in the working tree."""
    commit: str | None
    is_dirty: bool
    linked: frozenset[Path] = frozenset()
    """What of the working tree it has by links, as the user asked."""
    extensions: Path | None = None
    """Where torch builds what a program has it compile, gone with the tree; None: where it always does."""
    why_no_commit: str = ""
    """Where there is none: what git says."""


def working_tree(folder: Path) -> Tree:
    """The tree the user stands in; without git, or a commit, it is the folder alone."""
    try:
        root = Path(_git(folder, "rev-parse", "--show-toplevel"))
    except UsageError as error:
        return _no_commit(folder, why=str(error))
    try:
        commit = _git(folder, "rev-parse", "HEAD")
    except UsageError:
        return _no_commit(folder, why="its repository has no commit yet")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return Tree(name="working tree", root=root, folder=folder, commit=commit, is_dirty=bool(changed))


def _no_commit(folder: Path, *, why: str) -> Tree:
    return Tree(
        name="working tree", root=folder, folder=folder, commit=None, is_dirty=True, why_no_commit=why
    )


_HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def recorded_commit(folder: Path, recorded: str) -> str:
    """The same of what a file says: a whole hash, and no name that may mean something else tomorrow."""
    if not _HASH.fullmatch(recorded):
        raise UsageError(f"the baseline's commit is {recorded!r}, which is none; save it again")
    return commit_of(folder, recorded)


def commit_of(folder: Path, revision: str) -> str:
    """The commit that a revision means in the folder's repository."""
    if not revision or revision.startswith("-"):
        raise UsageError(f"{revision!r} is no revision; name a branch, a tag or a commit")
    try:
        return _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except UsageError:
        here = working_tree(folder)
        if here.commit is None:
            raise UsageError(
                f"there is no revision {revision!r} to run in {folder}: {here.why_no_commit}"
            ) from None
        raise UsageError(
            f"there is no revision {revision!r} in this repository; name a branch, a tag or a commit"
            " (in CI, fetch it first: a shallow clone has only one)"
        ) from None


@contextlib.contextmanager
def checked_out(here: Tree, commit: str, *, name: str, links: Sequence[str] = ()) -> Iterator[Tree]:
    """The commit in a folder of its own, gone at the end; ``links`` are untracked files that it needs too.

    The folder is far from the working tree, so that nothing of that is found by going upwards.
    """
    if here.commit is None:
        raise UsageError(f"there is no other revision to run in {here.folder}: {here.why_no_commit}")
    with scratch_folder() as parent:
        try:
            yield _check_out(here, commit, parent / here.root.name, name=name, links=links)
        finally:
            _forget_worktree(here, parent / here.root.name)


def _check_out(here: Tree, commit: str, root: Path, *, name: str, links: Sequence[str]) -> Tree:
    _forget_abandoned(here)
    _git(
        here.folder,
        # Hooks of the user's are for a checkout of the user's.
        "-c",
        f"core.hooksPath={os.devnull}",
        "worktree",
        "add",
        "--quiet",
        "--detach",
        str(root),
        commit,
    )
    folder = root / here.folder.relative_to(here.root)
    if not folder.is_dir():
        raise UsageError(f"{name} has no folder {here.folder.relative_to(here.root)}")
    linked = frozenset(path for link in links for path in _link(here, root, link))
    return Tree(
        name=name,
        root=root,
        folder=folder,
        commit=commit,
        is_dirty=False,
        linked=linked,
        # Beside the tree: what is in it is the commit's.
        extensions=root.with_name(f"{root.name}.torch_extensions"),
    )


def _forget_abandoned(here: Tree) -> None:
    """Of those that were killed, whose folders are gone by now.

    By name, and never by ``git worktree prune``: that forgets the user's own too whose folders cannot be
    seen just now, as on a drive that is not mounted, and with them what was staged there.
    """
    for line in _git(here.folder, "worktree", "list", "--porcelain").splitlines():
        word, _, path = line.partition(" ")
        if word == "worktree" and Path(path).parent.name.startswith(PREFIX) and not Path(path).exists():
            _forget_worktree(here, Path(path))


def _forget_worktree(here: Tree, root: Path) -> None:
    with contextlib.suppress(UsageError):
        # Twice: one that was interrupted while it was made is still locked.
        _git(here.folder, "worktree", "remove", "--force", "--force", str(root))


def _link(here: Tree, root: Path, link: str) -> list[Path]:
    """Link it into the other tree, or all that git does not know of a folder both have; their real paths."""
    source = Path(os.path.normpath(here.folder / link))
    if not source.exists():
        raise UsageError(f"there is no {link!r} to link into the other revision's folder")
    if not source.is_relative_to(here.root):
        raise UsageError(f"{link!r} is outside of the repository, where both revisions find it anyway")
    target = root / source.relative_to(here.root)
    if (source / ".git").exists():
        raise UsageError(
            f"{link!r} is a repository of its own, such as a submodule: both revisions would use the same"
        )
    unknown = _unknown_to_git(here, source) if target.is_dir() else [source]
    linked = [path.resolve() for one in unknown for path in _link_missing(one, here.root, root)]
    if not linked:
        raise UsageError(f"{link!r} is tracked by git: the other revision has its own")
    return linked


def _link_missing(path: Path, root: Path, other: Path) -> Iterator[Path]:
    """Link it into the other tree, or all of a folder that this has as well; each that is linked there.

    But no bytecode, since each side has that of its own code, and no other repository.
    """
    if path.name == "__pycache__" or (path / ".git").exists():
        return
    there = other / path.relative_to(root)
    if there.resolve() == path.resolve():
        yield path  # by another link
    elif there.is_dir() and path.is_dir():
        for inner in sorted(path.iterdir()):
            yield from _link_missing(inner, root, other)
    elif not there.exists() and not there.is_symlink():
        there.parent.mkdir(parents=True, exist_ok=True)
        there.symlink_to(path)
        yield path


def _unknown_to_git(here: Tree, folder: Path) -> list[Path]:
    """What of the folder is not tracked, ignored or not; a folder without anything tracked is one."""
    inner = str(folder.relative_to(here.root))
    listed = _git(here.root, "--literal-pathspecs", "ls-files", "-z", "--others", "--directory", "--", inner)
    return [here.root / name for name in listed.split("\0") if name]


def _git(folder: Path, *arguments: str) -> str:
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - the user's own git
            env=git_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
    except FileNotFoundError:
        raise UsageError("there is no git on the path, which other revisions come from") from None
    except subprocess.CalledProcessError as error:
        said = [line.strip() for line in error.stderr.decode(errors="replace").splitlines()]
        raise UsageError(
            f"git {' '.join(arguments[-4:])}: {' '.join(filter(None, said)) or 'failed'}"
        ) from None
    return os.fsdecode(answer.stdout).strip()
