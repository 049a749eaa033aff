"""How large a batch is, read off the shape of its tensors."""

from __future__ import annotations

import dataclasses
import sys
from collections import UserDict
from collections.abc import Mapping
from itertools import islice
from typing import Any

from pyrometer.capture.losses import note_failure

_MOST_LOOKED_AT = 32
_MOST_LEVELS = 4
_NOTHING = (None, False)


def batch_size(batch: Any) -> tuple[int | None, int | None]:
    """(samples, tokens) of what a loader yields or a module receives; None for what cannot be told.

    Samples are the first dimension of the first tensor or array found, tokens the elements of
    ``input_ids``, or of the first tensor if it is a table of integers. Only shapes and types are
    asked for. A list of single samples, not put together to a batch, tells nothing.
    """
    try:
        # The usual batches first, as this is done in every step.
        kind = type(batch)
        if kind is dict:
            first = batch.get("input_ids")
        else:
            first = batch[0] if (kind is list or kind is tuple) and batch else batch
        if _is_plain_tensor(first) and (shape := first.shape):
            return _size(shape, first.dtype, is_named=kind is dict)
        array, is_named = _first_array(batch, _MOST_LEVELS)
        return (None, None) if array is None else _size(*_shape_and_type(array), is_named=is_named)
    except Exception as error:  # noqa: BLE001 - the program's own containers may do anything
        note_failure("data loading", "the size of a batch could not be told", error)
        return None, None


def _size(shape: Any, kind: Any, *, is_named: bool) -> tuple[int | None, int | None]:
    # A length that is no number, but a symbol, is worked out only when it is asked for.
    if not shape or type(shape[0]) is not int:
        return None, None
    if len(shape) != 2 or type(shape[1]) is not int or not (is_named or shape[1] > 1):
        return shape[0], None
    return shape[0], shape[0] * shape[1] if _is_integer(kind) else None


def _is_integer(kind: Any) -> bool:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(kind, torch.dtype):
        return kind is torch.int64 or kind is torch.int32
    return bool(kind.kind == "i" and kind.itemsize >= 4)


def _first_array(value: Any, levels: int) -> tuple[Any, bool]:
    """The first tensor or array, those nearest to the top first, and whether it is ``input_ids``."""
    if _is_array(value):
        return value, False
    if isinstance(value, UserDict):
        value = value.data
    parts = _parts(value)
    if not parts or levels == 0:
        return _NOTHING
    if isinstance(value, Mapping) and _is_array(value.get("input_ids")):
        return value["input_ids"], True
    for part in parts:
        if _is_array(part) and _shape_and_type(part)[0]:
            return part, False
    if isinstance(value, (list, tuple)) and len(parts) > 1 and not _is_put_together(parts):
        return _NOTHING
    found = (_first_array(part, levels - 1) for part in parts)
    return next((each for each in found if each[0] is not None), _NOTHING)


def _parts(value: Any) -> list[Any] | None:
    """What a container holds; None for what is no container."""
    if isinstance(value, (list, tuple)):
        # Sequences laid end to end: only the list of their places is as long as there are sequences.
        if type(value).__name__ == "PackedSequence":
            return [getattr(value, "sorted_indices", None)]
        return list(islice(value, _MOST_LOOKED_AT))
    if isinstance(value, Mapping):
        # The method of dict itself: a subclass may load or compute what it is asked for.
        values = dict.values(value) if isinstance(value, dict) else value.values()
        return list(islice(values, _MOST_LOOKED_AT))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in islice(dataclasses.fields(value), _MOST_LOOKED_AT)]
        return [getattr(value, name, None) for name in names]
    return None


def _is_put_together(parts: list[Any]) -> bool:
    """Whether a sequence without tensors of its own is a batch rather than a list of samples."""
    fields = _fields(parts[0])
    return fields is not None and fields != _fields(parts[1])


def _fields(value: Any) -> set[object] | None:
    if isinstance(value, UserDict):
        value = value.data
    if isinstance(value, dict):
        return set(value)
    return {type(value)} if dataclasses.is_dataclass(value) else None


def _is_array(value: Any) -> bool:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    return (torch is not None and isinstance(value, torch.Tensor)) or (
        numpy is not None and isinstance(value, numpy.ndarray)
    )


def _is_plain_tensor(value: Any) -> bool:
    """Whether reading its shape is seen by torch alone, and by no class or mode of the program's."""
    torch = sys.modules.get("torch")
    return (
        torch is not None and type(value) is torch.Tensor and not torch._C._is_torch_function_mode_enabled()  # noqa: SLF001
    )


def _shape_and_type(array: Any) -> tuple[Any, Any]:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor) or _is_plain_tensor(array):
        return array.shape, array.dtype
    with torch._C.DisableTorchFunction():  # noqa: SLF001
        return array.shape, array.dtype
