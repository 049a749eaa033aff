"""The baseline as a page: each configuration with its tables, then all beside each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyrometer.analysis.baseline import Measurement, Phases, PhaseShare, key_of, measure
from pyrometer.analysis.baseline_status import (
    Judged,
    Status,
    judge_growth,
    judge_longest,
    judge_phases,
    judge_spread,
)
from pyrometer.analysis.criteria import Criterion, deliverables, exit_criteria
from pyrometer.analysis.memory import MemoryResult
from pyrometer.analysis.observed import Observed
from pyrometer.analysis.steps import GroupResult
from pyrometer.analysis.torch_results import TorchResults, build_memory_results, build_torch_results
from pyrometer.errors import UsageError
from pyrometer.record.run import Run
from pyrometer.report import wording
from pyrometer.report.adding_up import decimals_for, written_to_sum
from pyrometer.report.blocks import (
    Block,
    Bullets,
    Checklist,
    Code,
    Column,
    Heading,
    Lines,
    Pairs,
    Row,
    Section,
    Table,
    notes,
)
from pyrometer.report.cells import SPACIOUS, UNKNOWN_CELL, write_known
from pyrometer.report.markdown_blocks import sections_as_markdown
from pyrometer.report.torch_baseline import (
    BASELINE_FILE,
    FOLDING,
    NO_GPU,
    build_default_targets,
    format_gib,
)
from pyrometer.report.torch_hotspots import build_hotspot_section
from pyrometer.report.torch_wording import format_figure, sentence, short

_PHASES = {
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "data": "data loading",
    "other": "other",
}
"""In the order of the table, and what they are called there."""
_TARGETS = (
    "What later runs are to reach: three tenths more throughput and a fifth less latency soon, twice the "
    "throughput in the long run."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Configuration:
    """One run with what its tables are made of."""

    label: str
    run: Run
    results: TorchResults
    main: GroupResult
    memory: MemoryResult | None
    measured: Measurement


def render_baseline_page(runs: Sequence[Run | Observed]) -> str:
    """The baseline of one or more runs, each a configuration of a program, as Markdown.

    A run in which no step of a PyTorch program was recorded is a UsageError.
    """
    configurations = _configurations(runs)
    program = configurations[0].run.program.name
    return sections_as_markdown(f"Baseline of {short(program)}", _sections(configurations))


def _configurations(runs: Sequence[Run | Observed]) -> list[_Configuration]:
    if not runs:
        raise UsageError("a baseline is made from one run or more, and there is none")
    found: list[_Configuration] = []
    for given in runs:
        # Not by way of observe(): sampled stacks take long to work out and are in no baseline.
        if isinstance(given, Observed):
            run, results = given.run, given.torch
        else:
            run, results = given, build_torch_results(given)
        measured = measure(run, file_name=BASELINE_FILE, results=results)
        if results is None or results.main is None:
            raise UsageError(f"there is no baseline of {run.program.name}: no step was recorded in it")
        size = measured.configuration.batch_size
        label = f"{'?' if size is None else f'{size:,}'} × {measured.configuration.batches:,}"
        taken = [other.label.partition(" (")[0] for other in found].count(label)
        found.append(
            _Configuration(
                label=label if not taken else f"{label} ({taken + 1})",
                run=run,
                results=results,
                main=results.main,
                memory=build_memory_results(run, results.main),
                measured=measured,
            )
        )
    return found


def _sections(configurations: Sequence[_Configuration]) -> Iterator[Section]:
    yield _overview(configurations)
    if len(configurations) > 1:
        yield _comparison(configurations)
    for configuration in configurations:
        yield _tables(configuration)
    for title, criteria in (("Exit criteria", exit_criteria), ("Deliverables", deliverables)):
        yield Section(
            title=title,
            blocks=tuple(
                block
                for one in configurations
                for block in (
                    Heading(text=one.label),
                    _checklist(criteria(one.run, one.results, one.main)),
                )
            ),
        )
    yield _targets(configurations)
    yield Section(title="Machine and software", blocks=(Pairs(rows=tuple(_facts(configurations[0].run))),))
    yield _commands(configurations)


def _overview(configurations: Sequence[_Configuration]) -> Section:
    columns = (
        Column(heading="arguments", left=True),
        Column(heading="steps", left=True),
        Column(heading="batch size"),
        Column(heading="batches"),
        Column(heading="warm-up"),
        Column(heading="parameters"),
        Column(heading="started", left=True),
    )
    rows = []
    for one in configurations:
        configuration = one.measured.configuration
        sizes = (configuration.batch_size, configuration.batches, one.measured.warmup_batches)
        numbers = (*sizes, configuration.parameters)
        rows.append(
            Row(
                name=one.label,
                cells=(
                    short(key_of(one.run.program)),
                    short(configuration.steps),
                    *(UNKNOWN_CELL if number is None else f"{number:,}" for number in numbers),
                    one.measured.timestamp.replace("T", " ", 1),
                ),
            )
        )
    table = Table(names="configuration", columns=columns, rows=tuple(rows))
    return Section(title="Configurations", blocks=(table,))


def _tables(one: _Configuration) -> Section:
    blocks: list[Block] = [_latency(one), _phases(one), *notes([FOLDING])]
    hotspots = build_hotspot_section(one.results.hotspots, SPACIOUS)
    if hotspots is not None:
        blocks += [Heading(text="Hotspots"), *hotspots.blocks]
    if one.results.strengths:
        lines = tuple(f"{sentence(strength.text)}." for strength in one.results.strengths)
        blocks += [Heading(text="Good already"), Bullets(lines=lines)]
    return Section(title=f"Configuration {one.label}", blocks=tuple(blocks))


def _latency(one: _Configuration) -> Table:
    measured, latency = one.measured, one.measured.batch_latency_ms
    not_judged = Judged(status=Status.NOT_JUDGED, rule="")
    spread, longest = judge_spread(one.main.steady), judge_longest(one.main.steady)
    growth = judge_growth(one.memory)
    has_gpu = measured.system.gpu is not None
    rows = [
        _figure("latency, average", f"{latency.avg:,.3f} ms", spread),
        _figure("latency, shortest", f"{latency.min:,.3f} ms", not_judged),
        _figure("latency, longest", f"{latency.max:,.3f} ms", longest),
        _figure("samples a second", _rate(measured.data_throughput_samples_per_s), not_judged),
        _figure("batches a second", _rate(measured.data_throughput_batches_per_s), not_judged),
        _figure("host memory, at the end", format_gib(measured.current_host_memory_gb), growth),
        _figure("host memory, peak", format_gib(measured.peak_host_memory_gb), not_judged),
        _figure(
            "GPU memory, at the end",
            format_gib(measured.current_gpu_memory_gb) if has_gpu else NO_GPU,
            not_judged,
        ),
        _figure(
            "GPU memory, peak", format_gib(measured.peak_gpu_memory_gb) if has_gpu else NO_GPU, not_judged
        ),
        _figure(
            "GPU utilisation",
            write_known(measured.gpu_util_avg_percent, "{:.1f} %".format) if has_gpu else NO_GPU,
            not_judged,
        ),
    ]
    columns = (
        Column(heading="measured"),
        Column(heading="status", left=True),
        Column(heading="rule", left=True),
    )
    return Table(names="figure", columns=columns, rows=tuple(rows))


def _figure(name: str, value: str, judged: Judged) -> Row:
    return Row(name=name, cells=(value, judged.status.value, judged.rule))


def _phases(one: _Configuration) -> Table:
    judged = dict(judge_phases(one.main))
    times, percents = _written_phases(one)
    rows = [
        Row(name=_PHASES[name], cells=(time, percent, judged[name].status.value, judged[name].rule))
        for name, time, percent in zip(_PHASES, times, percents, strict=False)
    ]
    rows.append(Row(name="batch", cells=(times[-1], percents[-1], "", ""), total=True))
    columns = (
        Column(heading="ms"),
        Column(heading="%"),
        Column(heading="status", left=True),
        Column(heading="rule", left=True),
    )
    return Table(names="phase", columns=columns, rows=tuple(rows))


def _written_phases(one: _Configuration) -> tuple[list[str], list[str]]:
    """The times and shares of the phases in their order, last those of the batch; they add up as written."""
    shares = [_phase_share(one.measured.phases, name) for name in _PHASES]
    total = sum(share.ms for share in shares)
    times = written_to_sum([share.ms for share in shares], total, decimals=max(2, decimals_for(total)))
    return times, written_to_sum([share.percent for share in shares], 100, decimals=1)


def _comparison(configurations: Sequence[_Configuration]) -> Section:
    columns = tuple(Column(heading=one.label) for one in configurations)
    rows = [
        Row(
            name=f"latency, {name}, ms",
            cells=tuple(f"{getattr(one.measured.batch_latency_ms, key):,.3f}" for one in configurations),
        )
        for name, key in (("average", "avg"), ("shortest", "min"), ("longest", "max"))
    ]
    written = [_written_phases(one) for one in configurations]
    rows += [
        Row(
            name=f"{name}, ms (%)",
            cells=tuple(f"{times[index]} ({percents[index]})" for times, percents in written),
        )
        for index, name in enumerate(_PHASES.values())
    ]
    samples = [one.measured.data_throughput_samples_per_s for one in configurations]
    batches = [one.measured.data_throughput_batches_per_s for one in configurations]
    rows.append(Row(name="samples a second", cells=tuple(map(_rate, samples))))
    rows.append(Row(name="batches a second", cells=tuple(map(_rate, batches))))
    peaks = [one.measured.peak_host_memory_gb for one in configurations]
    rows.append(Row(name="host memory, peak", cells=tuple(map(format_gib, peaks))))
    gpus = [one.measured.peak_gpu_memory_gb for one in configurations]
    has_gpu = [one.measured.system.gpu is not None for one in configurations]
    cells = [format_gib(size) if there else NO_GPU for size, there in zip(gpus, has_gpu, strict=True)]
    rows.append(Row(name="GPU memory, peak", cells=tuple(cells)))
    table = Table(names="figure", columns=columns, rows=tuple(rows))
    first, *others = configurations
    lines = tuple(_against(other, first) for other in others)
    return Section(title="Configurations beside each other", blocks=(table, Bullets(lines=lines)))


def _against(one: _Configuration, first: _Configuration) -> str:
    latency = one.measured.batch_latency_ms.avg, first.measured.batch_latency_ms.avg
    rates = one.measured.data_throughput_samples_per_s, first.measured.data_throughput_samples_per_s
    parts = [f"{latency[0] / latency[1]:.2f} × the latency" if latency[1] else "latency cannot be compared"]
    if rates[0] is not None and rates[1]:
        parts.append(f"{rates[0] / rates[1]:.2f} × the samples a second")
    return f"{one.label} against {first.label}: {', '.join(parts)}."


def _checklist(criteria: Sequence[Criterion]) -> Checklist:
    return Checklist(
        items=tuple((criterion.met, f"{criterion.what}: {criterion.evidence}") for criterion in criteria)
    )


def _targets(configurations: Sequence[_Configuration]) -> Section:
    blocks: list[Block] = [Lines(lines=(_TARGETS,))]
    for one in configurations:
        blocks += [Heading(text=one.label), build_default_targets(one.main)]
    return Section(title="Targets", blocks=tuple(blocks))


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    # A page that a team keeps tells nothing of one person's folders, nor of the arguments of one run.
    return (fact for fact in wording.describe_facts(run) if fact[0] not in ("program", "folder"))


def _commands(configurations: Sequence[_Configuration]) -> Section:
    commands = tuple(command for one in configurations for command in one.measured.commands)
    where = Lines(lines=("In the folder it was run in:",))
    blocks = (where, Code(lines=commands, language="console"))
    return Section(title="Measure it again", blocks=blocks)


def _phase_share(phases: Phases[PhaseShare], name: str) -> PhaseShare:
    share: PhaseShare = getattr(phases, "data_loading" if name == "data" else name)
    return share


def _rate(rate: float | None) -> str:
    return UNKNOWN_CELL if rate is None else format_figure(rate)
