"""What a container allows its processes: Linux control groups, both versions.

A limit set on any enclosing group binds, so each is read and the smallest counts.
``None`` where there is no limit, or where it cannot be read.
"""

from collections.abc import Iterator
from pathlib import Path


def cpu_quota_cores(root: Path = Path("/")) -> float | None:
    """The CPU time a container may use, in cores: ``1.5`` is three halves of a second a second."""
    quotas: list[float] = []
    for group in _groups(root, controller="cpu"):
        limits = [
            *_read(group / "cpu.max").split(),
            _read(group / "cpu.cfs_quota_us"),
            _read(group / "cpu.cfs_period_us"),
        ]
        numbers = [int(limit) for limit in limits if limit.isdecimal()]
        # Without a limit the quota reads "max" or "-1", and only the period is a number.
        if len(numbers) == 2 and all(numbers):
            quota_us, period_us = numbers
            quotas.append(quota_us / period_us)
    return min(quotas, default=None)


def memory_limit_bytes(root: Path = Path("/")) -> int | None:
    """The memory a container may use; version 1 says "none" with a number near 2**63."""
    return min(
        (
            int(limit)
            for group in _groups(root, controller="memory")
            for limit in (_read(group / "memory.max"), _read(group / "memory.limit_in_bytes"))
            if limit.isdecimal()
        ),
        default=None,
    )


def _groups(root: Path, *, controller: str) -> Iterator[Path]:
    """This process's group and all that enclose it, as folders that may or may not exist."""
    mount = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            base = mount
        elif controller in controllers.split(","):
            base = mount / controller
        else:
            continue
        # Inside a container the path is often the host's; the mount's own root is then the
        # container's group, and it comes last of the enclosing ones.
        group = base / path.lstrip("/")
        yield group
        yield from (parent for parent in group.parents if parent.is_relative_to(base))


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
