"""The wrapped data keys of an embedded store: a SQLite file beside the log, in which a deletion leaves no bytes behind.

It rests on two settings: secure_delete overwrites what is deleted, and the journal is truncated at every commit, where a write-ahead log
would keep the old pages. `tests/privacy/test_embedded_keys.py` looks for the bytes.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from eventlog.embedded_files import BUSY_SECONDS, KEYS_FILE, keep_for_ever, translate
from eventlog.errors import ConfigurationError, Corrupted, SchemaMismatch, StoreClosed
from eventlog.group_commit import GroupCommit
from eventlog.privacy.keys import WrappedKey
from eventlog.statements import named
from projections.durable import fsync_directory

APPLICATION_ID = 0x45564B59  # "EVKY"
FORMAT_VERSION = 1
_PAGE_ROWS = 500

_SQL = named("privacy/embedded_keys.sql")


def create_keys(path: Path, store_id: str) -> None:
    """Makes the file, empty and durable. Raises `ConfigurationError`, `sqlite3.Error`, `OSError`."""
    _discard_what_creation_left(path)
    connection = _connected(path, "rwc")
    try:
        tables = _SQL["tables"]
        connection.executescript(f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT_VERSION}; {tables}")
        connection.execute("INSERT INTO meta VALUES ('store_id', ?)", (store_id,))
        connection.execute("COMMIT")
    finally:
        connection.close()
    fsync_directory(path.parent)


def _discard_what_creation_left(path: Path) -> None:
    """Of a store that was never finished there is no log, and no checkpoint's key. A file with such keys is somebody's: it stays."""
    if not path.exists():
        return
    connection = _connected(path, "rw")
    try:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        held = connection.execute("SELECT count(*) FROM keys WHERE checkpoint_id <> 'store'").fetchone()[0] if "keys" in tables else 0
    finally:
        connection.close()
    if held or tables - {"meta", "keys"}:
        raise ConfigurationError(
            f"{path} holds {held} wrapped data keys of a store whose log is not there", hint="Restore the log, or choose another directory."
        )
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


class EmbeddedKeys:
    """A `KeyTable` in a directory. `open()` before use; any number of threads may share it, a forked child may not."""

    def __init__(self, *, directory: Path, store_id: str) -> None:
        self._path = directory / KEYS_FILE
        self._store_id = store_id
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        self._pid = 0
        self._puts = GroupCommit[WrappedKey, None](self._put)

    def open(self) -> None:
        """Opens the file. Raises `Corrupted` when it is missing or another store's, `SchemaMismatch`, `StorageError`."""
        self._pid = os.getpid()
        if not self._path.exists():
            raise Corrupted(
                str(self._path),
                "is missing: the store is encrypted, and its wrapped data keys are in there",
                hint="Restore the file from the backup of the keys. Without it no payload of this store can be read again.",
            )
        try:
            self._connection = _connected(self._path, "rw")
            (application_id,) = self._connection.execute("PRAGMA application_id").fetchone()
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if application_id != APPLICATION_ID:
                raise Corrupted(str(self._path), "is not a file of wrapped data keys")
            if version != FORMAT_VERSION:
                raise SchemaMismatch(f"{self._path} has format {version}; this version reads {FORMAT_VERSION}")
            found = self._connection.execute("SELECT value FROM meta WHERE key = 'store_id'").fetchone()
            if found is None or found[0] != self._store_id:
                raise Corrupted(str(self._path), f"holds the keys of another store, {found and found[0]}", hint="Restore the right file.")
        except sqlite3.Error as error:
            self.close()
            raise translate(error, self._path) from error
        except BaseException:
            self.close()
            raise

    def get(self, checkpoint_id: str, key_id: str) -> WrappedKey | None:
        """See `KeyTable.get`."""
        rows = self._rows("get", checkpoint_id, key_id)
        return rows[0] if rows else None

    def of(self, checkpoint_id: str, *, now: bool = True) -> Sequence[WrappedKey]:  # noqa: ARG002 - always now
        """See `KeyTable.of`."""
        return self._rows("of", checkpoint_id)

    def put(self, key: WrappedKey) -> None:
        """See `KeyTable.put`. Callers that come together share one flush."""
        self._puts.submit((key,))

    def replace(self, pairs: Sequence[tuple[WrappedKey, WrappedKey]]) -> int:
        """See `KeyTable.replace`."""
        with self._written() as connection:
            return sum(
                connection.execute(
                    _SQL["replace"], (new.version, new.wrapped, old.checkpoint_id, old.key_id, old.version, old.wrapped)
                ).rowcount
                for old, new in pairs
            )

    def destroy(self, *checkpoint_ids: str) -> int:
        """See `KeyTable.destroy`. Afterwards no file of the directory holds their bytes."""
        with self._written() as connection:
            return sum(connection.execute(_SQL["destroy"], (each,)).rowcount for each in checkpoint_ids)

    def all(self) -> Iterator[WrappedKey]:
        """See `KeyTable.all`. Page by page, so that nobody waits for whoever reads."""
        after = ("", "")
        while page := self._rows("page", *after, _PAGE_ROWS):
            yield from page
            after = (page[-1].checkpoint_id, page[-1].key_id)

    def close(self) -> None:
        """See `KeyTable.close`."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None and self._pid != os.getpid():
                keep_for_ever(connection)
            elif connection is not None:
                connection.close()

    def _rows(self, statement: str, *values: str | int) -> list[WrappedKey]:
        with self._used() as connection:
            return [WrappedKey._make(row) for row in connection.execute(_SQL[statement], values).fetchall()]

    def _put(self, keys: Sequence[WrappedKey]) -> list[None]:
        with self._written() as connection:
            connection.executemany(_SQL["put"], keys)
        return [None] * len(keys)

    @contextlib.contextmanager
    def _written(self) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        with self._used() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _used(self) -> Iterator[sqlite3.Connection]:
        if self._pid != os.getpid():
            raise StoreClosed("the store is not open in this process", hint="Open the store in the process that uses it, after forking.")
        with self._lock:
            if self._connection is None:
                raise StoreClosed("the store was closed")
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise translate(error, self._path) from error


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    """A connection with the settings that everything rests on. It may be handed from thread to thread, not shared."""
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS
    )
    try:
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA temp_store = MEMORY")  # no other file either
    except sqlite3.Error:
        connection.close()
        raise
    return connection
