"""Compacting an embedded log: the bodies of superseded revisions leave it once they are archived, and the disk gets the space."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from eventlog.archive.checking import checked_rows
from eventlog.archive.directory import Archive
from eventlog.archive.remembered import remember
from eventlog.embedded import EmbeddedLog
from eventlog.embedded_files import FORMAT_WITH_STUBS, LOG_FILE, checksum, connect, translate
from eventlog.embedded_stub import stub_of
from eventlog.errors import Corrupted, InvalidRequest
from eventlog.log import Log
from eventlog.privacy.guard import Access
from eventlog.privacy.principals import Operation
from eventlog.statements import named
from eventlog.store import CheckpointStore
from projections.rows import RevisionRow

HOLD_MS = 7 * 86_400_000  # the same as a topic's
_ROWS, _BYTES = 500, 8 << 20  # of one transaction, for which writers wait: some 20 ms
_DUE = "space_due"  # in meta: bodies were taken, and their space was not given back yet

_SQL = named("embedded.sql")


@dataclass
class Compacted:
    """What a compact did. Sizes are of the log's files, journal included."""

    moved: int = 0  # events that have lost their body
    bytes_before: int = 0
    bytes_after: int = 0


def compact(
    store: CheckpointStore, archive: Archive, *, hold_ms: int = HOLD_MS, progress: Callable[[int], None] | None = None
) -> Compacted:
    """Takes the bodies of superseded revisions out of an embedded log, as far as the archive has them, byte for byte.

    Headers and heads stay: positions, chains, `resolve`, retries, lists and reports are what they were. The bodies are read from the
    archive from then on, which the store remembers. It may be killed at any point and started again. Others may read and write meanwhile;
    only while the file is written anew at the end do writers wait. That needs room for twice what is left.

    Arguments:
        hold_ms: milliseconds; what was recorded later than that ago stays.
        progress: called with the number of archived events looked at.

    Raises `InvalidRequest` (the store is not embedded), `NotAStore` (there is no archive), `ConfigurationError` (it is another store's),
    `Corrupted` (a segment is damaged, or holds another event than the log), `AccessDenied`, `AuditUnavailable`, `Busy` or `StorageError`.
    What was taken by then stays taken.
    """
    with store.entrusted(Operation.COMPACT, Access(Operation.COMPACT, target=str(archive.directory))) as whole:
        return _compact(whole.log, archive, hold_ms, progress)


def _compact(log: Log, archive: Archive, hold_ms: int, progress: Callable[[int], None] | None) -> Compacted:
    if not isinstance(log, EmbeddedLog):
        raise InvalidRequest("store", "is on Kafka, where the broker compacts the topic", hint="Use `eventlog archive run`.")
    if type(hold_ms) is not int or hold_ms < 0:
        raise InvalidRequest("hold_ms", f"{hold_ms!r} is not a number of milliseconds")
    archive.require()
    archive.require_of(log.identity)
    remember(log.directory, archive.directory)  # before anything can be found nowhere else
    path = log.directory / LOG_FILE
    done = Compacted(bytes_before=_size(path))
    before = int(time.time() * 1000) - hold_ms
    looked = 0
    try:
        with closing(connect(path)) as connection:
            for rows in _batches(archive):
                done.moved += _move(connection, path, rows, before)
                looked += len(rows)
                if progress is not None:
                    progress(looked)
            if connection.execute(_SQL["noted"], (_DUE,)).fetchone() is not None:
                _give_back(connection)
    except sqlite3.Error as error:
        raise translate(error, path) from error
    done.bytes_after = _size(path)
    return done


def _batches(archive: Archive) -> Iterator[list[RevisionRow]]:
    batch: list[RevisionRow] = []
    size = 0
    for segment in archive.segments(0):
        for row in checked_rows(segment):
            batch.append(row)
            size += row.stored_size
            if len(batch) >= _ROWS or size >= _BYTES:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _move(connection: sqlite3.Connection, path: Path, rows: list[RevisionRow], before: int) -> int:
    """One transaction: every event is held against the archived one before its body goes."""
    archived = {row.offset: row for row in rows}
    moved = 0
    connection.execute("BEGIN IMMEDIATE")
    try:
        for found in connection.execute(_SQL["superseded"], (rows[0].offset, rows[-1].offset, before)).fetchall():
            position, checkpoint_id, revision, recorded_at, proof, event = found
            row = archived.get(position)
            sound = checksum(position, checkpoint_id, revision, recorded_at, event) == proof
            if row is None or (row.event, row.recorded_at) != (event, recorded_at) or not sound:
                problem = f"checkpoint {checkpoint_id} revision {revision} at position {position} is another event than the archived one"
                raise Corrupted(str(path), problem, hint="`eventlog verify` shows which of the two fits the chain.")
            stub = stub_of(event)
            if len(stub) < len(event):
                fresh = checksum(position, checkpoint_id, revision, recorded_at, stub)
                moved += connection.execute(_SQL["replace"], (stub, fresh, position, proof)).rowcount
        if moved:
            connection.execute(f"PRAGMA user_version = {FORMAT_WITH_STUBS}")
            connection.execute(_SQL["note"], (_DUE, "true"))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return moved


def _give_back(connection: sqlite3.Connection) -> None:
    """SQLite gives the file system nothing back but by writing the file anew. Killed in between, the next compact does it."""
    connection.execute("VACUUM")
    connection.execute(_SQL["forget"], (_DUE,))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _size(path: Path) -> int:
    return sum(each.stat().st_size for each in (path, Path(f"{path}-wal")) if each.exists())
