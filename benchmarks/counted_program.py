"""A program whose work is known: so many equal blocks in a scope named ``work``.

``python counted_program.py KIND AMOUNT``: KIND ``python`` adds numbers in a loop, ``objects`` makes strings
and looks them up, ``native`` runs loops in C; AMOUNT is the number of blocks. KIND ``stride`` reads
``ELEMENTS`` bytes that stand AMOUNT bytes apart, once.
"""

import sys
import zlib
from collections.abc import Callable

import pyrometer

ELEMENTS = 100_000


def python_block() -> None:
    """A loop of the interpreter's, on numbers so small that Python has them ready and makes none.

    Else it may happen to work at the edge of one of the allocator's pools, as the layout of memory has it,
    and take 1.6 % more instructions.
    """
    total = 0
    for _ in range(12):
        for number in range(250):
            total ^= number & 3


def objects_block() -> None:
    """Strings and dictionaries: what depends on the hash seed."""
    known = {f"name {number}": number for number in range(150)}
    for name in list(known):
        known[name + "x"] = len(name)


def native_block() -> None:
    """Loops in C: a checksum, and a sum over bytes."""
    data = bytes(range(256)) * 40
    for _ in range(12):
        zlib.crc32(data)
    sum(data)


BLOCKS: dict[str, Callable[[], None]] = {
    "python": python_block,
    "objects": objects_block,
    "native": native_block,
}


def main(kind: str, amount: int) -> None:
    """Do the work, all of it but the start-up in the scope."""
    if kind == "stride":
        data = bytearray(ELEMENTS * amount)
        with pyrometer.scope("work"):
            data[::amount]
        return
    block = BLOCKS[kind]
    block()
    with pyrometer.scope("work"):
        for _ in range(amount):
            block()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
