"""Earlier runs made by hand."""

from collections.abc import Sequence
from typing import Any

import msgspec

from pyrometer.analysis.history import PastRun

MS = 1_000_000
MIB = 1 << 20

TYPICAL = PastRun(
    started_at="2026-11-01T08:00:00.000+00:00",
    project="/home/ada/net",
    folder="",
    name="train.py",
    program="train.py --batch-size 64",
    rank=None,
    commit="0123456789abcdef0123456789abcdef01234567",
    dirty=False,
    outcome="finished",
    detail=None,
    steps=100,
    step_p50_ns=10 * MS,
    step_p95_ns=12 * MS,
    samples_per_s=6_400.0,
    tokens_per_s=None,
    peak_host_bytes=300 * MIB,
    profiled_ns=2_000 * MS,
    python_version="3.11.2",
    torch_version="2.13.0",
    threads=2,
    cpu_model="Some CPU",
    usable_cores=2,
    watched="native recorder, 100 stacks/s, memory",
    pyrometer_version="0.1.0",
    run_path="/home/ada/net/pyrometer-runs/train-1/run.json",
)


def past_run(**fields: Any) -> PastRun:
    """The typical run, but for these fields."""
    return msgspec.structs.replace(TYPICAL, **fields)


def past_steps(steps_ns: Sequence[int], **fields: Any) -> list[PastRun]:
    """One run a day, each with steps of so long."""
    return [
        past_run(started_at=f"2026-11-{day:02}T08:00:00.000+00:00", step_p50_ns=step_ns, **fields)
        for day, step_ns in enumerate(steps_ns, start=1)
    ]
