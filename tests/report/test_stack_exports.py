"""Stacks for other tools, read as those tools read them."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from pyrometer.analysis.sample_results import SampleResults, build_sample_results
from pyrometer.record.run import Run
from pyrometer.report.pprof import encode_varint, render_pprof
from pyrometer.report.stack_exports import Weight, collapsed_lines, render_speedscope
from tests.record.example_runs import any_runs
from tests.report.test_safety import NASTY_TEXT
from tests.report.test_sample_report import run_named, sampled_run, sampled_training_run

MS = 1_000_000

_FRAME = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string"},
        "file": {"type": "string"},
        "line": {"type": "number"},
        "col": {"type": "number"},
    },
}
_SAMPLED_PROFILE = {
    "type": "object",
    "required": ["type", "name", "unit", "startValue", "endValue", "samples", "weights"],
    "properties": {
        "type": {"const": "sampled"},
        "name": {"type": "string"},
        "unit": {"enum": ["bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"]},
        "startValue": {"type": "number"},
        "endValue": {"type": "number"},
        "samples": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
        "weights": {"type": "array", "items": {"type": "number"}},
    },
}
# What speedscope 1.25 asks of a file with samples.
SPEEDSCOPE_SCHEMA = {
    "type": "object",
    "required": ["$schema", "profiles", "shared"],
    "properties": {
        "$schema": {"type": "string"},
        "activeProfileIndex": {"type": "number"},
        "exporter": {"type": "string"},
        "name": {"type": "string"},
        "profiles": {"type": "array", "items": _SAMPLED_PROFILE},
        "shared": {
            "type": "object",
            "required": ["frames"],
            "properties": {"frames": {"type": "array", "items": _FRAME}},
        },
    },
}


def results_of(run: Run) -> SampleResults:
    results = build_sample_results(run)
    assert results is not None
    return results


def collapsed(run: Run, weight: Weight) -> dict[tuple[str, ...], int]:
    """As flamegraph.pl reads it: what stands before the last blank, and the number after it."""
    stacks: Counter[tuple[str, ...]] = Counter()
    for line in collapsed_lines(results_of(run).tree, weight):
        found = re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)\n", line)
        assert found is not None
        stacks[tuple(found[1].split(";"))] += int(found[2])
    return stacks


@pytest.mark.parametrize(
    ("weight", "total"), [("cpu", 7_690 * MS), ("wall", 18_090 * MS), ("samples", 1_809)]
)
def test_collapsed_stacks_hold_all_there_is(weight: str, total: int) -> None:
    stacks = collapsed(sampled_run(), Weight(weight))
    assert sum(stacks.values()) == total


def test_a_collapsed_stack_goes_from_the_outermost_to_the_native_function() -> None:
    stacks = collapsed(sampled_run(), Weight.SAMPLES)
    layer = "torch.nn.modules.linear"
    assert (
        stacks[
            "<module> (train)",
            "train (train)",
            "step (train)",
            f"Module._call_impl ({layer})",
            f"Linear.forward ({layer})",
            "cblas_sgemm [libtorch_cpu.so]",
        ]
        == 400
    )
    assert stacks["worker (train)", "Condition.wait (threading)", "waiting"] == 890


@given(NASTY_TEXT)
def test_whatever_the_names_a_collapsed_stack_is_one_line_of_so_many_frames(name: str) -> None:
    assert sorted(len(stack) for stack in collapsed(run_named(name), Weight.CPU)) == [1, 3]


@given(any_runs())
def test_any_samples_fit_the_schema_of_speedscope(run: Run) -> None:
    if run.samples is not None:
        document = json.loads(render_speedscope(run, results_of(run).tree))
        jsonschema.validate(document, SPEEDSCOPE_SCHEMA)


def test_speedscope_has_cpu_time_wall_time_and_samples() -> None:
    document = json.loads(render_speedscope(sampled_run(), results_of(sampled_run()).tree))
    frames = document["shared"]["frames"]
    totals = {profile["name"]: (profile["unit"], profile["endValue"]) for profile in document["profiles"]}
    assert totals == {
        "CPU time": ("nanoseconds", 7_690 * MS),
        "wall time": ("nanoseconds", 18_090 * MS),
        "samples": ("none", 1_809),
    }
    for profile in document["profiles"]:
        assert sum(profile["weights"]) == profile["endValue"]
        assert len(profile["weights"]) == len(profile["samples"])
    hottest = max(zip(document["profiles"][0]["weights"], document["profiles"][0]["samples"], strict=True))
    assert [frames[index]["name"] for index in hottest[1]][-1] == "cblas_sgemm [libtorch_cpu.so]"
    assert {"name": "step (train)", "file": "/home/ada/train.py", "line": 10} in frames


def fields_of(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message by number, as its encoding is specified."""
    at = 0
    while at < len(message):
        tag, at = varint_at(message, at)
        if tag & 7 == 0:
            value, at = varint_at(message, at)
            yield tag >> 3, value
        else:
            assert tag & 7 == 2, "only numbers and what has a length occur in a profile"
            length, at = varint_at(message, at)
            yield tag >> 3, message[at : at + length]
            at += length
    assert at == len(message)


