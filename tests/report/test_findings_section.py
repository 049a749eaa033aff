"""What a report for a terminal says of findings."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from pyrometer.analysis.findings.drafting import See
from pyrometer.analysis.findings.model import FindingKind, GainOf, Place
from pyrometer.report import render_markdown, render_terminal
from pyrometer.report.findings_wording import percent, speedup_text, times
from tests.findings import (
    findings_named,
    make_finding,
    make_findings,
    no_findings,
    training_findings,
)
from tests.report.level_runs import full_run
from tests.report.sample_runs import simple_run
from tests.report.test_safety import NASTY_TEXT
from tests.report.torch_samples import large_torch_run
from tests.torch_runs import compiled_run, generation_run, training_run


def section(text: str, title: str) -> list[str]:
    """The lines below the title, up to the next blank one."""
    lines = text.splitlines()
    start = lines.index(title)
    return lines[start + 1 : lines.index("", start)]


def test_findings_on_a_terminal_look_as_agreed(check_golden: Callable[[str, str], None]) -> None:
    check_golden("findings.txt", render_terminal(training_run(), findings=training_findings()))
    check_golden("findings-full.txt", render_terminal(full_run(), findings=training_findings()))


def test_each_section_that_evidence_names_is_there() -> None:
    runs = [full_run(), generation_run(cached=False), compiled_run()]
    for render in (render_terminal, render_markdown):
        text = "\n".join(render(run, findings=no_findings()) for run in runs)
        assert [see for see in See if not re.search(rf"^(## )?{see}", text, re.MULTILINE)] == []


def test_the_verdict_stands_right_under_the_headline() -> None:
    text = render_terminal(training_run(), width=140, findings=training_findings())
    assert text.splitlines()[1] == training_findings().verdict
    markdown = render_markdown(training_run(), findings=training_findings())
    assert markdown.splitlines()[4] == training_findings().verdict


def test_findings_stand_between_the_phases_and_the_hotspots() -> None:
    text = render_terminal(training_run(), findings=training_findings())
    assert text.index("\nPhases: ") < text.index("\nFindings\n") < text.index("\nHotspots\n")


def test_each_finding_takes_one_row_with_rank_place_bound_and_priority() -> None:
    rows = section(render_terminal(training_run(), findings=training_findings()), "Findings")[2:7]
    assert [row.partition(".")[0] for row in rows] == ["1", "2", "3", "4", "5"]
    assert [re.split(r" {2,}| (?=[A-Z]+$)", row)[-1] for row in rows] == [
        "CRITICAL", "MEDIUM", "MEDIUM", "LOW", "LOW",
    ]  # fmt: skip
    assert re.search(r"≤ 35 % +CRITICAL$", rows[0])
    # What nothing bounds is unknown, not 0.
    assert re.search(r"– +LOW$", rows[4])


def test_the_first_three_have_their_evidence_with_its_place_and_what_to_try() -> None:
    lines = section(render_terminal(training_run(), width=120, findings=training_findings()), "Findings")
    assert "- Seen: 212 operators a step, 16.5 µs each on average (see Operators)." in lines
    tried = "- Try: compile the model, which makes few operators of many"
    assert f"{tried} (hours; results differ by rounding)." in lines
    assert "    model = torch.compile(model)" in lines
    assert sum(line.startswith("- Seen:") for line in lines) == 3


def test_a_snippet_keeps_its_lines() -> None:
    text = render_terminal(training_run(), findings=training_findings())
    assert (
        "    loader = DataLoader(\n"
        "        dataset, batch_size=32, num_workers=2, persistent_workers=True\n"
        "    )\n"
    ) in text


def test_what_is_good_not_there_and_not_looked_for_is_said() -> None:
    lines = section(render_terminal(training_run(), width=160, findings=training_findings()), "Findings")
    assert lines[-4:-1] == [
        "Good already:",
        "- Hardly any time goes by outside the phases: 1.0 % of a step.",
        "Looked for and not found: double-precision, too-many-threads, long-tail.",
    ]
    assert lines[-1].startswith(
        "Cannot be told: strided-access (caches were not simulated: --cachegrind); copies-and-casts, "
        "synchronising-calls (operators were not recorded: --ops)."
    )


def test_where_nothing_is_found_that_is_said_plainly() -> None:
    for render in (render_terminal, render_markdown):
        assert "Nothing was found that is worth changing." in render(training_run(), findings=no_findings())


def test_strengths_are_said_once() -> None:
    text = render_terminal(training_run(), findings=training_findings())
    assert text.count("Good already:") == 1


def test_scopes_stand_first_where_nothing_was_found() -> None:
    text = render_terminal(simple_run(), findings=no_findings())
    assert text.index("\nScopes, ") < text.index("\nFindings\n")
    found = render_terminal(simple_run(), findings=make_findings(make_finding(place=Place())))
    assert found.index("\nFindings\n") < found.index("\nScopes, ")


def test_more_findings_than_fit_are_counted() -> None:
    found = [make_finding(rank=rank) for rank in range(1, 21)]
    text = render_terminal(training_run(), findings=make_findings(*found, not_shown=3))
    assert "15 more findings not shown." in text
    wide = render_terminal(training_run(), top=20, findings=make_findings(*found, not_shown=3))
    assert "3 more findings not shown." in wide


def test_the_default_report_is_shorter_than_one_asked_for_more() -> None:
    run = large_torch_run(blocks=20, steps=20)
    asked = render_terminal(run, top=20, findings=training_findings())
    assert len(render_terminal(run, findings=training_findings()).splitlines()) < len(asked.splitlines())


def test_bounds_have_no_more_digits_than_they_say() -> None:
    assert [percent(share) for share in (0.3149, 0.0996, 0.042, 0.0001)] == ["31 %", "10 %", "4.2 %", "0.1 %"]
    assert [times(speedup) for speedup in (1.0384, 12.4)] == ["1.04 ×", "12 ×"]


@pytest.mark.parametrize(
    ("gain", "of", "expected"),
    [
        (0.5, GainOf.STEP, "≤ 2.00 ×"),
        (1.0, GainOf.STEP, "–"),
        (0.5, GainOf.MEMORY, "–"),
        (None, GainOf.STEP, "–"),
    ],
)
def test_a_speedup_is_told_only_where_there_is_one(gain: float | None, of: GainOf, expected: str) -> None:
    assert speedup_text(make_finding(gain=gain, of=of)) == expected


def test_a_gain_of_memory_stands_out_among_gains_of_time() -> None:
    found = [
        make_finding(rank=1, gain=0.31, what="a sentence too long for a row of a terminal " * 3),
        make_finding(rank=2, gain=0.05, of=GainOf.MEMORY),
    ]
    rows = section(render_terminal(training_run(), findings=make_findings(*found)), "Findings")[2:4]
    assert re.search(r"≤ 31 % +[A-Z]+$", rows[0])
    assert re.search(r"≤ 5.0 % mem. +[A-Z]+$", rows[1])
    assert max(map(len, rows)) <= 80
    # Where a column says what it is of, that is enough.
    markdown = render_markdown(training_run(), findings=make_findings(*found))
    assert "| ≤ 5.0 % | peak memory |" in markdown


def test_all_kinds_can_be_looked_for_in_vain_in_a_line_or_two() -> None:
    lines = section(render_terminal(training_run(), findings=no_findings()), "Findings")
    assert f"and {len(FindingKind) - 4} more." in " ".join(lines)
    assert len(lines) <= 3


@given(name=NASTY_TEXT, width=st.integers(40, 160), ascii_only=st.booleans())
def test_whatever_is_found_no_line_is_too_wide_and_nothing_drives_the_terminal(
    name: str, width: int, ascii_only: bool
) -> None:
    text = render_terminal(simple_run(), width=width, ascii_only=ascii_only, findings=findings_named(name))
    assert all(line.isprintable() and cell_len(line) <= width for line in text.split("\n"))
