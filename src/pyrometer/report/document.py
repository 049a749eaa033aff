"""What a report says, before any renderer decides how it looks.

One pure step from what a run says. A renderer lays out and formats these values and computes none.
"""

from dataclasses import dataclass

from pyrometer.analysis.allocations import AllocationResults
from pyrometer.analysis.counters import CounterResults
from pyrometer.analysis.findings.find import find
from pyrometer.analysis.findings.model import Findings
from pyrometer.analysis.memory import MemoryResult
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.results import build_thread_results, largest_first
from pyrometer.analysis.sample_results import SampleResults
from pyrometer.analysis.scope_table import ScopeSummary
from pyrometer.analysis.torch_results import TorchResults
from pyrometer.record.run import Run
from pyrometer.report import wording
from pyrometer.report.tree_rows import TreeRow, build_thread_rows, build_tree_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The report in one line.

    ``hottest`` is the scope with the most time of its own; ``hottest_share`` is that time's
    share of the run, None where threads ran side by side and a share would mean nothing.
    """

    program: str
    profiled_ns: int
    ending: str
    hottest: ScopeSummary | None
    hottest_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Everything a report shows, in the order it shows it."""

    headline: Headline
    observed: Observed
    findings: Findings
    by_thread: tuple[TreeRow, ...]
    """Each thread with its own tree; nothing unless it was asked for."""
    by_thread_notes: tuple[str, ...]
    scopes: tuple[ScopeSummary, ...]
    """The rows of the table, largest total first."""
    scopes_not_shown: int
    marks: tuple[str, ...]
    """What the marks in the table and the tree mean."""
    apart: tuple[ScopeSummary, ...]
    """Scopes with figures that are in no column of the table."""
    apart_not_shown: int
    shows_allocated: bool
    """Whether the bytes that torch allocated were counted for any scope in the table."""
    shows_open: bool
    shows_suspended: bool
    shows_wall: bool
    apart_notes: tuple[str, ...]
    tree: tuple[TreeRow, ...]
    how_to_read: tuple[str, ...]
    cost: tuple[str, ...]
    losses: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]

    @property
    def run(self) -> Run:
        """What it is all about."""
        return self.observed.run

    @property
    def torch(self) -> TorchResults | None:
        """None when the program did not use PyTorch."""
        return self.observed.torch

    @property
    def memory(self) -> MemoryResult | None:
        """None when it was not recorded."""
        return self.observed.memory

    @property
    def allocations(self) -> AllocationResults | None:
        """None when they were not counted."""
        return self.observed.allocations

    @property
    def counters(self) -> CounterResults | None:
        """None when nothing was to be counted."""
        return self.observed.counters

    @property
    def samples(self) -> SampleResults | None:
        """None when no stacks were sampled."""
        return self.observed.samples

    @property
    def share_is_known(self) -> bool:
        """Whether any time was profiled that there could be shares of."""
        return self.headline.profiled_ns > 0

    @property
    def asks_for_marks(self) -> bool:
        """Whether there is nothing to show unless the program marks its parts."""
        sampled = self.samples is not None and self.samples.overall.parts.cpu_ns > 0
        return not self.scopes and not sampled and (self.torch is None or self.torch.main is None)


def build_document(
    observed: Observed, *, top: int, by_thread: bool = False, findings: Findings | None = None
) -> Document:
    """What a report of this run says, with the ``top`` largest scopes and threads.

    ``findings`` spares looking for them again.
    """
    run = observed.run
    merged, summaries = observed.merged, observed.scopes
    # Only when asked for: the threads' trees take as long to build as the whole one.
    threads = largest_first(build_thread_results(run, merged)) if by_thread else ()
    scopes = summaries[:top]
    apart = tuple(
        scope for scope in summaries if scope.open_calls or scope.suspended_ns or scope.wall_ns is not None
    )
    # Twice the table: a scope stands in the tree once for each place it is called from.
    most_tree_scopes = 2 * top
    return Document(
        headline=_build_headline(run, summaries),
        observed=observed,
        findings=find(observed) if findings is None else findings,
        by_thread=build_thread_rows(threads, most_threads=top, most_scopes=most_tree_scopes),
        by_thread_notes=wording.describe_threads(threads[:top]),
        scopes=scopes,
        scopes_not_shown=len(summaries) - len(scopes),
        marks=wording.describe_marks(scopes, apart[:top], merged.tree),
        apart=apart[:top],
        apart_not_shown=len(apart[top:]),
        shows_allocated=any(scope.allocated_bytes is not None for scope in scopes),
        shows_open=any(scope.open_calls for scope in apart),
        shows_suspended=any(scope.suspended_ns for scope in apart),
        shows_wall=any(scope.wall_ns is not None for scope in apart),
        apart_notes=wording.describe_apart(apart),
        tree=build_tree_rows(merged.tree, most_scopes=most_tree_scopes),
        how_to_read=wording.HOW_TO_READ,
        cost=wording.describe_cost(run),
        losses=tuple(wording.describe_loss(loss) for loss in run.losses) or ("Nothing was lost.",),
        facts=wording.describe_facts(run),
    )


def _build_headline(run: Run, summaries: tuple[ScopeSummary, ...]) -> Headline:
    hottest = max(summaries, key=lambda scope: scope.self_ns, default=None)
    known = hottest is not None and not hottest.parallel and run.profiled_ns
    return Headline(
        program=run.program.name,
        profiled_ns=run.profiled_ns,
        ending=wording.describe_ending(run.outcome),
        hottest=hottest,
        hottest_share=hottest.self_ns / run.profiled_ns if known and hottest else None,
    )
