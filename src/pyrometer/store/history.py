"""The history of runs on disk: one small SQLite database in the user's state folder.

Not in write-ahead mode: that does not work on network file systems, where the home folders of clusters
are, and one short transaction a run has no use for it. SQLite is loaded where it is used: a Python may
have been built without it.
"""

import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pyrometer.analysis.history import PastRun
from pyrometer.errors import PyrometerError
from pyrometer.store.projects import project_folder
from pyrometer.store.run_files import reason_of

if TYPE_CHECKING:
    import sqlite3

MOST_RUNS = 10_000
"""The newest ones are kept."""

WAIT_S = 10.0
"""For other processes that are writing; a program's end is not to wait longer."""

SCHEMA_VERSION = 1
_FILE_NAME = "history.sqlite"
_ELSEWHERE = "remove it, or set XDG_STATE_HOME to another folder"
_COLUMNS = PastRun.__struct_fields__
_CREATE = """
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        started_at TEXT NOT NULL, project TEXT NOT NULL, folder TEXT NOT NULL, name TEXT NOT NULL,
        program TEXT NOT NULL, rank INTEGER, "commit" TEXT, dirty INTEGER, outcome TEXT NOT NULL,
        detail TEXT, steps INTEGER, step_p50_ns INTEGER, step_p95_ns INTEGER, samples_per_s REAL,
        tokens_per_s REAL, peak_host_bytes INTEGER, profiled_ns INTEGER NOT NULL,
        python_version TEXT NOT NULL, torch_version TEXT, threads INTEGER, cpu_model TEXT,
        usable_cores INTEGER, watched TEXT NOT NULL, pyrometer_version TEXT NOT NULL,
        run_path TEXT NOT NULL
    )
"""
_QUOTED = ", ".join(f'"{name}"' for name in _COLUMNS)
_INSERT = f"INSERT INTO runs ({_QUOTED}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 - our own names
_SELECT = f"SELECT {_QUOTED} FROM runs ORDER BY id"  # noqa: S608 - likewise
_DROP_OLDEST = "DELETE FROM runs WHERE id <= (SELECT id FROM runs ORDER BY id DESC LIMIT 1 OFFSET ?)"
_FORGET = "DELETE FROM runs WHERE project = ? AND folder = ? AND program = ?"


class HistoryError(PyrometerError):
    """The history cannot be read or written, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the database holds."""

    runs: tuple[PastRun, ...]
    """From the oldest to the newest."""
    unreadable: int
    """Rows that hold something else, left out."""


def history_path(environment: Mapping[str, str], *, platform: str = sys.platform) -> Path | None:
    """Where the history is kept; None without a home."""
    state = environment.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # noqa: PTH117 - a relative one is to be ignored, says its specification
        home = environment.get("HOME", "")
        if not os.path.isabs(home):  # noqa: PTH117 - likewise
            return None
        state = f"{home}/Library/Application Support" if platform == "darwin" else f"{home}/.local/state"
    return Path(state) / "pyrometer" / _FILE_NAME


def project_of(folder: Path) -> tuple[str, str]:
    """The project a folder belongs to, and the folder as seen from there."""
    project = project_folder(folder)
    inside = folder.absolute().relative_to(project)
    return str(project), "" if inside == Path() else str(inside)


def append(past: PastRun, path: Path | None, *, wait_s: float = WAIT_S) -> Path | None:
    """Add a run, and drop the oldest beyond ``MOST_RUNS``.

    Whoever adds at the same time waits for the other. A damaged database is put aside and a new one
    begun: then its new name is returned. What else goes wrong is one ``HistoryError``.
    """
    if path is None:
        raise HistoryError("there is neither HOME nor XDG_STATE_HOME")
    with _telling(path):
        import sqlite3

        _make(path)
        try:
            _insert(past, path, wait_s)
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            aside = _put_aside(path, wait_s)
            _make(path)
            _insert(past, path, wait_s)
            return aside
    return None


def read_history(path: Path | None, *, wait_s: float = WAIT_S) -> Kept:
    """All that is kept; nothing where there is no database yet."""
    if path is None or not _exists(path):
        return Kept(runs=(), unreadable=0)
    with _telling(path), _connected(path, wait_s) as database:
        if _version(database, path) == 0:
            return Kept(runs=(), unreadable=0)
        rows = [_past_run(row) for row in database.execute(_SELECT)]
    runs = tuple(row for row in rows if row is not None)
    return Kept(runs=runs, unreadable=len(rows) - len(runs))


