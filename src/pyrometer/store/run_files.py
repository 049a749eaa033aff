"""Run files on disk: where they go, writing them whole or not at all, reading them safely."""

import errno
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from pyrometer.errors import RunFileError, UsageError
from pyrometer.record.format import decode_run, encode_run
from pyrometer.record.run import Run

RUN_FILE_NAME = "run.json"
RUNS_FOLDER_NAME = "pyrometer-runs"
MAX_FILE_BYTES = 64 << 20
MAX_UNPACKED_BYTES = 256 << 20

_GZIP_MAGIC = b"\x1f\x8b"
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
_FILE_ENDINGS = (".json", ".json.gz")
_NUMBER = re.compile(r"[0-9]{1,9}")
_SCRIPT_NAME_LENGTH = 80
_NO_RUN_FILE = "not a run file; name the .json or .json.gz that pyrometer run wrote, or its folder"
_NO_RUN_IN_FOLDER = f"the folder holds no {RUN_FILE_NAME}; name a run file, or the folder of a run"


def write_run(run: Run, path: Path) -> None:
    """Write a run, packed if the name ends in ``.gz``; missing folders are made.

    Whatever happens, the file has either its old content or all of the new: a checkpoint
    that is interrupted leaves the one before it.
    """
    data = encode_run(run)
    if path.name.endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    if len(data) > MAX_FILE_BYTES:
        raise RunFileError(
            f"the run takes {len(data):,} bytes, and only {MAX_FILE_BYTES:,} could be read back; "
            "give scopes fewer or shorter names, or name a .json.gz file",
            path=path,
        )
    try:
        replace_whole(Path(os.path.realpath(path)), data)
    except (OSError, ValueError) as error:
        raise RunFileError(f"cannot be written: {reason_of(error)}", path=path) from error


def read_run(path: Path) -> Run:
    """The run in a file, packed or not, or in a run's folder.

    Anything else gives one ``RunFileError`` that names the file: other content, a file that is
    too large, packed or unpacked, and whatever is not a regular file.
    """
    named = path
    try:
        if path.is_dir():
            path = path / RUN_FILE_NAME
        data = read_unpacked(path)
    except FileNotFoundError:
        problem = "there is no such file" if path == named else _NO_RUN_IN_FOLDER
        raise RunFileError(problem, path=named) from None
    except (OSError, ValueError) as error:
        raise RunFileError(f"cannot be read: {reason_of(error)}", path=path) from error
    if _is_no_json(data):
        raise RunFileError(_NO_RUN_FILE, path=path)
    return decode_run(data, path=str(path))


def read_unpacked(path: Path) -> bytes:
    """What is in a regular file, unpacked if it is packed; no more than a run may have."""
    data = read_regular_file(path)
    return _unpack(data, path) if data.startswith(_GZIP_MAGIC) else data


def read_beginning(path: Path, length: int) -> bytes:
    """The first bytes of a file, unpacked if it is packed; ``RunFileError`` where that is damaged."""
    with path.open("rb") as file:
        is_packed = _GZIP_MAGIC.startswith(file.read(len(_GZIP_MAGIC)))  # also where it was cut off there
        file.seek(0)
        try:
            return gzip.GzipFile(fileobj=file).read(length) if is_packed else file.read(length)
        except _DAMAGED as error:
            raise RunFileError(f"the gzip data is damaged or cut off: {error}", path=path) from error


def _is_no_json(data: bytes) -> bool:
    """Whether it is something else altogether, as a program or a page is, and not a damaged run."""
    return data[:1_000].lstrip()[:1] not in {b"", b"{", b"["}


def default_run_path(folder: Path, script_name: str, started_at: datetime, pid: int) -> Path:
    """A new place for a run: ``pyrometer-runs/<script>-<YYYYMMDD-HHMMSS>-<pid>/run.json``.

    Its folder is made here, which takes the place: no two runs ever get the same, even from
    containers that share a volume and number their processes alike.
    """
    name = f"{_file_system_name(script_name)}-{started_at:%Y%m%d-%H%M%S}-{pid}"
    runs = folder / RUNS_FOLDER_NAME
    attempt = 1
    while True:
        place = runs / (name if attempt == 1 else f"{name}-{attempt}")
        try:
            runs.mkdir(parents=True, exist_ok=True)
            place.mkdir()
        except FileExistsError:
            if not runs.is_dir():
                raise UsageError(_cannot_make(runs, "a file of that name is in the way")) from None
            attempt += 1
        except OSError as error:
            raise UsageError(_cannot_make(place, reason_of(error))) from error
        else:
            return place / RUN_FILE_NAME


