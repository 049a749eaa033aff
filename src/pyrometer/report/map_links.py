"""From the functions of a run to their places on a code map."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from pyrometer.analysis.sampled_functions import SampledFunction
from pyrometer.report.page_views.blocks import GridColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class MapLinks:
    """Where functions are on a map, and the address of its page as seen from the report."""

    places: Mapping[tuple[str, int, str], str]
    """By file, first line and name."""
    page: str

    def column(self, functions: Sequence[SampledFunction]) -> GridColumn:
        """A column of links; empty for a function that is not on the map."""
        places = [self.places.get((one.file, one.first_line, one.name)) for one in functions]
        return GridColumn(
            heading="on the map",
            spelled="its place on the code map",
            unit="text",
            values=places,
            links=[None if place is None else f"{self.page}#functions/{quote(place)}" for place in places],
        )