def forget(programs: Sequence[tuple[str, str, str]] | None, path: Path | None) -> int:
    """Take programs (project, folder, program) out, or everything with None; returns how many runs went.

    Their texts are overwritten: arguments may hold what nobody else is to read.
    """
    if path is None or not _exists(path):
        return 0
    with _telling(path), _connected(path, WAIT_S) as database:
        if _version(database, path) == 0:
            return 0
        database.execute("PRAGMA secure_delete = ON")
        database.execute("BEGIN IMMEDIATE")
        before = database.total_changes
        if programs is None:
            database.execute("DELETE FROM runs")
        else:
            database.executemany(_FORGET, programs)
        gone = database.total_changes - before
        database.execute("COMMIT")
        return gone


@contextlib.contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Whatever goes wrong as one ``HistoryError`` that names the file."""
    try:
        import sqlite3
    except ImportError as error:
        raise HistoryError(f"{path}: this Python was built without SQLite ({error})") from error
    try:
        yield
    except sqlite3.Error as error:
        advice = "; remove the file to begin a new one" if _is_damage(error) else ""
        raise HistoryError(f"{path}: {error}{advice}") from error
    except (OSError, OverflowError, ValueError) as error:
        reason = str(error) if isinstance(error, OverflowError) else reason_of(error)
        raise HistoryError(f"{path}: {reason}") from error


def _exists(path: Path) -> bool:
    with _telling(path):
        return path.exists()


def _make(path: Path) -> None:
    """An empty database that only the user may read, unless there is one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # O_NONBLOCK: opening a named pipe would wait for its other end.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600))


@contextlib.contextmanager
def _connected(path: Path, wait_s: float) -> Iterator["sqlite3.Connection"]:
    import sqlite3

    if not path.is_file():
        raise HistoryError(f"{path}: not a regular file; {_ELSEWHERE}")
    address = f"{path.absolute().as_uri()}?mode=rw"
    # Transactions are begun and ended by hand.
    database = sqlite3.connect(address, uri=True, timeout=wait_s, isolation_level=None)
    database.text_factory = _text
    try:
        yield database
    finally:
        database.close()  # which takes back what was not committed


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _version(database: "sqlite3.Connection", path: Path) -> int:
    """The version of the schema; 0 for a database in which there is nothing yet."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise HistoryError(
            f"{path}: its version is {version}, and this Pyrometer knows {SCHEMA_VERSION}; {_ELSEWHERE}"
        )
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if version < SCHEMA_VERSION and tables:
        raise HistoryError(f"{path}: a database of something else; {_ELSEWHERE}")
    return int(version)


def _insert(past: PastRun, path: Path, wait_s: float) -> None:
    values = [_storable(getattr(past, name)) for name in _COLUMNS]
    with _connected(path, wait_s) as database:
        # At once, and not at the first change: two that have both begun to read could not go on.
        database.execute("BEGIN IMMEDIATE")
        if _version(database, path) == 0:
            database.execute(_CREATE)
            database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        database.execute(_INSERT, values)
        database.execute(_DROP_OLDEST, [MOST_RUNS])
        database.execute("COMMIT")


def _storable(value: object) -> object:
    # A name that is not text in any encoding comes as lone surrogates, which SQLite refuses.
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value


def _past_run(row: Sequence[object]) -> PastRun | None:
    content = dict(zip(_COLUMNS, row, strict=True))
    if content["dirty"] in {0, 1}:
        content["dirty"] = bool(content["dirty"])
    try:
        return msgspec.convert(content, PastRun)
    except msgspec.ValidationError:
        return None


def _is_damage(error: "sqlite3.Error") -> bool:
    import sqlite3

    # The low byte is the kind, the rest its details.
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def _put_aside(path: Path, wait_s: float) -> Path | None:
    """Rename a damaged database; None where another process has just done so."""
    with _only_one(path.with_name(f"{_FILE_NAME}.lock"), wait_s):
        if not _is_damaged(path, wait_s):
            return None
        number = 1
        while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
            number += 1
        # The journal first: beside a new database it would be played back into that.
        journal = path.with_name(f"{path.name}-journal")
        if journal.exists():
            journal.replace(aside.with_name(f"{aside.name}-journal"))
        _begin_anew(path, aside)
        return aside


def _begin_anew(path: Path, aside: Path) -> None:
    """The damaged one under its new name, an empty one in its place: others always find one."""
    try:
        os.link(path, aside)
    except OSError:  # a file system without second names
        path.replace(aside)
        return
    new = path.with_name(f"{path.name}.new")
    _make(new)
    new.replace(path)


def _is_damaged(path: Path, wait_s: float) -> bool:
    import sqlite3

    try:
        with _connected(path, wait_s) as database:
            _version(database, path)
            found: str = database.execute("PRAGMA integrity_check(1)").fetchone()[0]
            return found != "ok"
    except sqlite3.DatabaseError as error:
        return _is_damage(error)


@contextlib.contextmanager
def _only_one(lock_path: Path, wait_s: float) -> Iterator[None]:
    """Held by one process at a time; the system lets go of it with the process."""
    give_up_at = time.monotonic() + wait_s
    descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)
