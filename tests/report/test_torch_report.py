import re
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from pyrometer.analysis.steps import build_groups
from pyrometer.record.run import Run
from pyrometer.report import render_markdown, render_terminal
from tests.findings import findings_named, no_findings, training_findings
from tests.report.sample_runs import MS, S
from tests.report.test_safety import NASTY_TEXT, kinds_of, parse
from tests.report.torch_samples import group_of, large_torch_run, phases_named, torch_run_named
from tests.torch_runs import TORCH_RUNS

every_torch_run = pytest.mark.parametrize("name", TORCH_RUNS)


def section(text: str, title: str) -> list[str]:
    """The lines below the title that starts so, up to the next blank one."""
    lines = text.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(title))
    end = lines.index("", start) if "" in lines[start:] else len(lines)
    return lines[start + 1 : end]


def phase_tables(text: str) -> list[list[list[str]]]:
    """Every table of phases in a report for a terminal: the words of each row, the headings first."""
    lines = text.splitlines()
    tables = []
    for index, line in enumerate(lines):
        if line.startswith("phase "):
            end = next(at for at in range(index, len(lines)) if lines[at].startswith("step "))
            tables.append([row.split() for row in (line, *lines[index + 2 : end + 1])])
    return tables


def units(figure: str) -> int:
    """A printed figure in units of its last place."""
    return int(figure.replace(",", "").replace(".", ""))


@every_torch_run
def test_the_terminal_report_of_a_torch_run_looks_as_agreed(
    name: str, check_golden: Callable[[str, str], None]
) -> None:
    check_golden(f"{name}.txt", render_terminal(TORCH_RUNS[name](), findings=no_findings()))


@every_torch_run
def test_the_markdown_report_of_a_torch_run_looks_as_agreed(
    name: str, check_golden: Callable[[str, str], None]
) -> None:
    check_golden(f"{name}.md", render_markdown(TORCH_RUNS[name](), findings=no_findings()))


def test_a_wide_terminal_gets_every_column_of_the_modules(check_golden: Callable[[str, str], None]) -> None:
    text = render_terminal(TORCH_RUNS["training"](), width=140, findings=no_findings())
    assert "Not shown" not in text
    check_golden("training-140-columns.txt", text)


@every_torch_run
@pytest.mark.parametrize("width", [40, 60, 80, 140])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_no_line_of_a_torch_report_is_wider_than_asked_for(name: str, width: int, ascii_only: bool) -> None:
    text = render_terminal(TORCH_RUNS[name](), width=width, ascii_only=ascii_only)
    assert max(map(cell_len, text.splitlines())) <= width
    assert text.isascii() or not ascii_only


# Names with blanks in them would make other columns of the words here.
@pytest.mark.parametrize("name", sorted(TORCH_RUNS.keys() - {"hostile-torch"}))
def test_each_column_of_phases_adds_up_to_the_step_as_printed(name: str) -> None:
    run = TORCH_RUNS[name]()
    tables = phase_tables(render_terminal(run))
    assert len(tables) == (0 if run.torch is None else len(build_groups(run.torch)))
    for _, *phases, step in tables:
        # Bars are no figures, and a step has none.
        figures = [[cell for cell in row[1:] if re.fullmatch(r"[\d,.]+", cell)] for row in phases]
        for column, total in enumerate(step[1:]):
            if all(len(row) == len(step) - 1 for row in figures):
                assert sum(units(row[column]) for row in figures) == units(total)
        assert step[2] == "100.0"


def test_phases_stand_in_the_order_of_a_step_and_other_last() -> None:
    (table,) = phase_tables(render_terminal(TORCH_RUNS["training"]()))
    assert [row[0] for row in table[1:]] == [
        "data", "copies", "forward", "loss", "backward", "clipping", "optimizer", "clearing", "other", "step",
    ]  # fmt: skip


def test_the_headline_says_what_a_step_takes_and_where_most_of_it_goes() -> None:
    headline = (
        "train.py ended: 100 steps, 10.0 ms a step, 3,200 samples/s, peak 496 MiB, no GPU; "
        "backward takes 35 %"
    )
    assert render_terminal(TORCH_RUNS["training"](), width=140).splitlines()[0] == headline
    assert render_markdown(TORCH_RUNS["training"]()).splitlines()[2] == f"{headline}."


def test_steps_looked_at_closely_are_told_of_beside_those_with_figures() -> None:
    text = " ".join(render_terminal(TORCH_RUNS["operators"]()).split())
    assert " ended: 100 steps (and 5 looked at closely), 10.0 ms a step" in text
    assert "looked at closely" not in render_terminal(TORCH_RUNS["training"]()).splitlines()[0]


