"""What a gate says, word by word, on pairs made by hand."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import msgspec
import pytest
from hypothesis import example, given
from rich.cells import cell_len

from pyrometer.analysis.attribution import find_changed_places
from pyrometer.analysis.gate import (
    COUNTED_PAIRS,
    INSTRUCTION_PAIRS,
    LOOKS,
    Judgement,
    Reason,
    Verdict,
    judge,
    judge_counts,
    judge_suite,
)
from pyrometer.analysis.gated import GatedLane
from pyrometer.analysis.identity import NOT_USED
from pyrometer.analysis.trials import Metric, average_ratios, candidate_ratios, control_ratios
from pyrometer.record.trials import NodeFigures, Pair, ProcessTurns, Trials
from pyrometer.report.gate_report import render_gate_markdown, render_gate_terminal
from tests.report.sample_runs import HOSTILE_NAMES
from tests.report.test_safety import NASTY_TEXT, kinds_of, parse
from tests.trial_pairs import ROUNDS, STEP_NS, noisy, pairs_of, process, trials_of

FIRST, SECOND, LOADING = (
    ("module", "forward", "model", "model.first"),
    ("module", "forward", "model", "model.second"),
    ("scope", "loading"),
)

Making = Callable[[random.Random], ProcessTurns]


def net(first_ns: float = 300_000, *, slower_ns: float = 0, second_calls: int = 1) -> Making:
    """A process of a net whose first layer takes so long, and ``slower_ns`` more than the baseline's."""

    def make(noise: random.Random) -> ProcessTurns:
        extra_ns = slower_ns + (second_calls - 1) * 200_000
        step_ns = (STEP_NS + extra_ns) * (1 + noise.gauss(0, 0.005))

        def about(value: float) -> float:
            return value + noise.gauss(0, 300)

        return process(
            [step_ns * (1 + noise.gauss(0, 0.01)) for _ in range(ROUNDS)],
            nodes={
                FIRST[:-2]: (1, 20_000, about(0)),
                FIRST[:-1]: (1, 30_000, about(0)),
                FIRST: (1, first_ns + slower_ns, about(slower_ns)),
                SECOND: (
                    second_calls,
                    second_calls * 200_000,
                    about((second_calls - 1) * 200_000),
                ),
                LOADING: (1, 100_000, about(0)),
            },
        )

    return make


def judged_lane(
    pairs: Sequence[Pair], *, metric: Metric = Metric.LATENCY, max_slowdown: float = 0.0, **plan: object
) -> GatedLane:
    """The lane of a program, as the last look at its pairs judges it."""
    ratios, control = candidate_ratios(pairs, metric), control_ratios(pairs, metric)
    judgement: Judgement
    if metric.is_timed:
        look = next(look for look in LOOKS if look.pairs >= len(pairs))
        averages = average_ratios(pairs, metric)
        judgement = judge(
            ratios, control, averages=averages, max_slowdown=max_slowdown, look=look, is_last=True
        )
    else:
        needed = INSTRUCTION_PAIRS if metric is Metric.INSTRUCTIONS else COUNTED_PAIRS
        judgement = judge_counts(ratios, control, max_slowdown=max_slowdown, needed=needed)
    trials = trials_of(pairs, **plan)
    unit, calls = trials.plan.unit, trials.plan.calls_per_step
    return GatedLane(
        metric=metric,
        judgement=judgement,
        max_slowdown=max_slowdown,
        trials=trials,
        tables=find_changed_places(
            pairs,
            unit=unit,
            calls_per_step=calls,
            alpha=judgement.alpha or LOOKS[0].alpha,
            is_void=judgement.reason is Reason.CONTROL,
        )
        if metric.is_timed
        else (),
    )


def counted(candidate: Sequence[int], *, field: str, control: Sequence[int] = (1_000,) * 5) -> list[Pair]:
    """Pairs with so many thousands of what the field counts; the baseline has 1,000 thousand."""

    def one(thousands: int) -> ProcessTurns:
        return msgspec.structs.replace(process(), **{field: thousands * 1_000})

    return [
        Pair(hash_seed=number, baseline=one(1_000), candidate=one(count), control=one(control[number]))
        for number, count in enumerate(candidate)
    ]


