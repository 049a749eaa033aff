"""Kernels whose work is known exactly, for ``pyrometer.machine.limits``.

Each tells when it began and ended, in nanoseconds of the monotonic clock, and runs without the GIL.
``instruction_set`` is one of ``INSTRUCTION_SETS``, by default the first. Sizes of arrays are in bytes,
multiples of 512.
"""

from typing import Self

INSTRUCTION_SETS: tuple[str, ...]
"""Those this processor has a kernel for, the widest first."""
STREAMS: bool
"""Whether there are stores past the caches."""
BF16: bool
"""Whether ``fma("bf16", …)`` works here."""

def fma(precision: str, rounds: int, instruction_set: str = ..., /) -> tuple[int, int, int, float]:
    """(began, ended, floating-point operations, sum of all lanes): multiply and add, in registers only.

    Accumulator i begins at i + 1; a round halves it and adds 1. With bf16 a round adds 1 × 1 + 1 × 1.
    """

PRODUCT_SIZE: int
"""Rows and columns of the matrices of a ``Product``."""

class Product:
    """Two matrices to multiply, of ``f32`` or ``f64``: c = aᵀ b, with all memory it takes touched.

    In row i and column j, a has (3 i + 7 j) mod 5, and b (5 i + j) mod 3.
    """

    def __new__(cls, precision: str, /) -> Self: ...
    def multiply(self, instruction_set: str = ..., /) -> tuple[int, int, int]:
        """(began, ended, floating-point operations): one product."""

    def result(self, row: int, column: int, /) -> float:
        """One element of c, as the last product left it."""

class Arrays:
    """Three arrays of so many bytes: a, b and c. Aligned to 64 bytes and not touched before ``fill``."""

    def __new__(cls, size_bytes: int, /) -> Self: ...
    def fill(self) -> None:
        """Touch all of it: a = 0, b = 1, c = 2."""

    def number(self) -> None:
        """Number the elements of b, from 0."""

    def triad(
        self, offset_bytes: int, size_bytes: int, streaming: bool, instruction_set: str = ..., /
    ) -> tuple[int, int]:
        """(began, ended): a = b + 3 c over a part of each."""

    def read(
        self, offset_bytes: int, size_bytes: int, instruction_set: str = ..., /
    ) -> tuple[int, int, float]:
        """(began, ended, the sum of a part of a)."""

    def read_strided(self, offset_bytes: int, size_bytes: int, stride: int, /) -> tuple[int, int, int, float]:
        """(began, ended, elements, their sum): each stride-th element of a part of b, one load each."""

    def copy_of(self, name: str, /) -> bytes:
        """The content of ``a``, ``b`` or ``c``."""

class Ring:
    """Lines of 64 bytes, each with the address of the next, in one ring through all in random order."""

    def __new__(cls, size_bytes: int, /) -> Self: ...
    def walk(self, loads: int, /) -> tuple[int, int, int]:
        """(began, ended, the number of the line it has come to): each load waits for the one before."""
