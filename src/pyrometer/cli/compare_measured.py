"""``pyrometer compare --measure`` and ``--rev``: two commands, or two revisions, measured side by side."""

import contextlib
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyrometer.analysis.comparison.model import Comparison, Doubt
from pyrometer.analysis.identity import Comparability, Difference, Level, Weight, compare_identities
from pyrometer.analysis.measured import build_measured, judge_change
from pyrometer.cli.measuring import (
    ProgressLine,
    bytecode_alike,
    end_cleanly_on_termination,
    tell_of_file_systems,
)
from pyrometer.errors import UsageError
from pyrometer.experiment.experiment import TIMED_OTHERWISE, Conditions, Contender, Experiment
from pyrometer.experiment.gating import Rule
from pyrometer.experiment.paced_process import THREAD_VARIABLES, Side
from pyrometer.experiment.pairs import BASELINE, CANDIDATE
from pyrometer.experiment.planning import Wanted
from pyrometer.experiment.sides import command_in, contender_in
from pyrometer.experiment.worktrees import checked_out, commit_of, working_tree

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = re.compile(r"python[0-9.]*")
_OWN_NAMES = frozenset({"python", "python3", f"python3.{sys.version_info.minor}"})
_INTENDED = frozenset({"program", "inputs"})
"""What two commands differ in on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """How is measured."""

    allowed: frozenset[str]
    most_pairs: int
    threads: int | None
    are_threads_given: bool = False
    """Whether the user said how many."""
    links: Sequence[str] = ()
    seed: int | None = None


def measure_commands(before: str, after: str, folder: Path, measuring: Measuring) -> Comparison:
    """Two commands, each of which runs a Python program in the current folder."""
    end_cleanly_on_termination()
    sides = [_contender(text, name, folder) for text, name in ((before, "A"), (after, "B"))]
    if not measuring.are_threads_given and any(_names_threads(one.side.variables) for one in sides):
        # With one thread for the other, all of them would be kept on one core.
        measuring = replace(measuring, threads=None)
    return _measure(sides[0], sides[1], measuring, intended=_INTENDED)


def measure_revisions(
    revisions: Sequence[str], words: Sequence[str], folder: Path, measuring: Measuring
) -> Comparison:
    """One program at two revisions; with one, the working tree is the other."""
    if len(revisions) > 2:
        raise UsageError(f"--rev is given {len(revisions)} times; name one revision, or two")
    end_cleanly_on_termination()
    here = working_tree(folder)
    command = command_in(words)
    commits = [commit_of(folder, revision) for revision in revisions]
    with contextlib.ExitStack() as opened:
        trees = [
            opened.enter_context(checked_out(here, commit, name=revision, links=measuring.links))
            for commit, revision in zip(commits, revisions, strict=True)
        ]
        before, after = (*trees, here)[:2]
        tell_of_file_systems([before.root, after.root])
        bytecode = opened.enter_context(bytecode_alike([before.root, after.root]))
        return _measure(
            contender_in(before, command, here=here),
            contender_in(after, command, here=here),
            measuring,
            bytecode=bytecode,
        )


def _measure(
    before: Contender,
    after: Contender,
    measuring: Measuring,
    *,
    intended: frozenset[str] = frozenset(),
    bytecode: Path | None = None,
) -> Comparison:
    conditions = Conditions(
        wanted=Wanted(threads=measuring.threads),
        allowed=measuring.allowed | intended,
        seed=secrets.randbits(32) if measuring.seed is None else measuring.seed,
        bytecode=bytecode,
    )
    line = ProgressLine()
    experiment = Experiment(before, after, conditions, tell=line.show)
    try:
        for look in Rule(most_pairs=measuring.most_pairs).looks:
            _, doubt = judge_change(experiment.measure(look.pairs), look)
            if doubt is not Doubt.UNDECIDED:
                break
    finally:
        line.clear()
    comparability = _comparability(experiment, conditions, (before, after))
    return build_measured(experiment.trials(), look, comparability)


def _comparability(
    experiment: Experiment, conditions: Conditions, sides: tuple[Contender, Contender]
) -> Comparability:
    """Both ran here and now: only what differs in the program, its software and its variables is told."""
    found = compare_identities(
        experiment.identities[BASELINE],
        experiment.identities[CANDIDATE],
        allowed=conditions.allowed,
        sides=("A", "B"),
    )
    told = [
        one for one in found.differences if one.weight is not Weight.TREND_ONLY or one.name in TIMED_OTHERWISE
    ]
    before, after = (
        shlex.join(f"{name}={value}" for name, value in sorted(one.side.variables.items())) or "none set"
        for one in sides
    )
    # Those of a tree of ours are set for it, and nobody has typed them.
    if all(one.tree is None for one in sides) and before != after:
        told.append(
            Difference(
                name="variables",
                before=before,
                after=after,
                weight=Weight.NOTED,
                sentence=f"variables: {before} (A), {after} (B)",
            )
        )
    return Comparability(level=Level.COMPARABLE, differences=tuple(told))


def _contender(text: str, name: str, folder: Path) -> Contender:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{name} is {text!r}, which is no command: {error}") from None
    variables: dict[str, str] = {}
    while words and _ASSIGNMENT.match(words[0]):
        variable, _, value = words.pop(0).partition("=")
        variables[variable] = value
    named = _names_threads(variables)
    if named:
        # Libraries differ in which of them they follow: torch does not follow OMP's where MKL's is set.
        variables = dict.fromkeys(THREAD_VARIABLES, variables[named[0]]) | variables
    interpreter = _interpreter(words, name, variables)
    problem = _problem_of(words, folder)
    if problem is not None:
        raise UsageError(
            f"{name} is {text!r}, but {problem}; a command is [VARIABLE=value] [python] SCRIPT ARGS, or "
            "-m MODULE ARGS"
        )
    command = command_in(words)
    side = Side(
        name=text,
        arguments=tuple(words),
        folder=folder,
        program_folder=folder if command.script is None else (folder / command.script).resolve().parent,
        variables=variables,
        interpreter=interpreter,
    )
    return Contender(side=side, tree=None)


def _names_threads(variables: Mapping[str, str]) -> list[str]:
    return [name for name in THREAD_VARIABLES if name in variables]


def _problem_of(words: Sequence[str], folder: Path) -> str | None:
    """Why these words behind ``python`` run nothing; None where they may."""
    if not words:
        return "that runs nothing"
    first, *others = words
    if first == "-m":
        return None if others else "-m needs the name of a module"
    if first.startswith("-"):
        return f"{first!r} is no script"
    return None if (folder / first).is_file() else f"there is no script {first!r}"


def _interpreter(words: list[str], name: str, variables: Mapping[str, str]) -> str:
    """Take the interpreter off the words, if they begin with one: our own, unless they name another."""
    if not words or not _PYTHON.fullmatch(Path(words[0]).name):
        return sys.executable
    first = words.pop(0)
    if first in _OWN_NAMES:
        return sys.executable
    found = first if os.sep in first else shutil.which(first)
    if found is None:
        raise UsageError(f"{name} is run by {first!r}, which is not on the PATH; name its path, or another")
    _check_interpreter(str(Path(found).absolute()), name, variables)
    return found


def _check_interpreter(interpreter: str, name: str, variables: Mapping[str, str]) -> None:
    """Raise where the profiler cannot start there: the program would run to its end, unseen."""
    # Last on the path, as when the program is started: the interpreter's own comes first.
    root = Path(__file__).parents[2]
    probe = f"import sys; sys.path.append({str(root)!r}); import pyrometer.session"
    try:
        tried = subprocess.run(
            [interpreter, "-c", probe],
            cwd=os.sep,  # which -c has python look for modules in
            env={**os.environ, **variables},
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise UsageError(
            f"{name} is run by {interpreter!r}, which cannot be started: {error.strerror}"
        ) from None
    if tried.returncode:
        said = tried.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(
            f"{name} is run by {interpreter!r}, in which Pyrometer cannot start "
            f"({said[-1] if said else f'exit code {tried.returncode}'}); install it there: "
            f"{interpreter} -m pip install pyrometer"
        )
