"""The one file format of a run: bytes to and from a ``Run``.

Whatever the bytes are, decoding gives a ``Run`` that holds together or one ``RunFileError``
that names the place. Every version ever written stays readable: ``_READERS`` only grows, and
``docs/run-format.md`` says what each version changed.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from pyrometer.errors import RunFileError
from pyrometer.record.run import FORMAT_NAME, FORMAT_VERSION, Run
from pyrometer.record.validation import first_problem
from pyrometer.record.values import Count

# A decoded value takes up to some 150 bytes, and every value but the first of a list or an object
# follows a comma: so this bounds the memory that a small hostile file can claim. The largest
# run the recorder can make has 20,000 nodes of some ten fields and as many buckets as its
# durations spread over, rarely more than 100.
MAX_VALUES = 8_000_000


class _Header(msgspec.Struct, frozen=True):
    format: str | None = None
    version: Count | None = None


def encode_run(run: Run) -> bytes:
    """A run as one line of JSON."""
    return encode_value(run) + b"\n"


def encode_part(part: object) -> Any:
    """A part of a run, to stand in its place: it takes far less memory, and is written as it is."""
    return None if part is None else msgspec.Raw(encode_value(part))


def encode_value(value: object) -> bytes:
    """A value of the record as JSON, whatever is in its texts."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        # Arguments and paths that are not UTF-8 reach Python as lone surrogates, which JSON in
        # UTF-8 cannot hold: a question mark there is better than no run.
        builtins = msgspec.to_builtins(value, enc_hook=msgspec.json.decode)  # of parts encoded before
        return json.dumps(builtins, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def decode_run(data: bytes, *, path: str | None = None) -> Run:
    """The run in these bytes; ``path`` is named in the error if there is none."""
    if not data.strip():
        raise RunFileError("the file is empty", path=path)
    if data.count(b",") > MAX_VALUES:
        raise RunFileError(f"holds more than {MAX_VALUES:,} values; no run is that large", path=path)
    try:
        run = _READERS[_read_version(data, path)](data)
    except msgspec.ValidationError as error:
        raise _wrong_type(error, path) from None
    except msgspec.DecodeError as error:
        raise _not_json(error, data, path) from None
    except UnicodeDecodeError as error:
        raise _not_utf8(error, data, path) from None
    except RecursionError:
        raise RunFileError("lists or objects are nested too deeply for a run", path=path) from None
    problem = first_problem(run)
    if problem is not None:
        raise RunFileError(problem.text, path=path, place=problem.place)
    return run


def _read_version(data: bytes, path: str | None) -> int:
    try:
        header = msgspec.json.decode(data, type=_Header)
    except msgspec.ValidationError as error:
        detail, place = _split_place(error)
        raise RunFileError(f"not a Pyrometer run: {detail}", path=path, place=place) from None
    if header.format is None:
        raise RunFileError(f'not a Pyrometer run: there is no "format": "{FORMAT_NAME}"', path=path)
    if header.format != FORMAT_NAME:
        raise RunFileError(
            f"not a Pyrometer run: its format is {header.format[:40]!r}", path=path, place="$.format"
        )
    if header.version is None:
        raise RunFileError("the version of the format is missing", path=path, place="$.version")
    if header.version > FORMAT_VERSION:
        raise RunFileError(
            f"written by a newer Pyrometer (format version {header.version}, this one reads up to "
            f"{FORMAT_VERSION}); upgrade Pyrometer to read it",
            path=path,
            place="$.version",
        )
    if header.version not in _READERS:
        raise RunFileError(f"there is no format version {header.version}", path=path, place="$.version")
    return header.version


_READERS: dict[int, Callable[[bytes], Run]] = {1: msgspec.json.Decoder(Run).decode}


def _wrong_type(error: msgspec.ValidationError, path: str | None) -> RunFileError:
    detail, place = _split_place(error)
    return RunFileError(detail, path=path, place=place)


def _not_json(error: msgspec.DecodeError, data: bytes, path: str | None) -> RunFileError:
    found = re.fullmatch(r"JSON is malformed: (.*) \(byte (\d+)\)", str(error))
    if found is None:
        return RunFileError("the file ends too early; it was cut off", path=path, place=f"byte {len(data)}")
    return RunFileError(f"not JSON: {found[1]}", path=path, place=f"byte {found[2]}")


def _not_utf8(error: UnicodeDecodeError, data: bytes, path: str | None) -> RunFileError:
    try:
        data.decode()
    except UnicodeDecodeError as whole:
        return RunFileError(f"not UTF-8: {whole.reason}", path=path, place=f"byte {whole.start}")
    return RunFileError(f"not UTF-8: {error.reason}", path=path)


def _split_place(error: msgspec.ValidationError) -> tuple[str, str]:
    """The message of msgspec without its place, and the place; ``$`` is the whole document."""
    detail, _, place = str(error).partition(" - at ")
    return detail[:1].lower() + detail[1:].replace("`", ""), place.strip("`") or "$"
