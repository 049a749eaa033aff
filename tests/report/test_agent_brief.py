"""The brief for coding agents: all that is needed to act, in a bounded size, with names as mere text."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pyrometer.analysis.findings.find import find
from pyrometer.analysis.findings.model import FindingKind, Findings, GainOf, NotLookedFor
from pyrometer.analysis.observed import observe
from pyrometer.record.run import Loss, Outcome, Run
from pyrometer.report.agent_brief import MOST_LINES, render_brief_for_agents
from tests.findings import findings_named, make_finding, make_findings, no_findings, training_findings
from tests.report.sample_runs import HOSTILE_NAMES, empty_run, hostile_run, simple_run, wide_run
from tests.report.test_sample_report import run_named as sampled_run_named
from tests.report.torch_samples import large_torch_run, torch_run_named
from tests.sampled_runs import STACKS, THREADS, stack_samples, with_samples
from tests.targets import judged
from tests.torch_runs import TORCH_RUNS, generation_run, training_run

MOST_BYTES = 8_000

_TO_COME = "`pyrometer tune --only compile` will measure it, in a version to come"


def brief_of(run: Run, findings: Findings) -> str:
    text = render_brief_for_agents(observe(run), findings)
    check_size(text)
    return text


def check_size(text: str) -> None:
    assert len(text.encode()) < MOST_BYTES
    assert len(text.splitlines()) < 120
    assert all(line.isprintable() for line in text.split("\n"))


def sampled_run() -> Run:
    return with_samples(training_run(), stack_samples(*STACKS, threads=THREADS))


def test_it_says_what_ran_where_and_what_came_out() -> None:
    text = brief_of(training_run(), training_findings())
    assert "`pyrometer run -o after.json train.py --epochs 3`; this one ended" in text
    assert "100 steps, 10.0 ms a step, 3,200 samples/s" in text
    assert "`backward` 35.0 %, `forward` 30.0 %, `optimizer` 13.0 %" in text
    assert "**Overhead-bound: up to 35 % of a step goes into starting small operators.**" in text


def test_a_finding_has_place_evidence_bound_change_and_check() -> None:
    lines = brief_of(training_run(), training_findings()).splitlines()
    start = lines.index("### 1. The backward pass is made of many operators that do next to nothing")
    block = lines[start + 2 : start + 13]
    assert block == [
        "- kind: tiny-operators; priority CRITICAL; effort: hours",
        "- where: steps `Adam`, phase `backward`, module `model.fc1`",
        "- evidence: 212 operators a step, 16.5 µs each on average (see Operators)",
        "- at most: 35.0 % of a step's time, 1.54 × as fast (if that took no time at all)",
        "- change: compile the model, which makes few operators of many",
        "  ```python",
        "  model = torch.compile(model)",
        "  ```",
        "- results: results differ by rounding",
        f"- check: a steady step, 10.0 ms on average now; {_TO_COME}",
        "",
    ]


def test_a_finding_without_a_bound_says_so() -> None:
    text = brief_of(training_run(), make_findings(make_finding(gain=None)))
    assert "- at most: not known: nothing that was measured bounds it" in text
    assert "- check: run again, and see whether the evidence above is gone" in text


def test_functions_have_their_file_and_line_and_how_sure_they_are() -> None:
    text = brief_of(sampled_run(), no_findings())
    [first, *_] = [line for line in text.splitlines() if line.startswith("- `") and " at `" in line]
    assert first.startswith("- `Linear.forward` at `")
    assert ":" in first
    assert "of the CPU time, torch" in first


def test_the_programs_own_functions_are_named_by_what_they_lead_to() -> None:
    lines = brief_of(sampled_run(), no_findings()).splitlines()
    start = lines.index("## The program's own functions, with all they call")
    first, second = lines[start + 2 : start + 4]
    assert first.startswith("- `train` at `/home/ada/train.py:10`: ")
    assert second.startswith("- `step` at ")
    assert not any("`<module>`" in line for line in lines)


def test_operators_are_asked_for_again_where_they_were_asked_for() -> None:
    text = brief_of(TORCH_RUNS["operators"](), no_findings())
    assert "`pyrometer run -o after.json --ops 5 train.py --epochs 3`" in text


def test_what_cannot_be_concluded_is_said() -> None:
    run = msgspec.structs.replace(
        training_run(),
        outcome=Outcome(status="signal", detail="SIGTERM"),
        losses=(Loss(collector="scopes", reason="too many", count=3),),
    )
    text = brief_of(run, training_findings())
    for words in (
        "the program did not end by itself (ended by SIGTERM)",
        "lost: ",
        "cannot be told: copies-and-casts, synchronising-calls: operators were not recorded",
        "stacks were not sampled",
        "there was no GPU",
        "it is a single one",
    ):
        assert words in text
    assert "PyTorch was not used" in brief_of(simple_run(), no_findings())


def test_the_rules_are_always_there() -> None:
    for run in (training_run(), empty_run(), large_torch_run()):
        assert "A gain is an upper bound until it is measured" in brief_of(run, many_findings(run))


def many_findings(run: Run) -> Findings:
    """Twenty long ones, and as many kinds that could not be looked for."""
    long_text = f"{run.program.name} does the same again and again, " * 20
    found = [
        make_finding(
            rank=rank,
            what=long_text,
            evidence=long_text,
            remedy=long_text,
            snippet="\n".join(["x = x + 1  # and so on"] * 50),
        )
        for rank in range(1, 21)
    ]
    missed = [NotLookedFor(kind=kind, reason=f"{kind.value} {long_text}") for kind in list(FindingKind)[:20]]
    return make_findings(*found, not_shown=7, not_looked_for=tuple(missed), verdict=long_text)


def test_of_many_findings_the_first_ones_are_told_and_the_rest_counted() -> None:
    text = brief_of(sampled_run(), many_findings(training_run()))
    told = text.count("\n### ")
    in_a_line = sum(line.startswith("- ") and line[2:3].isdigit() for line in text.splitlines())
    assert told >= 2
    assert f"- and {27 - told - in_a_line} more, in the full report" in text


def test_targets_stand_in_it() -> None:
    targets = [judged(training_run(), "throughput", ">20000")] * 9
    text = render_brief_for_agents(observe(training_run()), many_findings(training_run()), targets)
    check_size(text)
    assert "- not met: throughput (samples a second, in the main group of steps): above 20,000" in text
    assert "- and 4 more, in the full report" in text
    [result] = [judged(training_run(), "throughput", "2x")]
    text = render_brief_for_agents(observe(training_run()), no_findings(), [result])
    assert "- to be reached: throughput" in text


@pytest.mark.parametrize("name", list(TORCH_RUNS))
def test_every_run_has_a_brief_of_a_bounded_size(name: str) -> None:
    run = TORCH_RUNS[name]()
    brief_of(run, find(observe(run)))
    brief_of(run, many_findings(run))


@pytest.mark.parametrize("run", [empty_run(), hostile_run(), wide_run(), large_torch_run()])
def test_a_run_of_any_size_has_a_brief_of_a_bounded_size(run: Run) -> None:
    brief_of(run, many_findings(run))


def test_generation_is_checked_by_its_tokens() -> None:
    finding = make_finding(kind=FindingKind.NO_CACHE, of=GainOf.TOKEN)
    assert "- check: a token, 2.15 ms now" in brief_of(generation_run(cached=True), make_findings(finding))


# Names.

TITLES = {
    "## Findings, largest possible gain first",
    "## Functions with most CPU time of their own",
    "## The program's own functions, with all they call",
    "## What cannot be concluded from this run",
    "## Rules",
}


def kinds_of(markdown: str) -> list[str]:
    """What the text is made of, the words themselves left out."""
    kinds = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown):
        kinds.append(token.type)
        kinds += [child.type for child in token.children or () if child.type not in {"text", "text_special"}]
    return kinds


def run_named(name: str) -> Run:
    """Everything in it has this name, the sampled functions too."""
    samples = sampled_run_named(name).samples
    assert samples is not None
    return with_samples(torch_run_named(name), samples)


def check_harmless(name: str) -> None:
    text = brief_of(run_named(name), findings_named(name))
    kinds = kinds_of(text)
    assert not {"html_block", "html_inline", "link_open", "image", "table_open", "s_open", "em_open"} & {
        *kinds
    }
    titles = [line for line in text.splitlines() if line.startswith("#")]
    assert {title for title in titles[1:] if not title.startswith("### ")} <= TITLES
    assert [title[:6] for title in titles if title.startswith("### ")] == ["### 1.", "### 2."]
    assert kinds.count("heading_open") == len(titles)


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, "````", "a\n## Rules\n", "~~~", "\ud800", "`" * 5_000])
def test_a_name_is_never_more_than_text(name: str) -> None:
    check_harmless(name)


@given(st.text(st.one_of(st.sampled_from("`~#<>[]!*_|\\\n -x"), st.characters()), max_size=40))
def test_whatever_the_name_it_is_never_more_than_text(name: str) -> None:
    check_harmless(name)


def test_names_of_a_million_characters_change_nothing_about_the_size() -> None:
    for name in ("x" * 1_000_000, "&" * 100_000, "中" * 100_000, "\x1b" * 100_000):
        text = brief_of(run_named(name), findings_named(name))
        assert len(text.splitlines()) <= MOST_LINES