def benchmarks() -> list[GatedLane]:
    """Four benchmarks of a file, of which the second became slower and the last is too unsteady to tell."""
    every = {
        "bench_read": pairs_of(20, noisy(1.0), seed=1),
        "bench_tokenize": pairs_of(20, noisy(1.12), seed=2),
        "bench_write": pairs_of(20, noisy(0.9), seed=3),
        "bench_unsteady": pairs_of(20, noisy(1.02, between=0.06), seed=4),
    }
    metric = Metric.LATENCY
    judgements = judge_suite(
        [candidate_ratios(pairs, metric) for pairs in every.values()],
        [control_ratios(pairs, metric) for pairs in every.values()],
        [None] * len(every),
        max_slowdown=0.0,
        look=LOOKS[1],
        is_last=True,
    )
    return [
        GatedLane(
            metric=metric,
            judgement=judgement,
            max_slowdown=0.0,
            trials=trials_of(pairs, unit="call", calls_per_step=500),
            subject=name,
        )
        for (name, pairs), judgement in zip(every.items(), judgements, strict=True)
    ]


GATES: dict[str, Callable[[], list[GatedLane]]] = {
    "pass": lambda: [
        judged_lane(pairs_of(10, net(), baseline=net()), metric=Metric.THROUGHPUT, max_slowdown=0.02)
    ],
    "fail": lambda: [judged_lane(pairs_of(10, net(slower_ns=80_000), baseline=net()))],
    "fail-by-calls": lambda: [judged_lane(pairs_of(10, net(second_calls=2), baseline=net()))],
    "inconclusive": lambda: [judged_lane(pairs_of(40, noisy(1.0, between=0.10)))],
    "inconclusive-few": lambda: [judged_lane(pairs_of(2, noisy(1.3)))],
    "inconclusive-counts": lambda: [
        judged_lane(
            counted([1_030] * 3, field="instructions", control=(965, 1_000, 1_000)),
            metric=Metric.INSTRUCTIONS,
        )
    ],
    "inconclusive-counts-few": lambda: [
        judged_lane(counted([1_000, 1_000], field="peak_live_bytes"), metric=Metric.PEAK_MEMORY)
    ],
    "inconclusive-control": lambda: [
        judged_lane(pairs_of(10, net(slower_ns=80_000), baseline=net(), control=net(slower_ns=40_000)))
    ],
    "inconclusive-uneven": lambda: [
        judged_lane(
            pairs_of(10, lambda _: process([STEP_NS] * 10 + [6 * STEP_NS] * 2), baseline=lambda _: process())
        )
    ],
    "pass-other-samples": lambda: [
        judged_lane(
            pairs_of(10, lambda _: process(STEP_NS, samples=64), baseline=lambda _: process(STEP_NS)),
            metric=Metric.THROUGHPUT,
        )
    ],
    "fail-counts": lambda: [
        judged_lane(counted([1_050, 1_051, 1_049], field="instructions"), metric=Metric.INSTRUCTIONS),
        judged_lane(
            counted([1_000, 1_001, 999, 1_000, 1_002], field="peak_live_bytes"), metric=Metric.PEAK_MEMORY
        ),
    ],
    "inconclusive-counts-control": lambda: [
        judged_lane(
            counted([1_050, 1_051, 1_049], field="instructions", control=[1_020] * 3),
            metric=Metric.INSTRUCTIONS,
        )
    ],
    "inconclusive-not-measured": lambda: [
        judged_lane(
            pairs_of(10, lambda _: process(samples=None), baseline=lambda _: process(samples=None)),
            metric=Metric.THROUGHPUT,
        ),
        judged_lane(pairs_of(3, noisy(1.0)), metric=Metric.INSTRUCTIONS),
    ],
    "fail-mixed": lambda: [
        judged_lane(pairs_of(10, net(slower_ns=80_000), baseline=net()), metric=Metric.THROUGHPUT),
        judged_lane(counted([1_300] * 5, field="peak_live_bytes"), metric=Metric.PEAK_MEMORY),
    ],
    "fail-benchmarks": benchmarks,
    "fail-benchmarks-of-one-side": lambda: [
        replace(
            lane,
            unchecked=(f"whether {lane.subject} returns the same: it returns None",),
            new=("bench_parse[size=10]", "bench_parse[size=100]"),
            gone=("bench_scan",),
        )
        for lane in benchmarks()[:2]
    ],
    "fail-program": lambda: [
        judged_lane(
            pairs_of(10, noisy(1.2)),
            unit="program",
            rounds=1,
            turn_steps=1,
            lead_steps=0,
            warmup_turns=(),
            threads=None,
        )
    ],
    "pass-blocks": lambda: [
        judged_lane(pairs_of(10, noisy(1.0)), in_blocks=True, lead_steps=5, turn_steps=200, threads=2)
    ],
}


