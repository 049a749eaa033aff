"""A baseline that is kept under a name: the figures of a baseline file, and the runs they were made from.

The runs are what comparisons need, several processes of a configuration if there are; the figures are for
people, and for whoever reads the file with ``json.load``. A program without steps of PyTorch has runs,
and next to no figures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from pyrometer.analysis.baseline import (
    BASELINE_FORMAT,
    BASELINE_VERSION,
    Baseline,
    Batch,
    Figures,
    Measured,
    Measurement,
    System,
    add_measurements,
    baseline_of,
    commit_of,
    gb,
    key_of,
    measure,
    recording_options,
    system_of,
)
from pyrometer.analysis.identity import compare_identities, identity_of, known_facts
from pyrometer.analysis.torch_results import build_torch_results
from pyrometer.errors import UsageError
from pyrometer.record.run import Program, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedBaseline:
    """What is in a baseline file; never both without figures and without runs.

    ``name`` and ``saved_at`` (ISO 8601 with the offset to UTC) are None in one that ``pyrometer run
    --baseline`` wrote, which has no runs.
    """

    name: str | None = None
    saved_at: str | None = None
    figures: Baseline | None
    """Of the configurations that have steps."""
    runs: Mapping[str, tuple[Run, ...]]
    """By configuration, see ``key_of``; all of one configuration have the same identity."""


class PlainConfiguration(Figures, frozen=True, kw_only=True):
    """What was run, of a program without steps."""

    name: str
    argv: tuple[str, ...]
    working_directory: str
    commit: str | None


class PlainBaseline(Figures, frozen=True, kw_only=True):
    """The file where no configuration has steps: what is known of the first, and no figure of batches."""

    format: Literal["pyrometer-baseline"] = BASELINE_FORMAT
    version: Literal[1] = BASELINE_VERSION
    timestamp: str
    configuration: PlainConfiguration
    system: System
    batch_latency_ms: None = None
    data_throughput_samples_per_s: None = None
    gpu_util_avg_percent: None = None
    peak_gpu_memory_gb: None = None
    peak_host_memory_gb: Measured | None
    aggregates: None = None
    per_batch: tuple[Batch, ...] = ()
    commands: tuple[str, ...]
    identity: dict[str, str | None]
    configurations: dict[str, Measurement] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedConfiguration:
    """One configuration of a saved baseline; what was not measured is None."""

    key: str
    program: str
    arguments: tuple[str, ...]
    commit: str | None
    steps: int | None
    step_ms: float | None
    samples_per_s: float | None
    peak_host_memory_gb: float | None
    runs: int
    identity: Mapping[str, str | None] | None
    """None where an older Pyrometer wrote the file."""
    commands: tuple[str, ...]


def save_runs(
    known: SavedBaseline | None,
    runs: Sequence[Run],
    *,
    name: str,
    saved_at: str,
    force: bool = False,
    project: str | None = None,
) -> SavedBaseline:
    """The baseline with these runs in the place of what it had of the same configurations.

    The figures of a configuration are those of one of its runs, the one whose average step is the middle
    one. Raises ``UsageError`` for runs of one configuration that are not of the same thing, for a run that
    is given twice, and unless ``force`` for a program that failed, and for one that was run in different
    folders of the ``project``, where that is given: they are two programs of one name.
    """
    by_key: dict[str, list[Run]] = {}
    for run in runs:
        if run.outcome.status != "finished" and not force:
            raise UsageError(
                f"{run.program.name} did not finish ({_ending(run)}), so its run makes no baseline; "
                f"if it should: pyrometer baseline save {name} RUN --force"
            )
        by_key.setdefault(key_of(run.program), []).append(run)
    for key, several in by_key.items():
        _check_alike(key, several)
    saved = SavedBaseline(figures=None, runs={}) if known is None else known
    measurements = _measurements(saved)
    if project is not None and not force:
        for key, several in by_key.items():
            _check_folders(key, [*_folders_of(key, saved), *map(_folder_of, several)], name, project)
    for key, several in by_key.items():
        measurement = _middle_measurement(several, name)
        if measurement is None:
            measurements.pop(key, None)
        else:
            measurements[key] = measurement
    return SavedBaseline(
        name=name,
        saved_at=saved_at,
        figures=baseline_of(measurements) if measurements else None,
        runs={**saved.runs, **{key: tuple(several) for key, several in by_key.items()}},
    )


def add_figures(
    known: SavedBaseline | None, measured: Sequence[tuple[Program, Measurement]]
) -> SavedBaseline:
    """The baseline with the figures of these configurations; runs that had made others go."""
    saved = SavedBaseline(figures=None, runs={}) if known is None else known
    replaced = {key_of(program) for program, _ in measured}
    return replace(
        saved,
        figures=add_measurements(saved.figures, measured),
        runs={key: runs for key, runs in saved.runs.items() if key not in replaced},
    )


def configurations_of(saved: SavedBaseline) -> tuple[SavedConfiguration, ...]:
    """Each configuration of the baseline, those with figures first."""
    measurements = _measurements(saved)
    return tuple(
        _configuration(key, measurements.get(key), saved.runs.get(key, ()), saved.name)
        for key in dict.fromkeys((*measurements, *saved.runs))
    )


def plain_baseline(saved: SavedBaseline) -> PlainBaseline:
    """What is known of the first configuration of a baseline without steps."""
    run = next(iter(saved.runs.values()))[0]
    return PlainBaseline(
        timestamp=run.started_at,
        configuration=PlainConfiguration(
            name=run.program.name,
            argv=run.program.argv,
            working_directory=run.program.working_directory,
            commit=commit_of(run.program),
        ),
        system=system_of(run),
        peak_host_memory_gb=None if run.memory is None else gb(run.memory.peak_bytes),
        commands=_commands(run, saved.name),
        identity=known_facts(identity_of(run)),
    )


def _measurements(saved: SavedBaseline) -> dict[str, Measurement]:
    return {} if saved.figures is None else dict(saved.figures.configurations)


def _check_alike(key: str, runs: Sequence[Run]) -> None:
    first = identity_of(runs[0])
    for number, run in enumerate(runs[1:], start=2):
        if run in runs[: number - 1]:
            raise UsageError(f"a run of {key} is given twice, that of {run.started_at}; name each run once")
        other = identity_of(run)
        sides = ("the first run", f"run {number}")
        differences = [
            difference
            for difference in compare_identities(first, other, sides=sides).differences
            # What is missing in both, or was changed in both, is the same.
            if first.fact(difference.name) != other.fact(difference.name)
        ]
        if differences:
            told = "; ".join(difference.sentence for difference in differences)
            raise UsageError(f"the runs of {key} are not of the same thing: {told}. Save those that are")


def _folders_of(key: str, saved: SavedBaseline) -> list[str]:
    """Where the configuration was run that is saved, if it is."""
    measurement = _measurements(saved).get(key)
    figures = [] if measurement is None else [measurement.configuration.working_directory]
    return [_folder_of(run) for run in saved.runs.get(key, ())] or figures


def _folder_of(run: Run) -> str:
    return run.program.working_directory


def _check_folders(key: str, folders: Sequence[str], name: str, project: str) -> None:
    for folder in folders[1:]:
        if _are_apart(folders[0], folder, project):
            raise UsageError(
                f"{key} was run in {folders[0]} and in {folder}, which may be two programs; save one of them "
                f"under another name, or if they are the same: pyrometer baseline save {name} RUN --force"
            )


def _are_apart(one: str, other: str, project: str) -> bool:
    """Whether they are different folders of the project, which may be elsewhere under any other name."""
    seen = _inside(one, project), _inside(other, project)
    if None not in seen:
        return seen[0] != seen[1]
    pairs = ((seen[0], other), (seen[1], one))
    return any(inside and not f"{elsewhere}/".endswith(f"/{inside}") for inside, elsewhere in pairs)


def _inside(folder: str, project: str) -> str | None:
    """``exp1/`` as seen from the project; None where it lies elsewhere, as on another machine."""
    beginning = f"{project}/"
    return f"{folder}/".removeprefix(beginning) if f"{folder}/".startswith(beginning) else None


def _middle_measurement(runs: Sequence[Run], name: str) -> Measurement | None:
    measurements = []
    for run in runs:
        results = build_torch_results(run)
        if results is not None and results.main is not None:
            measurement = measure(run, file_name="", results=results)
            commands = _commands(run, name)
            measurements.append(msgspec.structs.replace(measurement, commands=commands))
    measurements.sort(key=lambda measurement: measurement.batch_latency_ms.avg)
    return measurements[(len(measurements) - 1) // 2] if measurements else None


def _configuration(
    key: str, measurement: Measurement | None, runs: Sequence[Run], name: str | None
) -> SavedConfiguration:
    if measurement is None:
        run = runs[0]
        return SavedConfiguration(
            key=key,
            program=run.program.name,
            arguments=run.program.argv[1:],
            commit=commit_of(run.program),
            steps=None,
            step_ms=None,
            samples_per_s=None,
            peak_host_memory_gb=None if run.memory is None else gb(run.memory.peak_bytes),
            runs=len(runs),
            identity=known_facts(identity_of(run)),
            commands=_commands(run, name),
        )
    return SavedConfiguration(
        key=key,
        program=measurement.configuration.name,
        arguments=measurement.configuration.argv[1:],
        commit=measurement.configuration.commit,
        steps=measurement.configuration.batches,
        step_ms=measurement.batch_latency_ms.avg,
        samples_per_s=measurement.data_throughput_samples_per_s,
        peak_host_memory_gb=measurement.peak_host_memory_gb,
        runs=len(runs),
        identity=measurement.identity,
        commands=measurement.commands,
    )


def _commands(run: Run, name: str | None) -> tuple[str, ...]:
    options = " ".join(["--no-report", "-o run.json", *recording_options(run)])
    return (f"pyrometer run {options} {key_of(run.program)}", f"pyrometer baseline save {name} run.json")


def _ending(run: Run) -> str:
    status = {"running": "still running, or killed"}.get(run.outcome.status, run.outcome.status)
    return status if run.outcome.detail is None else f"{status}: {run.outcome.detail}"
