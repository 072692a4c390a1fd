"""The embedded log's own purge: bodies leave the table, then every file of the log.

An update leaves the old bytes in free pages, in the write-ahead log, and beside the rows of a page that was rearranged. So the file is
written anew (VACUUM) and the write-ahead log is emptied; only then is anything claimed. `tests/erasure` looks for the bytes.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from eventlog import codec
from eventlog.embedded_files import BUSY_SECONDS, LOG_FILE, any_record_of, checksum, connect, translate
from eventlog.embedded_stub import is_stub
from eventlog.erasure.steps import Step, passed
from eventlog.errors import Busy, Corrupted
from eventlog.event import EventType
from eventlog.statements import named

_PAUSE = 0.05  # seconds between attempts to empty the write-ahead log while others read
_SQL = named("erasure/embedded.sql")


class Purged(NamedTuple):
    """What a purge did."""

    events: int  # of the checkpoints, their deletions not counted
    emptied: int  # of them, those that had a body in the log until now


def purge(directory: Path, checkpoint_ids: Sequence[str]) -> Purged:
    """Empties the bodies of all revisions of some deleted checkpoints, and writes the log's file anew. Harmless when it is done already.

    It may be killed at any point and started again. Writers wait while the file is written, which needs room for twice its size.

    Raises `Corrupted` (a row is not what was written), `Busy` (a reader does not let go) or `StorageError`.
    """
    path = directory / LOG_FILE
    events = emptied = 0
    try:
        with closing(connect(path)) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            for checkpoint_id in checkpoint_ids:
                seen, changed = _empty(connection, path, checkpoint_id)
                events, emptied = events + seen, emptied + changed
            passed(Step.LOG_EMPTIED)
            connection.execute("VACUUM")
            _empty_journal(connection, path)
    except sqlite3.Error as error:
        raise translate(error, path) from error
    passed(Step.LOG_REWRITTEN)
    return Purged(events, emptied)


def _empty(connection: sqlite3.Connection, path: Path, checkpoint_id: str) -> tuple[int, int]:
    """One transaction a checkpoint."""
    events = emptied = 0
    after = -1
    connection.execute("BEGIN IMMEDIATE")
    try:
        while rows := connection.execute(_SQL["events"], (checkpoint_id, after)).fetchall():
            after = rows[-1][2]
            for row in rows:
                position, _, revision, recorded_at, proof, stored = row
                record = any_record_of(row)
                if record.damage is not None or record.value is None:
                    raise Corrupted(str(path), f"checkpoint {checkpoint_id} revision {revision}: {record.damage}")
                header, _ = codec.decode_header(record.value)
                if header.type == EventType.DELETED:
                    continue
                events += 1
                bare = codec.without_body(record.value)
                if bare != stored:
                    fresh = checksum(position, checkpoint_id, revision, recorded_at, bare)
                    changed = connection.execute(_SQL["replace"], (bare, fresh, position, proof)).rowcount
                    emptied += changed if not is_stub(stored) else 0
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return events, emptied


def _empty_journal(connection: sqlite3.Connection, path: Path) -> None:
    """The write-ahead log is moved into the file, and cut to nothing: old pages stand in it until then. Whoever reads is waited for."""
    deadline = time.monotonic() + BUSY_SECONDS
    while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        if time.monotonic() > deadline:
            raise Busy(str(path), "somebody reads without end, so that the write-ahead log cannot be emptied")
        time.sleep(_PAUSE)