@pytest.mark.parametrize("name", GATES)
def test_the_gate_on_a_terminal_looks_as_agreed(name: str, check_golden: Callable[[str, str], None]) -> None:
    text = render_gate_terminal(GATES[name]())
    assert max(map(cell_len, text.splitlines())) <= 80
    assert text.startswith(name.partition("-")[0].upper())
    check_golden(f"gate-{name}.txt", text)


@pytest.mark.parametrize("name", GATES)
def test_the_gate_in_markdown_looks_as_agreed(name: str, check_golden: Callable[[str, str], None]) -> None:
    check_golden(f"gate-{name}.md", render_gate_markdown(GATES[name]()))


def test_a_wide_terminal_shows_every_column(check_golden: Callable[[str, str], None]) -> None:
    text = render_gate_terminal(GATES["fail"](), width=120)
    assert max(map(cell_len, text.splitlines())) <= 120
    check_golden("gate-fail-120-columns.txt", text)


def test_plain_ascii_where_nothing_else_can_be_shown(check_golden: Callable[[str, str], None]) -> None:
    text = render_gate_terminal(GATES["fail-by-calls"](), ascii_only=True)
    assert text.isascii()
    check_golden("gate-fail-by-calls-ascii.txt", text)


def test_a_void_gate_names_no_place_as_slower() -> None:
    # Calls are counted, and stay true whatever disturbs the sides.
    void = pairs_of(10, net(slower_ns=80_000, second_calls=2), baseline=net(), control=net(slower_ns=40_000))
    text = render_gate_terminal([judged_lane(void)])
    assert text.startswith("INCONCLUSIVE")
    assert "is slower" not in text
    assert (
        " slower" not in text.partition("Phases and modules, a step")[2].partition("How it was measured")[0]
    )
    assert "model.second is called 2 × as often" in text


def test_so_few_pairs_that_nothing_can_be_told_have_no_interval_and_say_how_many_it_takes() -> None:
    few = judged_lane(pairs_of(8, noisy(1.3)))
    assert few.judgement.p_slower == 1 / 256
    assert "it takes 10 or more" in render_gate_terminal([few])
    enough = judged_lane(pairs_of(10, noisy(1.3)))
    assert render_gate_terminal([enough]).startswith("FAIL")
    assert " to " not in render_gate_terminal([judged_lane(pairs_of(7, noisy(1.3)))]).partition("How")[0]


def test_of_many_benchmarks_it_is_said_which_look_could_tell_a_fail() -> None:
    lane = judged_lane(pairs_of(10, noisy(1.02)))
    # Of three, each against a third of 1 in 500: ten pairs that agree are 1 in 1024, and one more is no look.
    third = replace(
        lane.judgement,
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.UNDECIDED,
        pairs=10,
        fail_alpha=LOOKS[0].alpha / 3,
    )
    text = " ".join(render_gate_terminal([replace(lane, judgement=third)]).split())
    assert (
        "of so many benchmarks together so few pairs can tell no FAIL, whatever they show; it takes 20."
        in text
    )


def test_times_of_both_sides_and_their_change_agree() -> None:
    (lane,) = GATES["fail"]()
    assert lane.before is not None
    assert lane.after is not None
    assert lane.judgement.change is not None
    assert lane.after / lane.before == pytest.approx(1 + lane.judgement.change)


def test_the_places_of_a_benchmark_say_whose_they_are() -> None:
    fast, slow = (
        replace(judged_lane(pairs_of(10, net(slower_ns=extra_ns), baseline=net())), subject=subject)
        for subject, extra_ns in (("bench_fast", -80_000), ("bench_slow", 80_000))
    )
    for text in (render_gate_terminal([fast, slow], width=120), render_gate_markdown([fast, slow])):
        assert "bench_slow, time a step: model.first is slower: +80.0 µs a step" in text
        assert "bench_fast, time a step: model.first is faster: -80.0 µs a step" in text


def test_many_places_are_folded_and_said_to_be_elsewhere() -> None:
    def many(slower_ns: float) -> Making:
        def make(noise: random.Random) -> ProcessTurns:
            nodes: dict[tuple[str, ...], tuple[float, float, float]] = {
                ("scope", f"part {number:02}"): (1.0, 50_000 + slower_ns, slower_ns) for number in range(12)
            }
            return process(STEP_NS + 12 * slower_ns + noise.gauss(0, 100), nodes=nodes)

        return make

    text = render_gate_terminal([judged_lane(pairs_of(10, many(9_000), baseline=many(0)))])
    assert "9 more places changed: see the tables." in text
    assert "4 more rows: all are in the JSON, -o FILE." in text
    assert "--all" not in text


