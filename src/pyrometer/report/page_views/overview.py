"""The run at a glance: headline figures, a step as a bar, the verdict, and what matters most."""

from collections.abc import Iterator

from pyrometer.analysis.findings.model import Findings
from pyrometer.analysis.hotspots import Hotspot
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.steps import GroupResult
from pyrometer.analysis.torch_results import TorchResults
from pyrometer.report.page_views.blocks import Block, GridColumn, grid, heading, missing, name_of, plain, view
from pyrometer.report.page_views.findings import finding_block
from pyrometer.report.page_views.steps import colours_of, phase_bar, step_chart
from pyrometer.report.torch_wording import NO_STEPS, describe_group, describe_left_out, format_figure
from pyrometer.report.wording import describe_ending
from pyrometer.units import format_bytes, format_count, format_duration, format_share

_FINDINGS_SHOWN = 5
_SCOPES_SHOWN = 8
_NOTHING = (
    "No PyTorch work and no scopes were recorded. Run a PyTorch program, or mark the parts that matter "
    "with pyrometer.scope."
)


def build_overview(observed: Observed, findings: Findings) -> Block:
    """What to look at first."""
    blocks: list[Block] = [{"type": "verdict", "text": plain(findings.verdict)}]
    blocks.append({"type": "cards", "cards": list(_cards(observed))})
    torch = observed.torch
    main = None if torch is None else torch.main
    if torch is not None and main is not None:
        blocks += [heading(f"A step: {describe_group(main)}"), phase_bar(main, colours_of(torch))]
    elif torch is not None:
        blocks.append(missing(NO_STEPS))
    blocks += _finding_blocks(findings)
    if torch is not None and main is not None:
        blocks.append(
            {"type": "steps", "groups": [step_chart(torch, main, colours_of(torch))], "small": True}
        )
        # Findings say what to try from evidence; without any, what is likely is better than nothing.
        blocks += _hotspots(torch.hotspots, advised=not findings.found)
    else:
        blocks += _scope_blocks(observed)
    return view("overview", "Overview", blocks)


def _card(label: str, figure: str, note: str = "") -> Block:
    value, _, unit = figure.partition(" ")
    return {"label": label, "value": value, "unit": unit, "note": plain(note)}


def _cards(observed: Observed) -> Iterator[Block]:
    run, torch = observed.run, observed.torch
    if torch is not None and torch.main is not None:
        yield from _step_cards(torch, torch.main)
    for generation in () if torch is None else torch.generations[:1]:
        if generation.ns_per_token is not None:
            yield _card("A token", format_duration(generation.ns_per_token), generation.cache.value)
    if observed.memory is not None:
        yield _card("Peak memory", format_bytes(observed.memory.peak_bytes), "of the process")
    if torch is not None and torch.headline is not None and torch.headline.peak_gpu_bytes is not None:
        yield _card("GPU peak", format_bytes(torch.headline.peak_gpu_bytes))
    if torch is not None and torch.modules.parameters is not None:
        yield _card("Parameters", f"{torch.modules.parameters:,}", _parameter_bytes(torch))
    yield _card("Profiled", format_duration(run.profiled_ns), _steps_and_samples(observed))
    if run.cost.hook_ns is not None and run.profiled_ns:
        share = format_share(run.cost.hook_ns / run.profiled_ns)
        yield _card("Cost of profiling", share, "of the run, in hooks")
    elif run.profiled_ns:
        share = format_share(run.cost.scopes_ns / run.profiled_ns)
        yield _card("Cost of profiling", share, "of the run, in scopes")


