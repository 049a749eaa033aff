import re
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from hypothesis import example, given
from rich.cells import cell_len

from pyrometer.analysis.comparison.model import Comparison
from pyrometer.analysis.gate import LOOKS
from pyrometer.analysis.identity import Comparability, Level, Weight
from pyrometer.analysis.measured import build_measured
from pyrometer.record.run import Run
from pyrometer.record.trials import ProcessTurns
from pyrometer.report import comparison_words as words
from pyrometer.report.comparison_html import render_comparison_html
from pyrometer.report.comparison_json import render_comparison_json
from pyrometer.report.comparison_markdown import render_comparison_markdown
from pyrometer.report.comparison_terminal import render_comparison_terminal
from tests.compared_runs import COMPARABLE, Net, compare, difference, many_runs, net_run
from tests.report.sample_runs import HOSTILE_NAMES, main_strand, node, run_of
from tests.report.test_safety import NASTY_TEXT, kinds_of, parse
from tests.sampled_runs import Seen, stack_samples
from tests.torch_runs import TORCH_RUNS
from tests.trial_pairs import STEP_NS, pairs_of, process, trials_of

CHANGED = Net(
    first_calls=2,
    first_us=4_000,
    activation_us=1_200,
    second_us=600,
    backward_us=3_000,
    first_kb=450,
    peak_mb=560,
)
REFUSED = Comparability(
    level=Level.REFUSED,
    differences=(difference("code", Weight.NOTED), difference("inputs", Weight.REFUSED)),
)
TREND_ONLY = Comparability(level=Level.TREND_ONLY, differences=(difference("cpu_model", Weight.TREND_ONLY),))
ACCEPTED = Comparability(
    level=Level.COMPARABLE, differences=(difference("inputs", Weight.REFUSED, accepted=True),)
)

