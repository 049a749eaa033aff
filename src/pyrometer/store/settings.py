"""The settings a project keeps in its pyproject.toml."""

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeGuard

from pyrometer.errors import UsageError
from pyrometer.record.torch_run import MAX_FIRST_STEPS

DEFAULT_OPS = 5
MAX_OPS = 1_000

Window = tuple[int, int | None]
"""The steps to record: the first, and the first not to, or None for all from there on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What ``[tool.pyrometer.run]`` says about ``pyrometer run``; its options overrule it."""

    output: str | None = None
    """The run file, or the folder for it; relative to the working directory, like ``-o``."""
    top: int = 20
    quiet: bool = False
    report: bool = True
    live: bool | None = None
    """Whether to show a line of progress; None: where that is of use."""
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
    "live": "true or false",
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
    try:
        folder = folder.absolute()
    except FileNotFoundError:  # the working directory has been deleted, and belongs to nothing
        return RunSettings()
    for candidate in (folder, *folder.parents):
        path = candidate / "pyproject.toml"
        if path.is_file():
            return _parse(path)
    return RunSettings()


def _parse(path: Path) -> RunSettings:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except RecursionError:
        raise UsageError(f"{path}: is not valid TOML: nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{path}: is not valid TOML: {error}") from None
    tool = document.get("tool", {})
    section = tool.get("pyrometer", {}) if isinstance(tool, dict) else {}
    _check_table(path, "tool.pyrometer", section)
    for key in section:
        if key != "run":
            advice = "the settings of pyrometer run belong in [tool.pyrometer.run]"
            raise UsageError(f"{path}: [tool.pyrometer] has no key {key!r}; {advice}")
    settings = section.get("run", {})
    _check_table(path, "tool.pyrometer.run", settings)
    return RunSettings(**{key: _checked(path, key, value) for key, value in settings.items()})


def _check_table(path: Path, name: str, value: object) -> None:
    if not isinstance(value, dict):
        raise UsageError(f"{path}: {name} is {value!r}, but must be a table: write [tool.pyrometer.run]")


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
