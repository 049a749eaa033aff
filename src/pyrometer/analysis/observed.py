"""All that a run says, worked out once: what findings are found in, and reports are made of."""

from dataclasses import dataclass
from functools import cached_property

from pyrometer.analysis.allocations import AllocationResults, build_allocations
from pyrometer.analysis.call_tree import MergedStrands, merge_strands
from pyrometer.analysis.counters import CounterResults, build_counter_results
from pyrometer.analysis.memory import MemoryResult
from pyrometer.analysis.sample_results import SampleResults, build_sample_results
from pyrometer.analysis.scope_table import ScopeSummary, summarize_tree
from pyrometer.analysis.torch_results import TorchResults, build_memory_results, build_torch_results
from pyrometer.record.run import Run


# Without slots: what only some reports need is worked out when it is asked for, and kept.
@dataclass(frozen=True, kw_only=True)
class Observed:
    """A run with the results of each of its parts; a part that was not recorded is None."""

    run: Run
    torch: TorchResults | None
    memory: MemoryResult | None
    allocations: AllocationResults | None
    counters: CounterResults | None
    samples: SampleResults | None

    @cached_property
    def merged(self) -> MergedStrands:
        """The scopes of all threads as one tree, and where in it each thread hangs."""
        return merge_strands(self.run)

    @cached_property
    def scopes(self) -> tuple[ScopeSummary, ...]:
        """Each scope's summary, ordered by ``total_ns``, largest first, then by name."""
        return summarize_tree(self.merged.tree)


def observe(run: Run | Observed) -> Observed:
    """What a run says; of one that has been observed already nothing is worked out again."""
    if isinstance(run, Observed):
        return run
    torch = build_torch_results(run)
    return Observed(
        run=run,
        torch=torch,
        memory=build_memory_results(run, None if torch is None else torch.main),
        allocations=build_allocations(run),
        counters=build_counter_results(run.counters),
        samples=build_sample_results(run),
    )
