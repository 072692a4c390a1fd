"""The access log in a store's directory: SQLite in WAL mode with synchronous=FULL, a file beside the log's own.

Apart from the log, so that a commit and a recorded read do not wait for each other's flush, and so that either has its own retention.
Several processes may use it at once: SQLite's write lock orders them.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

from eventlog.embedded_files import ACCESS_FILE, FORMAT_VERSION, Readers, connect, creation_lock, keep_for_ever, translate
from eventlog.errors import AuditUnavailable, CheckpointError, ConfigurationError, NotAStore, StorageError
from eventlog.group_commit import GroupCommit, LeaderInterrupted
from eventlog.position import Position
from eventlog.privacy.access_event import AccessEvent
from eventlog.privacy.access_log import AccessRecord, Chain
from eventlog.statements import named

APPLICATION_ID = 0x45564C41  # "EVLA"
_READ_ROWS = 1_000

_SQL = named("privacy/access_embedded.sql")


def create_access_file(directory: Path) -> None:
    """Makes the access log of a store that has none, whole or not at all. For whoever holds the directory's creation lock."""
    path = directory / ACCESS_FILE
    draft = directory / f"{ACCESS_FILE}.{secrets.token_hex(8)}.new"
    try:
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            kind = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT_VERSION};"
            connection.executescript(f"BEGIN; {kind} {_SQL['tables']}")
            connection.executemany("INSERT INTO meta VALUES (?, ?)", [("access_id", str(uuid4())), ("start", "0")])
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()
        with contextlib.suppress(FileExistsError):  # another process has been faster
            os.link(draft, path)
    except sqlite3.Error as error:
        raise translate(error, path) from error
    except OSError as error:
        raise StorageError(str(path), f"cannot be made: {error.strerror}") from error
    finally:
        for left in directory.glob(f"{draft.name}*"):
            left.unlink(missing_ok=True)


def discard_what_creation_left(directory: Path) -> None:
    """Of a store that was never finished nothing is on record. An access log with records is somebody's: it stays, and is refused."""
    path = directory / ACCESS_FILE
    if not path.exists():
        return
    log = EmbeddedAccessLog(directory=directory)
    log.open()
    try:
        held = log.end().next_offset(0)
    finally:
        log.close()
    if held:
        raise ConfigurationError(
            f"{path} holds the accesses of a store whose log is not there", hint="Restore the log, or choose another directory."
        )
    for each in directory.glob(f"{ACCESS_FILE}*"):
        each.unlink(missing_ok=True)


def open_access_file(directory: Path, *, make: bool) -> EmbeddedAccessLog:
    """The access log of a store. One that should be there and is not is an error, unless `make`: the store never had one.

    Raises `ConfigurationError`, and as opening the log does.
    """
    if make and not (directory / ACCESS_FILE).exists():
        with creation_lock(directory):
            create_access_file(directory)
    log = EmbeddedAccessLog(directory=directory)
    try:
        log.open()
    except NotAStore as error:
        raise ConfigurationError(
            f"{directory / ACCESS_FILE} is missing or is no access log, and this store records every access",
            hint="Find out who removed it. Restore it from a backup; without it nobody can say who has read what.",
        ) from error
    return log


