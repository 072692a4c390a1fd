"""The log in one directory: SQLite in WAL mode with synchronous=FULL, a table that is only ever appended to.

Several processes and threads may use it at once: SQLite's write lock orders them, the unique index on (checkpoint, revision)
arbitrates, and `data_version` tells a process that another one has written, so that heads kept in memory are never stale.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from eventlog import codec, retry
from eventlog.checkpoint import Receipt, from_millis
from eventlog.embedded_files import (
    BUSY_SECONDS,
    KEY_SOURCE,
    LOG_FILE,
    Readers,
    any_record_of,
    checksum,
    connect,
    keep_for_ever,
    record_of,
    remove_what_creation_left,
    translate,
)
from eventlog.errors import Busy, CheckpointError, EncryptionMismatch, NotAStore, OutcomeUnknown, StorageError, StoreClosed
from eventlog.event import GENESIS
from eventlog.group_commit import GroupCommit, LeaderInterrupted
from eventlog.head_cache import RecentEvents, RecentHeads
from eventlog.ids import EventId
from eventlog.log import LogIdentity, Outcome, Record
from eventlog.payload import COMPRESS_FROM
from eventlog.position import Position
from eventlog.rules import Head, Proposal, Verdict, decide, require_form, unmet
from eventlog.statements import named

DEFAULT_MAX_EVENT_BYTES = 8 << 20  # the same as a topic's, so that a run can move from one log to the other
_HEADS = 10_000  # about 1 KB each
_READ_ROWS = 500
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02  # seconds between attempts while another process writes; a commit takes 0.2 to 2 ms
_POLL_SECONDS = 0.02  # how soon a commit of another process is noticed by `wait`

_SQL = named("embedded.sql")
_APPEND = _SQL["append"]


class _Waiting(NamedTuple):
    """A proposal in line, and until when its caller waits for other processes."""

    proposal: Proposal
    deadline: float


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
        self._writer: sqlite3.Connection | None = None
        self._readers = Readers(path=self._path)
        self._group = GroupCommit[_Waiting, Outcome | None](self._write)
        self._heads = RecentHeads(entries=_HEADS)
        self._recent = RecentEvents()
        self._data_version = -1
        self._next_position = 0
        self._recorded_at = 0
        self._pid = 0
        self._committed = threading.Condition()
        self._waiting = 0  # callers of wait(); nobody is notified when there are none

    # -- life ---------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Opens the files. Raises `NotAStore`, `SchemaMismatch`, `Corrupted` or `StorageError`."""
        self._pid = os.getpid()
        remove_what_creation_left(self.directory)
        self._writer = connect(self._path, wait=False)
        try:
            meta = dict(self._writer.execute("SELECT key, value FROM meta").fetchall())
        except sqlite3.Error as error:
            self.close()
            raise translate(error, self._path) from error
        if "store_id" not in meta:
            self.close()
            raise NotAStore(f"{self.directory} has no store id")
        self.key_source = meta.get(KEY_SOURCE)
        self._identity = LogIdentity(meta["store_id"], partitions=1, encrypted=self.key_source is not None)
        self._readers.open()

    def close(self) -> None:
        """Closes the files; calls that are under way end first. In a forked child nothing is touched: the files are the parent's."""
        writer, self._writer = self._writer, None
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
        waiting = [_Waiting(proposal, deadline) for proposal in proposals]
        try:
            outcomes = list(self._group.submit(waiting))
            while None in outcomes:  # the round ended for the sake of a caller with less time
                left = [each for each, outcome in zip(waiting, outcomes, strict=True) if outcome is None]
                answers = iter(self._group.submit(left))
                outcomes = [next(answers) if outcome is None else outcome for outcome in outcomes]
        except LeaderInterrupted as error:
            return [
                _unknown(proposal, StorageError(str(self._path), "whoever committed for all was interrupted"), error)
                for proposal in proposals
            ]
        return [outcome for outcome in outcomes if outcome is not None]

    def append_at_once(self, proposals: Sequence[Proposal]) -> Sequence[Outcome] | None:
        """See `Log.append_at_once`."""
        return self._group.try_submit([_Waiting(proposal, 0.0) for proposal in proposals], self._attempt)  # type: ignore[return-value]

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

    # -- one group of proposals -----------------------------------------------------------------------------------

    def _write(self, waiting: Sequence[_Waiting]) -> Sequence[Outcome | None]:
        """Commits one group, waiting for other processes. Runs in one thread at a time (`GroupCommit`).

        None for whoever has time left when somebody else's is up: it is put in line again.
        """
        pause = _FIRST_PAUSE
        while (outcomes := self._attempt(waiting)) is None:
            now = time.monotonic()
            if any(now > each.deadline for each in waiting):
                busy = Busy(str(self._path), "other processes held the log until the time was up; nothing was written")
                return [busy if now > each.deadline else None for each in waiting]
            time.sleep(random.uniform(0, pause))  # random: processes that wait in step collide for ever
            pause = min(2 * pause, _LONGEST_PAUSE)
        return outcomes

    def _attempt(self, waiting: Sequence[_Waiting]) -> Sequence[Outcome] | None:
        """Decides and commits one group; None, and nothing written, while another process holds the write lock.

        The lock is taken first, so that the heads cannot move between the decision and the commit; only what the commit made
        durable enters the heads kept in memory.
        """
        writer = self._writer
        if writer is None or self._pid != os.getpid():
            raise StoreClosed("the store is not open in this process", hint="Open the store in the process that uses it, after forking.")
        fresh: dict[str, Head] = {}
        committing = False
        try:
            if len(waiting) == 1 and (receipt := self._append_alone(writer, waiting[0].proposal)) is not None:
                return (receipt,)
            writer.execute("BEGIN IMMEDIATE")
            self._refresh(writer)
            outcomes = [self._decide(writer, each.proposal, fresh) for each in waiting]
            committing = bool(fresh)
            writer.execute("COMMIT")
        except sqlite3.Error as error:
            return self._failed(writer, error, waiting, committing=committing)
        except BaseException:
            self._abandon(writer)
            raise
        for head in fresh.values():
            self._heads.put(head)
        if fresh:
            self._announce()
        return outcomes

    def _append_alone(self, writer: sqlite3.Connection, proposal: Proposal) -> Receipt | None:
        """The way of a lone caller whose head is in memory: one statement, which is its own transaction. None: go the long way.

        It holds because positions have no gaps: the next position can be taken only if nobody has written since this process
        last looked, and then the heads in memory are the current ones.
        """
        head = self._heads.get(proposal.checkpoint_id)
        if head is None or decide(head, proposal) is not Verdict.ACCEPT or self._recent.reused(proposal):
            return None
        if proposal.only_if is not None:
            named = self._head(writer, proposal.only_if.checkpoint_id, {})
            if unmet(proposal, named) is not None:
                return None
            if named is not None:
                self._heads.put(named)  # should it be newer than the others in memory, the append fails, and all are forgotten
        try:
            committed = self._append(writer, proposal, head)
        except EncryptionMismatch:
            return None
        except sqlite3.IntegrityError:
            self._data_version = -1  # somebody has written: look again
            return None
        self._heads.put(committed)
        self._announce()
        return _receipt(committed)

    def _announce(self) -> None:
        if self._waiting:
            with self._committed:
                self._committed.notify_all()

    def _refresh(self, writer: sqlite3.Connection) -> None:
        """Forgets what is kept in memory when another connection has written since."""
        (version,) = writer.execute("PRAGMA data_version").fetchone()
        if version != self._data_version:
            self._data_version = version
            self._heads.clear()
            tail = writer.execute(_SQL["tail"]).fetchone()
            self._next_position, self._recorded_at = (0, 0) if tail is None else (tail[0] + 1, tail[1])

    def _decide(self, writer: sqlite3.Connection, proposal: Proposal, fresh: dict[str, Head]) -> Outcome:
        """One proposal's outcome. What cannot be read concerns its own checkpoint only."""
        try:
            head = self._head(writer, proposal.checkpoint_id, fresh)
            verdict = decide(head, proposal)
            if isinstance(verdict, CheckpointError):
                return verdict
            if verdict is Verdict.COMPARE:
                assert head is not None
                row = writer.execute(_SQL["revision"], (proposal.checkpoint_id, proposal.revision)).fetchone()
                return retry.answer(head, proposal, None if row is None else record_of(row, self._path))
            if self._recent.reused(proposal):
                return retry.reused(proposal)
            if proposal.only_if is not None:
                changed = unmet(proposal, self._head(writer, proposal.only_if.checkpoint_id, fresh))
                if changed is not None:
                    return changed
            committed = fresh[proposal.checkpoint_id] = self._append(writer, proposal, head)
            return _receipt(committed)
        except CheckpointError as error:
            return error

    def _head(self, writer: sqlite3.Connection, checkpoint_id: str, fresh: dict[str, Head]) -> Head | None:
        head = fresh.get(checkpoint_id) or self._heads.get(checkpoint_id)
        if head is None:
            row = writer.execute(_SQL["latest"], (checkpoint_id,)).fetchone()
            if row is not None:
                record = record_of(row, self._path)
                header, digest = codec.decode_header(record.value or b"")
                head = Head.of(header, digest, 0, record.offset, record.recorded_at)
        return head

    def _append(self, writer: sqlite3.Connection, proposal: Proposal, head: Head | None) -> Head:
        require_form(proposal, encrypted=self.key_source is not None)
        event, digest = codec.finish(proposal.draft, GENESIS if head is None else head.hash)
        position, checkpoint_id, revision = self._next_position, proposal.checkpoint_id, proposal.revision
        recorded_at = max(self._recorded_at, time.time_ns() // 1_000_000)
        proof = checksum(position, checkpoint_id, revision, recorded_at, event)
        writer.execute(_APPEND, (position, checkpoint_id, revision, proposal.event_id, recorded_at, proof, event))
        self._next_position, self._recorded_at = position + 1, recorded_at
        self._recent.add(proposal)
        return proposal.head(digest, 0, position, recorded_at)

    def _failed(
        self, writer: sqlite3.Connection, error: sqlite3.Error, waiting: Sequence[_Waiting], *, committing: bool
    ) -> Sequence[Outcome] | None:
        committing = committing or (len(waiting) == 1 and not writer.in_transaction)  # a lone statement commits by itself
        self._abandon(writer)
        name = error.sqlite_errorname
        if name.startswith("SQLITE_BUSY"):
            return None
        failure = translate(error, self._path)
        failure.__cause__ = error
        if committing and name.startswith("SQLITE_IOERR"):
            # A commit whose flush failed may still be found in the journal by whoever recovers it after a crash.
            return [_unknown(each.proposal, failure, failure) for each in waiting]
        return [failure] * len(waiting)

    def _abandon(self, writer: sqlite3.Connection) -> None:
        self._data_version = -1  # read everything anew
        self._heads.clear()
        self._recent.clear()
        if writer.in_transaction:
            try:
                writer.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise StorageError(str(self._path), f"cannot roll back: {error}") from error


def _receipt(head: Head) -> Receipt:
    return Receipt(EventId.trusted(head.event_id), head.revision, Position(((0, head.offset + 1),)), from_millis(head.recorded_at))


def _unknown(proposal: Proposal, failure: CheckpointError, cause: BaseException) -> OutcomeUnknown:
    unknown = OutcomeUnknown(proposal.checkpoint_id, event_id=proposal.event_id, reason=str(failure))
    unknown.__cause__ = cause
    return unknown