def test_time_on_the_gpu_has_a_column_only_where_there_is_one() -> None:
    with_gpu, without = (phase_tables(render_terminal(TORCH_RUNS[name]())) for name in ("gpu", "training"))
    assert "GPU" in with_gpu[0][0]
    assert "GPU" not in without[0][0]
    # Not timed is not 0.
    forward, clipping = (
        next(row for row in with_gpu[0] if row[0] == name) for name in ("forward", "clipping")
    )
    assert "2.500" in forward
    assert "–" in clipping
    assert "no GPU" in section(render_terminal(TORCH_RUNS["training"]()), "Memory")[-1]


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("training", "Phases: training, Adam"),
        ("accumulation", "Phases: training, AdamW, gradients accumulated over 4 batches"),
        ("closure", "Phases: training, LBFGS, a closure that the optimizer calls several times a step"),
        ("gan", "Phases: training, RMSprop + RMSprop (2), all in one step"),
        ("evaluation", "Phases: evaluation, model, between training steps"),
        ("inference", "Phases: inference, encoder, gradients are tracked although nothing is trained"),
        ("generation-cached", "Phases: generation, gpt, a step a token"),
        ("marked", "Phases: marked by the program, my step"),
    ],
)
def test_each_group_of_steps_stands_under_what_it_is(name: str, title: str) -> None:
    assert title in render_terminal(TORCH_RUNS[name](), width=140).splitlines()
    assert f"## {title}" in render_markdown(TORCH_RUNS[name]()).replace("\\", "").splitlines()


def test_steps_that_take_next_to_no_time_are_told_in_a_line() -> None:
    run = TORCH_RUNS["training"]()
    assert run.torch is not None
    tiny = group_of("probe", [MS, 3 * MS], kind="forward", phases=("forward", "other"))
    torch = msgspec.structs.replace(run.torch, groups=(*run.torch.groups, tiny))
    text = render_terminal(msgspec.structs.replace(run, torch=torch), width=160)
    line = " ".join(section(text, "Other steps, less than 1 % of the time"))
    assert line.startswith("- Evaluation, probe, between training steps")
    assert "forward 50.0 %" in line
    assert len(phase_tables(text)) == 1


def test_modules_are_indented_below_their_parents_by_their_own_part_of_the_name() -> None:
    rows = section(render_terminal(TORCH_RUNS["inference"]()), "Modules")[2:7]
    assert [row.removesuffix(row.lstrip("│├└─ ")) + row.lstrip("│├└─ ").split()[0] for row in rows] == [
        "encoder", "├─ layers.0", "│  └─ encoder.norm", "└─ layers.1", "   └─ encoder.norm",
    ]  # fmt: skip


def test_what_is_hidden_in_a_module_is_said_beside_it_and_below() -> None:
    text = "\n".join(section(render_terminal(TORCH_RUNS["compiled"](), width=140), "Modules"))
    assert "body (compiled)" in text
    assert "head (scripted)" in text
    assert "Not seen: what runs inside model.body, model.head" in text


def test_it_says_in_how_many_backward_passes_modules_were_timed() -> None:
    text = render_terminal(TORCH_RUNS["training"]())
    assert "modules were timed in 20 of 100 backward passes" in text


def test_flops_without_a_formula_are_not_counted_rather_than_0() -> None:
    rows = section(render_terminal(TORCH_RUNS["training"](), width=140), "Modules")
    cells = {re.split(r"  +", row)[0]: re.split(r"  +", row)[-2] for row in rows[2:7]}
    assert cells == {
        "model": "≥13.0M", "├─ fc1": "12.8M", "├─ fc2": "164k", "└─ act": "0", "criterion": "not counted",
    }  # fmt: skip


def test_of_many_modules_the_largest_are_shown_and_the_rest_is_counted_where_it_stands() -> None:
    text = render_terminal(large_torch_run(blocks=100, steps=20), top=9)
    rows = section(text, "Modules")
    # The root and 100 blocks of three modules: 301 in all, of which 9 have a line.
    shown = [row for row in rows if re.match(r"(model|[│├└ ]+─ (?!…))", row)]
    assert len(shown) == 9
    assert "292 more not shown (see --top)." in rows
    assert sum(int(number) for number in re.findall(r"… (\d+) more", text)) == 292


def test_a_program_whose_steps_were_found_is_not_told_to_mark_its_code() -> None:
    for render in (render_terminal, render_markdown):
        assert "pyrometer.scope(" not in render(TORCH_RUNS["training"]())
        assert 'with pyrometer.scope("load_batch"):' in render(TORCH_RUNS["no-steps"]())


