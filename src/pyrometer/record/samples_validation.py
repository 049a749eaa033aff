"""What must hold in the stack samples of a run beyond the types of their fields."""

from collections.abc import Iterator, Sequence

from pyrometer.record.samples import Observation, StackSamples
from pyrometer.record.tree_validation import Problem
from pyrometer.record.values import Strand


def samples_problems(
    samples: StackSamples, place: str, *, scopes: Sequence[Strand], calls: Sequence[Strand]
) -> Iterator[Problem]:
    """What contradicts itself in the samples, or points at what is not there."""
    functions = len(samples.functions)
    for index, node in enumerate(samples.nodes):
        inside = f"{place}.nodes[{index}]"
        if node.parent is not None and node.parent >= index:
            text = f"node {node.parent} cannot call node {index}: a parent comes earlier in the list"
            yield Problem(place=inside, text=text)
        yield from _missing(node.function, functions, inside, "function")
    for index, observation in enumerate(samples.observations):
        inside = f"{place}.observations[{index}]"
        yield from _observation_problems(observation, samples, inside)
        yield from _place_problems(observation.scope, scopes, f"{inside}.scope")
        yield from _place_problems(observation.call, calls, f"{inside}.call")
    counted = sum(observation.samples for observation in samples.observations)
    if counted != samples.samples:
        text = f"the observations count {counted} samples, not {samples.samples}"
        yield Problem(place=f"{place}.samples", text=text)


def _observation_problems(observation: Observation, samples: StackSamples, place: str) -> Iterator[Problem]:
    yield from _missing(observation.stack, len(samples.nodes), place, "node")
    yield from _missing(observation.thread, len(samples.threads), place, "thread")
    if observation.leaf is not None:
        yield from _missing(observation.leaf, len(samples.native_functions), place, "native function")
    if observation.waiting + observation.native > observation.samples:
        text = f"{observation.waiting} waiting and {observation.native} native samples are more than all"
        yield Problem(place=place, text=f"{text} {observation.samples}")
    if observation.cpu_ns > observation.wall_ns:
        text = f"a thread cannot run {observation.cpu_ns} of {observation.wall_ns} ns"
        yield Problem(place=place, text=text)


def _place_problems(
    place_in: tuple[int, int] | None, strands: Sequence[Strand], place: str
) -> Iterator[Problem]:
    if place_in is None:
        return
    strand, node = place_in
    if strand >= len(strands):
        yield from _missing(strand, len(strands), place, "strand")
    else:
        yield from _missing(node, len(strands[strand].nodes), place, "node", f" in strand {strand}")


def _missing(index: int, count: int, place: str, what: str, where: str = "") -> Iterator[Problem]:
    if index >= count:
        yield Problem(place=place, text=f"there is no {what} {index}{where}, only {count}")
