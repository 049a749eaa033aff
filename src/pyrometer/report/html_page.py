"""The report of a run as one HTML page: what ``page_shell`` says of pages holds of it."""

import base64
import zlib
from collections.abc import Sequence

from pyrometer.analysis.findings.find import find
from pyrometer.analysis.findings.model import Findings
from pyrometer.analysis.observed import Observed, observe
from pyrometer.analysis.targets import TargetResult
from pyrometer.record.format import encode_run
from pyrometer.record.run import Run
from pyrometer.report.map_links import MapLinks
from pyrometer.report.page_shell import Picture, fill_page
from pyrometer.report.page_views.roofline import roofline_picture
from pyrometer.report.page_views.views import build_contents, build_views

# A gzip file, so that what is downloaded where no stream can be unpacked is one that we read as well.
_GZIP = 31


def render_html(
    run: Run | Observed,
    *,
    findings: Findings | None = None,
    targets: Sequence[TargetResult] = (),
    on_map: MapLinks | None = None,
) -> str:
    """The page of a run; ``findings`` are found anew unless they are given."""
    observed = observe(run)
    views = build_views(observed, find(observed) if findings is None else findings, targets, on_map)
    return fill_page(
        subject=observed.run.program.name,
        command="pyrometer report RUN",
        contents=build_contents(observed, views),
        views=views,
        pictures=(Picture(key="roofline", svg=roofline_picture(observed) or ""),),
        run_data=_packed(encode_run(observed.run)),
    )


def _packed(data: bytes) -> str:
    packer = zlib.compressobj(level=9, wbits=_GZIP)
    return base64.b64encode(packer.compress(data) + packer.flush()).decode("ascii")
