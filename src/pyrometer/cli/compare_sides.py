"""From what the user named to the runs of both sides."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyrometer.analysis.baseline import key_of
from pyrometer.analysis.comparison.compare import find_unlike
from pyrometer.errors import RunFileError, UsageError
from pyrometer.experiment.errors import RefusedError
from pyrometer.record.run import Run
from pyrometer.report.safe_text import escape_controls
from pyrometer.store.baseline_files import load_saved_runs
from pyrometer.store.run_folders import read_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsOfASide:
    """The runs of one side, at least one, and the files they are from."""

    name: str
    runs: tuple[Run, ...]
    paths: tuple[Path, ...]


_Saved = Mapping[str, tuple[Run, ...]]


def find_sides(
    before: str, after: str, *, folder: Path, allowed: frozenset[str]
) -> tuple[RunsOfASide, RunsOfASide]:
    """The runs of both sides; of a baseline those of the program that the other side is of."""
    found = [_look_up(name, folder) for name in (before, after)]
    keys = [{key_of(side.runs[0].program)} if isinstance(side, RunsOfASide) else set(side) for side in found]
    sides = [
        one if isinstance(one, RunsOfASide) else _choose(name, one, others)
        for name, one, others in zip((before, after), found, reversed(keys), strict=True)
    ]
    for letter, side in zip("AB", sides, strict=True):
        unlike = find_unlike(side.runs, allowed=allowed)
        if unlike is not None:
            index, sentence = unlike
            which = side.paths[index] if side.paths else f"run {index + 1}"
            raise RefusedError(
                f"REFUSED: the runs of {letter} ({side.name}) are not of one thing: {which} differs from the "
                f"first: {sentence}. Put them into a folder each"
            )
    _check_each_is_another(sides)
    return sides[0], sides[1]


def _check_each_is_another(sides: Sequence[RunsOfASide]) -> None:
    """A copy of a run is no further process, and with itself a run cannot be compared."""
    # Only what began at the same moment can be the same run: a thousand runs are not compared in pairs.
    known: dict[str, list[tuple[int, int]]] = {}
    for at, side in enumerate(sides):
        for index, run in enumerate(side.runs):
            places = known.setdefault(run.started_at, [])
            for earlier, place in places:
                if run == sides[earlier].runs[place]:
                    raise UsageError(_given_twice(sides, (earlier, place), (at, index)))
            places.append((at, index))


def _given_twice(sides: Sequence[RunsOfASide], first: tuple[int, int], second: tuple[int, int]) -> str:
    where = " and ".join(_place(sides[at], index) for at, index in (first, second))
    if first[0] == second[0]:
        letter, side = "AB"[first[0]], sides[first[0]]
        return f"a run of {letter} ({side.name}) is given twice, as {where}; name each run once"
    return (
        f"the same run is on both sides, as {where}, and with itself it cannot be compared; name two runs, "
        "one of before and one of after"
    )


def _place(side: RunsOfASide, index: int) -> str:
    return str(side.paths[index]) if side.paths else f"run {index + 1} of {side.name}"


def _look_up(name: str, folder: Path) -> RunsOfASide | _Saved:
    """A file or folder of that name, or else the runs of a baseline."""
    path = folder / name
    if not path.exists():
        if path.suffix in {".json", ".gz"}:
            raise UsageError(f"there is no file {name!r}; name a run, a folder of runs or a saved baseline")
        return load_saved_runs(name, folder=folder)
    try:
        found = read_runs(path, tell=_say)
    except RunFileError as error:
        if path.is_dir():
            raise
        return _saved_in_file(name, folder, error)
    return RunsOfASide(name=name, runs=tuple(run for _, run in found), paths=tuple(path for path, _ in found))


def _saved_in_file(name: str, folder: Path, problem: RunFileError) -> _Saved:
    try:
        return load_saved_runs(name, folder=folder)
    except UsageError:
        raise problem from None


def _choose(name: str, saved: _Saved, keys: set[str]) -> RunsOfASide:
    """The one configuration that the other side has too; the only one, where none is the same."""
    common = [key for key in saved if key in keys] or (list(saved) if len(saved) == 1 else [])
    if len(common) != 1:
        which = "is none" if not common else "are several"
        known = ", ".join(repr(key) for key in saved)
        raise UsageError(
            f"in the baseline {name!r} there {which} of the program of the other side (saved: {known}); "
            "name the runs themselves"
        )
    return RunsOfASide(name=f"{name} ({common[0]})", runs=saved[common[0]], paths=())


def _say(text: str) -> None:
    print(f"pyrometer: {escape_controls(text)}", file=sys.stderr, flush=True)