def test_what_could_not_be_seen_is_told_once() -> None:
    lanes = [
        replace(
            lane,
            trials=msgspec.structs.replace(lane.trials, losses=("modules: a hook of ours failed",)),
        )
        for lane in GATES["fail-benchmarks"]()
    ]
    assert render_gate_terminal(lanes).count("Could not be seen: modules: a hook of ours failed") == 1


def test_memory_of_a_gpu_is_said_not_to_be_judged() -> None:
    def text(gpu: str, metric: Metric = Metric.PEAK_MEMORY) -> str:
        lane = judged_lane(counted([1_000] * 5, field="peak_live_bytes"), metric=metric)
        side = msgspec.structs.replace(lane.trials.candidate, identity={"gpu": gpu})
        trials = msgspec.structs.replace(lane.trials, candidate=side)
        return " ".join(render_gate_terminal([replace(lane, trials=trials)]).split())

    assert "the memory of the host; that of the GPU is not judged" in text("NVIDIA A100")
    assert "GPU" not in text(NOT_USED)
    assert "GPU" not in text("NVIDIA A100", Metric.LATENCY)


def test_many_benchmarks_of_one_side_are_counted() -> None:
    (lane,) = GATES["pass"]()
    text = render_gate_terminal([replace(lane, gone=tuple(f"bench_{number}" for number in range(1_012)))])
    assert "bench_9 and 1,002 more (all are in the JSON, -o FILE)" in " ".join(text.split())
    assert "bench_10" not in text
    assert "new:" not in text


@pytest.mark.parametrize("width", [40, 60, 100, 160])
@pytest.mark.parametrize("name", GATES)
def test_any_width_is_kept_to(name: str, width: int) -> None:
    text = render_gate_terminal(GATES[name](), width=width)
    assert max(map(cell_len, text.splitlines())) <= width


@cache
def _plain() -> list[GatedLane]:
    return [judged_lane(pairs_of(10, net(slower_ns=slower_ns), baseline=net())) for slower_ns in (80_000, 0)]


def named(name: str) -> list[GatedLane]:
    """Two benchmarks in which everything that can have a name has this one."""
    lanes = []
    for lane in _plain():
        trials = _renamed_trials(lane.trials, name)
        lanes.append(
            replace(
                lane,
                subject=name,
                trials=trials,
                tables=find_changed_places(trials.pairs, unit="step"),
                unchecked=(name,),
                new=(name,),
                gone=(name,),
            )
        )
    return lanes


def _renamed(one: ProcessTurns, name: str) -> ProcessTurns:
    nodes = tuple(
        NodeFigures(
            (*node.path[:1], *(f"{name}{depth}" for depth, _ in enumerate(node.path[1:], index))), *rest
        )
        for index, node in enumerate(one.nodes)
        for rest in [(node.calls, node.self_ns, node.change_ns)]
    )
    return msgspec.structs.replace(one, nodes=nodes)


def _renamed_trials(trials: Trials, name: str) -> Trials:
    return msgspec.structs.replace(
        trials,
        program=name,
        baseline=msgspec.structs.replace(trials.baseline, name=name, command=name, commit=None),
        candidate=msgspec.structs.replace(trials.candidate, name=name),
        losses=(name,),
        pairs=tuple(
            msgspec.structs.replace(
                pair, baseline=_renamed(pair.baseline, name), candidate=_renamed(pair.candidate, name)
            )
            for pair in trials.pairs
        ),
    )


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_hostile_name_drives_no_terminal(name: str) -> None:
    text = render_gate_terminal(named(name), color=False)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert max(map(cell_len, text.splitlines())) <= 80


@given(NASTY_TEXT)
@example("<script>alert(1)</script>")
@example("a|b`c`\n| x |")
@example("</details><h1>")
def test_a_name_in_markdown_is_text_and_nothing_else(name: str) -> None:
    tokens = parse(render_gate_markdown(named(name)))
    assert kinds_of(tokens) == kinds_of(parse(render_gate_markdown(named("plain"))))
    ours = {"<details><summary>", "</details>"}
    html = [token.content.strip() for token in tokens if token.type in {"html_block", "html_inline"}]
    assert all(any(one.startswith(begin) for begin in ours) for one in html)
