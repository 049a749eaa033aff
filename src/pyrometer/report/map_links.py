"""From the functions of a run to their places on a code map."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from pyrometer.analysis.sampled_functions import SampledFunction
from pyrometer.report.page_views.blocks import GridColumn

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Reports without a map load this module too.
    from pyrometer.analysis.codemap.heat import MapPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class MapLinks:
    """Where functions are on a map, and the address of its page as seen from the report."""

    places: "Mapping[tuple[str, int, str], MapPlace]"
    """By file, first line and name."""
    page: str

    def column(self, functions: Sequence[SampledFunction]) -> GridColumn:
        """A column of links; empty for a function that is not on the map."""
        places = [self._place(one) for one in functions]
        return GridColumn(
            heading="on the map",
            spelled="its place on the code map",
            unit="text",
            values=[None if place is None else place.where for place in places],
            links=[self.address(one) for one in functions],
        )

    def address(self, function: SampledFunction) -> str | None:
        """Where a link to the function's place leads, or to its module's; None: it is not on the map."""
        place = self._place(function)
        if place is None:
            return None
        wanted = f'functions/"{place.where}"' if place.is_function else f'modules/"{".".join(place.part)}"'
        return f"{self.page}#{quote(wanted)}"

    def _place(self, function: SampledFunction) -> "MapPlace | None":
        return self.places.get((function.file, function.first_line, function.name))
