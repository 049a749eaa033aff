"""All views of the page, in the order they are listed."""

from pyrometer.analysis.findings.model import Findings
from pyrometer.analysis.observed import Observed
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


def build_page(observed: Observed, findings: Findings) -> Block:
    """All that the page shows; views without data say what is missing."""
    return {
        "headline": headline_of(observed),
        "groups": [
            {
                "title": "Summary",
                "views": [build_overview(observed, findings), build_findings_view(findings)],
            },
            {
                "title": "Steps",
                "views": [
                    build_steps_view(observed),
                    build_phases_view(observed),
                    build_loading_view(observed),
                    build_generation_view(observed),
                ],
            },
            {
                "title": "Model",
                "views": [
                    build_modules_view(observed),
                    build_operators_view(observed),
                    build_roofline_view(observed),
                ],
            },
            {
                "title": "Code",
                "views": [
                    build_functions_view(observed),
                    build_flame_view(observed),
                    build_scopes_view(observed),
                    build_memory_view(observed),
                    build_counters_view(observed),
                ],
            },
            {
                "title": "About",
                "views": [
                    build_machine_view(observed),
                    build_cost_view(observed),
                    build_download_view(observed),
                ],
            },
        ],
    }