def test_scopes_marked_in_a_torch_program_are_shown_below_its_steps() -> None:
    text = render_terminal(TORCH_RUNS["training-with-scopes"]())
    assert text.index("Phases: ") < text.index("Scopes, by total time") < text.index("Tree, by total time")


def test_what_the_hooks_cost_is_part_of_the_profilers_own_cost() -> None:
    # 3 ms of the 1.533 s that the run of 100 steps took.
    cost = section(render_terminal(TORCH_RUNS["training"]()), "The profiler's own cost")
    assert cost[0] == "- Around the program's PyTorch calls, timed there: 3.00 ms, 0.2 % of the run."


def test_advice_is_given_once_and_on_what_matters_where_room_is_short() -> None:
    run = TORCH_RUNS["training"]()
    assert render_terminal(run, findings=no_findings()).count("Likely: its own operations") == 1
    assert render_markdown(run, findings=no_findings()).count("Likely: its own operations") == 2


def test_hotspots_leave_advice_to_findings_where_there_are_any() -> None:
    text = render_terminal(TORCH_RUNS["training"](), findings=training_findings())
    assert section(text, "Hotspots")[2].startswith("1. model.fc1")
    assert "Likely:" not in text


def test_markdown_has_the_tables_of_the_baseline() -> None:
    text = render_markdown(TORCH_RUNS["training"]())
    assert "| latency of a batch, ms | 10.000 | 10.000 | 10.000 |" in text
    # Copies in data, the loss in forward, clipping and clearing in optimizer.
    assert [
        line
        for line in text.splitlines()
        if re.match(r"\| \*{0,2}[a-z ]+\*{0,2} \| [*\d.]+ \| [*\d.]+ \|$", line)
    ] == [
        "| data loading | 1.40 | 14.0 |",
        "| forward | 3.40 | 34.0 |",
        "| backward | 3.50 | 35.0 |",
        "| optimizer | 1.60 | 16.0 |",
        "| other | 0.10 | 1.0 |",
        "| **batch** | **10.00** | **100.0** |",
    ]
    assert "| peak GPU memory | no GPU (CPU only) |" in text
    assert "- [x] at least 10 steps are measured: 97 steps after 3 of warm-up" in text
    assert "- [ ] GPU memory: no GPU (CPU only) (cannot be told)" in text
    assert "| latency | 10.0 ms | -20 % | 8.00 ms |" in text
    assert "pyrometer run --baseline benchmarks/baseline.json train.py --epochs 3" in text


@given(name=NASTY_TEXT, width=st.integers(40, 160), ascii_only=st.booleans())
def test_whatever_the_names_in_a_torch_run_no_line_is_too_wide_and_none_drives_the_terminal(
    name: str, width: int, ascii_only: bool
) -> None:
    text = render_terminal(
        torch_run_named(name), width=width, ascii_only=ascii_only, findings=findings_named(name)
    )
    assert all(line.isprintable() and cell_len(line) <= width for line in text.split("\n"))


@given(name=NASTY_TEXT)
@example(name=" ")
@example(name="    - indented")
@example(name="---")
@example(name="10. tenth")
@example(name="other")
def test_whatever_the_names_in_a_torch_run_markdown_holds_no_html_and_keeps_its_shape(name: str) -> None:
    tokens = parse(render_markdown(torch_run_named(name), findings=findings_named(name)))
    plain = torch_run_named("plain", phases=phases_named(name))
    assert kinds_of(tokens) == kinds_of(parse(render_markdown(plain, findings=findings_named("plain"))))


def test_names_of_a_million_characters_in_a_torch_run_take_a_line_each() -> None:
    for name in ("x" * 1_000_000, "\x1b" * 1_000_000):
        assert len(render_terminal(torch_run_named(name), findings=findings_named(name))) < 100_000
        assert len(render_markdown(torch_run_named(name), findings=findings_named(name))) < 300_000


def test_a_run_of_steps_that_took_no_time_has_a_report() -> None:
    run = TORCH_RUNS["training"]()
    assert run.torch is not None
    still = group_of("Adam", [0] * 5, phases=("forward", "other"))
    run = msgspec.structs.replace(run, torch=msgspec.structs.replace(run.torch, groups=(still,)))
    for text in (render_terminal(run), render_markdown(run)):
        assert "5 steps, 0 ns a step" in text


def test_a_window_of_steps_is_named() -> None:
    assert "Only steps 10 to 29 were recorded" in render_terminal(TORCH_RUNS["marked"]())
    run: Run = TORCH_RUNS["marked"]()
    assert run.torch is not None
    open_ended = msgspec.structs.replace(run.torch, window=(S, None))
    text = render_terminal(msgspec.structs.replace(run, torch=open_ended))
    assert "Only steps 1,000,000,000 on were recorded" in text
