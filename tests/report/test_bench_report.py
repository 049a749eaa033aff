"""Benchmarks as text, whatever they are called."""

import json

import msgspec

from pyrometer.record.benchmarks import (
    Benchmark,
    BenchmarkNote,
    BenchmarkProcess,
    BenchmarkResults,
    CallMemory,
    CallTurn,
    MeasuredBenchmark,
)
from pyrometer.report.bench_report import render_bench_json, render_bench_markdown, render_bench_terminal

HOSTILE = "bench_\x1b[31m|<b>\n# x"


def measured(
    name: str, *, failure: str | None = None, processes: int = 10, **note: object
) -> MeasuredBenchmark:
    told = msgspec.convert(
        {"source": "s", "calls": 10, "inputs": "i", "checksum": "0123456789abcdef", **note}, BenchmarkNote
    )
    turns = tuple(CallTurn(15_000, 10) for _ in range(12))
    one = BenchmarkProcess(hash_seed=1, turns=turns, warmup=(), is_warm=True, note=told)
    return MeasuredBenchmark(
        benchmark=Benchmark(name=name, function="bench", source="s"),
        memory=CallMemory(allocations=3, allocated_bytes=2048, peak_bytes=1024),
        processes=(one,) * processes,
        failure=failure,
    )


def results(*benchmarks: MeasuredBenchmark) -> BenchmarkResults:
    return BenchmarkResults(
        pyrometer_version="1",
        started_at="2026-11-17T09:00:00+00:00",
        python_version="3.11",
        cpu_model="a processor",
        threads=1,
        wanted_processes=10,
        benchmarks=benchmarks,
    )


def test_the_terminal_shows_each_benchmark_with_its_figures() -> None:
    text = render_bench_terminal(results(measured("bench_sort[size=10]")))
    (row,) = (line for line in text.splitlines() if line.startswith("bench_sort"))
    assert row.split() == [
        "bench_sort[size=10]", "1.50µs", "1.50µs–1.50µs", "10/10", "3", "2.00KiB", "<64.0KiB", "01234567",
    ]  # fmt: skip
    assert "Mind" not in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_peak_is_told_no_finer_than_it_is_seen() -> None:
    large = CallMemory(allocations=1, allocated_bytes=1 << 20, peak_bytes=1 << 20)
    one = msgspec.structs.replace(measured("bench_large"), memory=large)
    text = render_bench_markdown(results(one, measured("bench_small")))
    cells = {line.split(" | ")[0]: line.split(" | ")[-2] for line in text.splitlines() if "| bench_" in line}
    assert cells == {"| bench_large": "1.00 MiB", "| bench_small": "&lt;64.0 KiB"}


def test_names_stay_whole_where_figures_can_go() -> None:
    name = "bench_forward[width=64,depth=12,dtype=torch.float32]"
    assert name in render_bench_terminal(results(measured(name)))


def test_what_to_mind_is_said_once_for_all_that_it_holds_for() -> None:
    alike = [measured(f"bench_{letter}", changes_arguments=True) for letter in "abcdef"]
    text = " ".join(render_bench_terminal(results(*alike)).split())
    assert "bench_a, bench_b, bench_c, bench_d and 2 more: changes its arguments" in text
    assert text.count("changes its arguments") == 1


def test_what_differs_or_cannot_be_checked_is_said() -> None:
    unchecked = measured("bench_none", checksum=None, why_unchecked="it returns None")
    chance = measured("bench_chance", processes=6)
    chance = msgspec.structs.replace(
        chance, processes=chance.processes + measured("", checksum="fe", processes=1).processes
    )
    text = " ".join(render_bench_terminal(results(unchecked, chance)).split())
    assert "bench_none: the output is not checkable: it returns None" in text
    assert "bench_chance: returned different results in two processes with the same hash seed" in text


def test_too_few_processes_are_said_to_be_that() -> None:
    assert "Of 2 processes an interval is rough" in render_bench_terminal(
        results(measured("bench_a", processes=2))
    )


def test_a_failure_is_shown_with_its_last_words_and_no_figures() -> None:
    failed = measured("bench_a", failure="it ended:\nTraceback\nValueError: no \x1b[31mluck", processes=0)
    text = render_bench_terminal(results(failed))
    assert "bench_a failed" in text
    assert r"ValueError: no \x1b[31mluck" in text
    assert "\x1b" not in text


def test_hostile_names_are_harmless() -> None:
    shown = results(measured(HOSTILE, failure="``` \x1b[31m<b>\n```\n<b>", changes_arguments=True))
    for text in (render_bench_terminal(shown), render_bench_markdown(shown)):
        assert "\x1b" not in text
        assert "\n# x" not in text
    markdown = render_bench_markdown(shown)
    assert "\n````text\n" in markdown  # what was said cannot end the block that shows it
    assert "<b>" not in markdown.partition("````text")[0]
    rows = [line for line in markdown.splitlines() if line.startswith("| bench\\_")]
    assert [row.replace(r"\|", "").count("|") for row in rows] == [10]


def test_the_json_has_every_value_and_can_be_read_back() -> None:
    shown = results(measured("bench_a"), measured(HOSTILE))
    content = json.loads(render_bench_json(shown))
    assert (content["format"], content["version"]) == ("pyrometer-benchmarks", 1)
    assert [one["call_ns"] for one in content.pop("figures")] == [1_500, 1_500]
    assert msgspec.convert(content, BenchmarkResults) == shown
