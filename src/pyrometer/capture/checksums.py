"""Checksums of what functions return, the same in every process and under every hash seed.

The order of a dict and of a set does not count, the type of a number does. What has no content to be
read, as an object of a class nobody knows, has no checksum.
"""

import ctypes
import dataclasses
import datetime as dt
import decimal
import fractions
import hashlib
import sys
from collections.abc import Callable, Iterable
from enum import Enum
from types import ModuleType
from typing import Any

MAX_PARTS = 1_000_000
"""Beyond, reading all of a value would take seconds in each process."""
_LONGEST_INTEGER_BITS = 1 << 24
_MAX_DEPTH = 100


class UncheckableError(Exception):
    """A value has no checksum that would be the same elsewhere; the message says why."""


def checksum(value: object) -> str:
    """The SHA-256 of a value's content; raises ``UncheckableError`` where it has none."""
    try:
        return _Reader().digest(value, depth=0).hex()
    except UncheckableError:
        raise
    except Exception as error:  # a value's own code, as of a module that has no weights yet
        raise UncheckableError(f"reading it raised {type(error).__name__}") from error


class _Reader:
    def __init__(self) -> None:
        self._parts = 0

    def digest(self, value: Any, *, depth: int) -> bytes:
        """Of this value, with all that is in it."""
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise UncheckableError(f"it has more than {MAX_PARTS:,} parts")
        if depth > _MAX_DEPTH:
            raise UncheckableError(f"it is nested more than {_MAX_DEPTH} deep, or holds itself")
        kind, content = self._content(value, depth)
        hashed = hashlib.sha256(f"{kind}\0".encode("utf-8", "surrogatepass"))
        for part in content:
            hashed.update(part)
        return hashed.digest()

    def _content(self, value: Any, depth: int) -> tuple[str, Iterable[bytes]]:
        known = _array(value) or _scalar(value)
        if known is not None:
            return known[0], (known[1],)

        def inside(part: object) -> bytes:
            return self.digest(part, depth=depth + 1)

        kind = type(value).__qualname__
        parts: Iterable[bytes] | None = None
        if isinstance(value, list | tuple):
            kind, parts = "list" if isinstance(value, list) else "tuple", map(inside, value)
        elif isinstance(value, dict):
            kind, parts = "dict", sorted(inside(key) + inside(part) for key, part in value.items())
        elif isinstance(value, set | frozenset):
            kind, parts = "set", sorted(map(inside, value))
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = (one.name for one in dataclasses.fields(value) if one.compare)
            parts = (inside(name) + inside(getattr(value, name)) for name in fields)
        elif _is_module(value):
            parts = map(inside, (dict(value.state_dict()),))
        if parts is None:
            raise UncheckableError(f"what is in a value of type {kind} is not known")
        return kind, parts


def _integer(value: int) -> bytes:
    if value.bit_length() > _LONGEST_INTEGER_BITS:
        raise UncheckableError("it holds a whole number of many megabytes")
    return value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)


def _float(value: float) -> bytes:
    return float.hex(value + 0.0).encode()  # -0.0 equals 0.0


def _written(value: object) -> bytes:
    return repr(value).encode()


_Scalar = tuple[type | tuple[type, ...], str, Callable[[Any], bytes]]
_SCALARS: tuple[_Scalar, ...] = (
    (type(None), "None", lambda _: b""),
    (bool, "bool", _written),
    (int, "int", _integer),
    (float, "float", _float),
    (complex, "complex", lambda value: _float(value.real) + b" " + _float(value.imag)),
    (str, "str", lambda value: value.encode("utf-8", "surrogatepass")),
    ((bytes, bytearray), "bytes", bytes),
    (range, "range", _written),
    (fractions.Fraction, "fraction", _written),
    (decimal.Decimal, "decimal", _written),
    (dt.datetime, "datetime", _written),
    ((dt.date, dt.time, dt.timedelta), "part of a date", _written),
)


def _scalar(value: Any) -> tuple[str, bytes] | None:
    if isinstance(value, Enum):
        return f"enum {type(value).__qualname__}", value.name.encode("utf-8", "surrogatepass")
    for types, kind, read in _SCALARS:
        if isinstance(value, types):
            return kind, read(value)
    return None


# Arrays, of libraries that the program has loaded: none is imported for it.


def _loaded(name: str) -> ModuleType | None:
    return sys.modules.get(name)


def _array(value: Any) -> tuple[str, bytes] | None:
    numpy, torch = _loaded("numpy"), _loaded("torch")
    if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
        if value.dtype.hasobject:
            raise UncheckableError("an array of Python objects has no bytes of its own")
        return f"array {value.dtype.str} {value.shape}", value.tobytes()
    if torch is not None and isinstance(value, torch.Tensor):
        return f"tensor {value.dtype} {tuple(value.shape)}", _tensor_bytes(torch, value)
    return None


def _tensor_bytes(torch: Any, tensor: Any) -> bytes:
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.device.type == "meta":
        raise UncheckableError(f"a tensor of layout {tensor.layout} on {tensor.device} has no plain bytes")
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    # Not by numpy, which need not be there and knows no bfloat16.
    return ctypes.string_at(plain.data_ptr(), plain.numel() * plain.element_size()) if plain.numel() else b""


def _is_module(value: Any) -> bool:
    torch = _loaded("torch")
    return torch is not None and isinstance(value, torch.nn.Module)
