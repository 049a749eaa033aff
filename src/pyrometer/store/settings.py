"""The settings a project keeps in its pyproject.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from pyrometer.errors import UsageError
from pyrometer.record.torch_run import MAX_FIRST_STEPS

if TYPE_CHECKING:
    from pyrometer.analysis.codemap.checks import StructureRules
    from pyrometer.analysis.targets import Target

DEFAULT_OPS = 5
MAX_OPS = 1_000

_TABLE = "tool.pyrometer"
_TABLES = ("run", "targets", "map")

Window = tuple[int, int | None]
"""The steps to record: the first, and the first not to, or None for all from there on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What ``[tool.pyrometer.run]`` says about ``pyrometer run``; its options overrule it."""

    output: str | None = None
    """The run file, or the folder for it; relative to the working directory, like ``-o``."""
    top: int | None = None
    """How many rows tables have; None: as many as fit a report to be read."""
    quiet: bool = False
    report: bool = True
    html: bool = False
    """Whether to write the page to look at."""
    live: bool | None = None
    """Whether to show a line of progress; None: where that is of use."""
    history: bool = True
    """Whether to add runs to the user's history."""
    warmup: int | None = None
    """Steps to leave out at the start; None: until they are steady."""
    deep: bool = False
    """Whether to turn on all that costs more than a few percent."""
    ops: int | None = None
    """In so many steps every operator of torch is seen; None: in none, or as ``deep`` says."""
    steps: Window | None = None
    """The steps to record; None: all."""
    sample_hz: float = 100.0
    """How often the program's stacks are looked at; 0: never."""
    native: bool = False
    """Whether the native functions in them are asked for."""
    memory: bool = True
    """Whether to count what is allocated."""
    python_memory: bool = False
    """Whether to count small Python objects too."""


MAX_SAMPLE_HZ = 10_000

_ALLOWED = {
    "output": "a file or folder name in quotes",
    "top": "a whole number from 1",
    "quiet": "true or false",
    "report": "true or false",
    "html": "true or false",
    "live": "true or false",
    "history": "true or false",
    "deep": "true or false",
    "memory": "true or false",
    "python_memory": "true or false",
    "ops": f"a whole number of steps from 0 to {MAX_OPS}",
    "warmup": f"a whole number from 0 to {MAX_FIRST_STEPS}: so many first steps are kept one by one",
    "steps": "A:B with whole numbers, such as '100:200', '100:' or ':200'",
    "sample_hz": f"a number of looks a second from 1 to {MAX_SAMPLE_HZ:,}, or 0 for none",
    "native": "true or false",
}


def parse_steps(name: str, value: object) -> Window:
    """The window ``A:B``: steps from A to just before B, counted from 0; either may be left out.

    ``name`` is what a ``UsageError`` calls the setting.
    """
    first, colon, end = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not (colon and _is_step(first) and _is_step(end)):
        raise UsageError(f"{name} is {value!r}, but must be {_ALLOWED['steps']}")
    window = int(first or 0), int(end) if end else None
    if window[1] is not None and window[1] <= window[0]:
        raise UsageError(f"{name} is {value!r}, which holds no step; end it at {window[0] + 1} or later")
    return window


def check_warmup(name: str, value: object) -> int:
    """The number of steps to leave out at the start, if so many can be."""
    if not _is_whole(value) or not 0 <= value <= MAX_FIRST_STEPS:
        raise UsageError(f"{name} is {value!r}, but must be {_ALLOWED['warmup']}")
    return value


def wants_history(*, asked: bool | None, setting: bool, environment: Mapping[str, str]) -> bool:
    """Whether a run is to be added to the history: the option says, else the environment, else the project.

    In CI only when it is asked for: what is kept there is gone with the machine.
    """
    variable = environment.get("PYROMETER_HISTORY", "")
    if variable not in {"", "0", "1"}:
        raise UsageError(f"PYROMETER_HISTORY is {variable!r}, but must be 0 or 1")
    if asked is None and variable:
        asked = variable == "1"
    in_ci = environment.get("CI", "").lower() not in {"", "0", "false"}
    return (setting and not in_ci) if asked is None else asked


def check_sample_hz(name: str, value: object) -> float:
    """How often a second the program's stacks are to be looked at, if they can be so often."""
    if (
        not isinstance(value, (int, float))
        or isinstance(value, bool)
        or (value != 0 and not 1 <= value <= MAX_SAMPLE_HZ)
    ):
        raise UsageError(f"{name} is {value!r}, but must be {_ALLOWED['sample_hz']}")
    return float(value)


