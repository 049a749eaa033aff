"""Findings about operators, in the window in which each of them was seen."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pyrometer.analysis.findings.drafting import (
    COMPUTING,
    WORTH_TELLING,
    Answer,
    Missing,
    See,
    at_most,
    computing_share,
    finding,
    main_group_of,
)
from pyrometer.analysis.findings.model import Evidence, Finding, FindingKind, Place
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.operators import OperatorOrigin, OperatorRow, OperatorTable
from pyrometer.analysis.steps import GroupResult
from pyrometer.units import format_duration, format_share

TINY_NS = 10_000
"""An operator whose calls take less does little but start."""
FEWEST_OPERATORS = 20
OPERATOR_EVERY_NS = 50_000
"""A step with an operator in each stretch of this length is made of small ones."""
OVERHEAD_SHARE = 0.30
COPY_SHARE = 0.02
COPY_PHASE_SHARE = 0.05
SYNCHRONISING_CALLS = 8
"""A step that asks so often for a figure waits for it each time, even where that costs little."""

SYNCHRONISING = frozenset({"aten::item", "aten::_local_scalar_dense", "aten::nonzero", "aten::is_nonzero"})
ASKED_COPIES = frozenset({"aten::_to_copy", "aten::clone"})
"""What casts, ``contiguous`` and the like come down to; a product copies its bias too, inside."""
COPY = "aten::copy_"
NOT_SEEN = "operators were not looked at: pyrometer run --ops, or --deep"


def window_of(observed: Observed, main: GroupResult) -> OperatorTable | Missing:
    """The window of the main group's steps."""
    operators = None if observed.torch is None else observed.torch.operators
    if operators is None:
        return Missing(reason=NOT_SEEN)
    window = next((window for window in operators.windows if window.label == main.label), None)
    if window is None:
        return Missing(reason=operators.reason or "no window of operators fell on these steps")
    return window


def find_tiny_operators(observed: Observed) -> Answer:
    """Steps made of operators that take longer to start than to run."""
    main = main_group_of(observed)
    if isinstance(main, Missing):
        return main
    window = window_of(observed, main)
    if isinstance(window, Missing):
        return window
    computed = [(row, origin) for row in window.rows for origin in row.origins if origin.phase in COMPUTING]
    calls = sum(origin.calls_per_step for _, origin in computed)
    computing_ns = computing_share(main) * main.steady.mean_ns
    if calls < FEWEST_OPERATORS or computing_ns > OPERATOR_EVERY_NS * calls:
        return ()
    # What lasts as long as it does for the work in it: the rest is starting operators, in Python and torch.
    large = [pair for pair in computed if pair[0].self_ns_per_step >= TINY_NS * pair[0].calls_per_step]
    worked_ns = sum(origin.self_ns_per_step for _, origin in large)
    starting_ns = computing_ns - worked_ns
    share = starting_ns / main.steady.mean_ns
    if share < OVERHEAD_SHARE:
        return ()
    tiny = [pair for pair in computed if pair not in large]
    most = max(tiny, key=lambda pair: pair[1].self_ns_per_step, default=None)
    return (
        finding(
            FindingKind.TINY_OPERATORS,
            f"a step computes in {calls:,.0f} operators, most of them tiny",
            Evidence(
                text=f"{calls:,.0f} operators in the {format_duration(computing_ns)} in which a step "
                f"computes: one every {format_duration(computing_ns / calls)}",
                see=See.OPERATORS,
            ),
            Evidence(
                text=f"operators of {format_duration(TINY_NS)} and more a call make up "
                f"{format_duration(worked_ns)} of that",
                see=See.OPERATORS,
            ),
            # The bound is of the whole step, and so is not in the phase with most of them.
            place=replace(_place_of(most, main), phase=None),
            share=share,
            duration_ns=starting_ns,
            gain=at_most(share, "if only operators that take 10 µs or more were left of the computing"),
        ),
    )


def _place_of(most: tuple[OperatorRow, OperatorOrigin] | None, main: GroupResult) -> Place:
    """Where an operator is called most."""
    if most is None:
        return Place(group=main.label)
    row, origin = most
    return Place(group=main.label, phase=origin.phase, module=origin.module, operator=row.name)


