"""Every table of a run as CSV: raw figures in base units, with the unit in the column's name.

What is unknown is an empty cell, and a table without rows is not written. Figures add up as in the
reports: phases to their group, functions to all that was sampled.
"""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.allocations import AllocationResults
from pyrometer.analysis.counters import CounterResults, CounterSet
from pyrometer.analysis.findings.model import Findings
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.targets import TargetResult
from pyrometer.record.run import Run
from pyrometer.report.csv_cells import Cell, CsvTable, Record, table_of, write_csv
from pyrometer.report.csv_code import code_tables
from pyrometer.report.csv_torch import torch_tables

TABLE_FILES = frozenset(
    f"{name}.csv"
    for name in (
        "allocations_by_line", "allocations_by_operation", "counters", "facts", "findings", "functions",
        "garbage", "garbage_pauses", "generation_positions", "generations", "hot_paths", "hotspots", "lines",
        "loaders", "losses", "memory_over_time", "module_tree", "modules", "operator_origins", "operators",
        "phases", "roofline", "scope_tree", "scopes", "step_groups", "steps", "targets", "threads",
    )
)  # fmt: skip
"""The names of all files there can be."""


def csv_tables(
    observed: Observed, findings: Findings, targets: Sequence[TargetResult] = ()
) -> Iterator[tuple[str, str]]:
    """Each table that has rows, as the name of its file and the text for it; made one after another."""
    for table in _tables(observed, findings, targets):
        if table is not None:
            yield f"{table.name}.csv", write_csv(table)


def _tables(
    observed: Observed, findings: Findings, targets: Sequence[TargetResult]
) -> Iterator[CsvTable | None]:
    run, allocations = observed.run, observed.allocations
    if run.torch is not None and observed.torch is not None:
        yield from torch_tables(run.torch, observed.torch)
    yield from code_tables(observed)
    if allocations is not None:
        yield table_of("allocations_by_operation", _allocations_by_operation(allocations))
        yield table_of("allocations_by_line", _allocations_by_line(allocations))
    yield table_of("memory_over_time", _memory_over_time(observed))
    yield table_of("garbage", _garbage(run))
    yield table_of("garbage_pauses", _garbage_pauses(run))
    yield table_of("counters", _counters(observed.counters))
    yield table_of("findings", _findings(findings))
    yield table_of("targets", _targets(targets))
    yield table_of("losses", _losses(run))
    yield table_of("facts", _facts(run))


# Memory.


def _allocations_by_operation(allocations: AllocationResults) -> Iterator[Record]:
    """Each operation's own part, and beside it all that was done inside it."""
    spots = {(spot.kind, spot.name): spot for spot in allocations.spots}
    held = {(each.kind, each.name): each for each in allocations.held}
    for key in dict.fromkeys((*spots, *held)):
        own, whole = spots.get(key), held.get(key)
        yield {
            "kind": key[0],
            "name": key[1],
            "self_allocated_bytes": None if own is None else own.bytes,
            "self_tensor_bytes": None if own is None else own.tensor_bytes,
            "self_allocations": None if own is None else own.allocations,
            "self_share": None if own is None else own.share,
            "self_bytes_per_allocation": None if own is None else own.bytes_per_allocation,
            "self_allocations_per_step": None if own is None else own.allocations_per_step,
            "calls": None if whole is None else whole.calls,
            "allocated_bytes": None if whole is None else whole.bytes,
            "tensor_bytes": None if whole is None else whole.tensor_bytes,
            "allocations": None if whole is None else whole.allocations,
            "freed_bytes": None if whole is None else whole.freed_bytes,
            "kept_bytes": None if whole is None else whole.kept_bytes,
            "peak_bytes": None if whole is None else whole.peak_bytes,
        }


def _allocations_by_line(allocations: AllocationResults) -> Iterator[Record]:
    for line in allocations.lines:
        yield {
            "function": line.function,
            "file": line.file,
            "line": line.line,
            "allocated_bytes": line.bytes,
            "error_bytes": line.error_bytes,
            "share": line.share,
            "samples": line.samples,
            "large_allocations": line.large_allocations,
            "mostly_in": line.mostly_in,
        }


def _memory_over_time(observed: Observed) -> Iterator[Record]:
    for at_ns, size_bytes in () if observed.memory is None else observed.memory.series:
        yield {"at_ns": at_ns, "resident_bytes": size_bytes}


def _garbage(run: Run) -> Iterator[Record]:
    for number, generation in enumerate(() if run.garbage is None else run.garbage.generations):
        yield {
            "generation": number,
            "collections": generation.collections,
            "total_ns": generation.total_ns,
            "max_ns": generation.max_ns,
            "collected_objects": generation.collected,
            "uncollectable_objects": generation.uncollectable,
        }


def _garbage_pauses(run: Run) -> Iterator[Record]:
    for pause in () if run.garbage is None else run.garbage.longest:
        yield {
            "started_ns": pause.started_ns,
            "duration_ns": pause.duration_ns,
            "generation": pause.generation,
        }


