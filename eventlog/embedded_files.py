"""The embedded log's files: made once, checked before use, and SQLite's errors in the store's own words."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from crc32c import crc32c

from eventlog.embedded_stub import is_stub, opened
from eventlog.errors import Busy, CheckpointError, ConfigurationError, Corrupted, NotAStore, SchemaMismatch, StorageError, StoreClosed
from eventlog.ids import EventId
from eventlog.log import Record
from eventlog.statements import named
from projections.durable import fsync_directory, make_directory

LOG_FILE = "log.sqlite3"
ACCESS_FILE = "access.sqlite3"  # of a store that records accesses: see `privacy/access_embedded.py`
ACCESS_MODE = "access"  # what the log of such a store remembers: how strictly
KEY_SOURCE = "key_source"  # what the log of an encrypted store remembers: where its keys are
KEYS_FILE = "keys.sqlite"  # of an encrypted store: see `privacy/embedded_keys.py`
APPLICATION_ID = 0x45564C47  # "EVLG", in SQLite's own header field for the kind of file
FORMAT_VERSION = 1
FORMAT_WITH_STUBS = 2  # what the first compact makes of it: a version that knows no stubs must not read it
BUSY_SECONDS = 30.0
_DRAFT = re.compile(rf"({re.escape(LOG_FILE)}|{re.escape(ACCESS_FILE)})\.[0-9a-f]{{16}}\.new(-journal|-wal|-shm)?").fullmatch


def create(directory: Path, *, beside: Mapping[str, Callable[[str], dict[str, str]]] | None = None) -> str:
    """Makes a new, empty log in a new or empty directory; returns its store id.

    Arguments:
        beside: by the name of each other file that the store consists of, what makes it: it is given the store's id and returns what the
            log is to remember of that. It is called before the log appears, and may find what a process left that died in here.

    The file is written under another name and linked into place when it is complete, so that a process that dies in between
    leaves no half store; what it does leave, the next to create or open a store here removes. Raises `ConfigurationError` when the
    directory is in use, `StorageError` when it cannot be written.
    """
    store_id = str(EventId.new())
    try:
        make_directory(directory)
        with creation_lock(directory):
            _create(directory, store_id, beside or {})
    except sqlite3.Error as error:
        raise translate(error, directory) from error
    except FileExistsError as error:
        raise ConfigurationError(f"{directory} already holds a store", hint="Open it, or choose another directory.") from error
    except OSError as error:
        raise StorageError(str(directory), f"cannot be made, read or written: {error.strerror}") from error
    return store_id


def _create(directory: Path, store_id: str, beside: Mapping[str, Callable[[str], dict[str, str]]]) -> None:
    path = directory / LOG_FILE
    if path.exists():
        raise ConfigurationError(f"{directory} already holds a store", hint="Open it, or choose another directory.")
    foreign = sorted(each.name for each in directory.iterdir() if not each.name.startswith((LOG_FILE, *beside)))
    if foreign:
        raise ConfigurationError(f"{directory} is not empty (it holds {foreign[0]})", hint="Choose a new or empty directory.")
    draft = directory / f"{LOG_FILE}.{secrets.token_hex(8)}.new"
    try:
        remembered: dict[str, str] = {}
        for make in beside.values():
            remembered |= make(store_id)
        _write_empty(draft, store_id, remembered)
        os.link(draft, path)
        fsync_directory(directory)
    finally:
        with contextlib.suppress(OSError):
            _remove_drafts(directory)


@contextlib.contextmanager
def creation_lock(directory: Path, *, wait: bool = True) -> Iterator[None]:
    """Held by whoever makes a store in a directory, so that a draft that is found by the next holder is one of a dead process."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def remove_what_creation_left(directory: Path) -> None:
    """Removes the drafts of processes that died in `create`: one may be a second name of the log, and be copied and kept with it.

    Does nothing while somebody is at work in there, or where the directory may not be written.
    """
    with contextlib.suppress(OSError):
        if _drafts(directory):
            with creation_lock(directory, wait=False):
                _remove_drafts(directory)


def _drafts(directory: Path) -> list[Path]:
    return [each for each in directory.iterdir() if _DRAFT(each.name)]


def _remove_drafts(directory: Path) -> None:
    for each in _drafts(directory):
        each.unlink(missing_ok=True)


def _write_empty(draft: Path, store_id: str, remembered: dict[str, str]) -> None:
    connection = sqlite3.connect(draft, isolation_level=None)
    try:
        tables = named("embedded.sql")["tables"]
        connection.executescript(f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT_VERSION}; {tables}")
        meta = [("store_id", store_id), ("created_at", str(int(time.time() * 1000))), *remembered.items()]
        connection.executemany("INSERT INTO meta VALUES (?, ?)", meta)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()