def find_synchronising(observed: Observed) -> Answer:
    """Figures taken out of tensors in the loop, each of which waits for it."""
    main = main_group_of(observed)
    if isinstance(main, Missing):
        return main
    window = window_of(observed, main)
    if isinstance(window, Missing):
        return window
    rows = [row for row in window.rows if row.name in SYNCHRONISING]
    origins = tuple(_by_the_program(rows))
    spent_ns = sum(origin.self_ns_per_step for _, origin in origins)
    # An item is two operators, one inside the other.
    calls = sum(origin.calls_per_step for row, origin in origins if row.name != "aten::item")
    share = spent_ns / window.step_ns if window.step_ns else 0.0
    on_gpu = observed.torch is not None and observed.torch.gpu is not None
    if calls < (1 if on_gpu else SYNCHRONISING_CALLS) and share < WORTH_TELLING:
        return ()
    return (
        finding(
            FindingKind.SYNCHRONISING,
            f"{calls:,.0f} times a step a figure is taken out of a tensor",
            Evidence(
                text=f"{', '.join(sorted({row.name for row, _ in origins}))}: {calls:,.0f} calls a step "
                f"outside the optimizer, {format_duration(spent_ns)}, {format_share(share)} of the step",
                see=See.OPERATORS,
            ),
            place=_place_of(max(origins, key=lambda pair: pair[1].calls_per_step), main),
            share=share,
            duration_ns=spent_ns,
            gain=at_most(share, "if none of these operators ran"),
        ),
    )


def find_copies(observed: Observed) -> Answer:
    """Copies and casts in the loop: of batches, or inside the model."""
    main = main_group_of(observed)
    if isinstance(main, Missing):
        return main
    found = []
    phase = main.phase("copies")
    if phase is not None and phase.share >= COPY_PHASE_SHARE:
        found.append(
            finding(
                FindingKind.COPIES,
                "batches are copied or converted in each step",
                Evidence(
                    text=f"copies take {format_duration(phase.mean_ns)} of a step: "
                    f"{format_share(phase.share)}",
                    see=See.PHASES,
                ),
                place=Place(group=main.label, phase="copies"),
                share=phase.share,
                duration_ns=phase.mean_ns,
                gain=at_most(phase.share, "if nothing were copied"),
            )
        )
    window = window_of(observed, main)
    if isinstance(window, Missing):
        return found or window
    found += _copies_in(window, main)
    return found


def _copies_in(window: OperatorTable, main: GroupResult) -> Iterator[Finding]:
    places: dict[tuple[str | None, str | None], _Copies] = {}
    for row, origin in _by_the_program(window.rows):
        # What gradients copy is autograd's own affair: nobody has written it.
        asked = origin.kind == "call" and origin.phase not in ("data", "copies")
        if asked and row.name in (*ASKED_COPIES, COPY):
            places.setdefault((origin.phase, origin.module), _Copies()).add(row, origin)
    spent_ns = sum(place.asked_ns for place in places.values())
    share = spent_ns / window.step_ns if window.step_ns else 0.0
    if share < COPY_SHARE:
        return
    calls = sum(place.asked for place in places.values())
    (phase, module), most = max(places.items(), key=lambda item: item[1].asked_ns)
    yield finding(
        FindingKind.COPIES,
        f"{format_share(share)} of a step copies or casts tensors",
        Evidence(
            text=f"{calls:,.0f} tensors a step are cloned, cast or made contiguous, in "
            f"{format_duration(spent_ns)}, not counting batches, gradients and the optimizer",
            see=See.OPERATORS,
        ),
        Evidence(text=f"{most.asked:,.0f} of them take {format_duration(most.asked_ns)}", see=See.OPERATORS),
        place=Place(group=main.label, phase=phase, module=module, operator=most.operator),
        share=share,
        duration_ns=spent_ns,
        gain=at_most(share, "if nothing were copied"),
    )


@dataclass(slots=True)
class _Copies:
    """The copies at one place: those asked for, and those that other operators make inside."""

    asked: float = 0.0
    own_ns: float = 0.0
    copied: float = 0.0
    copied_ns: float = 0.0
    operator: str | None = None

    def add(self, row: OperatorRow, origin: OperatorOrigin) -> None:
        """Count the calls of one operator."""
        if row.name == COPY:
            self.copied += origin.calls_per_step
            self.copied_ns += origin.self_ns_per_step
        else:
            self.asked += origin.calls_per_step
            self.own_ns += origin.self_ns_per_step
            self.operator = self.operator or row.name

    @property
    def asked_ns(self) -> float:
        """Each copy that is asked for is made by one of the operators that copy; the rest are not its."""
        part = min(self.asked / self.copied, 1.0) if self.copied else 0.0
        return self.own_ns + part * self.copied_ns


def _by_the_program(rows: Iterable[OperatorRow]) -> Iterator[tuple[OperatorRow, OperatorOrigin]]:
    """What the program's own code and its model asked for: optimizers count their steps in tensors too."""
    for row in rows:
        for origin in row.origins:
            if origin.phase != "optimizer" and origin.kind != "accumulation":
                yield row, origin
