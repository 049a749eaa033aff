"""The machine and the interpreter, as a run records them."""

import gc
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pyrometer.machine.cgroup import cpu_quota_cores, memory_limit_bytes
from pyrometer.record.run import Machine, Software

_T = TypeVar("_T")


def collect_machine() -> Machine:
    """The computer this process runs on; what cannot be found out is ``None``."""
    import psutil

    return Machine(
        system=_system(),
        architecture=platform.machine(),
        cpu_model=cpu_model(),
        physical_cores=_known(lambda: psutil.cpu_count(logical=False)),
        logical_cores=_known(lambda: psutil.cpu_count(logical=True)),
        usable_cores=usable_cores(),
        memory_bytes=_smaller(_known(lambda: psutil.virtual_memory().total), memory_limit_bytes()),
    )


def collect_software() -> Software:
    """The interpreter, its garbage collector, and the version of each package it has loaded.

    Runs inside the user's program at its end, so it imports nothing and asks modules only
    for what they already hold.
    """
    return Software(
        python_version=platform.python_version(),
        python_implementation=platform.python_implementation(),
        garbage_collector=f"on {gc.get_threshold()}" if gc.isenabled() else "off",
        packages=_loaded_packages(),
    )


def usable_cores() -> int | None:
    """Cores this process may keep busy: its affinity mask, and a container's quota rounded up."""
    if sys.platform == "linux":
        cores: int | None = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count()
    quota = cpu_quota_cores()
    return _smaller(cores, None if quota is None else max(1, math.ceil(quota)))


def _loaded_packages() -> dict[str, str]:
    packages: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        if "." in name or name in sys.stdlib_module_names or name in ("__main__", "pyrometer"):
            continue
        # Straight from the dictionary: some modules compute attributes, or import, when asked.
        # What stands in sys.modules need not be a module at all.
        version = getattr(module, "__dict__", {}).get("__version__")
        if isinstance(version, str):
            # torch's version is a str of a class of its own.
            packages[name] = str.__str__(version)
    return dict(sorted(packages.items()))


def _system() -> str:
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    kernel = f"{platform.system()} {platform.release()}"
    distribution = _known(lambda: platform.freedesktop_os_release().get("PRETTY_NAME"))
    return kernel if distribution is None else f"{kernel}, {distribution}"


def cpu_model() -> str | None:
    """The processor's name, as the system tells it."""
    if sys.platform == "darwin":
        return _known(_cpu_brand)
    return _known(lambda: cpu_model_in(Path("/proc/cpuinfo").read_text(errors="replace")))


def cpu_model_in(cpuinfo: str) -> str | None:
    """The processor's name in the text of ``/proc/cpuinfo``; 64-bit ARM kernels give none."""
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), " ".join(value.split()))
    return fields.get("model name") or fields.get("Model") or fields.get("cpu model") or None


def _cpu_brand() -> str | None:
    command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=2, check=True)
    return answer.stdout.strip() or None


def _known(ask: Callable[[], _T | None]) -> _T | None:
    """The answer, or ``None`` where the system does not give one: facts never end a program."""
    try:
        return ask()
    except (OSError, subprocess.SubprocessError, NotImplementedError):
        return None


def _smaller(one: int | None, other: int | None) -> int | None:
    return min((number for number in (one, other) if number is not None), default=None)