# Counters.


def _counters(counters: CounterResults | None) -> Iterator[Record]:
    if counters is not None and counters.hardware is not None:
        hardware = counters.hardware
        for counted in (hardware.process, *hardware.threads):
            yield from _counter_set(hardware.source, counted)
    simulated = None if counters is None else counters.simulated
    if simulated is None:
        return
    source, whose = simulated.source, simulated.scope or "process"
    yield _counter(source, whose, "instructions", simulated.instructions, reason=simulated.reason)
    for cache in simulated.caches:
        yield _counter(source, whose, f"{cache.name}: references", cache.references)
        yield _counter(source, whose, f"{cache.name}: misses", cache.misses, rate=cache.rate)


def _counter_set(source: str, counted: CounterSet) -> Iterator[Record]:
    whose = "process" if counted.name is None else f"thread {counted.name}"
    for counter in counted.counters:
        yield _counter(
            source,
            whose,
            counter.name,
            counter.count,
            reason=counter.reason,
            counted_share=counter.counted_share,
            rate=counter.rate,
        )


def _counter(
    source: str,
    whose: str,
    name: str,
    count: int | None,
    *,
    reason: str | None = None,
    counted_share: float | None = None,
    rate: float | None = None,
) -> Record:
    return {
        "source": source,
        "of": whose,
        "name": name,
        "count": count,
        "counted_share": counted_share,
        "miss_rate": rate,
        "why_not_counted": reason,
    }


# What is made of it.


def _findings(findings: Findings) -> Iterator[Record]:
    for finding in findings.found:
        gain, place = finding.gain, finding.place
        yield {
            "rank": finding.rank,
            "kind": finding.kind.value,
            "what": finding.what,
            "priority": finding.priority.value,
            "gain_class": finding.gain_class.value,
            "gain_share": None if gain is None else gain.share,
            "gain_of": None if gain is None else gain.of.value,
            "speedup_at_most": None if gain is None else gain.speedup,
            "gain_basis": None if gain is None else gain.basis,
            "steps": place.group,
            "phase": place.phase,
            "module": place.module,
            "function": place.function,
            "operator": place.operator,
            "loader": place.loader,
            "share": finding.share,
            "duration_ns": finding.duration_ns,
            "size_bytes": finding.size_bytes,
            "evidence": tuple(evidence.text for evidence in finding.evidence),
            "causes": finding.causes,
            "remedies": tuple(remedy.text for remedy in finding.remedies),
            "effort": finding.effort.value,
            "risk": finding.risk.value,
            "knob": finding.knob,
        }


def _targets(targets: Sequence[TargetResult]) -> Iterator[Record]:
    for target in targets:
        yield {
            "name": target.name,
            "metric": target.metric,
            "unit": target.quantity.value,
            "written": target.written,
            "current": target.current,
            "target_low": target.low,
            "target_high": target.high,
            "relative_to": None if target.relative_to is None else target.relative_to.value,
            "reference": target.reference,
            "improvement_share": target.improvement,
            "met": target.met,
            "why_not_told": target.reason,
        }


def _losses(run: Run) -> Iterator[Record]:
    for loss in run.losses:
        yield {"collector": loss.collector, "reason": loss.reason, "count": loss.count}


def _facts(run: Run) -> Iterator[Record]:
    """Program, machine and software, a row each."""
    program, machine, software, torch = run.program, run.machine, run.software, run.torch
    facts: dict[str, Cell] = {
        "program": program.name,
        "arguments": program.argv,
        "working_directory": program.working_directory,
        "commit": None if program.git is None else program.git.commit,
        "branch": None if program.git is None else program.git.branch,
        "has_uncommitted_changes": None if program.git is None else program.git.dirty,
        "outcome": run.outcome.status,
        "outcome_detail": run.outcome.detail,
        "started_at": run.started_at,
        "profiled_ns": run.profiled_ns,
        "pyrometer_version": run.pyrometer_version,
        "recorder": run.recorder,
        "system": machine.system,
        "architecture": machine.architecture,
        "cpu_model": machine.cpu_model,
        "physical_cores": machine.physical_cores,
        "logical_cores": machine.logical_cores,
        "usable_cores": machine.usable_cores,
        "memory_bytes": machine.memory_bytes,
        "peak_resident_bytes": None if run.memory is None else run.memory.peak_bytes,
        "gpu": None if torch is None or torch.gpu is None else torch.gpu.name,
        "torch_version": None if torch is None else torch.torch_version,
        "intra_op_threads": None if torch is None else torch.intra_op_threads,
        "python_version": software.python_version,
        "python_implementation": software.python_implementation,
        "garbage_collector": software.garbage_collector,
    }
    facts |= {f"package {name}": version for name, version in software.packages.items()}
    for fact, value in facts.items():
        yield {"fact": fact, "value": value}
