"""All views of the page, in the order they are listed."""

from collections.abc import Sequence

from pyrometer.analysis.findings.model import Findings
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.targets import TargetResult
from pyrometer.report.map_links import MapLinks
from pyrometer.report.page_views.blocks import Block
from pyrometer.report.page_views.findings import build_findings_view
from pyrometer.report.page_views.flame import build_flame_view
from pyrometer.report.page_views.loading import build_generation_view, build_loading_view
from pyrometer.report.page_views.machine import (
    build_cost_view,
    build_counters_view,
    build_download_view,
    build_machine_view,
)
from pyrometer.report.page_views.memory import build_memory_view
from pyrometer.report.page_views.modules import build_modules_view
from pyrometer.report.page_views.operators import build_operators_view
from pyrometer.report.page_views.overview import build_overview, headline_of
from pyrometer.report.page_views.roofline import build_roofline_view
from pyrometer.report.page_views.samples import build_functions_view
from pyrometer.report.page_views.scopes import build_scopes_view
from pyrometer.report.page_views.steps import build_phases_view, build_steps_view

_GROUPS = (
    ("Summary", ("overview", "findings")),
    ("Steps", ("steps", "phases", "loading", "generation")),
    ("Model", ("modules", "operators", "roofline")),
    ("Code", ("functions", "flamegraph", "scopes", "memory", "counters")),
    ("About", ("machine", "cost", "download")),
)


def build_views(
    observed: Observed,
    findings: Findings,
    targets: Sequence[TargetResult] = (),
    on_map: MapLinks | None = None,
) -> tuple[Block, ...]:
    """All that the page shows; views without data say what is missing."""
    views = (
        build_overview(observed, findings),
        build_findings_view(findings, targets),
        build_steps_view(observed),
        build_phases_view(observed),
        build_loading_view(observed),
        build_generation_view(observed),
        build_modules_view(observed),
        build_operators_view(observed),
        build_roofline_view(observed),
        build_functions_view(observed, on_map),
        build_flame_view(observed),
        build_scopes_view(observed),
        build_memory_view(observed),
        build_counters_view(observed),
        build_machine_view(observed),
        build_cost_view(observed),
    )
    return (*views, build_download_view(observed, views))


def build_contents(observed: Observed, views: Sequence[Block]) -> Block:
    """The list of views, and what stands above all of them."""
    entries = {view["key"]: _entry(view) for view in views}
    return {
        "headline": headline_of(observed),
        "groups": [{"title": title, "views": [entries[key] for key in keys]} for title, keys in _GROUPS],
    }


def _entry(view: Block) -> Block:
    empty = all(block["type"] in {"missing", "code"} for block in view["blocks"])
    return {"key": view["key"], "title": view["title"], "count": view["count"], "empty": empty}
