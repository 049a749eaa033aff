"""The machine and the interpreter, as a run records them."""

import gc
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from pyrometer.machine.cgroup import cpu_quota_cores, memory_limit_bytes
from pyrometer.machine.numerics import loaded_blas, thread_variables, torch_threads
from pyrometer.record.run import Machine, Software

_T = TypeVar("_T")


def collect_machine() -> Machine:
    """The computer this process runs on; what cannot be found out is ``None``."""
    import psutil

    processor = _processor()
    return Machine(
        system=_system(),
        architecture=platform.machine(),
        cpu_model=processor.model,
        cpu_flags=processor.flags,
        physical_cores=_known(lambda: psutil.cpu_count(logical=False)),
        logical_cores=_known(lambda: psutil.cpu_count(logical=True)),
        usable_cores=usable_cores(),
        memory_bytes=_smaller(_known(lambda: psutil.virtual_memory().total), memory_limit_bytes()),
    )


def collect_software() -> Software:
    """The interpreter, its garbage collector, and the packages it has loaded: versions, BLAS, threads.

    Runs inside the user's program at its end, so it imports nothing and asks modules only
    for what they already hold; only torch is asked to describe itself.
    """
    return Software(
        python_version=platform.python_version(),
        python_implementation=platform.python_implementation(),
        garbage_collector=f"on {gc.get_threshold()}" if gc.isenabled() else "off",
        packages=_loaded_packages(),
        blas=loaded_blas(),
        torch_threads=torch_threads(),
        thread_variables=thread_variables(os.environ),
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


class _Processor(NamedTuple):
    """What the system tells of the first processor."""

    model: str | None
    flags: tuple[str, ...] | None


def cpu_model() -> str | None:
    """The processor's name, as the system tells it."""
    return _processor().model


def _processor() -> _Processor:
    if sys.platform == "darwin":
        features = _known(lambda: _sysctl("hw.optional"))
        return _Processor(
            model=_known(lambda: _sysctl("-n", "machdep.cpu.brand_string")) or None,
            flags=None if features is None else flags_in_sysctl(features),
        )
    cpuinfo = _known(lambda: Path("/proc/cpuinfo").read_text(errors="replace")) or ""
    return _Processor(model=cpu_model_in(cpuinfo), flags=cpu_flags_in(cpuinfo))


def cpu_model_in(cpuinfo: str) -> str | None:
    """The processor's name in the text of ``/proc/cpuinfo``; 64-bit ARM kernels give none."""
    fields = _fields_in(cpuinfo)
    return fields.get("model name") or fields.get("Model") or fields.get("cpu model") or None


def cpu_flags_in(cpuinfo: str) -> tuple[str, ...] | None:
    """What the first processor in the text of ``/proc/cpuinfo`` can do, in order; None: not told."""
    fields = _fields_in(cpuinfo)
    told = fields.get("flags") or fields.get("Features") or fields.get("features") or fields.get("isa")
    return tuple(sorted(set(told.split()))) if told else None


def flags_in_sysctl(features: str) -> tuple[str, ...] | None:
    """The same in what macOS lists as ``hw.optional.arm.FEAT_DotProd: 1``."""
    pairs = (line.partition(": ") for line in features.splitlines())
    return (
        tuple(sorted({name.removeprefix("hw.optional.") for name, _, value in pairs if value == "1"})) or None
    )


def _fields_in(cpuinfo: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), " ".join(value.split()))
    return fields


def _sysctl(*arguments: str) -> str:
    command = ["/usr/sbin/sysctl", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=2, check=True).stdout.strip()


def _known(ask: Callable[[], _T | None]) -> _T | None:
    """The answer, or ``None`` where the system does not give one: facts never end a program."""
    try:
        return ask()
    except (OSError, subprocess.SubprocessError, NotImplementedError):
        return None


def _smaller(one: int | None, other: int | None) -> int | None:
    return min((number for number in (one, other) if number is not None), default=None)
