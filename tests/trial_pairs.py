"""Pairs of processes made by hand: what each turn took is known."""

import random
from collections.abc import Callable, Mapping, Sequence

from pyrometer.record.trials import NodeFigures, Pair, Plan, ProcessTurns, Round, Trials, TrialSide

STEP_NS = 1_000_000
ROUNDS = 12


def process(
    step_ns: float | Sequence[float] = STEP_NS,
    *,
    nodes: Mapping[tuple[str, ...], tuple[float, float, float]] | None = None,
    samples: int | None = 32,
    peak_bytes: int | None = 100 << 20,
    peak_live_bytes: int | None = None,
    instructions: int | None = None,
) -> ProcessTurns:
    """One whose steps took so long, in all turns or one by one; nodes as (calls, self ns, change ns)."""
    each = [step_ns] * ROUNDS if isinstance(step_ns, (int, float)) else step_ns
    return ProcessTurns(
        rounds=tuple(
            Round(round(4 * duration_ns), 4, None if samples is None else 4 * samples) for duration_ns in each
        ),
        is_warm=True,
        nodes=tuple(NodeFigures(path, *figures) for path, figures in (nodes or {}).items()),
        peak_bytes=peak_bytes,
        peak_live_bytes=peak_live_bytes,
        instructions=instructions,
    )


def pairs_of(
    count: int,
    candidate: Callable[[random.Random], ProcessTurns],
    *,
    baseline: Callable[[random.Random], ProcessTurns] | None = None,
    control: Callable[[random.Random], ProcessTurns] | None = None,
    seed: int = 1,
) -> list[Pair]:
    """So many pairs; each side is made with the same random numbers in the same order."""
    noise = random.Random(seed)
    baseline = baseline or noisy(1.0)
    return [
        Pair(
            hash_seed=number,
            baseline=baseline(noise),
            candidate=candidate(noise),
            control=(control or baseline)(noise),
        )
        for number in range(count)
    ]


def noisy(
    factor: float, *, between: float = 0.005, within: float = 0.01
) -> Callable[[random.Random], ProcessTurns]:
    """A process whose steps take ``factor`` times as long, give or take."""

    def make(noise: random.Random) -> ProcessTurns:
        own = factor * (1 + noise.gauss(0, between))
        return process([STEP_NS * own * (1 + noise.gauss(0, within)) for _ in range(ROUNDS)])

    return make


def trials_of(pairs: Sequence[Pair], **plan: object) -> Trials:
    """All of it, as an experiment leaves it."""
    fields: dict[str, object] = {
        "unit": "step",
        "warmup_turns": (1,) * 20,
        "warmup_ns": (float(STEP_NS),) * 20,
        "is_warm": True,
        "lead_steps": 1,
        "turn_steps": 4,
        "rounds": ROUNDS,
        "in_blocks": False,
        "threads": 1,
        "step_ns": float(STEP_NS),
    }
    return Trials(
        pyrometer_version="0.1.0",
        started_at="2026-01-02T03:04:05.000+00:00",
        program="train.py --batch-size 32",
        baseline=TrialSide(name="main", command="python train.py", commit="1" * 40, is_dirty=False),
        candidate=TrialSide(name="working tree", command="python train.py", commit="2" * 40, is_dirty=True),
        plan=Plan(**(fields | plan)),  # type: ignore[arg-type]
        pairs=tuple(pairs),
    )
