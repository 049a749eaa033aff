"""A run with one value changed, and the line it is refused with."""

import copy
import json
from typing import Any

import pytest

from pyrometer.errors import RunFileError
from pyrometer.record.format import decode_run


def change(document: dict[str, Any], place: str, value: Any) -> bytes:
    """The run with one value changed, or taken out if it is ``...``."""
    document = copy.deepcopy(document)
    *way, last = [int(key) if key.isdigit() else key for key in place.split(".")]
    holder: Any = document
    for key in way:
        holder = holder[key]
    if value is ...:
        del holder[last]
    else:
        holder[last] = value
    return json.dumps(document).encode()


def refusal(data: bytes) -> str:
    """The one line that the run is refused with."""
    with pytest.raises(RunFileError) as caught:
        decode_run(data, path="train.json")
    return str(caught.value)
