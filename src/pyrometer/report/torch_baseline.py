"""The baseline of a run as tables: what a batch takes, and whether the figures can be relied on."""

from collections.abc import Iterator, Sequence

from pyrometer.analysis.baseline import Measurement, Phases, PhaseShare, Spread, measure
from pyrometer.analysis.criteria import Criterion, Target, deliverables, exit_criteria, improvement_targets
from pyrometer.analysis.steps import GroupResult
from pyrometer.analysis.torch_results import TorchResults
from pyrometer.record.run import Run
from pyrometer.report.adding_up import decimals_for, written_to_sum
from pyrometer.report.blocks import (
    Block,
    Checklist,
    Code,
    Column,
    Lines,
    Pairs,
    Row,
    Section,
    Table,
    notes,
)
from pyrometer.report.cells import UNKNOWN_CELL, write_known
from pyrometer.report.torch_wording import format_figure

BASELINE_FILE = "benchmarks/baseline.json"
NO_GPU = "no GPU (CPU only)"

FOLDING = (
    "Copies count as data loading, the loss as forward, clearing and clipping of gradients as optimizer, "
    "the program's own phases as other."
)
_PHASES = ("data_loading", "forward", "backward", "optimizer", "other")


def build_baseline_sections(run: Run, results: TorchResults) -> Iterator[Section]:
    """Every table of a baseline, of the main group of steps; nothing without steps."""
    if results.main is None:
        return
    measured = measure(run, file_name=BASELINE_FILE, results=results)
    yield Section(title="Baseline", blocks=tuple(_figures(measured)))
    yield Section(title="Baseline: phases", blocks=(_phases(measured.phases), *notes([FOLDING])))
    yield Section(
        title="Baseline: exit criteria", blocks=(_checklist(exit_criteria(run, results, results.main)),)
    )
    yield Section(
        title="Baseline: deliverables", blocks=(_checklist(deliverables(run, results, results.main)),)
    )
    yield Section(title="Baseline: targets", blocks=(build_default_targets(results.main),))
    yield Section(
        title="Baseline: measure it again",
        blocks=(
            Lines(lines=(f"In {measured.configuration.working_directory}:",)),
            Code(lines=measured.commands, language="console"),
        ),
    )


def build_default_targets(main: GroupResult) -> Table:
    """What later runs are to reach where the project sets no targets of its own."""
    return _targets(tuple(improvement_targets(main)))


def _figures(measured: Measurement) -> Iterator[Block]:
    configuration, warmup = measured.configuration, measured.warmup_batches
    yield Pairs(
        rows=(
            ("configuration", " ".join(configuration.argv) or configuration.name),
            ("steps", configuration.steps),
            ("batch size", write_known(configuration.batch_size, "{:,}".format)),
            ("batches measured", f"{configuration.batches:,}, after {warmup:,} of warm-up"),
            ("parameters", write_known(configuration.parameters, "{:,}".format)),
            ("threads", write_known(configuration.threads, str)),
            ("throughput", f"{_rate(measured.data_throughput_samples_per_s)} samples/s"),
            ("", f"{_rate(measured.data_throughput_batches_per_s)} batches/s"),
            ("peak host memory", format_gib(measured.peak_host_memory_gb)),
            ("host memory at the end", format_gib(measured.current_host_memory_gb)),
            ("peak GPU memory", _gpu(measured, format_gib(measured.peak_gpu_memory_gb))),
            ("GPU memory at the end", _gpu(measured, format_gib(measured.current_gpu_memory_gb))),
            (
                "GPU utilisation",
                _gpu(measured, write_known(measured.gpu_util_avg_percent, "{:.1f} %".format)),
            ),
        )
    )
    yield _spreads(measured)


def _spreads(measured: Measurement) -> Table:
    figures = measured.aggregates
    rows = [
        _spread_row("latency of a batch, ms", figures.latency_ms, 3),
        *(_spread_row(f"{_spelled(name)}, ms", getattr(figures.phases_ms, name), 3) for name in _PHASES),
    ]
    if figures.samples_per_s is not None:
        rows.append(_spread_row("samples/s", figures.samples_per_s, 0))
    if figures.host_memory_gb is not None:
        rows.append(_spread_row("host memory, GiB", figures.host_memory_gb, 3))
    columns = tuple(Column(heading=heading) for heading in ("min", "avg", "max"))
    return Table(names="per batch", columns=columns, rows=tuple(rows))


def _spread_row(name: str, spread: Spread, decimals: int) -> Row:
    values = (spread.min, spread.avg, spread.max)
    return Row(name=name, cells=tuple(f"{value:,.{decimals}f}" for value in values))


def _phases(phases: Phases[PhaseShare]) -> Table:
    shares: list[PhaseShare] = [getattr(phases, name) for name in _PHASES]
    total = sum(share.ms for share in shares)
    times = written_to_sum([share.ms for share in shares], total, decimals=max(2, decimals_for(total)))
    percents = written_to_sum([share.percent for share in shares], 100, decimals=1)
    names = [*(_spelled(name) for name in _PHASES), "batch"]
    rows = [
        Row(
            name=name,
            cells=(time, percent),
            total=name == "batch",
        )
        for name, time, percent in zip(names, times, percents, strict=True)
    ]
    columns = (Column(heading="ms"), Column(heading="%"))
    return Table(names="phase", columns=columns, rows=tuple(rows))


def _checklist(criteria: Sequence[Criterion]) -> Checklist:
    return Checklist(
        items=tuple((criterion.met, f"{criterion.what}: {criterion.evidence}") for criterion in criteria)
    )


def _targets(targets: Sequence[Target]) -> Table:
    columns = tuple(Column(heading=heading) for heading in ("now", "change", "target"))
    rows = tuple(
        Row(
            name=target.what,
            cells=(
                f"{format_figure(target.now)} {target.unit}",
                f"{100 * target.change:+.0f} %",
                f"{format_figure(target.goal)} {target.unit}",
            ),
        )
        for target in targets
    )
    return Table(names="figure", columns=columns, rows=rows)


def _spelled(name: str) -> str:
    return name.replace("_", " ")


def format_gib(size_gb: float | None) -> str:
    """A size in GiB, and in MiB beside it."""
    return UNKNOWN_CELL if size_gb is None else f"{size_gb:.3f} GiB ({1_024 * size_gb:,.2f} MiB)"


def _gpu(measured: Measurement, text: str) -> str:
    return NO_GPU if measured.system.gpu is None else text


def _rate(rate: float | None) -> str:
    return write_known(rate, format_figure)
