"""The comprehensive report: a document to be read from top to bottom."""

from collections.abc import Iterator

from pyrometer.analysis.hot_places import HotPlaces, find_hot_places
from pyrometer.analysis.plan import Plan, build_plan
from pyrometer.report.allocation_sections import build_allocation_sections
from pyrometer.report.blocks import Block, Bullets, Lines, Pairs, Picture, Section, notes, together
from pyrometer.report.cache_section import build_cache_section
from pyrometer.report.call_tree_section import build_call_tree_section
from pyrometer.report.cells import SPACIOUS
from pyrometer.report.document import Document
from pyrometer.report.findings_section import build_opportunity_section
from pyrometer.report.findings_wording import describe_strengths
from pyrometer.report.garbage_section import build_garbage_section
from pyrometer.report.glance_section import glance_rows
from pyrometer.report.hot_path_sections import build_hot_path_section, build_ranked_section
from pyrometer.report.method_section import (
    build_command_section,
    build_configuration_section,
    build_method_section,
)
from pyrometer.report.model_tables import build_model_tables
from pyrometer.report.pictures import Pictures
from pyrometer.report.plan_section import build_plan_section
from pyrometer.report.scope_sections import build_tree_section
from pyrometer.report.torch_baseline import build_default_targets
from pyrometer.report.torch_modules import build_module_section
from pyrometer.report.torch_sections import build_flow_sections, build_memory_section
from pyrometer.report.torch_steps import build_step_sections

SUMMARY_TITLE = "Executive summary"
STEPS_TITLE = "Steps and phases"
HOT_PLACES_TITLE = "Hot paths"
MODEL_TITLE = "The model and its data"
MEMORY_TITLE = "Memory"
TREE_TITLE = "Call tree"
RECOMMENDATIONS_TITLE = "Recommendations"
TARGETS_TITLE = "Targets"
COST_TITLE = "Own cost and losses"

_MOST_RANKED = 10
_MOST_ROWS = 10
_MOST_FRAMES = 24
_ELSEWHERE = "Sections named as evidence that are not here are in the deep report: --level deep."
_MEMORY_TITLES = ("Allocations", "Allocation hot spots")


def build_comprehensive_sections(
    document: Document, *, pictures: Pictures, targets: Section | None
) -> Iterator[Section]:
    """Summary, steps, hot paths, model, memory, tree, recommendations, plan, targets, method.

    Their titles have none of the program's words, so that they can be linked.
    """
    torch, found = document.torch, document.findings.found
    hot = find_hot_places(document.observed, found)
    plan = build_plan(found, torch)
    yield _summary(document, hot, plan)
    if torch is not None:
        yield together(STEPS_TITLE, build_step_sections(torch))
    yield _hot_paths(document, hot, pictures)
    if torch is not None:
        model = build_module_section(torch.modules, SPACIOUS, top=_MOST_ROWS)
        flow = build_flow_sections(torch, document.memory, SPACIOUS)
        parts = [*([] if model is None else [model]), *build_model_tables(torch)]
        parts += (section for section in flow if section.title != MEMORY_TITLE)
        yield together(MODEL_TITLE, parts)
    yield _memory(document)
    yield from _tree(document)
    advice = build_opportunity_section(document.findings, praised=False)
    elsewhere = notes([_ELSEWHERE] if found else [])
    yield Section(title=RECOMMENDATIONS_TITLE, blocks=(*advice.blocks, *elsewhere))
    yield build_plan_section(plan)
    yield from _targets(document, targets)
    yield build_method_section(document)
    yield build_command_section(document.run)
    yield build_configuration_section(document)
    yield Section(title=COST_TITLE, blocks=(Bullets(lines=document.cost), Bullets(lines=document.losses)))


def _summary(document: Document, hot: HotPlaces, plan: Plan) -> Section:
    blocks: list[Block] = [Pairs(rows=tuple(glance_rows(document, hot, plan)))]
    strengths = describe_strengths(document.findings)
    if strengths:
        blocks += [Lines(lines=("Good already:",)), Bullets(lines=strengths)]
    return Section(title=SUMMARY_TITLE, blocks=tuple(blocks))


def _hot_paths(document: Document, hot: HotPlaces, pictures: Pictures) -> Section:
    blocks = list(build_ranked_section(document, hot, most=_MOST_RANKED).blocks)
    if pictures.flamegraph is not None:
        blocks.append(Picture(text="Flame graph of the CPU time", target=pictures.flamegraph, opens=True))
    one_by_one = build_hot_path_section(hot)
    blocks += () if one_by_one is None else one_by_one.blocks
    return Section(title=HOT_PLACES_TITLE, blocks=tuple(blocks))


def _memory(document: Document) -> Section:
    parts = []
    if document.torch is not None:
        parts.append(build_memory_section(document.torch, document.memory))
    allocations = build_allocation_sections(document.allocations, SPACIOUS, top=_MOST_ROWS)
    parts += (section for section in allocations if section.title in _MEMORY_TITLES)
    garbage = build_garbage_section(document.run, SPACIOUS)
    parts += [] if garbage is None else [garbage]
    parts.append(build_cache_section(document))
    whole = together(MEMORY_TITLE, parts)
    # The first part has the same title as all of it.
    return Section(
        title=MEMORY_TITLE, blocks=whole.blocks[1:] if document.torch is not None else whole.blocks
    )


def _tree(document: Document) -> Iterator[Section]:
    blocks: list[Block] = []
    if document.scopes:
        blocks += build_tree_section(document, SPACIOUS).blocks
    if document.samples is not None:
        tree = build_call_tree_section(document.samples, most=_MOST_FRAMES)
        blocks += () if tree is None else tree.blocks
    if blocks:
        yield Section(title=TREE_TITLE, blocks=tuple(blocks))


def _targets(document: Document, targets: Section | None) -> Iterator[Section]:
    if targets is not None:
        yield Section(title=TARGETS_TITLE, blocks=targets.blocks)
    elif document.torch is not None and document.torch.main is not None:
        yield Section(title=TARGETS_TITLE, blocks=(build_default_targets(document.torch.main),))
