"""Callgrind's own format, in files small enough to add up by hand."""

import pytest

from pyrometer.capture.callgrind_file import CallgrindFormatError, read_callgrind
from pyrometer.record.counters import CacheCounts

HEAD = """\
# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 12
cmd:  python program.py
part: 1
desc: I1 cache: 32768 B, 64 B, 8-way associative
positions: line
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw
"""

FILE = (
    HEAD
    + """\
summary: 160 40 10 2 4 1 1 2
ob=(1) /usr/bin/python3
fl=(1) ???
fn=(1) main
0 100 20 5 2 1
cob=(2) /lib/libm.so
cfn=(2) exp
calls=7 0
0 50 20 5 0 3 1 1 2
+3 10

ob=(2)
fn=(2)
* 40 15 5 0 3 1 1 2
fn=(3) exp'2
-2 10 5
totals: 160 40 10 2 4 1 1 2
"""
)


def test_the_self_counts_of_functions_add_up_to_the_totals() -> None:
    file = read_callgrind(FILE.splitlines())
    assert file.totals == CacheCounts(160, 40, 10, 2, 4, 1, 1, 2, 0)
    for figure in CacheCounts.__struct_fields__:
        parts = sum(getattr(function.counts, figure) for function in file.functions)
        assert parts == getattr(file.totals, figure), figure


def test_a_call_is_not_counted_in_the_caller_and_recursion_is_one_function() -> None:
    found = [(f.name, f.library, f.counts.instructions) for f in read_callgrind(FILE.splitlines()).functions]
    assert found == [
        ("main", "/usr/bin/python3", 110),
        ("exp", "/lib/libm.so", 50),
    ]


def test_the_tool_is_named() -> None:
    assert read_callgrind(FILE.splitlines()).tool == "callgrind-3.19.0"


def test_the_columns_are_known_by_their_names_and_not_by_their_places() -> None:
    swapped = HEAD.replace("events: Ir Dr", "events: Bc Dr Ir") + "fn=(1) main\n0 9 2 5\ntotals: 9 2 5\n"
    totals = read_callgrind(swapped.splitlines()).totals
    assert (totals.instructions, totals.reads, totals.writes) == (5, 2, 0)


def test_parts_of_one_file_are_added_up() -> None:
    assert read_callgrind((FILE + FILE).splitlines()).totals.instructions == 320


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no Ir"),
        (HEAD, "cut off"),
        (HEAD.replace(" DLmw", "") + "totals: 1", "has no DLmw"),
        (HEAD + "fn=(1) main\n0 1 x\n", "line 11"),
    ],
)
def test_what_is_no_whole_file_is_refused(text: str, problem: str) -> None:
    with pytest.raises(CallgrindFormatError, match=problem):
        read_callgrind(text.splitlines())
