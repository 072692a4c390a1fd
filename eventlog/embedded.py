"""The log in one directory: SQLite in WAL mode with synchronous=FULL, a table that is only ever appended to.

Several processes and threads may use it at once: SQLite's write lock orders them, the unique index on (checkpoint, revision)
arbitrates, and `data_version` tells a process that another one has written, so that heads kept in memory are never stale.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from eventlog import codec
from eventlog.embedded_files import (
    ACCESS_MODE,
    BUSY_SECONDS,
    FORMAT_WITH_STUBS,
    KEY_SOURCE,
    LOG_FILE,
    Readers,
    any_record_of,
    keep_for_ever,
    record_of,
    remove_what_creation_left,
    translate,
)
from eventlog.embedded_writer import EmbeddedWriter, Waiting, unknown
from eventlog.errors import NotAStore, StorageError, StoreClosed
from eventlog.group_commit import GroupCommit, LeaderInterrupted
from eventlog.log import LogIdentity, Outcome, Record
from eventlog.payload import COMPRESS_FROM
from eventlog.position import Position
from eventlog.rules import Proposal
from eventlog.statements import named

DEFAULT_MAX_EVENT_BYTES = 8 << 20  # the same as a topic's, so that a run can move from one log to the other
_READ_ROWS = 500
_POLL_SECONDS = 0.02  # how soon a commit of another process is noticed by `wait`

_SQL = named("embedded.sql")


class EmbeddedLog:
    """The log in a directory. `open()` before use; any number of threads may share it, a forked child may not."""

    kind = "embedded"
    reads_wait = False
    compress_from = COMPRESS_FROM

    def __init__(self, *, directory: Path, max_event_bytes: int = DEFAULT_MAX_EVENT_BYTES) -> None:
        self.directory = directory
        self.max_event_bytes = max_event_bytes
        self._path = directory / LOG_FILE
        self._identity: LogIdentity | None = None
        self.key_source: str | None = None  # of an encrypted store: where its keys are
        self.access: str | None = None  # of a store that records accesses: how strictly
        self._writer = EmbeddedWriter(path=self._path, announce=self._announce)
        self._readers = Readers(path=self._path)
        self._group = GroupCommit[Waiting, Outcome | None](self._writer.write)
        self._pid = 0
        self._committed = threading.Condition()
        self._waiting = 0  # callers of wait(); nobody is notified when there are none

    # -- life ---------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Opens the files. Raises `NotAStore`, `SchemaMismatch`, `Corrupted` or `StorageError`."""
        self._pid = os.getpid()
        remove_what_creation_left(self.directory)
        connection = self._writer.open()
        try:
            meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        except sqlite3.Error as error:
            self.close()
            raise translate(error, self._path) from error
        if "store_id" not in meta:
            self.close()
            raise NotAStore(f"{self.directory} has no store id")
        self.key_source, self.access = meta.get(KEY_SOURCE), meta.get(ACCESS_MODE)
        self._writer.encrypted = self.key_source is not None
        self._identity = LogIdentity(meta["store_id"], partitions=1, encrypted=self.key_source is not None)
        self._readers.open()

    def close(self) -> None:
        """Closes the files; calls that are under way end first. In a forked child nothing is touched: the files are the parent's."""
        writer, self._writer.connection = self._writer.connection, None
        if writer is not None and self._pid != os.getpid():
            keep_for_ever(writer)
        elif writer is not None:
            while not self._group.idle:
                time.sleep(0.001)
            writer.close()
        self._readers.close()
        with self._committed:
            self._committed.notify_all()

    @property
    def identity(self) -> LogIdentity:
        if self._identity is None:
            raise StoreClosed(f"{self.directory} is not open")
        return self._identity

    # -- writing ----------------------------------------------------------------------------------------------------

    def append(self, proposals: Sequence[Proposal], *, timeout: float = BUSY_SECONDS) -> Sequence[Outcome]:
        """See `Log.append`. The outcome is known as soon as the disk answers; `Busy` when other processes hold the log for too long."""
        deadline = time.monotonic() + timeout
        waiting = [Waiting(proposal, deadline) for proposal in proposals]
        try:
            outcomes = list(self._group.submit(waiting))
            while None in outcomes:  # the round ended for the sake of a caller with less time
                left = [each for each, outcome in zip(waiting, outcomes, strict=True) if outcome is None]
                answers = iter(self._group.submit(left))
                outcomes = [next(answers) if outcome is None else outcome for outcome in outcomes]
        except LeaderInterrupted as error:
            return [
                unknown(proposal, StorageError(str(self._path), "whoever committed for all was interrupted"), error)
                for proposal in proposals
            ]
        return [outcome for outcome in outcomes if outcome is not None]

    def append_at_once(self, proposals: Sequence[Proposal]) -> Sequence[Outcome] | None:
        """See `Log.append_at_once`."""
        return self._group.try_submit([Waiting(proposal, 0.0) for proposal in proposals], self._writer.attempt)  # type: ignore[return-value]

    def append_later(self, proposals: Sequence[Proposal], *, timeout: float, done: Callable[[Sequence[Outcome]], None]) -> bool:  # noqa: ARG002
        """See `Log.append_later`. This log has no threads."""
        return False

    def settle(self, checkpoint_id: str | None, timeout: float) -> None:  # noqa: ARG002 - SQLite's own bound
        """See `Log.settle`. Writing anything overwrites what a failed commit may have left at the journal's end."""
        with self._readers.connection() as connection:
            connection.execute(_SQL["settle"], (str(time.time_ns()),))

    # -- reading ----------------------------------------------------------------------------------------------------

    def read(self, after: Position) -> Iterator[tuple[Sequence[Record], Position]]:
        """See `Log.read`."""
        start, end = after.next_offset(0), self.end().next_offset(0)
        while start < end:
            with self._readers.connection() as connection:
                rows = connection.execute(_SQL["read"], (start, end, _READ_ROWS)).fetchall()
            if not rows:
                return
            records = [any_record_of(row) for row in rows]
            start = records[-1].offset + 1
            yield records, Position(((0, start),))

    revisions = read  # SQLite's index lets nothing else in

    def end(self) -> Position:
        """See `Log.end`."""
        with self._readers.connection() as connection:
            row = connection.execute(_SQL["tail"]).fetchone()
        return Position(((0, 0 if row is None else row[0] + 1),))

    def place(self, checkpoint_id: str, *, at_least: Position | None = None) -> tuple[int, int] | None:  # noqa: ARG002 - always now
        """See `Log.place`. Answered from the index alone."""
        with self._readers.connection() as connection:
            row = connection.execute(_SQL["place"], (checkpoint_id,)).fetchone()
        return None if row is None else (0, row[0])

    def tenant_of(self, checkpoint_id: str, *, at_least: Position | None = None) -> str | None:  # noqa: ARG002 - always now
        """See `Log.tenant_of`."""
        with self._readers.connection() as connection:
            row = connection.execute(_SQL["beginning"], (codec.TENANT_WITHIN, checkpoint_id)).fetchone()
        return None if row is None else codec.decode_tenant(row[0])

    def latest(self, checkpoint_id: str) -> Record | None:
        """See `Log.latest`."""
        return self._one("latest", checkpoint_id)

    def revision(self, checkpoint_id: str, revision: int) -> Record | None:
        """See `Log.revision`."""
        return self._one("revision", checkpoint_id, revision)

    def as_of(self, checkpoint_id: str, position: Position) -> Record | None:
        """See `Log.as_of`."""
        return self._one("as_of", checkpoint_id, position.next_offset(0))

    def by_event_id(self, event_id: str) -> Record | None:
        """See `Log.by_event_id`."""
        return self._one("by_event_id", event_id)

    def history(self, checkpoint_id: str, *, after: int, position: Position | None, limit: int) -> Sequence[Record]:
        """See `Log.history`."""
        end = 2**63 - 1 if position is None else position.next_offset(0)
        with self._readers.connection() as connection:
            rows = connection.execute(_SQL["history"], (checkpoint_id, after, end, limit)).fetchall()
        return [record_of(row, self._path) for row in rows]

    def position_at(self, millis: int) -> Position:
        """See `Log.position_at`. A bisection: recorded_at never decreases along the log."""
        low, high = 0, self.end().next_offset(0)
        with self._readers.connection() as connection:
            while low < high:
                middle = (low + high) // 2
                if connection.execute(_SQL["recorded_at"], (middle,)).fetchone()[0] <= millis:
                    low = middle + 1
                else:
                    high = middle
        return Position(((0, low),))

    def partition_of(self, checkpoint_id: str) -> int:  # noqa: ARG002
        """See `Log.partition_of`."""
        return 0

    def unread(self) -> int | None:
        """See `Log.unread`."""
        return None

    def compacted_before(self) -> int:
        """See `Log.compacted_before`."""
        return 0

    def is_compacted(self) -> bool:
        """Whether a compact has ever moved bodies to the archive."""
        with self._readers.connection() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
        return bool(version == FORMAT_WITH_STUBS)

    def wait(self, after: Position, timeout: float) -> bool:
        """See `Log.wait`."""
        deadline = time.monotonic() + timeout
        while True:
            if self.end().next_offset(0) > after.next_offset(0):
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            with self._committed:  # wakes at once for this process, soon for another one's commit
                self._waiting += 1
                self._committed.wait(min(left, _POLL_SECONDS))
                self._waiting -= 1

    def _one(self, statement: str, key: str, *more: int) -> Record | None:
        with self._readers.connection() as connection:
            row = connection.execute(_SQL[statement], (key, *more)).fetchone()
        return None if row is None else record_of(row, self._path)

    def _announce(self) -> None:
        if self._waiting:
            with self._committed:
                self._committed.notify_all()
