import pytest

from pyrometer.analysis.observed import observe
from pyrometer.analysis.target_figures import METRICS
from pyrometer.analysis.target_goals import Quantity
from pyrometer.analysis.targets import judge_targets, parse_targets
from pyrometer.record.run import Run
from pyrometer.report import render_terminal
from pyrometer.report.blocks import Checklist, Lines, Section, Table
from pyrometer.report.targets_section import build_target_section
from tests.torch_runs import training_run, workers_run

# As wide as goals get.
WIDE_GOALS = {
    Quantity.DURATION: "100us..120ms",
    Quantity.SIZE: "100KiB..120MiB",
    Quantity.SAMPLES_RATE: "100000..200000",
    Quantity.TOKENS_RATE: "100000..200000",
}


def section_of(settings: dict[str, object], *, baseline: Run | None = None) -> Section:
    results = judge_targets(
        observe(training_run()),
        parse_targets(settings, where="[t]"),
        baseline=None if baseline is None else observe(baseline),
    )
    section = build_target_section(results)
    assert section is not None
    return section


def rows_of(section: Section) -> dict[str, tuple[str, ...]]:
    [table] = [block for block in section.blocks if isinstance(block, Table)]
    return {row.name: row.cells for row in table.rows}


def test_a_project_without_targets_has_no_section() -> None:
    assert build_target_section(()) is None


def test_a_row_says_where_a_figure_is_where_it_is_to_be_and_what_is_missing() -> None:
    rows = rows_of(
        section_of(
            {
                "throughput": "+30%",
                "step_latency": "<8 ms",
                "training_step": "10..12 ms",
                "peak_host_memory": "<= 1 GiB",
                "tokens_per_s": 20,
                "data_loading": "1.39 ms",
            }
        )
    )
    assert rows == {
        "throughput": ("3,200 samples/s", "≥ 4,160 samples/s", "+30 %", "to be reached"),
        "step latency": ("10.0 ms", "< 8.00 ms", "-20 %", "no"),
        "training step": ("10.0 ms", "10.0 – 12.0 ms", "0 %", "yes"),
        "peak host memory": ("496 MiB", "≤ 1.00 GiB", "0 %", "yes"),
        "tokens per s": ("–", "≥ 20.0 tokens/s", "–", "–"),
        "data loading": ("1.40 ms", "≤ 1.39 ms", "-0.7 %", "no"),
    }


def test_the_list_can_be_ticked_off() -> None:
    section = section_of({"step_latency": "-20%", "peak_gpu_memory": "<1 GiB", "throughput": ">20000"})
    [checklist] = [block for block in section.blocks if isinstance(block, Checklist)]
    assert [met for met, _ in checklist.items] == [False, None, False]
    latency, gpu, throughput = (text for _, text in checklist.items)
    assert latency == (
        "step latency (a steady step of the main group, on average): at most 8.00 ms (-20%, from this run); "
        "10.0 ms now, -20 % to go"
    )
    assert gpu == (
        "peak gpu memory (the most memory of the GPU in use): below 1.00 GiB; cannot be told: no GPU"
    )
    assert throughput == (
        "throughput (samples a second, in the main group of steps): above 20,000 samples/s; "
        "3,200 samples/s now, +525 % to go"
    )


def test_with_a_baseline_nothing_is_said_of_later_runs() -> None:
    alone = section_of({"step_latency": "-20%"})
    against = section_of({"step_latency": "-20%"}, baseline=workers_run(slow=True))
    assert any(isinstance(block, Lines) for block in alone.blocks)
    assert not any(isinstance(block, Lines) for block in against.blocks)
    assert rows_of(against) == {"step latency": ("10.0 ms", "≤ 16.0 ms", "0 %", "yes")}


def rows_on_a_terminal(settings: dict[str, object], width: int) -> list[str]:
    """The table of targets as it is printed, its headings first and below it what was not shown."""
    targets = judge_targets(observe(training_run()), parse_targets(settings, where="[t]"), baseline=None)
    lines = render_terminal(training_run(), width=width, targets=targets).splitlines()
    start = lines.index("Targets") + 1
    return [lines[start], *lines[start + 2 : start + 3 + len(settings)]]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_names_of_targets_stay_whole_however_narrow_the_terminal(width: int) -> None:
    _, *rows, _ = rows_on_a_terminal(
        {name: WIDE_GOALS[metric.quantity] for name, metric in METRICS.items()}, width
    )
    for name, row in zip(METRICS, rows, strict=True):
        assert row.startswith(f"{name.replace('_', ' ')} ")


def test_a_range_has_its_unit_once_unless_its_ends_have_others() -> None:
    rows = rows_of(section_of({"throughput": "10000..20000", "step_latency": "500us..2ms"}))
    assert [cells[1] for cells in rows.values()] == ["10,000 – 20,000 samples/s", "500 µs – 2.00 ms"]


def test_the_improvement_gives_way_first() -> None:
    settings: dict[str, object] = {"throughput": "+200..300%", "peak_host_memory": "<1 GiB"}
    headings = [rows_on_a_terminal(settings, width)[0].split() for width in (90, 80, 60)]
    assert headings == [
        ["target", "current", "target", "improvement", "met"],
        ["target", "current", "target", "met"],
        ["target", "target", "met"],
    ]
