"""The embedded log's files: made once, checked before use, and SQLite's errors in the store's own words."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from urllib.parse import quote

from eventlog.errors import Busy, CheckpointError, ConfigurationError, Corrupted, NotAStore, SchemaMismatch, StorageError
from eventlog.ids import EventId
from eventlog.statements import named

LOG_FILE = "log.sqlite3"
APPLICATION_ID = 0x45564C47  # "EVLG", in SQLite's own header field for the kind of file
FORMAT_VERSION = 1
BUSY_SECONDS = 30.0


def create(directory: Path) -> str:
    """Makes a new, empty log in a new or empty directory; returns its store id.

    The file is written under another name and linked into place when it is complete, so that a process that dies in between
    leaves no half store. Raises `ConfigurationError` when the directory is in use, `StorageError` when it cannot be written.
    """
    path = directory / LOG_FILE
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if path.exists():
            raise ConfigurationError(f"{directory} already holds a store", hint="Open it, or choose another directory.")
        foreign = sorted(each.name for each in directory.iterdir() if not each.name.startswith(LOG_FILE))
        if foreign:
            raise ConfigurationError(f"{directory} is not empty (it holds {foreign[0]})", hint="Choose a new or empty directory.")
        draft = directory / f"{LOG_FILE}.{os.getpid()}.new"
        draft.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(str(directory), f"cannot be made or read: {error.strerror}") from error
    store_id = str(EventId.new())
    try:
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
            connection.executescript(named("embedded.sql")["tables"])
            connection.executemany("INSERT INTO meta VALUES (?, ?)", [("store_id", store_id), ("created_at", str(int(time.time() * 1000)))])
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()
        os.link(draft, path)
        draft.unlink()
        _flush_directory(directory)
    except sqlite3.Error as error:
        raise translate(error, draft) from error
    except FileExistsError as error:
        draft.unlink(missing_ok=True)
        raise ConfigurationError(f"{directory} already holds a store", hint="Open it, or choose another directory.") from error
    except OSError as error:
        raise StorageError(str(directory), f"cannot be written: {error.strerror}") from error
    return store_id


def connect(path: Path, *, wait: bool = True) -> sqlite3.Connection:
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
        _check(connection, path)
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        connection.close()
        raise translate(error, path) from error
    except CheckpointError:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Raises unless the file is an embedded log of this format. SQLite itself notices here that a file was cut off."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (format_version,) = connection.execute("PRAGMA user_version").fetchone()
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if application_id != APPLICATION_ID:
        raise NotAStore(f"{path} is a database of another application")
    if format_version != FORMAT_VERSION:
        raise SchemaMismatch(f"{path} has format {format_version}; this version reads {FORMAT_VERSION}")
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


def _flush_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
