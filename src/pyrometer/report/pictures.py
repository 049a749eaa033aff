"""Pictures that stand beside a report."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """Where they are, as seen from the report; None where there is none."""

    flamegraph: str | None = None
    roofline: str | None = None
