"""The writing half of the log in a directory: decides a group of proposals against the heads, and commits it."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from eventlog import codec, retry
from eventlog.checkpoint import Receipt, from_millis
from eventlog.embedded_files import checksum, connect, record_of, translate
from eventlog.errors import Busy, CheckpointError, EncryptionMismatch, OutcomeUnknown, StorageError, StoreClosed
from eventlog.event import GENESIS
from eventlog.head_cache import RecentEvents, RecentHeads
from eventlog.ids import EventId
from eventlog.log import Outcome
from eventlog.position import Position
from eventlog.rules import Head, Proposal, Verdict, decide, require_form, unmet
from eventlog.statements import named

_HEADS = 10_000  # about 1 KB each
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02  # seconds between attempts while another process writes; a commit takes 0.2 to 2 ms

_SQL = named("embedded.sql")
_APPEND = _SQL["append"]


class Waiting(NamedTuple):
    """A proposal in line, and until when its caller waits for other processes."""

    proposal: Proposal
    deadline: float


class EmbeddedWriter:
    """The connection that writes. One thread at a time may use it: `GroupCommit` sees to that.

    `announce` is called behind each commit.
    """

    def __init__(self, *, path: Path, announce: Callable[[], None]) -> None:
        self.connection: sqlite3.Connection | None = None
        self.encrypted = False
        self._path = path
        self._announce = announce
        self._heads = RecentHeads(entries=_HEADS)
        self._recent = RecentEvents()
        self._data_version = -1
        self._next_position = 0
        self._recorded_at = 0
        self._pid = 0

    def open(self) -> sqlite3.Connection:
        """Opens the file. Raises as `connect` does."""
        self._pid = os.getpid()
        self.connection = connect(self._path, wait=False)
        return self.connection

    def write(self, waiting: Sequence[Waiting]) -> Sequence[Outcome | None]:
        """Commits one group, waiting for other processes. Runs in one thread at a time (`GroupCommit`).

        None for whoever has time left when somebody else's is up: it is put in line again.
        """
        pause = _FIRST_PAUSE
        while (outcomes := self.attempt(waiting)) is None:
            now = time.monotonic()
            if any(now > each.deadline for each in waiting):
                busy = Busy(str(self._path), "other processes held the log until the time was up; nothing was written")
                return [busy if now > each.deadline else None for each in waiting]
            time.sleep(random.uniform(0, pause))  # random: processes that wait in step collide for ever
            pause = min(2 * pause, _LONGEST_PAUSE)
        return outcomes

    def attempt(self, waiting: Sequence[Waiting]) -> Sequence[Outcome] | None:
        """Decides and commits one group; None, and nothing written, while another process holds the write lock.

        The lock is taken first, so that the heads cannot move between the decision and the commit; only what the commit made
        durable enters the heads kept in memory.
        """
        writer = self.connection
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
        require_form(proposal, encrypted=self.encrypted)
        event, digest = codec.finish(proposal.draft, GENESIS if head is None else head.hash)
        position, checkpoint_id, revision = self._next_position, proposal.checkpoint_id, proposal.revision
        recorded_at = max(self._recorded_at, time.time_ns() // 1_000_000)
        proof = checksum(position, checkpoint_id, revision, recorded_at, event)
        writer.execute(_APPEND, (position, checkpoint_id, revision, proposal.event_id, recorded_at, proof, event))
        self._next_position, self._recorded_at = position + 1, recorded_at
        self._recent.add(proposal)
        return proposal.head(digest, 0, position, recorded_at)

    def _failed(
        self, writer: sqlite3.Connection, error: sqlite3.Error, waiting: Sequence[Waiting], *, committing: bool
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
            return [unknown(each.proposal, failure, failure) for each in waiting]
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


def unknown(proposal: Proposal, failure: CheckpointError, cause: BaseException) -> OutcomeUnknown:
    """What a commit is answered with when it may or may not have been made."""
    error = OutcomeUnknown(proposal.checkpoint_id, event_id=proposal.event_id, reason=str(failure))
    error.__cause__ = cause
    return error