COMPARISONS: dict[str, Callable[[], Comparison]] = {
    "one-run": lambda: compare(net_run(), net_run(CHANGED)),
    "renamed": lambda: compare(net_run(), net_run(Net(second_name="net.renamed"))),
    "many-runs": lambda: compare(
        many_runs(Net()), many_runs(Net(first_us=1_600, second_us=1_600, backward_us=3_900), at_second=30)
    ),
    "refused": lambda: compare(net_run(), net_run(CHANGED), REFUSED),
    "trend-only": lambda: compare(net_run(), net_run(CHANGED), TREND_ONLY),
    "accepted": lambda: compare(net_run(), net_run(replace(CHANGED, steps=30)), ACCEPTED),
    "scopes": lambda: compare(
        run_of(main_strand(node("load", None, [1_000_000] * 3)), profiled_ns=10_000_000),
        run_of(main_strand(node("load", None, [1_000_000] * 6)), profiled_ns=13_000_000),
    ),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_comparison_on_a_terminal_looks_as_agreed(
    name: str, check_golden: Callable[[str, str], None]
) -> None:
    text = render_comparison_terminal(COMPARISONS[name]())
    assert max(map(cell_len, text.splitlines())) <= 80
    check_golden(f"comparison-{name}.txt", text)


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_comparison_in_markdown_looks_as_agreed(
    name: str, check_golden: Callable[[str, str], None]
) -> None:
    check_golden(f"comparison-{name}.md", render_comparison_markdown(COMPARISONS[name]()))


@pytest.mark.parametrize("name", TORCH_RUNS)
def test_programs_of_every_kind_can_be_told_beside_each_other(name: str) -> None:
    """Such as one that is compiled beside one that is not: what the one has, the other lacks."""
    run = TORCH_RUNS[name]()
    for other in ("training", "compiled", "generation-cached", "no-steps"):
        for sides in ((run, TORCH_RUNS[other]()), (TORCH_RUNS[other](), run)):
            comparison = compare(*sides)
            texts = (
                render_comparison_terminal(comparison),
                render_comparison_markdown(comparison),
                render_comparison_html(comparison),
            )
            assert all("In short" in text for text in texts)
            told = msgspec.json.decode(render_comparison_json(comparison))["metrics"]
            assert [one["metric"] for one in told] == [one.metric for one in comparison.metrics]


def test_calls_are_told_before_any_time() -> None:
    text = render_comparison_terminal(COMPARISONS["one-run"]())
    assert "module net.first: called 2 × as often (1 → 2 a step)" in text
    [row] = re.findall(r"^net\.first .*$", text, re.MULTILINE)
    assert row.index("2 × as often") < row.index("ms")


def test_other_bytes_in_a_part_are_not_called_the_same() -> None:
    def allocating(first_kb: int) -> Run:
        """The same bytes in all, of which the first layer has so many."""
        run = net_run(Net(first_kb=first_kb))
        assert run.torch is not None
        whole = net_run().torch
        assert whole is not None
        return msgspec.structs.replace(run, torch=msgspec.structs.replace(run.torch, groups=whole.groups))

    text = render_comparison_terminal(compare(allocating(300), allocating(200)))
    assert "Counts and bytes are the same" not in text
    assert "Parts allocate other bytes than before" in text


def test_a_count_that_varies_within_a_side_is_said_to() -> None:
    comparison = compare([net_run(), net_run(Net(first_calls=2))], [net_run(), net_run(Net(first_calls=2))])
    text = render_comparison_terminal(comparison)
    assert "Some counts are not the same in all runs of a side" in text
    assert "Counts and bytes are the same" not in text
    assert re.search(r"^net\.first +varies", text, re.MULTILINE)


def test_what_was_refused_shows_the_facts_and_no_figure() -> None:
    for text in (
        render_comparison_terminal(COMPARISONS["refused"]()),
        render_comparison_markdown(COMPARISONS["refused"]()),
    ):
        assert "inputs: 1 (before), 2 (after)" in text
        assert "--allow inputs" in text
        assert "10.0" not in text


def test_a_trend_says_why_it_is_no_more() -> None:
    text = render_comparison_terminal(COMPARISONS["trend-only"]())
    assert "Trend only" in text
    assert "cpu_model: 1 (before), 2 (after)" in text


def measured(calls: int) -> ProcessTurns:
    """A process whose net is called so often a step, in its phase."""
    nodes = {
        ("module", "forward"): (calls, 200_000, 0),
        ("module", "forward", "net"): (calls, 100_000, 0),
        ("module", "loss"): (calls, 10_000, 0),
        ("module", "loss", "loss"): (2 * calls, 10_000, 0),
        ("module", "backward", "recomputed forward"): (calls, 10_000, 0),
    }
    return process(STEP_NS, nodes=nodes)


def test_phases_of_a_measured_comparison_are_not_called_modules() -> None:
    pairs = pairs_of(10, lambda _: measured(2), baseline=lambda _: measured(1))
    comparison = build_measured(trials_of(pairs), LOOKS[0], COMPARABLE)
    # Stacks are not looked at while programs take turns.
    assert '"key":"flamegraph"' not in render_comparison_html(comparison)
    text = render_comparison_markdown(comparison)
    assert "phase forward: called 2 × as often (1 → 2 a step)" in text
    assert "<details><summary>Phases and modules</summary>" in text
    assert "| phase, module | calls a step |" in text
    assert "| in no phase |" in text
    [table] = comparison.tables
    told = {words.describe_calls(row, table) for row in table.rows}
    assert {str(one).partition(":")[0] for one in told} == {
        "phase forward",
        "module net",
        "phase loss",
        "module loss",
        "phase recomputed forward",
    }
    assert "Phases and modules" not in render_comparison_markdown(COMPARISONS["one-run"]())


def test_calls_of_a_program_without_steps_are_those_of_the_run() -> None:
    text = render_comparison_markdown(COMPARISONS["scopes"]())
    assert text.count("| scope | calls | before |") == 2
    assert "calls a step" not in text
    assert render_comparison_markdown(COMPARISONS["one-run"]()).count("| scope | calls a step |") == 2


@pytest.mark.parametrize(
    ("name", "level", "fact"),
    [
        ("trend-only", "Trend only: ", "cpu_model: 1 (before), 2 (after) [trend only; to accept it: "),
        ("accepted", "Compared although not all is the same", "inputs: 1 (before), 2 (after) [accepted]"),
        ("refused", "Refused: ", "inputs: 1 (before), 2 (after) [refused; to accept it: --allow inputs]"),
        ("one-run", "Comparable: ", ""),
    ],
)
def test_whether_they_may_be_compared_is_told_before_any_figure(name: str, level: str, fact: str) -> None:
    comparison = COMPARISONS[name]()
    for text in (
        render_comparison_markdown(comparison).replace("\\", "").partition("## In short")[0],
        " ".join(render_comparison_terminal(comparison).partition("In short")[0].split()),
    ):
        assert level in text
        assert fact in text
        assert "10.0" not in text


def test_facts_that_weigh_nothing_are_named_at_the_top_and_told_below() -> None:
    noted = Comparability(
        level=Level.COMPARABLE,
        differences=(
            difference("code", Weight.NOTED),
            difference("script", Weight.NOTED),
            difference("variables", Weight.NOTED),
        ),
    )
    top, _, rest = render_comparison_markdown(compare(net_run(), net_run(), noted)).partition("## In short")
    assert "- Noted, see below: commit, script's SHA-256, variables" in top
    assert "code: 1" not in top
    assert "code: 1 (before), 2 (after)" in rest


def test_an_accepted_difference_stays_in_sight() -> None:
    text = render_comparison_terminal(COMPARISONS["accepted"]())
    assert "inputs: 1 (before), 2 (after) [accepted]" in text
    assert "are the same." not in text.partition("In short")[0]


def many_scopes(longer_us: int) -> Run:
    """Thirty scopes, each of which takes so much longer times its number."""
    scopes = [
        node(f"scope {number:02}", None, [1_000_000 + number * longer_us * 1_000]) for number in range(30)
    ]
    return run_of(main_strand(*scopes), profiled_ns=sum(scope.total_ns for scope in scopes))


def test_rows_that_are_not_shown_are_summed_up_so_that_columns_add_up() -> None:
    comparison = compare(many_scopes(0), many_scopes(10))
    text = render_comparison_terminal(comparison, top=3)
    table = text.partition("\nScopes\n")[2].partition("\nScopes, one call")[0]
    assert re.findall(r"^scope (\d\d)", table, re.MULTILINE) == ["29", "28", "27"]
    # 4.35 ms in all, 0.84 ms of it in the three.
    [folded] = re.findall(r"^27 more  .*$", table, re.MULTILINE)
    assert "+3.51ms" in folded
    whole = render_comparison_terminal(comparison, top=None).partition("\nScopes\n")[2]
    assert len(re.findall(r"^scope \d\d", whole.partition("\nScopes, one call")[0], re.MULTILINE)) == 30


def test_a_narrow_terminal_is_kept_to() -> None:
    for width in (40, 60, 120):
        text = render_comparison_terminal(COMPARISONS["many-runs"](), width=width)
        assert max(map(cell_len, text.splitlines())) <= width


def test_plain_ascii_where_nothing_else_can_be_shown() -> None:
    assert render_comparison_terminal(COMPARISONS["one-run"](), ascii_only=True).isascii()


def named(name: str, *, calls: int) -> Run:
    """A run in which everything that can have a name has this one."""
    run = net_run(Net(second_name=name, first_calls=calls))
    strand = main_strand(node(name, None, [1_000_000] * calls), node(name, 0, [1_000]))
    assert run.torch is not None
    [group] = run.torch.groups
    return msgspec.structs.replace(
        run,
        program=msgspec.structs.replace(run.program, name=name),
        strands=(strand,),
        samples=stack_samples(
            Seen(stack=f"main:1;{name.replace(';', '').replace(':', '') or 'x'}:2", python=100)
        ),
        torch=msgspec.structs.replace(
            run.torch, groups=(msgspec.structs.replace(group, label=name),), operators=None
        ),
    )


def comparison_of(name: str) -> Comparison:
    facts = Comparability(
        level=Level.COMPARABLE,
        differences=(replace(difference("code", Weight.NOTED), before=name, sentence=f"commit: {name}"),),
    )
    return compare(named(name, calls=1), named(name, calls=2), facts)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_hostile_name_drives_no_terminal(name: str) -> None:
    text = render_comparison_terminal(comparison_of(name))
    assert all(character.isprintable() or character == "\n" for character in text)
    assert max(map(cell_len, text.splitlines())) <= 80


# Blanks at both ends, and nothing at all, are shown in quotes or as an entity: they change words only.
@given(NASTY_TEXT)
@example("<script>alert(1)</script>")
@example("a|b`c`\n| x |")
@example("</details><h1>")
def test_a_name_in_markdown_is_text_and_nothing_else(name: str) -> None:
    markdown = render_comparison_markdown(comparison_of(name))
    tokens = parse(markdown)
    assert kinds_of(tokens) == kinds_of(parse(render_comparison_markdown(comparison_of("plain"))))
    ours = {"<details><summary>", "</details>"}
    html = [token.content.strip() for token in tokens if token.type in {"html_block", "html_inline"}]
    assert all(any(one.startswith(begin) for begin in ours) for one in html)
