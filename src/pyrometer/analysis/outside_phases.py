"""What a PyTorch program does outside its phases: the functions its loop calls there."""

from collections import Counter
from dataclasses import dataclass

from pyrometer.analysis.frame_tree import NOTHING, TOP, Frame, Parts, Stacks, merge_by


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideCall:
    """A function that never leads to a phase, called by one that does, or at the top of a thread.

    Where ``is_loop``, it is one that does lead to phases: the time is that of its own lines.
    """

    frame: Frame
    is_loop: bool
    caller: Frame | None
    """Where it is called most: the function, and the line; of a loop's own lines, the loop itself."""
    line: int | None
    parts: Parts


def find_outside_calls(stacks: Stacks) -> tuple[OutsideCall, ...]:
    """All time outside any phase by such functions, most time first."""
    samples, functions = stacks.samples, stacks.functions
    frames = [functions[node.function] for node in samples.nodes]
    heads = merge_by(stacks.parents, frames)
    leads = _lead_to_phases(stacks, heads)
    summed: dict[tuple[Frame, bool], Parts] = {}
    places: dict[tuple[Frame, bool], Counter[tuple[Frame | None, int | None]]] = {}
    for seen, parts in zip(samples.observations, stacks.seen, strict=True):
        if seen.call is not None:
            continue
        outermost, caller = TOP, seen.stack
        while caller != TOP and not leads[heads[caller]]:
            outermost, caller = caller, stacks.parents[caller]
        is_loop = outermost == TOP
        key = frames[caller if is_loop else outermost], is_loop
        summed[key] = summed.get(key, NOTHING) + parts
        place = (None, None) if caller == TOP else (frames[caller], samples.nodes[caller].line)
        places.setdefault(key, Counter())[place] += parts.wall_ns
    calls = []
    for (frame, is_loop), parts in summed.items():
        ((caller_frame, line), _), *_ = places[frame, is_loop].most_common(1)
        calls.append(OutsideCall(frame=frame, is_loop=is_loop, caller=caller_frame, line=line, parts=parts))
    return tuple(sorted(calls, key=lambda call: -call.parts.wall_ns))


def _lead_to_phases(stacks: Stacks, heads: list[int]) -> list[bool]:
    """Of each head, whether a phase was met in it or in what it called."""
    leads = [False] * len(heads)
    for seen in stacks.samples.observations:
        node = seen.stack if seen.call is not None else TOP
        while node != TOP and not leads[heads[node]]:
            leads[heads[node]] = True
            node = stacks.parents[node]
    return leads