def check_ops(name: str, value: object) -> int:
    """The number of steps whose operators are to be seen."""
    if not _is_whole(value) or not 0 <= value <= MAX_OPS:
        raise UsageError(f"{name} is {value!r}, but must be {_ALLOWED['ops']}")
    return value


def _is_step(text: str) -> bool:
    # A record holds no larger number than one of 18 digits.
    return not text or (text.isascii() and text.isdecimal() and len(text) <= 18)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def load_run_settings(folder: Path) -> RunSettings:
    """The settings of the project the folder belongs to: its nearest pyproject.toml, upwards.

    A setting that cannot be used raises ``UsageError``: ignored, it would change what is
    measured without a word.
    """
    project = _find_project(folder)
    if project is None:
        return RunSettings()
    settings = _read_table(project, "run")
    return RunSettings(**{key: _checked(project, key, value) for key, value in settings.items()})


def load_targets(folder: Path) -> "tuple[Target, ...]":
    """What the project's ``[tool.pyrometer.targets]`` is to reach, found as by ``load_run_settings``."""
    project = _find_project(folder)
    table = {} if project is None else _read_table(project, "targets")
    if not table:
        return ()
    # Each start of a program under the profiler reads settings, and the analysis would be half of its cost.
    from pyrometer.analysis.targets import parse_targets

    return parse_targets(table, where=f"{project}: [{_TABLE}.targets]")


def load_structure_rules(folder: Path) -> "StructureRules":
    """What the project's ``[tool.pyrometer.map]`` asks of its structure."""
    from pyrometer.analysis.codemap.checks import parse_rules

    project = _find_project(folder)
    table = {} if project is None else _read_table(project, "map")
    return parse_rules(table, where=f"{project}: [{_TABLE}.map]")


def _find_project(folder: Path) -> Path | None:
    """The pyproject.toml of the project a folder belongs to."""
    try:
        folder = folder.absolute()
    except FileNotFoundError:  # the working directory has been deleted, and belongs to nothing
        return None
    paths = (candidate / "pyproject.toml" for candidate in (folder, *folder.parents))
    return next((path for path in paths if path.is_file()), None)


def _read_table(path: Path, name: str) -> dict[str, Any]:
    """The table ``[tool.pyrometer.NAME]``; empty where the project does not have it."""
    tool = _read_document(path).get("tool", {})
    section = tool.get("pyrometer", {}) if isinstance(tool, dict) else {}
    _check_table(path, _TABLE, section, write="run")
    for key in section:
        if key not in _TABLES:
            near = get_close_matches(key, _TABLES, n=1)
            advice = "the settings of pyrometer run belong in [tool.pyrometer.run]"
            if near:
                advice = f"did you mean [{_TABLE}.{near[0]}]?"
            raise UsageError(f"{path}: [{_TABLE}] has no key {key!r}; {advice}")
    settings = section.get(name, {})
    _check_table(path, f"{_TABLE}.{name}", settings, write=name)
    return cast("dict[str, Any]", settings)


def _read_document(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except RecursionError:
        raise UsageError(f"{path}: is not valid TOML: nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{path}: is not valid TOML: {error}") from None


def _check_table(path: Path, name: str, value: object, *, write: str) -> None:
    if not isinstance(value, dict):
        raise UsageError(f"{path}: {name} is {value!r}, but must be a table: write [{_TABLE}.{write}]")


def _checked(path: Path, key: str, value: Any) -> Any:
    where = f"{path}: [tool.pyrometer.run]"
    if key not in _ALLOWED:
        near = get_close_matches(key, _ALLOWED, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"allowed: {', '.join(_ALLOWED)}"
        raise UsageError(f"{where} has no key {key!r} (value {value!r}); {hint}")
    match key:
        case "warmup":
            return check_warmup(f"{where} {key}", value)
        case "ops":
            return check_ops(f"{where} {key}", value)
        case "steps":
            return parse_steps(f"{where} {key}", value)
        case "sample_hz":
            return check_sample_hz(f"{where} {key}", value)
        case "output":
            usable = isinstance(value, str) and value != ""
        case "top":
            usable = _is_whole(value) and value >= 1
        case _:
            usable = isinstance(value, bool)
    if not usable:
        raise UsageError(f"{where} {key} is {value!r}, but must be {_ALLOWED[key]}")
    return value
