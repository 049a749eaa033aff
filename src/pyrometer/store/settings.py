"""The settings a project keeps in its pyproject.toml."""

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pyrometer.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What ``[tool.pyrometer.run]`` says about ``pyrometer run``; its options overrule it."""

    output: str | None = None
    """The run file, or the folder for it; relative to the working directory, like ``-o``."""
    top: int = 20
    quiet: bool = False
    report: bool = True


_ALLOWED = {
    "output": "a file or folder name in quotes",
    "top": "a whole number from 1",
    "quiet": "true or false",
    "report": "true or false",
}


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
    for key, value in settings.items():
        _check_setting(path, key, value)
    return RunSettings(**settings)


def _check_table(path: Path, name: str, value: object) -> None:
    if not isinstance(value, dict):
        raise UsageError(f"{path}: {name} is {value!r}, but must be a table: write [tool.pyrometer.run]")


def _check_setting(path: Path, key: str, value: Any) -> None:
    where = f"{path}: [tool.pyrometer.run]"
    if key not in _ALLOWED:
        near = get_close_matches(key, _ALLOWED, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"allowed: {', '.join(_ALLOWED)}"
        raise UsageError(f"{where} has no key {key!r} (value {value!r}); {hint}")
    match key:
        case "output":
            usable = isinstance(value, str) and value != ""
        case "top":
            usable = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        case _:
            usable = isinstance(value, bool)
    if not usable:
        raise UsageError(f"{where} {key} is {value!r}, but must be {_ALLOWED[key]}")
