"""The deep report: every table that a run can fill, in the order they are read."""

from collections.abc import Iterator

from pyrometer.analysis.hot_places import find_hot_places
from pyrometer.analysis.plan import build_plan
from pyrometer.analysis.torch_results import TorchResults
from pyrometer.report.allocation_sections import build_allocation_sections
from pyrometer.report.blocks import Bullets, Pairs, Picture, Section
from pyrometer.report.cache_section import build_cache_section
from pyrometer.report.call_tree_section import build_call_tree_section
from pyrometer.report.cells import SPACIOUS
from pyrometer.report.counters_section import build_counter_sections
from pyrometer.report.document import Document
from pyrometer.report.findings_section import build_opportunity_section
from pyrometer.report.garbage_section import build_garbage_section
from pyrometer.report.glance_section import build_glance_section
from pyrometer.report.hot_path_sections import build_hot_path_section, build_ranked_section
from pyrometer.report.method_section import build_command_section, build_raw_section, run_options
from pyrometer.report.model_tables import build_model_tables
from pyrometer.report.pictures import Pictures
from pyrometer.report.plan_section import build_plan_section
from pyrometer.report.sample_sections import build_sample_sections
from pyrometer.report.scope_sections import build_scope_sections
from pyrometer.report.torch_baseline import build_baseline_sections
from pyrometer.report.torch_hotspots import build_hotspot_section
from pyrometer.report.torch_roofline import ROOFLINE_TITLE
from pyrometer.report.torch_sections import build_flow_sections, build_model_sections
from pyrometer.report.torch_steps import build_step_sections

_MOST_RANKED = 10


def build_deep_sections(
    document: Document, *, top: int, pictures: Pictures, targets: Section | None
) -> Iterator[Section]:
    """Figures first, then what to do, then the tables behind both, then how it was made."""
    torch, found = document.torch, document.findings.found
    hot = find_hot_places(document.observed, found)
    plan = build_plan(found, torch)
    yield build_glance_section(document, hot, plan)
    if torch is not None:
        yield from build_step_sections(torch)
    yield build_opportunity_section(document.findings)
    yield build_plan_section(plan)
    if torch is not None:
        hotspots = build_hotspot_section(torch.hotspots, SPACIOUS)
        yield from () if hotspots is None else (hotspots,)
    yield build_ranked_section(document, hot, most=min(top, _MOST_RANKED))
    one_by_one = build_hot_path_section(hot)
    yield from () if one_by_one is None else (one_by_one,)
    yield from _samples(document, top=top, pictures=pictures)
    yield from build_scope_sections(document, SPACIOUS)
    if torch is not None:
        yield from _torch(document, torch, top=top, pictures=pictures)
    yield from build_allocation_sections(document.allocations, SPACIOUS, top=top)
    garbage = build_garbage_section(document.run, SPACIOUS)
    yield from () if garbage is None else (garbage,)
    yield build_cache_section(document)
    yield from build_counter_sections(document.counters, SPACIOUS, top=top)
    if torch is not None:
        yield from build_baseline_sections(document.run, torch)
    yield from () if targets is None else (targets,)
    yield from _appendix(document)


def _samples(document: Document, *, top: int, pictures: Pictures) -> Iterator[Section]:
    samples = document.samples
    if samples is None:
        return
    yield from build_sample_sections(samples, SPACIOUS, top=top, whole=True, on_map=pictures.on_map)
    if pictures.flamegraph is not None:
        picture = Picture(text="Flame graph of the CPU time", target=pictures.flamegraph, opens=True)
        yield Section(title="Flame graph", blocks=(picture,))
    tree = build_call_tree_section(samples, most=2 * top)
    yield from () if tree is None else (tree,)


def _torch(document: Document, torch: TorchResults, *, top: int, pictures: Pictures) -> Iterator[Section]:
    for section in build_model_sections(torch, SPACIOUS, top=top):
        if section.title == ROOFLINE_TITLE and pictures.roofline is not None:
            picture = Picture(
                text="Phases and modules below the limits of the machine", target=pictures.roofline
            )
            yield Section(title=section.title, blocks=(*section.blocks, picture))
        else:
            yield section
    yield from build_model_tables(torch)
    yield from build_flow_sections(torch, document.memory, SPACIOUS)


def _appendix(document: Document) -> Iterator[Section]:
    yield Section(title="The profiler's own cost", blocks=(Bullets(lines=document.cost),))
    yield Section(title="Losses", blocks=(Bullets(lines=document.losses),))
    yield Section(title="Machine and software", blocks=(Pairs(rows=document.facts),))
    yield Section(title="What was recorded", blocks=(Pairs(rows=tuple(run_options(document.run))),))
    yield build_raw_section(document.run)
    yield build_command_section(document.run)