def varint_at(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def message_of(data: int | bytes) -> dict[int, list[Any]]:
    assert isinstance(data, bytes)
    fields: dict[int, list[Any]] = {}
    for number, value in fields_of(data):
        fields.setdefault(number, []).append(value)
    return fields


def numbers_of(packed: bytes) -> list[int]:
    numbers, at = [], 0
    while at < len(packed):
        number, at = varint_at(packed, at)
        numbers.append(number)
    return numbers


class Profile:
    """A pprof file, read by the numbers of the fields in profile.proto."""

    def __init__(self, data: bytes) -> None:
        fields = message_of(gzip.decompress(data))
        self.strings = [text.decode("utf-8") for text in fields[6]]
        assert self.strings[0] == ""
        self.types = [
            tuple(self.strings[kind[number][0]] for number in (1, 2)) for kind in map(message_of, fields[1])
        ]
        self.default = self.strings[fields[14][0]]
        self.period = fields[12][0]
        functions = {function[1][0]: function for function in map(message_of, fields.get(5, []))}
        self.locations = {}
        for location in map(message_of, fields.get(4, [])):
            line = message_of(location[4][0])
            function = functions[line[1][0]]
            name = self.strings[function[2][0]]
            file = self.strings[function.get(4, [0])[0]]
            self.locations[location[1][0]] = (name, file, line.get(2, [0])[0])
        self.samples = [self._sample(sample) for sample in map(message_of, fields.get(2, []))]

    def _sample(self, sample: dict[int, list[Any]]) -> tuple[list[Any], list[int], dict[str, str]]:
        stack = [self.locations[number] for number in numbers_of(sample[1][0])]
        labels = {
            self.strings[label[1][0]]: self.strings[label[2][0]] for label in map(message_of, sample[3])
        }
        return stack, numbers_of(sample[2][0]), labels


def pprof_of(run: Run) -> Profile:
    results = build_sample_results(run)
    assert results is not None
    return Profile(render_pprof(run, results.recorded))


def test_pprof_has_samples_cpu_time_and_wall_time() -> None:
    profile = pprof_of(sampled_run())
    assert profile.types == [("samples", "count"), ("cpu", "nanoseconds"), ("wall", "nanoseconds")]
    assert (profile.default, profile.period) == ("cpu", 10 * MS)
    totals = [sum(values[index] for _, values, _ in profile.samples) for index in range(3)]
    assert totals == [1_809, 7_690 * MS, 18_090 * MS]


def test_a_stack_of_pprof_starts_with_the_innermost_line_and_has_its_thread_and_phase() -> None:
    profile = pprof_of(sampled_training_run())
    stack, values, labels = max(profile.samples, key=lambda sample: sample[1][1])
    assert [place[0] for place in stack[:3]] == ["cblas_sgemm", "Linear.forward", "Module._call_impl"]
    assert stack[-1] == ("<module>", "/home/ada/train.py", 80)
    assert values == [400, 4_000 * MS, 4_000 * MS]
    assert labels == {"thread": "MainThread", "phase": "forward"}


@given(any_runs())
def test_any_samples_are_a_profile_that_adds_up(run: Run) -> None:
    if run.samples is None:
        return
    profile = pprof_of(run)
    overall = results_of(run).overall.parts
    totals = [sum(values[index] for _, values, _ in profile.samples) for index in range(3)]
    assert totals == [overall.samples, overall.cpu_ns, overall.wall_ns]


@given(NASTY_TEXT)
def test_whatever_the_names_a_profile_keeps_its_shape(name: str) -> None:
    assert [len(stack) for stack, _, _ in pprof_of(run_named(name)).samples] == [1, 3]


@pytest.mark.parametrize(
    ("number", "encoded"), [(0, b"\x00"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02")]
)
def test_a_number_is_written_as_protobuf_has_it(number: int, encoded: bytes) -> None:
    assert encode_varint(number) == encoded
