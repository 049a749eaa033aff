"""Checksums of values: the same everywhere, and another for another value."""

import subprocess
import sys
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from pyrometer.capture import checksums
from pyrometer.capture.checksums import UncheckableError, checksum

Point = namedtuple("Point", "x y")  # noqa: PYI024 - as programs of others have them


class Color(Enum):
    RED = 1
    BLUE = 2


@dataclass
class Box:
    width: float
    labels: frozenset[str] = frozenset({"a", "b", "c"})


DIFFERENT: list[Any] = [
    0, 1, -1, 255, 256, 2**100, True, False, 1.0, 0.1, float("inf"), float("nan"), 1j, "", "1", b"1",
    "\ud800", [], [1], [[1]], [1, 2], [2, 1], (1, 2), {}, {1: 2}, {2: 1}, set(), {1, 2}, range(3), None,
    Color.RED, Color.BLUE, Box(1.0), Box(2.0), Fraction(1, 3), Decimal("0.1"), date(2026, 1, 1),
    datetime(2026, 1, 1, tzinfo=UTC), [""], ["", ""], ["ab", "c"], ["a", "bc"],
]  # fmt: skip


def test_different_values_have_different_checksums() -> None:
    for one, other in combinations(DIFFERENT, 2):
        assert checksum(one) != checksum(other), (one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, OrderedDict(a=1)),
        ({1, 2, 3}, frozenset([3, 2, 1])),
        ((1, 2), Point(1, 2)),
        (0.0, -0.0),
        (b"x", bytearray(b"x")),
        (Box(1.0), Box(1.0)),
    ],
)
def test_the_order_of_sets_and_dicts_does_not_count(one: object, other: object) -> None:
    assert checksum(one) == checksum(other)


PROGRAM = """
from dataclasses import dataclass
from pyrometer.capture.checksums import checksum
@dataclass
class Box:
    labels: frozenset[str]
words = [f"word {number}" for number in range(50)]
print(checksum([set(words), dict.fromkeys(set(words), 1), Box(frozenset(words))]))
"""


def test_a_checksum_is_the_same_in_other_processes_and_under_other_hash_seeds() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(told) == 1


def test_what_has_no_content_to_read_has_no_checksum() -> None:
    for value, reason in (
        (object(), "in a value of type object is"),
        ([1, iter([])], "type list_iterator is not known"),
        (Box, "type type is not known"),
        (lambda: None, "type function is not known"),
    ):
        with pytest.raises(UncheckableError, match=reason):
            checksum(value)


def test_what_holds_itself_or_is_too_large_has_no_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(UncheckableError, match="holds itself"):
        checksum(endless)
    monkeypatch.setattr(checksums, "MAX_PARTS", 10)
    checksum(list(range(9)))
    with pytest.raises(UncheckableError, match="more than 10 parts"):
        checksum(list(range(10)))


def test_a_value_whose_own_code_fails_has_no_checksum() -> None:
    class Sly(dict[str, int]):
        def items(self) -> Any:
            raise OSError

    with pytest.raises(UncheckableError, match="reading it raised OSError"):
        checksum(Sly())


@pytest.mark.torch
def test_arrays_and_tensors_are_known_by_type_shape_and_content() -> None:
    import numpy as np
    import torch

    values: list[Any] = [
        np.arange(6),
        np.arange(6).reshape(2, 3),
        np.arange(6, dtype="f4"),
        np.float64(1),
        torch.arange(6),
        torch.arange(6).reshape(2, 3),
        torch.arange(6, dtype=torch.bfloat16),
        torch.arange(6).to(torch.complex64),
        torch.zeros(0),
        1.0,
    ]
    assert len({checksum(value) for value in values}) == len(values)
    square = torch.arange(9.0).reshape(3, 3)
    assert checksum(square.T) == checksum(square.T.contiguous())
    assert checksum(square.clone().requires_grad_()) == checksum(square)
    complex_numbers = torch.tensor([1 + 2j])
    assert checksum(complex_numbers.conj()) == checksum(torch.tensor([1 - 2j]))
    assert checksum(np.arange(9)[::2]) == checksum(np.arange(9)[::2].copy())


@pytest.mark.torch
def test_a_module_is_known_by_its_weights() -> None:
    import torch

    module = torch.nn.Linear(2, 2)
    before = checksum(module)
    assert checksum(module) == before
    with torch.no_grad():
        module.weight += 1
    assert checksum(module) != before


@pytest.mark.torch
def test_arrays_without_plain_bytes_have_no_checksum() -> None:
    import numpy as np
    import torch

    for value in (
        np.array([object()]),
        torch.zeros(2, device="meta"),
        torch.zeros(2, 2).to_sparse(),
        torch.nn.LazyLinear(2),
    ):
        with pytest.raises(UncheckableError):
            checksum(value)
