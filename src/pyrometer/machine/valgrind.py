"""Valgrind on this machine: where it is, which caches it is to model, and how it is called."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from pyrometer.errors import UsageError
from pyrometer.record.counters import SimulatedCache

CACHES_FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")

HOW_TO_INSTALL = "install it (Debian, Ubuntu: apt-get install valgrind; Fedora: dnf install valgrind)"

# torch's kernels for newer processors take valgrind hundreds of times as long: it computes a fused
# multiply-add in software.
VALGRIND_ENVIRONMENT = {"MKL_CBWR": "AVX", "ATEN_CPU_CAPABILITY": "default"}

# Where the machine does not tell: a common processor.
_ASSUMED = {
    "I1": (32 << 10, 8, 64),
    "D1": (32 << 10, 8, 64),
    "LL": (8 << 20, 16, 64),
}  # fmt: skip
_SMALLEST_LINE = 32


def find_valgrind(wanted_by: str = "--cachegrind") -> str:
    """The command, or a ``UsageError`` that says what needs it and how to get it."""
    path = shutil.which("valgrind")
    if path is None:
        raise UsageError(f"{wanted_by} needs valgrind, which is not on the path; {HOW_TO_INSTALL}")
    return path


def caches_to_model(folder: Path = CACHES_FOLDER) -> tuple[SimulatedCache, ...]:
    """The first caches for instructions and data and the last level, as near as valgrind can have them."""
    found = _read_caches(folder)
    return tuple(_modelled(name, found.get(name)) for name in ("I1", "D1", "LL"))


def _read_caches(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Size, ways and line of each cache that the machine tells of; the highest level is LL."""
    shapes: dict[str, tuple[int, int, int]] = {}
    last_level = 1
    for index in sorted(folder.glob("index*")):
        try:
            level, kind = int(_read(index, "level")), _read(index, "type")
            shape = (
                _bytes(_read(index, "size")),
                int(_read(index, "ways_of_associativity")),
                int(_read(index, "coherency_line_size")),
            )
        except (OSError, ValueError):
            continue
        if level == 1 and kind in {"Instruction", "Unified"}:
            shapes["I1"] = shape
        if level == 1 and kind in {"Data", "Unified"}:
            shapes["D1"] = shape
        if level > last_level and kind != "Instruction":
            last_level, shapes["LL"] = level, shape
    return shapes


def _read(folder: Path, name: str) -> str:
    return (folder / name).read_text().strip()


def _bytes(text: str) -> int:
    units = {"K": 10, "M": 20, "G": 30}
    return int(text[:-1]) << units[text[-1]] if text[-1:] in units else int(text)


def _modelled(name: str, shape: tuple[int, int, int] | None) -> SimulatedCache:
    """The cache with a number of sets that is a power of two: valgrind takes no other."""
    origin = "assumed" if shape is None or min(shape[0], shape[2]) <= 0 else "machine"
    size, ways, line = _ASSUMED[name] if shape is None or origin == "assumed" else shape
    modelled_line = max(_SMALLEST_LINE, _power_of_two_below(line))
    # No ways told means that any line may be anywhere.
    sets = _power_of_two_below(max(size // (modelled_line * ways), 1)) if ways > 0 else 1
    modelled_ways = max(size // (modelled_line * sets), 1)
    modelled = modelled_line * sets * modelled_ways, modelled_ways, modelled_line
    if origin == "machine" and modelled != (size, ways, line):
        origin = "rounded"
    return SimulatedCache(
        name=name, size_bytes=modelled[0], ways=modelled[1], line_bytes=modelled[2], origin=origin
    )


def _power_of_two_below(number: int) -> int:
    """The largest that is not above it."""
    return 1 << (max(number, 1).bit_length() - 1)


def callgrind_command(
    valgrind: str,
    *,
    caches: Iterable[SimulatedCache] | None,
    counts_file: Path,
    log_file: Path,
    whole_program: bool,
) -> list[str]:
    """Valgrind and its options, to stand before the program's own command.

    Without ``caches`` none are simulated, and instructions alone are counted.
    Nothing is looked at until the program asks for it: Python starts as fast as valgrind allows.
    Processes that the program forks write their counts and words to files of their own.
    """
    shapes = [f"--{cache.name}={cache.size_bytes},{cache.ways},{cache.line_bytes}" for cache in caches or ()]
    return [
        valgrind,
        "--tool=callgrind",
        "--quiet",
        f"--cache-sim={'no' if caches is None else 'yes'}",
        *shapes,
        "--instr-atstart=no",
        f"--collect-atstart={'yes' if whole_program else 'no'}",
        "--combine-dumps=yes",
        f"--callgrind-out-file={_with_process_id(counts_file)}",
        f"--log-file={_with_process_id(log_file)}",
        "--trace-children=no",
        "--child-silent-after-fork=yes",
        "--vgdb=no",
    ]


def _with_process_id(path: Path) -> str:
    return f"{str(path).replace('%', '%%')}.%p"
