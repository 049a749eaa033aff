"""What ``pyrometer limits`` prints."""

import json
from collections.abc import Callable

import msgspec

from pyrometer.report.limits_report import render_limits_json, render_limits_markdown, render_limits_terminal
from tests.limits import make_limits


def test_the_limits_look_as_agreed(check_golden: Callable[[str, str], None]) -> None:
    check_golden("limits.txt", render_limits_terminal(make_limits()))
    check_golden("limits.md", render_limits_markdown(make_limits()))
    check_golden("limits.json", render_limits_json(make_limits()))


def test_what_is_contended_is_said() -> None:
    assert "Contended" not in render_limits_terminal(make_limits())
    text = render_limits_terminal(make_limits(contended=True), width=300)
    assert (
        "Contended, the best more than 1.3 × the median: GEMM f32 on 1 thread, GEMM f32 on 2 threads" in text
    )
    contended = json.loads(render_limits_json(make_limits(contended=True)))["contended"]
    assert contended[0] == "GEMM f32 on 1 thread"
    assert len(contended) == 10


def test_more_threads_that_are_slower_than_one_are_said() -> None:
    limits = make_limits()
    slower = tuple(
        msgspec.structs.replace(rate, best_flops_per_s=9e10, median_flops_per_s=9e10)
        if (rate.kind, rate.precision, rate.threads) == ("fma", "f32", 2)
        else rate
        for rate in limits.flop_rates
    )
    text = render_limits_terminal(msgspec.structs.replace(limits, flop_rates=slower), width=200)
    assert "Slower on 2 threads than on one: FMA f32. The cores are not all free." in text


def test_arrays_that_memory_kept_short_are_said() -> None:
    text = render_limits_terminal(msgspec.structs.replace(make_limits(), array_bytes=1 << 20), width=300)
    assert "The arrays have 1.00 MiB each, less than four times the last cache (32.0 MiB)" in text


def test_no_line_is_wider_than_the_terminal_and_text_is_harmless() -> None:
    hostile = make_limits(cpu_model="\x1b[31mCPU | `x` <b> \u202e")
    for width in (40, 60, 80):
        text = render_limits_terminal(hostile, width=width)
        assert max(map(len, text.splitlines())) <= width
        assert "\x1b" not in text
    assert "<b>" not in render_limits_markdown(hostile)
    assert render_limits_terminal(hostile, ascii_only=True).isascii()


def test_limits_of_which_nothing_was_measured_can_be_shown() -> None:
    empty = msgspec.structs.replace(
        make_limits(), flop_rates=(), bandwidths=(), strided=(), latencies=(), caches=(), threads=1
    )
    assert "FMA f32" in render_limits_terminal(empty)
    assert "caches" in render_limits_markdown(empty)
