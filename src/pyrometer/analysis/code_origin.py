"""Whose code a function is, told from the path of its file."""

import re
from enum import Enum

from pyrometer.record.run import Program


class Origin(Enum):
    """Whose code it is."""

    OWN = "own code"
    TORCH = "torch"
    LIBRARY = "library"
    STDLIB = "standard library"
    PROFILER = "the profiler itself"


_INSTALLED = re.compile(r"/(?:site|dist)-packages/")
_STDLIB = re.compile(r"/(?:lib|lib64|Lib|Python\.framework/.*)/python3\.?\d*t?/|/lib/python3\d+\.zip/")
_FROZEN = re.compile(r"<frozen (.+)>")
_PROFILER = re.compile(r"/pyrometer/(?:_native|_startup|capture|session\.py|decorator\.py|__init__\.py)")
_TORCH_PACKAGES = frozenset({"torch", "functorch", "torchgen"})


class CodePlaces:
    """Tells the program's own code, which is below its folder, from that of others."""

    def __init__(self, program: Program) -> None:
        script = program.argv[0] if program.argv else ""
        here = program.working_directory.rstrip("/")
        script_folder = script.rpartition("/")[0] if script.startswith("/") else _joined(here, script)
        self._folders = tuple(dict.fromkeys(f"{folder}/" for folder in (script_folder, here) if folder))

    def origin(self, file: str) -> Origin:
        """Whose code a file is."""
        if _PROFILER.search(file):
            return Origin.PROFILER
        if _FROZEN.fullmatch(file):
            return Origin.STDLIB
        installed = _after(_INSTALLED, file)
        if installed is not None:
            package = installed.partition("/")[0].removesuffix(".py")
            return Origin.TORCH if package in _TORCH_PACKAGES else Origin.LIBRARY
        if file.startswith(self._folders):
            return Origin.OWN
        if _STDLIB.search(file):
            return Origin.STDLIB
        # Made by exec or in a notebook, or named as on the command line.
        return Origin.LIBRARY if file.startswith("/") else Origin.OWN

    def module(self, file: str) -> str:
        """The module in a file, as it is imported: ``torch.nn.modules.linear``."""
        frozen = _FROZEN.fullmatch(file)
        if frozen is not None:
            return frozen[1]
        below = _after(_INSTALLED, file) or self._below_own(file) or _after(_STDLIB, file)
        path = below or file.rpartition("/")[2]
        return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def _below_own(self, file: str) -> str | None:
        return next((file[len(folder) :] for folder in self._folders if file.startswith(folder)), None)


def _joined(folder: str, script: str) -> str:
    """The folder of a script that is named from ``folder``, as far as that needs no look at the disk."""
    inner = script.removeprefix("./").rpartition("/")[0]
    return folder if not inner or inner.startswith("..") else f"{folder}/{inner}"


def _after(pattern: re.Pattern[str], file: str) -> str | None:
    found = None
    for found in pattern.finditer(file):  # noqa: B007 - the last one counts
        pass
    return None if found is None else file[found.end() :]
