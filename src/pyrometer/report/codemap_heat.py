"""A run on a code map: where time went, and which hot places are large, or complex; colours for it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pyrometer.analysis.codemap.heat import (
    COMPLEX_FROM,
    LARGE_LINES,
    LEAST_SHARE,
    Heat,
    HeatBy,
    HotFunction,
    MapHeat,
)
from pyrometer.analysis.codemap.inventory import OWN_FILE, Part
from pyrometer.analysis.codemap.picture import OTHERS
from pyrometer.analysis.codemap.results import MapResults
from pyrometer.report.blocks import Column, Lines, Row, Section, Table, notes
from pyrometer.report.cells import UNKNOWN_CELL
from pyrometer.units import format_bytes, format_count, format_duration, format_share

_COLD, _HOT = (238, 241, 244), (242, 112, 58)


def heat_sections(results: MapResults, heat: MapHeat, *, top: int | None) -> Iterator[Section]:
    """Where the run's time went on the map."""
    yield _parts(results, heat)
    hot = heat.hot()
    yield _functions("Hot functions", heat, hot, top, said=_RULE)
    large = [one for one in hot if one.place.function.lines >= LARGE_LINES]
    yield _functions("Hot and large", heat, large, top, said=f"Of those, {LARGE_LINES} lines and more.")
    tangled = [one for one in hot if one.place.function.complexity >= COMPLEX_FROM]
    yield _functions(
        "Hot and complex", heat, tangled, top, said=f"Of those, a complexity of {COMPLEX_FROM} and more."
    )
    yield _untouched(heat, top)


_RULE = (
    f"At least {100 * LEAST_SHARE:g} % of the CPU time in code of their own, and in native code they call."
)


def _parts(results: MapResults, heat: MapHeat) -> Section:
    rows = []
    for part in results.tree.parts.values():
        its = heat.parts.get(part.path)
        if its is not None:
            rows.append((its, Row(name=part.name, cells=(*_heat_cells(heat, its), f"{part.lines.code:,}"))))
    if not rows:
        said = "No function of the map was met by any sample."
        return Section(title=f"Heat of {heat.program}", blocks=(Lines(lines=(said,)),))
    rows.sort(key=lambda one: -one[0].own_ns)
    elsewhere = heat.cpu_ns - heat.on_map_ns
    samples, cpu = format_count(heat.samples, "sample"), format_duration(heat.cpu_ns)
    told = (
        f"{samples} of stacks over {cpu} of CPU time; {format_duration(elsewhere)} of it is not on the map.",
    )
    return Section(
        title=f"Heat of {heat.program}",
        blocks=(
            Table(
                columns=(*_columns(heat), Column(heading="code", dropped=1)),
                rows=tuple(row for _, row in rows),
                names="module",
            ),
            *notes(told),
        ),
    )


def _columns(heat: MapHeat) -> tuple[Column, ...]:
    columns = (Column(heading="own"), Column(heading="%"), Column(heading="total"))
    return (*columns, Column(heading="allocated", dropped=2)) if heat.has_allocations else columns


def _heat_cells(heat: MapHeat, its: Heat) -> tuple[str, ...]:
    cells = (format_duration(its.own_ns), format_share(heat.share(its)), format_duration(its.total_ns))
    if not heat.has_allocations:
        return cells
    return (*cells, UNKNOWN_CELL if its.allocated_bytes is None else format_bytes(its.allocated_bytes))


def _functions(
    title: str, heat: MapHeat, found: Sequence[HotFunction], top: int | None, *, said: str
) -> Section:
    if not found:
        return Section(title=title, blocks=(Lines(lines=(f"None. {said}",)),))
    rows = tuple(
        Row(
            name=one.place.function.name,
            cells=(
                *_heat_cells(heat, one.heat),
                _known(one.place.function.complexity),
                _known(one.place.function.lines),
                f"{one.place.file.path}:{one.place.function.line}",
            ),
        )
        for one in found[:top]
    )
    columns = (
        *_columns(heat),
        Column(heading="complexity", dropped=3),
        Column(heading="lines", dropped=4),
        Column(heading="where", left=True, widest=60, dropped=5),
    )
    left = len(found) - len(rows)
    more = [f"{format_count(left, 'cooler one')} not shown; --all shows all."] if left > 0 else []
    return Section(
        title=title, blocks=(Table(columns=columns, rows=rows, names="function"), *notes((said, *more)))
    )


def _known(count: int) -> str:
    return f"{count:,}" if count else UNKNOWN_CELL


def _untouched(heat: MapHeat, top: int | None) -> Section:
    if not heat.untouched:
        return Section(title="Never touched", blocks=(Lines(lines=("Every file with functions was met.",)),))
    rows = tuple(
        Row(name=file.path, cells=(f"{file.lines.code:,}", f"{len(file.functions):,}"))
        for file in heat.untouched[:top]
    )
    columns = (Column(heading="code"), Column(heading="functions"))
    left = len(heat.untouched) - len(rows)
    more = [f"{format_count(left, 'smaller file')} not shown; --all shows all."] if left > 0 else []
    said = f"No function in them was met by any of the {format_count(heat.samples, 'sample')}."
    return Section(
        title=f"Never touched in this run: {format_count(len(heat.untouched), 'file')}",
        blocks=(Table(columns=columns, rows=rows, names="file"), *notes((said, *more))),
    )


HEAT_NAMES = {
    HeatBy.OWN: "CPU time of its own",
    HeatBy.TOTAL: "CPU time while on the stack",
    HeatBy.ALLOCATED: "bytes allocated",
}


def box_heats(
    names: Iterable[str], together: Sequence[str], inside: Part, heat: MapHeat, by: HeatBy
) -> dict[str, int | None]:
    """How warm each box in a picture of a part is; None where no sample met it.

    Those of which it is not known are left out: several parts in one box may have been on the same stack.
    """
    found: dict[str, int | None] = {}
    for name in names:
        met = _met(together if name == OTHERS else (name,), inside, heat)
        if by is not HeatBy.TOTAL or len(met) < 2:
            found[name] = sum(map(by.of, met)) if met else None
    return found


def _met(names: Iterable[str], inside: Part, heat: MapHeat) -> list[Heat]:
    found: list[Heat | None] = []
    for name in names:
        if name == OWN_FILE and name not in inside.parts:
            found += (heat.files.get(file.path) for file in inside.files)
        else:
            found.append(heat.parts.get((*inside.path, name)))
    return [one for one in found if one is not None]


def heat_colors(warmths: Mapping[str, int | None]) -> dict[str, str]:
    """The colours of boxes: from cold to the hottest of them."""
    highest = max((warmth or 0 for warmth in warmths.values()), default=0)
    return {name: _color_of((warmth or 0) / highest if highest else 0.0) for name, warmth in warmths.items()}


def _color_of(warmth: float) -> str:
    """A colour between cold (0) and hot (1)."""
    return "#" + "".join(
        f"{round(cold + (hot - cold) * warmth):02x}" for cold, hot in zip(_COLD, _HOT, strict=True)
    )


def describe_heat(heat: MapHeat, amount: int | None, by: HeatBy) -> str:
    """How warm a box is, in a few words."""
    if amount is None:
        return "; not met by any sample"
    if by is HeatBy.ALLOCATED:
        return f"; {format_bytes(amount)} allocated"
    share = format_share(amount / heat.cpu_ns if heat.cpu_ns else 0.0)
    how = "of its own" if by is HeatBy.OWN else "while on the stack"
    return f"; {share} of the CPU time, {format_duration(amount)} {how}"