def connect(path: Path, *, wait: bool = True, application_id: int = APPLICATION_ID) -> sqlite3.Connection:
    """A connection with the settings that durability rests on. It may be handed from thread to thread, not shared.

    `wait`: whether it waits for other processes by itself, up to 30 s.

    The file is never opened but through SQLite: closing any descriptor of it would drop the locks that this process holds.
    """
    try:
        if not path.exists():
            what = "is not a directory" if path.parent.exists() and not path.parent.is_dir() else "holds no checkpoint store"
            raise NotAStore(f"{path.parent} {what}")
        uri = f"file:{quote(str(path))}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS if wait else 0)
    except OSError as error:
        raise StorageError(str(path), f"cannot be read: {error.strerror}") from error
    except sqlite3.Error as error:
        raise translate(error, path) from error
    try:
        _check(connection, path, application_id)
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        connection.close()
        raise translate(error, path) from error
    except CheckpointError:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path, wanted: int) -> None:
    """Raises unless the file is of the wanted kind and of this format. SQLite itself notices here that a file was cut off."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (format_version,) = connection.execute("PRAGMA user_version").fetchone()
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if application_id != wanted:
        raise NotAStore(f"{path} is a database of another application")
    known = (FORMAT_VERSION, FORMAT_WITH_STUBS) if wanted == APPLICATION_ID else (FORMAT_VERSION,)
    if format_version not in known:
        raise SchemaMismatch(f"{path} has format {format_version}; this version reads {' and '.join(map(str, known))}")
    if mode != "wal":
        raise Corrupted(str(path), f"has journal mode {mode} where it was made with wal")


def translate(error: sqlite3.Error, path: Path) -> CheckpointError:
    """SQLite's error in the store's own words."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return Corrupted(str(path), f"is damaged: {error}")
    if name.startswith("SQLITE_FULL"):
        return StorageError(str(path), "the disk is full; nothing was written", hint="Free some space and try again.")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return Busy(str(path), f"another process has held the log for {BUSY_SECONDS:.0f} s; nothing was written")
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN", "SQLITE_AUTH")):
        return StorageError(str(path), f"cannot be opened for writing: {error}", hint="The directory and its files must be writable.")
    return StorageError(str(path), f"{error}" + (f" ({name})" if name else ""))


def checksum(position: int, checkpoint_id: str, revision: int, recorded_at: int, event: bytes) -> int:
    """Binds an event to its row: SQLite does not notice a flipped bit or an exchanged row, this does (CRC-32C, 1 us at 1 KB)."""
    return crc32c(event, crc32c(f"{position} {checkpoint_id} {revision} {recorded_at}".encode()))


def record_of(row: tuple[Any, ...], path: Path) -> Record:
    """The record of a row (position, checkpoint_id, revision, recorded_at, checksum, event). Raises `Corrupted`."""
    record = any_record_of(row)
    if record.damage is not None:
        raise Corrupted(str(path), f"checkpoint {row[1]} revision {row[2]}: {record.damage}")
    return record


def any_record_of(row: tuple[Any, ...]) -> Record:
    """As `record_of`, for whoever reads everything: damage is told, not raised."""
    position, checkpoint_id, revision, recorded_at, proof, event = row
    try:
        if checksum(position, checkpoint_id, revision, recorded_at, event) == proof:
            if not is_stub(event):
                return Record(0, position, recorded_at, checkpoint_id.encode(), event)
            value, size = opened(event)
            return Record(0, position, recorded_at, checkpoint_id.encode(), value, moved=size)
    except (TypeError, ValueError, Corrupted, SchemaMismatch):  # not even the types are right
        pass
    damage = f"the event at position {position} is damaged, or not the one that was written there"
    key = checkpoint_id.encode() if isinstance(checkpoint_id, str) else None
    when = recorded_at if isinstance(recorded_at, int) else 0
    return Record(0, position, when, key, event if isinstance(event, bytes) else None, damage)


class Readers:
    """Connections for reading: one for each caller at a time, used again afterwards, closed when nobody reads any more."""

    def __init__(self, *, path: Path, application_id: int = APPLICATION_ID) -> None:
        self._path = path
        self._application_id = application_id
        self._idle: list[sqlite3.Connection] = []
        self._changed = threading.Condition()
        self._active = 0
        self._open = False
        self._pid = 0

    def open(self) -> None:
        self._pid = os.getpid()
        self._open = True

    def close(self) -> None:
        """Refuses new readers, waits for those that are inside, then closes."""
        with self._changed:
            self._open = False
            if self._pid != os.getpid():
                keep_for_ever(*self._idle)
                self._idle.clear()
            while self._active and self._pid == os.getpid():
                self._changed.wait()
        while self._idle:
            self._idle.pop().close()

    @contextlib.contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A connection of one's own for a moment. Raises `StoreClosed`, and SQLite's errors in the store's own words."""
        with self._changed:
            if not self._open or self._pid != os.getpid():
                raise StoreClosed(
                    "the store is not open in this process", hint="Open the store in the process that uses it, after forking."
                )
            self._active += 1
            idle = self._idle.pop() if self._idle else None
        connection: sqlite3.Connection | None = idle
        try:
            connection = idle or connect(self._path, application_id=self._application_id)
            yield connection
        except sqlite3.Error as error:
            raise translate(error, self._path) from error
        finally:
            with self._changed:
                if connection is not None:
                    self._idle.append(connection)
                self._active -= 1
                self._changed.notify_all()  # close() may wait for the last one


_orphans: list[sqlite3.Connection] = []


def keep_for_ever(*connections: sqlite3.Connection) -> None:
    """Keeps connections that a forked child has inherited: closing them there would touch the parent's files."""
    _orphans.extend(connections)
