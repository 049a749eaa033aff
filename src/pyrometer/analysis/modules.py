"""Modules: what each ``nn.Module`` took, forward and backward, by name and as the tree of calls.

All figures are over the whole run, warm-up too. Forward passes made while no gradients are
recorded stand apart. Backward figures are over the passes in which modules were timed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyrometer.analysis.module_calls import (
    PASSES,
    Flops,
    GatheredPlace,
    PassFigures,
    PerStep,
    StepFigures,
    count_flops,
    flops_of_a_call,
    gather_places,
    pass_at,
    pass_at_all,
    per_step_of,
)
from pyrometer.record.torch_run import Module, TorchRun
from pyrometer.stats.rates import per


@dataclass(frozen=True, slots=True, kw_only=True)
class ModulePlace:
    """One module at one place in the tree of calls, ``children`` with most time per step first."""

    name: str
    """Qualified: ``model.layers.0.attn``."""
    kind: str | None
    """Its class; None when the record does not say."""
    forward: PassFigures
    """While gradients were recorded; of loss modules too."""
    without_gradients: PassFigures
    backward: PassFigures
    """Over the timed backward passes; their calls count how often its part began again."""
    recomputed: PassFigures
    """Forward once more, in the backward pass (activation checkpointing); no part of ``backward``."""
    ns_per_step: float
    """Forward and backward, as in ``ModuleRow.ns_per_step``."""
    per_step: StepFigures
    """The same with its parts."""
    share: float | None
    """Of the steps' time, as in ``ModuleRow.share``."""
    hidden: str | None
    children: "tuple[ModulePlace, ...]"

    def walk(self) -> "Iterator[tuple[int, ModulePlace]]":
        """This place and all below it with their depth, each parent before its children."""
        return _walk((self,))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleRow:
    """All calls of one module, wherever they were made.

    Totals count outermost calls only, so the time of a module that calls itself is counted once;
    ``self_ns`` counts every call.
    """

    name: str
    kind: str | None
    places: int
    """How many places in the tree it has: several when it is shared or called from several modules."""
    forward: PassFigures
    without_gradients: PassFigures
    backward: PassFigures
    """Over the timed backward passes; their calls count how often its part began again."""
    recomputed: PassFigures
    """Forward once more, in the backward pass (activation checkpointing); no part of ``backward``."""
    backward_ns_per_pass: float | None
    """Averages over the timed backward passes; None when there were none."""
    backward_self_ns_per_pass: float | None
    ns_per_step: float
    """Forward, backward and recomputed in one step of ``ModuleTable.steps``; of the backward phase
    it has the part that it had of the timed passes."""
    self_ns_per_step: float
    share: float | None
    """``ns_per_step`` against the mean step; None without steps."""
    self_share: float | None
    parameters: int | None
    """Of it and the modules below; None when the record does not say, likewise the bytes."""
    parameter_bytes: int | None
    output_bytes_per_call: float | None
    flops_per_call: float | None
    """Floating-point operations of one forward call, by formula, with those of the modules below;
    None when none of them was counted."""
    flops_are_at_least: bool
    """Some of the modules in it have no formula: the true figure is higher."""
    hidden: str | None
    """``compiled`` or ``scripted``: what runs inside cannot be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleTable:
    """The modules of a run."""

    rows: tuple[ModuleRow, ...]
    """Each module that was called, most ``ns_per_step`` first, then by name."""
    roots: tuple[ModulePlace, ...]
    """The same as a tree: modules called by no other one."""
    steps: int
    """The steps ``ns_per_step`` is over: those that train, else all."""
    step_ns: float | None
    """The mean of those steps, warm-up too; None without steps."""
    backward_passes: int
    timed_backward_passes: int
    parameters: int | None
    """Of all root modules together."""
    parameter_bytes: int | None
    hidden: tuple[str, ...]
    """Modules whose inside cannot be seen."""

    def walk(self) -> Iterator[tuple[int, ModulePlace]]:
        """Every place of the tree with its depth, each parent before its children."""
        return _walk(self.roots)


def build_modules(torch: TorchRun) -> ModuleTable:
    """What each module of the run took."""
    scale = per_step_of(torch)
    places = gather_places(torch)
    table = _Table(scale=scale, facts={module.name: module for module in torch.modules})
    roots = table.freeze(places)
    rows = table.rows(places)
    root_facts = [
        table.facts[name] for name in _outermost({root.name for root in roots}) if name in table.facts
    ]
    return ModuleTable(
        rows=rows,
        roots=roots,
        steps=scale.steps,
        step_ns=scale.step_ns,
        backward_passes=torch.backward_passes,
        timed_backward_passes=torch.timed_backward_passes,
        parameters=sum(facts.parameters for facts in root_facts) if root_facts else None,
        parameter_bytes=sum(facts.parameter_bytes for facts in root_facts) if root_facts else None,
        hidden=tuple(sorted(row.name for row in rows if row.hidden is not None)),
    )


class _Table:
    """Places on their way to rows and a tree; ``facts`` has what is known of each module by name."""

    def __init__(self, *, scale: PerStep, facts: dict[str, Module]) -> None:
        self.scale = scale
        self.facts = facts
        self._figures: dict[GatheredPlace, tuple[PassFigures, ...]] = {}

    def freeze(self, places: Sequence[GatheredPlace]) -> tuple[ModulePlace, ...]:
        """The places as a tree, from its roots."""
        frozen: dict[GatheredPlace, ModulePlace] = {}
        # A place is gathered after the one above it, so backwards each finds its children frozen.
        for place in reversed(places):
            children = [frozen.pop(child) for child in place.children.values()]
            frozen[place] = self._freeze(place, _ordered(children) if children else ())
        return _ordered(frozen.values())

    def _passes_at(self, place: GatheredPlace) -> tuple[PassFigures, ...]:
        # The tree and the rows both need them, and most modules have one place.
        if place not in self._figures:
            self._figures[place] = tuple(pass_at(place, sort) for sort in PASSES)
        return self._figures[place]

    def _freeze(self, place: GatheredPlace, children: tuple[ModulePlace, ...]) -> ModulePlace:
        facts = self.facts.get(place.name)
        forward, without, backward, recomputed = self._passes_at(place)
        ns_per_step = self.scale.ns(
            forward.total_ns, without.total_ns, backward.total_ns, recomputed.total_ns
        )
        return ModulePlace(
            name=place.name,
            kind=None if facts is None else facts.kind,
            forward=forward,
            without_gradients=without,
            backward=backward,
            recomputed=recomputed,
            ns_per_step=ns_per_step,
            per_step=self.scale.figures(forward, without, backward, recomputed),
            share=per(ns_per_step, self.scale.step_ns),
            hidden=None if facts is None else facts.hidden,
            children=children,
        )

    def rows(self, places: Sequence[GatheredPlace]) -> tuple[ModuleRow, ...]:
        """Each module's row, most time per step first, then by name."""
        named: dict[str, list[GatheredPlace]] = {}
        for place in places:
            named.setdefault(place.name, []).append(place)
        flops = count_flops(places, self.facts)
        rows = (self._row(name, where, flops) for name, where in named.items())
        return tuple(sorted(rows, key=lambda row: (-row.ns_per_step, row.name)))

    def _row(self, name: str, places: list[GatheredPlace], flops: Mapping[GatheredPlace, Flops]) -> ModuleRow:
        facts = self.facts.get(name)
        forward, without, backward, recomputed = (
            self._passes_at(places[0])
            if len(places) == 1
            else tuple(pass_at_all(places, sort) for sort in PASSES)
        )
        ns_per_step = self.scale.ns(
            forward.total_ns, without.total_ns, backward.total_ns, recomputed.total_ns
        )
        self_ns_per_step = self.scale.ns(
            forward.self_ns, without.self_ns, backward.self_ns, recomputed.self_ns
        )
        timed = self.scale.timed_backward_passes
        flops_per_call, at_least = flops_of_a_call([flops[place] for place in places if place.outermost])
        return ModuleRow(
            name=name,
            kind=None if facts is None else facts.kind,
            places=len(places),
            forward=forward,
            without_gradients=without,
            backward=backward,
            recomputed=recomputed,
            backward_ns_per_pass=per(backward.total_ns, timed),
            backward_self_ns_per_pass=per(backward.self_ns, timed),
            ns_per_step=ns_per_step,
            self_ns_per_step=self_ns_per_step,
            share=per(ns_per_step, self.scale.step_ns),
            self_share=per(self_ns_per_step, self.scale.step_ns),
            parameters=None if facts is None else facts.parameters,
            parameter_bytes=None if facts is None else facts.parameter_bytes,
            output_bytes_per_call=None if facts is None else per(facts.output_bytes, facts.measured_calls),
            flops_per_call=flops_per_call,
            flops_are_at_least=at_least,
            hidden=None if facts is None else facts.hidden,
        )


def _outermost(names: Collection[str]) -> list[str]:
    """The names that are no part of another one: a program may call ``model`` and ``model.encoder``."""
    return [name for name in names if not any(above in names for above in _names_above(name))]


def _names_above(name: str) -> Iterator[str]:
    above, dot, _ = name.rpartition(".")
    while dot:
        yield above
        above, dot, _ = above.rpartition(".")


def _ordered(places: Iterable[ModulePlace]) -> tuple[ModulePlace, ...]:
    return tuple(sorted(places, key=lambda place: (-place.ns_per_step, place.name)))


def _walk(roots: tuple[ModulePlace, ...]) -> Iterator[tuple[int, ModulePlace]]:
    waiting = [(0, root) for root in reversed(roots)]
    while waiting:
        depth, place = waiting.pop()
        yield depth, place
        waiting.extend((depth + 1, child) for child in reversed(place.children))
