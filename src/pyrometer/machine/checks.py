"""What works on this machine, and what to do about the rest.

Each check asks and answers; none raises, prints or changes anything.
"""

import importlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pyrometer.machine.facts import usable_cores
from pyrometer.machine.valgrind import HOW_TO_INSTALL

_TIMEOUT_S = 10
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class Status(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at: what was found, and what to do if it is not as it should be."""

    name: str
    status: Status
    found: str
    advice: str = ""
    required: bool = False
    """Whether Pyrometer cannot work without it."""

    @property
    def is_broken(self) -> bool:
        """Whether Pyrometer cannot work here because of this."""
        return self.required and self.status is Status.MISSING


def check_environment() -> list[Check]:
    """Everything that does not concern the recorder itself, what matters most first."""
    return [
        check_python(sys.version_info[:2]),
        check_platform(platform.system()),
        check_compiler(),
        check_working_directory(Path()),
        check_git(),
        check_torch(),
        check_threads(os.environ, usable_cores(), os.cpu_count()),
        check_valgrind(),
        check_gpu(),
    ]


def check_python(version: tuple[int, int]) -> Check:
    """The interpreter: 3.11 is tested, later ones are not."""
    found = f"{'.'.join(map(str, version))} ({platform.python_implementation()})"
    if version < (3, 11):
        return Check(
            name="Python",
            status=Status.MISSING,
            found=found,
            advice="Install Python 3.11 or later.",
            required=True,
        )
    if version > (3, 11):
        advice = "Should work, but is untested: Pyrometer is tested on 3.11."
        return Check(name="Python", status=Status.WARNING, found=found, advice=advice, required=True)
    return Check(name="Python", status=Status.OK, found=f"{found}, tested", required=True)


def check_platform(system: str) -> Check:
    """The operating system: Linux is tested, macOS is not, no other is supported."""
    found = f"{system} {platform.machine()}"
    match system:
        case "Linux":
            return Check(name="platform", status=Status.OK, found=found, required=True)
        case "Darwin":
            advice = "Should work, but is untested: Pyrometer is tested on Linux."
            return Check(name="platform", status=Status.WARNING, found=found, advice=advice, required=True)
        case _:
            advice = "Run it on Linux or macOS; on Windows, inside WSL."
            return Check(name="platform", status=Status.MISSING, found=found, advice=advice, required=True)


def find_compiler() -> str | None:
    """The C compiler an installation from source would use."""
    configured = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    return next(filter(None, map(shutil.which, (*configured[:1], "cc", "gcc", "clang"))), None)


def check_compiler() -> Check:
    """What building the native recorder from source takes."""
    compiler = find_compiler()
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if compiler is None:
        advice = "Only needed to build the native recorder: install gcc or clang."
        return Check(name="C compiler", status=Status.MISSING, found="none found", advice=advice)
    if not header.is_file():
        found = f"{compiler}, but no {header}"
        advice = "Only needed to build the native recorder: install Python's headers (Debian: python3-dev)."
        return Check(name="C compiler", status=Status.WARNING, found=found, advice=advice)
    return Check(name="C compiler", status=Status.OK, found=_first_line(compiler, "--version") or compiler)


def check_working_directory(folder: Path) -> Check:
    """Whether run files can be written where programs are started."""
    try:
        folder = folder.absolute()
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        found = f"{folder} cannot be written to: {error.strerror}"
        advice = "Name a place for run files with: pyrometer run -o FILE"
        return Check(name="working directory", status=Status.WARNING, found=found, advice=advice)
    return Check(name="working directory", status=Status.OK, found=f"{folder} can be written to")


def check_git() -> Check:
    """Whether runs can name the commit they measured."""
    return _check_tool("git", "Only needed to record the program's commit: install git.")


def check_valgrind() -> Check:
    """Whether caches can be simulated."""
    advice = f"Only needed for pyrometer run --cachegrind: {HOW_TO_INSTALL}."
    return _check_tool("valgrind", advice)


def check_torch() -> Check:
    """Whether torch is installed; asked without loading it, which takes seconds."""
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        advice = "Only needed to profile torch programs: pip install 'pyrometer[torch]'"
        return Check(name="torch", status=Status.MISSING, found="not installed", advice=advice)
    return Check(name="torch", status=Status.OK, found=version)


def check_threads(environment: Mapping[str, str], usable: int | None, present: int | None) -> Check:
    """Whether numeric libraries will start as many threads as this process has cores.

    They see the affinity mask by themselves, but not a container's quota.
    """
    settings = {name: environment[name] for name in _THREAD_VARIABLES if name in environment}
    found = ", ".join(f"{name}={value}" for name, value in settings.items()) or "none set"
    cores = f"{usable or 'unknown'} usable cores"
    wanted = [int(value) for value in settings.values() if value.isdecimal()]
    status, advice = Status.OK, ""
    if usable is not None and any(threads > usable for threads in wanted):
        status, advice = (
            Status.WARNING,
            f"More threads than cores slow each other down: set at most {usable}.",
        )
    elif usable is not None and not settings and present is not None and usable < present:
        status = Status.WARNING
        advice = f"Numeric libraries may start {present} threads: set OMP_NUM_THREADS={usable}."
    return Check(name="numeric threads", status=status, found=f"{found}; {cores}", advice=advice)


def check_gpu() -> Check:
    """The NVIDIA GPUs and whether their use can be read."""
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return _check_gpu_by_command()
    try:
        nvml.nvmlInit()
        names = [
            str(nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(index)))
            for index in range(nvml.nvmlDeviceGetCount())
        ]
        nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        return _no_gpu(str(error))
    if not names:
        return _no_gpu("the driver lists none")
    return Check(name="GPU", status=Status.OK, found=", ".join(names))


def _check_gpu_by_command() -> Check:
    command = shutil.which("nvidia-smi")
    names = None if command is None else _run(command, "--query-gpu=name", "--format=csv,noheader")
    if names is None or names.returncode != 0 or not names.stdout.strip():
        return _no_gpu("no nvidia-smi" if command is None else "nvidia-smi lists none")
    found = ", ".join(line.strip() for line in names.stdout.splitlines())
    advice = "To have its use measured: pip install nvidia-ml-py"
    return Check(name="GPU", status=Status.WARNING, found=found, advice=advice)


def _no_gpu(reason: str) -> Check:
    advice = "Nothing to do on a machine without an NVIDIA GPU; else install its driver."
    return Check(name="GPU", status=Status.MISSING, found=f"not available: {reason}", advice=advice)


def _check_tool(name: str, advice: str) -> Check:
    path = shutil.which(name)
    if path is None:
        return Check(name=name, status=Status.MISSING, found="not found", advice=advice)
    version = _first_line(path, "--version")
    if version is None:
        return Check(name=name, status=Status.WARNING, found=f"{path} does not run", advice=advice)
    return Check(name=name, status=Status.OK, found=version)


def _first_line(*command: str) -> str | None:
    answer = _run(*command)
    if answer is None or answer.returncode != 0:
        return None
    return next((line.strip() for line in answer.stdout.splitlines() if line.strip()), None)


def _run(*command: str) -> subprocess.CompletedProcess[str] | None:
    """The finished process; ``None`` if it could not be started or took too long."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
