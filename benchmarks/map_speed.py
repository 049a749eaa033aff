"""What a code map of a large package takes, beside the tools that do a half of it each.

    python benchmarks/map_speed.py [--package torch] [--turns N] [--patience SECONDS]

Ours reads all lines, functions and imports, and is measured with nothing kept from before, and then again
with all of it kept. pygount counts lines; pydeps finds imports. All are programs of their own, by turns;
memory is the most of any of their processes. Fails where ours takes more than 15 s or 1 GB, more than 2 s
the second time, or longer than one of the others.
"""

import argparse
import importlib.util
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

MOST_S, MOST_AGAIN_S, MOST_BYTES = 15.0, 2.0, 1_000_000_000


class Took(NamedTuple):
    """What a program took; None: it did not end in time."""

    seconds: float | None
    bytes: int


def main() -> int:
    """Measure all, and judge ours."""
    options = _options()
    spec = importlib.util.find_spec(options.package)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"there is no package {options.package}; name one that is installed")
    folder = spec.submodule_search_locations[0]
    count = sum(1 for _ in Path(folder).rglob("*.py"))
    print(f"{options.package}: {count:,} Python files, on {len(os.sched_getaffinity(0))} cores")
    with tempfile.TemporaryDirectory(prefix="map-speed-") as scratch:
        found = _measure(options, folder, Path(scratch))
    for name, took in found.items():
        print(f"{name:28} {_shown(took, options.patience)}")
    return _judge(found)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What a code map takes.")
    parser.add_argument("--package", default="torch")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--patience", type=float, default=300.0, help="for each program, in seconds")
    return parser.parse_args()


def _measure(options: argparse.Namespace, folder: str, scratch: Path) -> dict[str, list[Took]]:
    ours = [sys.executable, "-m", "pyrometer", "map", options.package, "-o", str(scratch / "map.json")]
    commands: dict[str, Sequence[str]] = {"pyrometer map, again": ours}
    peers = {
        "pygount (lines)": ["pygount", "--format=summary", "--suffix=py,pyi", folder],
        "pydeps (imports)": ["pydeps", folder, "--no-config", "--no-output", "--show-deps", "--max-bacon=0"],
    }
    # Beside this Python too: its folder need not be on the path.
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    for name, (program, *arguments) in peers.items():
        found_at = shutil.which(program, path=places)
        if found_at is None:
            print(f"{name}: not measured, it is not installed (pip install {program})")
        else:
            commands[name] = [found_at, *arguments]
    found: dict[str, list[Took]] = {"pyrometer map": [], **{name: [] for name in commands}}
    for turn in range(options.turns):
        kept = scratch / f"cache-{turn}"
        environment = os.environ | {"XDG_CACHE_HOME": str(kept)}
        found["pyrometer map"].append(_took(ours, environment, options.patience))
        for name, command in commands.items():
            # What did not end once is not waited for again.
            if not found[name] or found[name][-1].seconds is not None:
                found[name].append(_took(command, environment, options.patience))
    return found


def _took(command: Sequence[str], environment: Mapping[str, str], patience_s: float) -> Took:
    """One run of a program, with the peak of its processes: measured by one that has no other children."""
    began = time.monotonic()
    process = os.fork()
    if process == 0:
        _become_a_meter(command, environment, patience_s)
    _, status, used = os.wait4(process, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in {0, _LATE}:
        sys.exit(f"{' '.join(command)} ended with exit code {code}")
    return Took(None if code == _LATE else time.monotonic() - began, used.ru_maxrss * 1024)


_LATE = 99


def _become_a_meter(command: Sequence[str], environment: Mapping[str, str], patience_s: float) -> None:
    try:
        done = subprocess.run(
            command,
            env=dict(environment),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=patience_s,
            check=False,
        )
        code = done.returncode
    except subprocess.TimeoutExpired:
        code = _LATE
    except OSError:
        code = 127
    finally:
        # So that who waits for this process is told the peak of those it has waited for.
        resource.getrusage(resource.RUSAGE_CHILDREN)
    os._exit(code & 0xFF)


def _shown(took: Sequence[Took], patience_s: float) -> str:
    seconds = [one.seconds for one in took if one.seconds is not None]
    memory = f"{max(one.bytes for one in took) / 1e6:7.0f} MB"
    if not seconds:
        return f"not within {patience_s:.0f} s  {memory}"
    return f"{median(seconds):7.2f} s ({min(seconds):.2f}–{max(seconds):.2f})  {memory}"


def _judge(found: Mapping[str, Sequence[Took]]) -> int:
    middle = {
        name: median([one.seconds if one.seconds is not None else float("inf") for one in took])
        for name, took in found.items()
    }
    ours = middle["pyrometer map"]
    others = {name: seconds for name, seconds in middle.items() if not name.startswith("pyrometer")}
    most = max(one.bytes for one in found["pyrometer map"])
    rules = {
        f"within {MOST_S:g} s": ours <= MOST_S,
        f"within {MOST_BYTES / 1e9:g} GB": most <= MOST_BYTES,
        f"again within {MOST_AGAIN_S:g} s": middle["pyrometer map, again"] <= MOST_AGAIN_S,
        **{f"not slower than {name}": ours <= seconds for name, seconds in others.items()},
    }
    for rule, holds in rules.items():
        print(f"{'PASS' if holds else 'FAIL'}: {rule}")
    return 0 if all(rules.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
