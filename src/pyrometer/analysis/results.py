"""Everything a run says, as values for programs and reports."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pyrometer.analysis.allocations import AllocationResults
from pyrometer.analysis.call_tree import CallTree, MergedStrands, Place, strand_tree
from pyrometer.analysis.memory import MemoryResult
from pyrometer.analysis.observed import Observed, observe
from pyrometer.analysis.sample_results import SampleResults
from pyrometer.analysis.scope_table import ScopeSummary
from pyrometer.analysis.torch_results import TorchResults
from pyrometer.record.run import Loss, Run

_NAMES_IN_AN_ERROR = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadResult:
    """One thread's own call tree, under the scope that started it.

    ``threads`` is how many threads are folded together here.
    """

    thread_id: int
    thread_name: str
    threads: int
    tree: CallTree
    parent: Place | None = field(repr=False, compare=False)

    @property
    def total_ns(self) -> int:
        """Its time in scopes; summed, where threads are folded together."""
        return sum(root.total_ns for root in self.tree.roots)

    @property
    def parent_path(self) -> tuple[str, ...]:
        """The names from the top down to the scope that started it; empty if none did."""
        return () if self.parent is None else self.parent.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The scopes of a run by name, as one tree and by thread; ``results["name"]`` is one of them.

    Of a program that uses PyTorch also its steps, phases, modules and loading, in ``torch``.

    ``scopes`` are ordered by ``total_ns``, largest first, then by name.
    """

    profiled_ns: int
    scopes: tuple[ScopeSummary, ...]
    tree: CallTree
    threads: tuple[ThreadResult, ...]
    losses: tuple[Loss, ...]
    torch: TorchResults | None
    """None when the program did not use PyTorch, or it could not be watched."""
    memory: MemoryResult | None
    """None when the process's memory was not recorded."""
    allocations: AllocationResults | None
    """None when they were not counted."""
    samples: SampleResults | None
    """None when no stacks were sampled."""

    def __getitem__(self, name: str) -> ScopeSummary:
        for summary in self.scopes:
            if summary.name == name:
                return summary
        raise KeyError(f"no scope named {name!r} was recorded (recorded: {self._known_names()})")

    def __contains__(self, name: object) -> bool:
        return any(summary.name == name for summary in self.scopes)

    def _known_names(self) -> str:
        names = [repr(summary.name) for summary in self.scopes[:_NAMES_IN_AN_ERROR]]
        left_out = len(self.scopes) - len(names)
        return (", ".join(names) or "none yet") + (f" and {left_out} more" if left_out else "")


def build_results(run: Run | Observed) -> Results:
    """What a run says."""
    observed = observe(run)
    return Results(
        profiled_ns=observed.run.profiled_ns,
        scopes=observed.scopes,
        tree=observed.merged.tree,
        threads=build_thread_results(observed.run, observed.merged),
        losses=observed.run.losses,
        torch=observed.torch,
        memory=observed.memory,
        allocations=observed.allocations,
        samples=observed.samples,
    )


def largest_first(threads: Iterable[ThreadResult]) -> tuple[ThreadResult, ...]:
    """The threads that were in scopes, ordered by ``total_ns``, largest first, then as they came."""
    in_scopes = (thread for thread in threads if thread.tree.roots)
    return tuple(sorted(in_scopes, key=lambda thread: -thread.total_ns))


def build_thread_results(run: Run, merged: MergedStrands) -> tuple[ThreadResult, ...]:
    """Each strand of a run by itself, in the order of the record."""
    return tuple(
        ThreadResult(
            thread_id=strand.thread_id,
            thread_name=strand.thread_name,
            threads=strand.threads,
            tree=strand_tree(run, index),
            parent=parent,
        )
        for index, (strand, parent) in enumerate(zip(run.strands, merged.parents, strict=True))
    )
