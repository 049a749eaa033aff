"""The tables of a run's PyTorch work as rows of plain values."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.hotspots import Hotspot
from pyrometer.analysis.module_calls import PassFigures
from pyrometer.analysis.modules import ModuleTable
from pyrometer.analysis.operators import OperatorResults
from pyrometer.analysis.steps import GroupResult
from pyrometer.analysis.torch_results import TorchResults
from pyrometer.analysis.torch_roofline import Roofline
from pyrometer.record.torch_run import StepGroup, TorchRun
from pyrometer.report.csv_cells import Cell, CsvTable, Record, table_of


def torch_tables(recorded: TorchRun, results: TorchResults) -> Iterator[CsvTable | None]:
    """Steps, modules, operators, loaders, generation and all else of PyTorch; None where there is nothing."""
    # The groups that results leave out have no steps.
    groups = [group for group in recorded.groups if group.first]
    yield _steps(results.groups)
    yield table_of("step_groups", _step_groups(results.groups))
    yield table_of("phases", _phases(results, groups))
    yield table_of("modules", _modules(results.modules))
    yield table_of("module_tree", _module_tree(results.modules))
    yield table_of("hotspots", _hotspots(results.hotspots))
    yield table_of("loaders", _loaders(results))
    yield table_of("generations", _generations(results))
    yield table_of("generation_positions", _generation_positions(results))
    yield table_of("operators", _operators(results.operators))
    yield table_of("operator_origins", _operator_origins(results.operators))
    yield table_of("roofline", _roofline(results.roofline))


def _steps(groups: Sequence[GroupResult]) -> CsvTable | None:
    """The steps kept one by one; a column for each phase, empty where the group does not have it."""
    if not groups:
        return None
    # By place, as two names may look the same once they are made harmless.
    phases = list(dict.fromkeys(phase.name for group in groups for phase in group.phases))
    header = (
        "group",
        "label",
        "step",
        "is_warmup",
        "started_ns",
        "duration_ns",
        "samples",
        "tokens",
        "allocated_bytes",
        "worker_ns",
        *(f"phase_{name}_ns" for name in phases),
    )
    return CsvTable(name="steps", header=header, rows=_step_rows(groups, phases))


def _step_rows(groups: Sequence[GroupResult], phases: Sequence[str]) -> Iterator[Sequence[Cell]]:
    for number, group in enumerate(groups):
        columns = {phase.name: index for index, phase in enumerate(group.phases)}
        for position, step in enumerate(group.series):
            spent = (
                step.phase_ns[columns[name]]
                if name in columns and columns[name] < len(step.phase_ns)
                else None
                for name in phases
            )
            yield (
                number,
                group.label,
                step.index,
                position < group.warmup.steps,
                step.started_ns,
                step.duration_ns,
                step.samples,
                step.tokens,
                step.allocated_bytes,
                step.worker_ns,
                *spent,
            )


def _step_groups(groups: Sequence[GroupResult]) -> Iterator[Record]:
    for number, group in enumerate(groups):
        nature, warmup, steady = group.nature, group.warmup, group.steady
        yield {
            "group": number,
            "kind": nature.kind.value,
            "label": group.label,
            "trains": nature.trains,
            "optimizers": nature.optimizers,
            "accumulates_batches": nature.accumulates,
            "has_closure": nature.closure,
            "steps": group.steps,
            "total_ns": group.total_ns,
            "warmup_steps": warmup.steps,
            "warmup_total_ns": warmup.total_ns,
            "warmup_end": warmup.end.value,
            "steady_steps": steady.steps,
            "steady_total_ns": steady.total_ns,
            "steady_mean_ns": steady.mean_ns,
            "steady_min_ns": steady.min_ns,
            "steady_p50_ns": steady.p50_ns,
            "steady_p95_ns": steady.p95_ns,
            "steady_max_ns": steady.max_ns,
            "extremes_are_exact": steady.extremes_are_exact,
            "steady_samples": steady.samples,
            "steady_tokens": steady.tokens,
            "samples_per_s": steady.samples_per_second,
            "tokens_per_s": steady.tokens_per_second,
            "steps_per_s": steady.steps_per_second,
            "batches_per_s": steady.batches_per_second,
            "allocated_bytes_per_step": steady.allocated_bytes_per_step,
            "allocations_per_step": group.allocations_per_step,
            "worker_ns_per_step": steady.worker_ns_per_step,
            "batches_per_step": group.batches_per_step,
            "forward_calls_per_step": group.forward_calls_per_step,
            "backward_passes_per_step": group.backward_passes_per_step,
            "grad_forward_share": group.grad_forward_share,
            "first_step_ns": group.first_step.duration_ns,
            "steady_from_ns": group.steady_from_ns,
        }


def _phases(results: TorchResults, recorded: Sequence[StepGroup]) -> Iterator[Record]:
    for number, (group, record) in enumerate(zip(results.groups, recorded, strict=True)):
        for index, phase in enumerate(group.phases):
            yield {
                "group": number,
                "label": group.label,
                "phase": phase.name,
                "total_ns": record.phase_ns[index],
                "steady_total_ns": phase.total_ns,
                "steady_mean_ns": phase.mean_ns,
                "steady_share": phase.share,
                "allocated_bytes": None if record.phase_bytes is None else record.phase_bytes[index],
                "allocations": None if record.phase_allocations is None else record.phase_allocations[index],
                "device_ns_per_step": results.device_ns_per_step(phase.name),
            }


def _pass(name: str, figures: PassFigures) -> Record:
    return {
        f"{name}_calls": figures.calls,
        f"{name}_total_ns": figures.total_ns,
        f"{name}_self_ns": figures.self_ns,
        f"{name}_allocated_bytes": figures.allocated_bytes,
        f"{name}_self_allocated_bytes": figures.self_allocated_bytes,
    }


def _modules(modules: ModuleTable) -> Iterator[Record]:
    for row in modules.rows:
        yield {
            "name": row.name,
            "class": row.kind,
            "places": row.places,
            "ns_per_step": row.ns_per_step,
            "self_ns_per_step": row.self_ns_per_step,
            "share": row.share,
            "self_share": row.self_share,
            **_pass("forward", row.forward),
            **_pass("without_gradients", row.without_gradients),
            **_pass("timed_backward", row.backward),
            **_pass("recomputed", row.recomputed),
            "backward_ns_per_pass": row.backward_ns_per_pass,
            "backward_self_ns_per_pass": row.backward_self_ns_per_pass,
            "parameters": row.parameters,
            "parameter_bytes": row.parameter_bytes,
            "output_bytes_per_call": row.output_bytes_per_call,
            "flops_per_call": row.flops_per_call,
            "flops_are_at_least": row.flops_are_at_least,
            "hidden": row.hidden,
        }


def _module_tree(modules: ModuleTable) -> Iterator[Record]:
    above: list[int] = []
    for index, (depth, place) in enumerate(modules.walk()):
        del above[depth:]
        step = place.per_step
        yield {
            "index": index,
            "parent": above[-1] if above else None,
            "depth": depth,
            "name": place.name,
            "class": place.kind,
            "ns_per_step": place.ns_per_step,
            "share": place.share,
            "calls_per_step": step.calls,
            "forward_ns_per_step": step.forward_ns,
            "forward_self_ns_per_step": step.forward_self_ns,
            "backward_ns_per_step": step.backward_ns,
            "backward_self_ns_per_step": step.backward_self_ns,
            "allocated_bytes_per_step": step.allocated_bytes,
            **_pass("forward", place.forward),
            **_pass("without_gradients", place.without_gradients),
            **_pass("timed_backward", place.backward),
            **_pass("recomputed", place.recomputed),
            "hidden": place.hidden,
        }
        above.append(index)


def _hotspots(hotspots: Sequence[Hotspot]) -> Iterator[Record]:
    for hotspot in hotspots:
        yield {
            "rank": hotspot.rank,
            "kind": hotspot.kind.value,
            "name": hotspot.name,
            "class": hotspot.module_kind,
            "ns_per_step": hotspot.ns_per_step,
            "share": hotspot.share,
            "priority": hotspot.priority.value,
            "causes": hotspot.causes,
            "to_try": hotspot.to_try,
        }


def _loaders(results: TorchResults) -> Iterator[Record]:
    for loader in results.loaders:
        yield {
            "name": loader.name,
            "workers": loader.workers,
            "batches": loader.batches,
            "iterators": loader.iterators,
            "worker_starts": loader.worker_starts,
            "start_ns_per_iterator": loader.start_ns_per_iterator,
            "first_batch_ns_per_iterator": loader.first_batch_ns_per_iterator,
            "wait_ns": loader.wait_ns,
            "wait_ns_per_batch": loader.wait_ns_per_batch,
            "wait_share": loader.wait_share,
            "timed_batches": loader.timed_batches,
            "work_ns_per_batch": loader.work_ns_per_batch,
            "fetch_ns_per_batch": loader.fetch_ns_per_batch,
            "transform_ns_per_batch": loader.transform_ns_per_batch,
            "collate_ns_per_batch": loader.collate_ns_per_batch,
            "worker_busy_share": loader.worker_busy_share,
            "ready_share": loader.ready_share,
            "average_queue": loader.average_queue,
            "verdict": loader.verdict.value,
        }


def _generations(results: TorchResults) -> Iterator[Record]:
    for number, generation in enumerate(results.generations):
        growth = generation.growth
        yield {
            "generation": number,
            "label": generation.label,
            "sequences": generation.sequences,
            "passes": generation.passes,
            "tokens": generation.tokens,
            "total_ns": generation.total_ns,
            "tokens_per_s": generation.tokens_per_second,
            "ns_per_token": generation.ns_per_token,
            "bytes_per_token": generation.bytes_per_token,
            "first_token_ns": generation.first_token_ns,
            "prompt_tokens_per_sequence": generation.prompt_tokens_per_sequence,
            "cache": generation.cache.value,
            "cached_share": generation.cached_share,
            "growth": growth.verdict.value,
            "first_quarter_ns_per_token": growth.first_quarter_ns,
            "last_quarter_ns_per_token": growth.last_quarter_ns,
            "growth_ns_per_position": growth.slope_ns_per_position,
        }


def _generation_positions(results: TorchResults) -> Iterator[Record]:
    for number, generation in enumerate(results.generations):
        for position in generation.positions:
            yield {
                "generation": number,
                "label": generation.label,
                "context_from_tokens": position.low,
                "context_to_tokens": position.high,
                "tokens": position.tokens,
                "ns_per_token": position.ns_per_token,
                "bytes_per_token": position.bytes_per_token,
            }


def _operators(operators: OperatorResults | None) -> Iterator[Record]:
    for number, window in enumerate(() if operators is None else operators.windows):
        for row in window.rows:
            yield {
                "window": number,
                "label": window.label,
                "name": row.name,
                "calls_per_step": row.calls_per_step,
                "total_ns_per_step": row.total_ns_per_step,
                "self_ns_per_step": row.self_ns_per_step,
                "share": row.share,
                "flops_per_step": row.flops_per_step,
                "flops_per_s": row.flops_per_second,
                "input_bytes_per_step": row.input_bytes_per_step,
                "device_ns_per_step": row.device_ns_per_step,
                "shapes": tuple(f"{shapes.calls} × {shapes.shapes}" for shapes in row.shapes),
            }


def _operator_origins(operators: OperatorResults | None) -> Iterator[Record]:
    for number, window in enumerate(() if operators is None else operators.windows):
        for row in window.rows:
            for origin in row.origins:
                yield {
                    "window": number,
                    "operator": row.name,
                    "kind": origin.kind,
                    "phase": origin.phase,
                    "module": origin.module,
                    "scope": origin.scope,
                    "calls_per_step": origin.calls_per_step,
                    "self_ns_per_step": origin.self_ns_per_step,
                    "share_of_operator": origin.share,
                }


def _roofline(roofline: Roofline | None) -> Iterator[Record]:
    if roofline is None or roofline.roofs is None:
        return
    steps = () if roofline.step is None else (roofline.step,)
    for placed in (*steps, *roofline.phases, *roofline.modules, *roofline.operators):
        work = placed.work
        yield {
            "kind": work.kind,
            "name": work.name,
            "calls": work.calls,
            "duration_ns": work.duration_ns,
            "flops": work.flops,
            "moved_bytes": work.moved_bytes,
            "is_at_least": work.at_least,
            "is_estimated": work.estimated,
            "bound": placed.bound.value,
            "flops_per_byte": placed.intensity,
            "flops_per_s": placed.flops_per_s,
            "bytes_per_s": placed.bytes_per_s,
            "compute_share": placed.compute_share,
            "memory_share": placed.memory_share,
            "roof_share": placed.roof_share,
            "why_not_placed": placed.reason or None,
            "roof_flops_per_s": roofline.roofs.flops_per_s,
            "roof_bytes_per_s": roofline.roofs.bytes_per_s,
        }
