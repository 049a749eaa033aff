"""Ways to damage a run file, drawn from a seeded generator so that each can be made again."""

import copy
import json
import random
from collections.abc import Callable
from typing import Any

_HOSTILE_VALUES: tuple[Any, ...] = (
    None, True, "", "\u0000", "x" * 300, 0, -1, 1, 2_047, 2_048, 40_001, 2**31, 2**63 - 1, 2**63, 10**40,
    -(2**70), 0.5, -0.0, 1e308, float("nan"), float("inf"), [], {}, [[]], [[0, 0]], [[1, 2, 3]],
    {"strand": 0, "node": 0},
)  # fmt: skip


def damage(data: bytes, chance: random.Random) -> bytes:
    """The file with one kind of damage, in one to a few places."""
    ways: tuple[Callable[[bytes, random.Random], bytes], ...] = (
        _flip_bits, _overwrite_bytes, _cut_off, _delete_a_stretch, _insert_bytes, _repeat_a_stretch,
        _change_values, _change_values, _change_values, _nest_deeply,
    )  # fmt: skip
    return chance.choice(ways)(data, chance)


def _flip_bits(data: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def _overwrite_bytes(data: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        damaged[chance.randrange(len(damaged))] = chance.choice(b'0123456789-+.eE"\\{}[],:ntfu \n\x00\xff')
    return bytes(damaged)


def _cut_off(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def _delete_a_stretch(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.randint(1, 40) :]


def _insert_bytes(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + chance.randbytes(chance.randint(1, 8)) + data[start:]


def _repeat_a_stretch(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    end = start + chance.randint(1, 60)
    return data[:end] + data[start:end] * chance.randint(1, 3) + data[end:]


def _nest_deeply(data: bytes, chance: random.Random) -> bytes:
    depth = chance.choice((10, 1_000, 100_000))
    opening, closing = chance.choice(((b"[", b"]"), (b'{"nodes":', b"}")))
    nested = opening * depth + b"0" + closing * chance.choice((0, depth))
    colons = [index for index, byte in enumerate(data) if byte == ord(":")]
    start = chance.choice(colons) + 1
    return data[:start] + nested + b"," + data[start:]


def _change_values(data: bytes, chance: random.Random) -> bytes:
    document = json.loads(data)
    for _ in range(chance.randint(1, 3)):
        _change_one_value(document, chance)
    return json.dumps(document).encode()


def _change_one_value(document: dict[str, Any], chance: random.Random) -> None:
    """Go down a random way, and there delete, double, swap or replace something."""
    holder: Any = document
    while True:
        inner = [value for value in _values(holder) if isinstance(value, dict | list) and value]
        if not inner or chance.random() < 0.25:
            break
        holder = chance.choice(inner)
    keys: list[Any] = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if not keys:
        return
    key, other = chance.choice(keys), chance.choice(keys)
    way = chance.randrange(5)
    if way == 0:
        del holder[key]
    elif way == 1:
        holder[key], holder[other] = holder[other], holder[key]
    elif way == 2 and isinstance(holder, list):
        holder.insert(chance.randrange(len(holder)), copy.deepcopy(holder[key]))
    elif way == 3 and isinstance(holder[key], int):
        holder[key] += chance.choice((-1, 1, 1_000, -holder[key]))
    else:
        # A copy, for it may be damaged in its turn.
        holder[key] = copy.deepcopy(chance.choice(_HOSTILE_VALUES))


def _values(holder: Any) -> list[Any]:
    return list(holder.values()) if isinstance(holder, dict) else list(holder)