def current_folder() -> Path:
    """The working directory; where that has been deleted, ``.``, in which nothing can be found or made."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path()


def resolve_output(
    option: Path | str | None, *, folder: Path, script_name: str, started_at: datetime, pid: int
) -> Path:
    """The file a run is to be written to.

    ``option`` is what the user asked for: a file, by its ending ``.json`` or ``.json.gz``, or a
    folder, which gets a ``run.json``, either with its rank under torchrun (see ``name_of_rank``).
    An older run there is replaced; no other file ever is. Without it the run gets a new folder of
    its own, see ``default_run_path``. The folder is made here, so that a place which cannot be
    used is known before the program has run, not after.
    """
    if option is None:
        return default_run_path(folder, script_name, started_at, pid)
    if not str(option):
        raise UsageError(f"cannot write a run to {option!r}: name a .json or .json.gz file, or a folder")
    path = folder / option
    try:
        new_folder = str(option).endswith(os.sep) or not (path.suffix or _exists(path))
        if new_folder or path.is_dir():
            path = path / RUN_FILE_NAME
        path = path.with_name(name_of_rank(path.name, os.environ))
        if _exists(path):
            refuse_unless_a_run(path)
        elif not path.name.endswith(_FILE_ENDINGS):
            raise UsageError(
                f"cannot write a run to {option}: name a file that ends in .json or .json.gz, or a folder"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write a run to {option}: {reason_of(error)}; name another place") from error
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"cannot write a run to {option}: Permission denied; name another place")
    return path


def name_of_rank(file_name: str, environment: Mapping[str, str]) -> str:
    """The file name for this process of several that torchrun starts with the same arguments.

    It has the rank before its ending, as in ``run-rank1.json``: else each process would overwrite what
    the others have written.
    """
    rank = rank_in(environment)
    if rank is None:
        return file_name
    stem, dot, ending = file_name.partition(".json")
    return f"{stem}-rank{rank}{dot}{ending}"


def rank_in(environment: Mapping[str, str]) -> int | None:
    """Which of several processes of torchrun this is: ``RANK`` where ``WORLD_SIZE`` is above 1, else None."""
    rank, world_size = environment.get("RANK", ""), environment.get("WORLD_SIZE", "")
    known = _NUMBER.fullmatch(rank) and _NUMBER.fullmatch(world_size) and int(world_size) > 1
    return int(rank) if known else None


def _exists(path: Path) -> bool:
    """Path.exists() without its silence about names and folders that can never hold a file."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def refuse_unless_a_run(path: Path) -> None:
    """Raise ``UsageError`` where the file, which is there, is no run that another one could replace."""
    if path.name.endswith(_FILE_ENDINGS) and path.is_file() and path.stat().st_size == 0:
        return  # made for us, as mktemp does: there is nothing to lose
    try:
        read_run(path)
    except RunFileError as error:
        # What to do about reading it is no advice here.
        reason = error.problem.partition(";")[0]
        raise UsageError(
            f"{path} exists and is not a run that could be replaced ({reason}); "
            "name another file, or remove this one"
        ) from error


def replace_whole(path: Path, data: bytes) -> None:
    """Put the data into the file: whatever happens, it has its old content or all of the new.

    A device, such as ``/dev/null``, is written to, and never replaced.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_char_device():
        path.write_bytes(data)
        return
    if path.is_fifo() or path.is_socket() or path.is_block_device():
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    # In the same folder, because only within one file system is a rename all or nothing.
    unfinished = path.parent / f".pyrometer-{os.urandom(8).hex()}.tmp"
    try:
        with unfinished.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def read_regular_file(path: Path) -> bytes:
    """What is in a regular file of no more bytes than a run may have."""
    with io.BufferedReader(io.FileIO(path, opener=_open_without_waiting)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise RunFileError("not a regular file", path=path)
        # As much memory is taken as is asked for, however little there is in the file.
        data = file.read(min(status.st_size, MAX_FILE_BYTES) + 1)
        if len(data) > status.st_size:  # it has grown, or its size is not told
            data += file.read(MAX_FILE_BYTES + 1 - len(data))
    if len(data) > MAX_FILE_BYTES:
        raise RunFileError(f"larger than the {MAX_FILE_BYTES:,} bytes a run file may have", path=path)
    return data


def _open_without_waiting(path: str, flags: int) -> int:
    """Opening a named pipe would otherwise wait for its writer, perhaps for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


def _unpack(data: bytes, path: Path) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            unpacked = file.read(MAX_UNPACKED_BYTES + 1)
    except _DAMAGED as error:
        raise RunFileError(f"the gzip data is damaged or cut off: {error}", path=path) from error
    if len(unpacked) > MAX_UNPACKED_BYTES:
        raise RunFileError(f"unpacks to more than the {MAX_UNPACKED_BYTES:,} bytes a run may have", path=path)
    return unpacked


def _file_system_name(script_name: str) -> str:
    """A script's name without folders, ending and whatever a file name should not hold."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", Path(script_name).name.removesuffix(".py"))
    return stem.lstrip(".-")[:_SCRIPT_NAME_LENGTH] or "program"


def _cannot_make(place: Path, reason: str) -> str:
    return f"cannot make the folder {place} for the run: {reason}; name another place with -o"


def reason_of(error: OSError | ValueError) -> str:
    """Why a file could not be used, in few words."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