def _step_cards(torch: TorchResults, main: GroupResult) -> Iterator[Block]:
    steady = main.steady
    counted = format_count(steady.steps, "steady step")
    if steady.samples_per_second is not None:
        yield _card("Samples a second", format_figure(steady.samples_per_second), f"over {counted}")
    if steady.tokens_per_second is not None:
        yield _card("Tokens a second", format_figure(steady.tokens_per_second), f"over {counted}")
    if steady.samples_per_second is None and steady.steps_per_second is not None:
        yield _card("Steps a second", format_figure(steady.steps_per_second), f"over {counted}")
    yield _card("Step, median", format_duration(steady.p50_ns), f"mean {format_duration(steady.mean_ns)}")
    yield _card(
        "Step, 95th percentile", format_duration(steady.p95_ns), f"longest {format_duration(steady.max_ns)}"
    )
    biggest = torch.headline.biggest_phase if torch.headline is not None else main.biggest_phase
    yield _card("Biggest phase", format_share(biggest.share), name_of(biggest.name))


def _parameter_bytes(torch: TorchResults) -> str:
    size = torch.modules.parameter_bytes
    return "" if size is None else format_bytes(size)


def _steps_and_samples(observed: Observed) -> str:
    parts = []
    if observed.torch is not None and observed.torch.groups:
        steps = format_count(sum(group.steps for group in observed.torch.groups), "step")
        parts.append(f"{steps}{describe_left_out(observed.torch)}")
    if observed.samples is not None:
        parts.append(format_count(observed.samples.samples, "stack sample"))
    return ", ".join(parts)


def _finding_blocks(findings: Findings) -> Iterator[Block]:
    if findings.found:
        yield heading("What to change first")
        yield {
            "type": "topFindings",
            "found": [finding_block(finding) for finding in findings.found[:_FINDINGS_SHOWN]],
            "more": max(len(findings.found) + findings.not_shown - _FINDINGS_SHOWN, 0),
        }


def _hotspots(hotspots: tuple[Hotspot, ...], *, advised: bool) -> Iterator[Block]:
    if not hotspots:
        return
    yield heading("Hotspots")
    yield grid(
        "hotspots",
        heading="hotspot",
        names=[spot.name for spot in hotspots],
        columns=[
            GridColumn(
                heading="what",
                unit="text",
                values=[
                    spot.kind.value if spot.module_kind is None else f"{spot.kind.value}, {spot.module_kind}"
                    for spot in hotspots
                ],
            ),
            GridColumn(
                heading="%",
                spelled="% of the step",
                unit="share",
                values=[spot.share for spot in hotspots],
                bar=True,
            ),
            GridColumn(heading="a step", unit="duration", values=[spot.ns_per_step for spot in hotspots]),
            GridColumn(heading="priority", unit="text", values=[spot.priority.value for spot in hotspots]),
        ],
        details=[_advice(spot) for spot in hotspots] if advised else None,
    )


def _advice(spot: Hotspot) -> str:
    return f"Likely: {'; '.join(spot.causes)}. Try: {'; '.join(spot.to_try)}."


def _scope_blocks(observed: Observed) -> Iterator[Block]:
    scopes = sorted(observed.scopes, key=lambda scope: -scope.self_ns)[:_SCOPES_SHOWN]
    if not scopes:
        sampled = observed.samples is not None and observed.samples.overall.parts.cpu_ns > 0
        if not sampled and (observed.torch is None or observed.torch.main is None):
            yield missing(_NOTHING)
        return
    yield heading("Scopes with most time of their own")
    yield grid(
        "largest-scopes",
        heading="scope",
        names=[scope.name for scope in scopes],
        columns=[
            GridColumn(heading="self", unit="duration", values=[scope.self_ns for scope in scopes]),
            GridColumn(heading="total", unit="duration", values=[scope.total_ns for scope in scopes]),
            GridColumn(heading="calls", unit="count", values=[scope.calls for scope in scopes]),
        ],
    )


def headline_of(observed: Observed) -> Block:
    """What stands above all views."""
    run = observed.run
    return {
        "program": name_of(run.program.name),
        "started": plain(run.started_at.replace("T", " ", 1)),
        "version": plain(run.pyrometer_version),
        "ending": plain(describe_ending(run.outcome)),
    }
