"""What stands beside a report: pictures, and a code map."""

from dataclasses import dataclass

from pyrometer.report.map_links import MapLinks


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """Where they are, as seen from the report; None where there is none."""

    flamegraph: str | None = None
    roofline: str | None = None
    on_map: MapLinks | None = None
    """From functions to their places on a code map."""
