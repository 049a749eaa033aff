"""How much a Markdown report says, and what its file is called unless told."""

from enum import StrEnum


class Level(StrEnum):
    """How much a report says."""

    STANDARD = "standard"
    """One screen: where the time goes, what to do about it, what it cost to know."""
    DEEP = "deep"
    """Every table that the run can fill."""
    COMPREHENSIVE = "comprehensive"
    """To be read from top to bottom: a summary, each hot path, a plan, the method."""


FILE_NAMES = {
    Level.STANDARD: "profile-report.md",
    Level.DEEP: "deep-profile-report.md",
    Level.COMPREHENSIVE: "comprehensive-report.md",
}
