"""What must hold in the collections of garbage beyond the types of their fields."""

from collections.abc import Iterator
from itertools import pairwise

from pyrometer.record.garbage import GarbageCollections, GarbageGeneration
from pyrometer.record.tree_validation import Problem


def garbage_problems(garbage: GarbageCollections, place: str) -> Iterator[Problem]:
    """What contradicts itself in the collections of garbage."""
    for number, generation in enumerate(garbage.generations):
        inside = f"{place}.generations[{number}]"
        yield from _generation_problems(generation, inside)
        kept_ns = [pause.duration_ns for pause in garbage.longest if pause.generation == number]
        if len(kept_ns) > generation.timed_collections or sum(kept_ns) > generation.total_ns:
            text = f"{len(kept_ns)} of its collections took {sum(kept_ns)} ns"
            whole = f"all {generation.timed_collections} took {generation.total_ns}"
            yield Problem(place=inside, text=f"{text}, {whole}")
        if kept_ns and max(kept_ns) > generation.max_ns:
            text = f"a collection took {max(kept_ns)} ns, but none more than {generation.max_ns}"
            yield Problem(place=inside, text=text)
    if any(one.started_ns > later.started_ns for one, later in pairwise(garbage.longest)):
        yield Problem(place=f"{place}.longest", text="the pauses are not in order of time")
    paused_ns = sum(garbage.interval_pause_ns)
    if paused_ns != garbage.total_ns:
        text = f"the intervals have {paused_ns} ns, the generations {garbage.total_ns}"
        yield Problem(place=f"{place}.interval_pause_ns", text=text)


def _generation_problems(generation: GarbageGeneration, place: str) -> Iterator[Problem]:
    timed, total_ns, max_ns = generation.timed_collections, generation.total_ns, generation.max_ns
    if timed > generation.collections:
        text = f"{timed} are more than the {generation.collections} of collections"
        yield Problem(place=f"{place}.timed_collections", text=text)
    if not max_ns <= total_ns <= timed * max_ns:
        text = f"{timed} collections of at most {max_ns} ns cannot take {total_ns} ns"
        yield Problem(place=f"{place}.total_ns", text=text)
    if not generation.collections and (generation.collected or generation.uncollectable):
        yield Problem(place=place, text="no collection, but objects that one has found")
