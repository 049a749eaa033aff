"""Data loading, and text made token by token."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.generation import GenerationResult
from pyrometer.analysis.loading import LoaderResult
from pyrometer.analysis.observed import Observed
from pyrometer.report.blocks import Pairs
from pyrometer.report.cells import SPACIOUS
from pyrometer.report.page_views.blocks import (
    Block,
    GridColumn,
    bullets,
    grid,
    heading,
    missing,
    pairs,
    plain,
    view,
)
from pyrometer.report.page_views.steps import NO_TORCH
from pyrometer.report.torch_generation import build_generation_section
from pyrometer.report.torch_sections import describe_loader
from pyrometer.report.torch_wording import short

_NO_LOADER = (
    "No batch came from a torch.utils.data.DataLoader while the profiler was on; loading by other means is "
    "in the phases data and other."
)
_NO_GENERATION = "No text was made token by token: no model was called with its own output again and again."


def build_loading_view(observed: Observed) -> Block:
    """Each loader with its verdict."""
    title = "Data loading"
    if observed.torch is None:
        return view("loading", title, [missing(NO_TORCH)])
    if not observed.torch.loaders:
        return view("loading", title, [missing(_NO_LOADER)])
    loaders = observed.torch.loaders
    return view(
        "loading",
        title,
        [
            bullets(f"{short(loader.name)}: {describe_loader(loader)}" for loader in loaders),
            _loader_table(loaders),
        ],
        count=len(loaders),
    )


def _loader_table(loaders: Sequence[LoaderResult]) -> Block:
    times = (
        ("waited", "what the program waited, a batch", "wait"),
        ("worked", "making a batch", "work"),
        ("fetch", "of it getting the samples", "fetch"),
        ("transform", "of it the dataset's transform", "transform"),
        ("collate", "of it putting samples together", "collate"),
    )
    columns = [
        GridColumn(heading="workers", unit="count", values=[loader.workers for loader in loaders]),
        GridColumn(heading="batches", unit="count", values=[loader.batches for loader in loaders]),
        GridColumn(
            heading="% waited",
            spelled="% of the steps' time",
            unit="share",
            values=[loader.wait_share for loader in loaders],
            bar=True,
        ),
        *(
            GridColumn(
                heading=name,
                spelled=spelled,
                unit="duration",
                values=[getattr(loader, f"{figure}_ns_per_batch") for loader in loaders],
            )
            for name, spelled, figure in times
        ),
        GridColumn(
            heading="% busy",
            spelled="% of the workers' time",
            unit="share",
            values=[loader.worker_busy_share for loader in loaders],
        ),
        GridColumn(
            heading="% ready",
            spelled="% of the requests that found their batch ready",
            unit="share",
            values=[loader.ready_share for loader in loaders],
        ),
        GridColumn(
            heading="queue",
            spelled="finished batches that lay waiting at a request",
            unit="figure",
            values=[loader.average_queue for loader in loaders],
        ),
    ]
    return grid("loaders", heading="loader", names=[loader.name for loader in loaders], columns=columns)


def build_generation_view(observed: Observed) -> Block:
    """What a token costs, and how that grows with the context."""
    title = "Generation"
    if observed.torch is None:
        return view("generation", title, [missing(NO_TORCH)])
    generations = observed.torch.generations
    if not generations:
        return view("generation", title, [missing(_NO_GENERATION)])
    blocks: list[Block] = []
    for number, generation in enumerate(generations, start=1):
        blocks += _generation_blocks(generation, number)
    return view("generation", title, blocks)


def _generation_blocks(generation: GenerationResult, number: int) -> Iterator[Block]:
    section = build_generation_section(generation, SPACIOUS)
    yield heading(section.title)
    for block in section.blocks:
        if isinstance(block, Pairs):
            yield pairs(block.rows)
    positions = generation.positions
    if not positions:
        return
    names = [
        f"{position.low:,}" if position.low == position.high else f"{position.low:,}–{position.high:,}"
        for position in positions
    ]
    growth = generation.growth.verdict.value
    yield {
        "type": "bars",
        "title": "Cost of a token by the length of its context",
        "names": names,
        "unit": "duration",
        "values": [position.ns_per_token for position in positions],
        "axis": "tokens of context",
        "summary": plain(f"Cost of a token by the length of its context: {growth}."),
    }
    yield grid(
        f"positions-{number}",
        heading="context",
        names=names,
        columns=[
            GridColumn(heading="tokens", unit="count", values=[position.tokens for position in positions]),
            GridColumn(
                heading="a token", unit="duration", values=[position.ns_per_token for position in positions]
            ),
            GridColumn(
                heading="allocated",
                spelled="allocated a token",
                unit="bytes",
                values=[position.bytes_per_token for position in positions],
            ),
        ],
    )
