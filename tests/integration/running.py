"""Each program once by itself and once under ``pyrometer run``, unchanged, as a user would start it."""

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pyrometer.record.run import Run
from pyrometer.record.torch_run import Module, StepGroup, TorchRun
from pyrometer.record.values import ScopeNode
from pyrometer.store.run_files import read_run

PROGRAMS = Path(__file__).parent / "programs"
# A guard against a program that waits for ever, not a measurement.
GIVE_UP_AFTER_S = 600
# One thread, so that sums are made in the same order; and nothing from the network.
SURROUNDINGS = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONIOENCODING": "utf-8"}

Places = dict[tuple[str, ...], ScopeNode]


class Seen(NamedTuple):
    """A program's two runs."""

    plain: subprocess.CompletedProcess[str]
    profiled: subprocess.CompletedProcess[str]
    run: Run

    @property
    def torch(self) -> TorchRun:
        """What was seen of its PyTorch work."""
        assert self.run.torch is not None
        return self.run.torch

    @property
    def groups(self) -> dict[str, StepGroup]:
        """Its groups of steps by kind, one of each."""
        groups = {group.kind: group for group in self.torch.groups}
        assert len(groups) == len(self.torch.groups)
        return groups

    @property
    def modules(self) -> dict[str, Module]:
        """Its modules by name."""
        return {module.name: module for module in self.torch.modules}

    @property
    def places(self) -> Places:
        """Every node of the main thread's tree by the names down to it."""
        strand = self.torch.calls[0]
        assert strand.thread_name == "MainThread"
        paths: list[tuple[str, ...]] = []
        for node in strand.nodes:
            paths.append((*(() if node.parent is None else paths[node.parent]), node.name))
        return dict(zip(paths, strand.nodes, strict=True))

    def calls(self, *top: str) -> dict[str, int]:
        """How often each module was called below a place, by name."""
        calls: dict[str, int] = {}
        for path, node in self.places.items():
            if len(path) > len(top) and path[: len(top)] == top:
                calls[path[-1]] = calls.get(path[-1], 0) + node.calls
        return calls


def start(arguments: Sequence[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    """The finished program, started with this Python in ``folder``."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYROMETER")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=inherited | SURROUNDINGS,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=GIVE_UP_AFTER_S,
    )


@functools.cache
def run_program(name: str, *arguments: str) -> Seen:
    """Both runs of a program, made once however many tests ask."""
    program: list[str | Path] = [PROGRAMS / f"{name}.py", *arguments]
    with tempfile.TemporaryDirectory() as plain, tempfile.TemporaryDirectory() as profiled:
        run_file = Path(profiled, "run.json")
        return Seen(
            start(program, Path(plain)),
            start(["-m", "pyrometer", "run", "-o", run_file, *program], Path(profiled)),
            read_run(run_file),
        )