class EmbeddedAccessLog:
    """See `AccessLog`. `open()` before use; any number of threads may share it, a forked child may not."""

    notes_retention = True

    def __init__(self, *, directory: Path) -> None:
        self._path = directory / ACCESS_FILE
        self.identity = ""
        self._writer: sqlite3.Connection | None = None
        self._readers = Readers(path=self._path, application_id=APPLICATION_ID)
        self._group = GroupCommit[AccessEvent, None](self._write)
        self._chain = Chain()
        self._pid = 0

    def open(self) -> None:
        """Opens the file. Raises `NotAStore`, `SchemaMismatch`, `Corrupted` or `StorageError`."""
        self._pid = os.getpid()
        self._writer = connect(self._path, application_id=APPLICATION_ID)
        self._readers.open()
        with self._readers.connection() as connection:
            (self.identity,) = connection.execute("SELECT value FROM meta WHERE key = 'access_id'").fetchone()

    def close(self) -> None:
        """Closes the file; what is under way ends first. In a forked child nothing is touched: the files are the parent's."""
        writer, self._writer = self._writer, None
        if writer is not None and self._pid != os.getpid():
            keep_for_ever(writer)
        elif writer is not None:
            while not self._group.idle:
                time.sleep(0.001)
            writer.close()
        self._readers.close()

    def append(self, events: Sequence[AccessEvent]) -> None:
        """See `AccessLog.append`."""
        try:
            self._group.submit(events)
        except LeaderInterrupted as error:
            raise AuditUnavailable(str(self._path), "whoever wrote for all was interrupted") from error

    def read(self, after: Position) -> Iterator[tuple[Sequence[AccessRecord], Position]]:
        """See `AccessLog.read`."""
        start, end = max(after.next_offset(0), self.start().next_offset(0)), self.end().next_offset(0)
        while start < end:
            with self._readers.connection() as connection:
                rows = connection.execute(_SQL["read"], (start, end, _READ_ROWS)).fetchall()
            if not rows:
                return
            start = rows[-1][0] + 1
            yield [AccessRecord(0, *row) for row in rows], Position(((0, start),))

    def start(self) -> Position:
        """See `AccessLog.start`."""
        with self._readers.connection() as connection:
            return Position(((0, connection.execute(_SQL["start"]).fetchone()[0]),))

    def end(self) -> Position:
        """See `AccessLog.end`."""
        with self._readers.connection() as connection:
            return Position(((0, _next(connection)[0]),))

    def start_at(self, millis: int) -> Position:
        """See `AccessLog.start_at`."""
        with self._readers.connection() as connection:
            (first,) = connection.execute(_SQL["since"], (millis,)).fetchone()
            return Position(((0, _next(connection)[0] if first is None else first),))

    def prune(self, start: Position) -> int:
        """See `AccessLog.prune`. In one transaction; the removed bytes are overwritten, since they name people."""
        first = start.next_offset(0)
        with self._readers.connection() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.execute(_SQL["move_start"], (str(first),))
                removed = connection.execute(_SQL["remove"], (first,)).rowcount
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return removed

    def _write(self, events: Sequence[AccessEvent]) -> Sequence[None]:
        """Appends what concurrent callers have given. Runs in one thread at a time (`GroupCommit`)."""
        writer = self._writer
        if writer is None or self._pid != os.getpid():
            raise AuditUnavailable(str(self._path), "it is not open in this process")
        try:
            writer.execute("BEGIN IMMEDIATE")
            position, clock = _next(writer)
            clock = max(clock, time.time_ns() // 1_000_000)
            rows = [(position + number, clock, data) for number, data in enumerate(self._chain.seal(events))]
            writer.executemany(_SQL["append"], rows)
            writer.execute("COMMIT")
        except BaseException as error:
            self._chain.renew()
            with contextlib.suppress(sqlite3.Error):
                if writer.in_transaction:
                    writer.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise _unavailable(self._path, translate(error, self._path)) from error
            raise
        return [None] * len(events)


def _next(connection: sqlite3.Connection) -> tuple[int, int]:
    """The next position, and the newest record's time. A log that retention has emptied goes on where it was."""
    tail = connection.execute(_SQL["tail"]).fetchone()
    if tail is None:
        return connection.execute(_SQL["start"]).fetchone()[0], 0
    return tail[0] + 1, tail[1]


def _unavailable(path: Path, error: CheckpointError) -> AuditUnavailable:
    problem = error.problem if isinstance(error, StorageError) else str(error)
    return AuditUnavailable(str(path), problem.replace("; nothing was written", ""), hint=error.hint)
