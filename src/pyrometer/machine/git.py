"""The commit a program's source stands at."""

import os
import shutil
import subprocess
from pathlib import Path

from pyrometer.record.run import GitState

_TIMEOUT_S = 2

# Set inside a git hook, where they would point us at that repository instead of the folder's.
_REPOSITORY_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")


def git_environment() -> dict[str, str]:
    """The environment for a git that is to look at a folder, and neither to ask nor to write in passing."""
    environment = {name: value for name, value in os.environ.items() if name not in _REPOSITORY_VARIABLES}
    return environment | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}


def git_state(folder: Path) -> GitState | None:
    """The commit and branch checked out in the folder, and whether tracked files differ from it.

    ``None`` without git, outside a repository, in a bare one, before the first commit, where
    git refuses (a folder of another owner) and when it takes longer than two seconds. Files
    git does not know do not count as changes: our own run files are such.
    """
    git = shutil.which("git")
    if git is None:
        return None
    command = [git, "-C", str(folder)]
    # A status with a monitor configured may start a daemon that outlives us.
    command += ["-c", "core.fsmonitor=false"]
    command += ["status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    try:
        answer = subprocess.run(
            command,
            env=git_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return _parse_status(answer.stdout.decode(errors="replace"))


def _parse_status(status: str) -> GitState | None:
    header: dict[str, str] = {}
    dirty = False
    for line in status.splitlines():
        if line.startswith("# "):
            name, _, value = line.removeprefix("# ").partition(" ")
            header[name] = value
        else:
            dirty = True
    commit = header.get("branch.oid", "(initial)")
    if commit == "(initial)":
        return None
    branch = header.get("branch.head", "(detached)")
    return GitState(commit=commit, branch=None if branch == "(detached)" else branch, dirty=dirty)
