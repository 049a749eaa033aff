"""Nothing in a run file may be more than text: not on a terminal, not in Markdown."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len

from pyrometer.record.run import Loss, Outcome, Run
from pyrometer.record.values import Strand, StrandParent
from pyrometer.report import render_json, render_markdown, render_terminal
from pyrometer.report.safe_text import shorten_end, shorten_middle
from tests.findings import findings_named
from tests.record.example_runs import make_allocations, make_counters
from tests.report.sample_runs import (
    HOSTILE_NAMES,
    MS,
    allocating_run,
    counted_run,
    empty_run,
    hostile_run,
    layered_run,
    main_strand,
    node,
    run_of,
    simple_run,
    threaded_run,
    wide_run,
)

# What names are made of that mean something somewhere, and whatever else Unicode has. Plain words are
# not nasty, and may be those of other places: Hypothesis tries such as it finds in our sources.
NASTY_TEXT = st.text(
    st.one_of(st.sampled_from("[]<>|`*_#!\\&~-+. \n\t\x1b\x9b\u202e\u0301中1a"), st.characters()), max_size=60
).filter(lambda text: not text.replace(".", "").isidentifier())


def run_with_name(name: str) -> Run:
    worker = Strand(
        thread_id=2,
        thread_name=name,
        parent=StrandParent(strand=0, node=0),
        nodes=(node(name, None, [MS], wall_ns=MS),),
    )
    return run_of(
        main_strand(node(name, None, [MS]), node(name, 0, [MS])),
        worker,
        profiled_ns=2 * MS,
        program=name,
        outcome=Outcome(status="exception", detail=name),
        losses=(Loss(collector=name, reason=name, count=2),),
        counters=make_counters(name),
        allocations=make_allocations(name),
    )


def parse(markdown: str) -> list[Token]:
    """Every token, the ones inside lines too."""
    tokens: list[Token] = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown):
        tokens.append(token)
        tokens.extend(token.children or ())
    return tokens


def kinds_of(tokens: list[Token]) -> list[str]:
    """What the text is made of, the words themselves left out."""
    return [token.type for token in tokens if token.type not in ("text", "text_special")]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 160])
@pytest.mark.parametrize(
    "run",
    [
        simple_run(),
        threaded_run(),
        layered_run(),
        empty_run(),
        hostile_run(),
        wide_run(),
        counted_run(),
        allocating_run(),
    ],
    ids=["simple", "threaded", "layered", "empty", "hostile", "wide", "counted", "allocating"],
)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_no_line_is_wider_than_asked_for(run: Run, width: int, ascii_only: bool) -> None:
    text = render_terminal(run, width=width, ascii_only=ascii_only, by_thread=True)
    assert max(map(cell_len, text.splitlines())) <= width


@given(name=NASTY_TEXT, width=st.integers(40, 160))
def test_whatever_the_names_no_line_is_too_wide_and_nothing_drives_the_terminal(
    name: str, width: int
) -> None:
    text = render_terminal(run_with_name(name), width=width, by_thread=True, findings=findings_named(name))
    assert all(line.isprintable() and cell_len(line) <= width for line in text.split("\n"))


@pytest.mark.parametrize(
    "run", [hostile_run(), wide_run(), layered_run()], ids=["hostile", "wide", "layered"]
)
def test_at_80_columns_all_ten_columns_are_there_and_each_scope_takes_one_line(run: Run) -> None:
    lines = render_terminal(run, width=80).splitlines()
    headings = next(line for line in lines if line.startswith("name"))
    assert headings.split() == ["name", "calls", "total", "self", "avg", "min", "p50", "p95", "max", "%"]
    first = lines.index(headings) + 2
    rows = lines[first : lines.index("", first)]
    assert sum(bool(re.search(r" ≤?<?\d+\.\d$", row)) for row in rows) == min(20, len({*names_of(run)}))


def names_of(run: Run) -> list[str]:
    return [scope.name for scope in run.scopes()]


def test_colours_are_the_reports_own_and_change_no_text() -> None:
    coloured = render_terminal(hostile_run(), color=True)
    assert "\x1b[1m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured).split() == render_terminal(hostile_run()).split()


def test_markup_in_a_name_is_shown_not_obeyed() -> None:
    assert "[bold red]markup[/bold red]" in render_terminal(hostile_run())


@given(name=NASTY_TEXT)
@example(name=" ")
@example(name="    - indented")
@example(name="---")
@example(name="10. tenth")
def test_whatever_the_names_markdown_holds_no_html_and_keeps_its_shape(name: str) -> None:
    tokens = parse(render_markdown(run_with_name(name), by_thread=True, findings=findings_named(name)))
    plain = parse(render_markdown(run_with_name("plain"), by_thread=True, findings=findings_named("plain")))
    assert kinds_of(tokens) == kinds_of(plain)


def test_markdown_shows_hostile_names_letter_by_letter() -> None:
    tokens = parse(render_markdown(hostile_run()))
    shown = [
        "".join(part.content for part in token.children or ()) for token in tokens if token.type == "inline"
    ]
    printable = [name for name in HOSTILE_NAMES if name.isprintable() and name.strip()]
    assert len(printable) == 7
    assert [name for name in printable if name not in shown] == []


def test_json_is_ascii_and_gives_names_back_unchanged() -> None:
    text = render_json(hostile_run())
    assert text.isascii()
    assert {scope["name"] for scope in json.loads(text)["scopes"]} == set(HOSTILE_NAMES)


def test_json_takes_names_that_are_not_unicode_and_lays_them_out_alike() -> None:
    report = json.loads(render_json(run_with_name("\udcff")))
    assert report["scopes"][0]["name"] == report["program"]["name"] == "\udcff"
    assert render_json(run_with_name("\udcff")) == render_json(run_with_name("?")).replace('"?"', '"\\udcff"')


def test_long_names_lose_their_middle() -> None:
    assert shorten_middle("encoder.layers.attention", 11) == "encod…ntion"
    assert shorten_middle("short", 5) == "short"
    assert shorten_middle("中文名字中文名字", 7) == "中…字"


def test_long_sentences_lose_their_end() -> None:
    assert shorten_end("the steps wait for data", 15) == "the steps wait…"
    assert shorten_end("short", 5) == "short"
    assert shorten_end("中文名字中文名字", 6) == "中文…"
    assert shorten_end("anything", 1) == "…"


@given(text=st.text(max_size=50), width=st.integers(1, 40))
def test_a_shortened_text_fits_and_keeps_both_ends(text: str, width: int) -> None:
    shortened = shorten_middle(text, width)
    assert cell_len(shortened) <= width
    if shortened != text:
        head, _, tail = shortened.partition("…")
        assert text.startswith(head)
        assert text.endswith(tail)


def test_a_name_of_a_million_characters_takes_one_line() -> None:
    for name in ("x" * 1_000_000, "\u0301" * 1_000_000, "\x1b" * 1_000_000):
        findings = findings_named(name)
        assert len(render_terminal(run_with_name(name), by_thread=True, findings=findings)) < 100_000
        assert len(render_markdown(run_with_name(name), by_thread=True, findings=findings)) < 300_000
