"""From a log to a projection: records become rows, gaps and quarantined records, and a projection is kept current.

`interpret` is pure. `Projector` pulls from a log on demand (embedded); the Kafka log's tail pushes through the same function.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from eventlog import codec
from eventlog.diagnostics import Notice, tell, told_rebuild
from eventlog.errors import (
    Busy,
    CheckpointError,
    Corrupted,
    InvalidRequest,
    SchemaMismatch,
    StoreClosed,
)
from eventlog.event import EventHeader, misfit
from eventlog.ids import CheckpointId
from eventlog.log import LogIdentity, Record
from eventlog.position import Position
from eventlog.projection_errors import translated
from eventlog.rules import Head, judge
from projections.engine import HeadRow, Projection
from projections.errors import ProjectionDamaged, ProjectionError, ProjectionForeign, ProjectionLocked
from projections.rows import Batch, GapRow, QuarantineRow, RevisionRow
from projections.snapshot import private_copy, snapshot

PROJECTION_FILE = "projection.duckdb"
QUARANTINED_BEFORE = "a record behind its last good revision breaks the rules"
SNAPSHOT_FILE = "snapshot.duckdb"
_BATCH_ROWS = 2_000  # facts: appender batches of about 1000 and more; beyond 2000 nothing is gained


@dataclass(slots=True)
class Interpreted:
    """What a run of records turned out to be, and the heads behind it."""

    rows: list[RevisionRow] = field(default_factory=list)
    gaps: list[GapRow] = field(default_factory=list)
    quarantined: list[QuarantineRow] = field(default_factory=list)
    heads: dict[str, Head] = field(default_factory=dict)


def interpret(
    records: Sequence[Record],
    *,
    heads_of: Callable[[list[str]], Mapping[str, Head]],
    blocked: Mapping[str, str],
    keep_events: bool,
    compacted_before: int,
    partition_of: Callable[[str], int] | None = None,
    encrypted: bool = False,
) -> Interpreted:
    """Judges records in the log's order against the heads before them.

    Arguments:
        heads_of: the current heads of the ids that it is given.
        blocked: the checkpoints that are quarantined already, and why.
        keep_events: whether rows carry the events' bytes.
        compacted_before: milliseconds of the log's clock; what was recorded earlier may have lost its predecessors to compaction.
        partition_of: where a checkpoint's records belong; None: there is one partition only.
        encrypted: whether payloads must be sealed, or must not be.

    A record that cannot be read, stands under a wrong key, or breaks the rules is quarantined, and every later record of its
    checkpoint with it: what builds on a foreign record is not to be trusted either.
    """
    found = Interpreted()
    blocked = dict(blocked)
    decoded = [_decoded(record, partition_of, encrypted) for record in records]
    ids = {each[0].checkpoint_id for each in decoded if not isinstance(each, str)}
    heads = dict(heads_of(list(ids))) if ids else {}
    for record, each in zip(records, decoded, strict=True):
        if isinstance(each, str):
            _quarantine(found, blocked, record, checkpoint_of(record, partition_of), each)
            continue
        header, digest = each
        if header.checkpoint_id in blocked:
            _quarantine(found, blocked, record, header.checkpoint_id, f"behind a quarantined record: {blocked[header.checkpoint_id]}")
            continue
        finding = judge(heads.get(header.checkpoint_id), header, compacted=record.recorded_at < compacted_before)
        if finding.fault is not None:
            _quarantine(found, blocked, record, header.checkpoint_id, finding.fault)
            continue
        if finding.missing is not None:
            found.gaps.append(GapRow(record.partition, record.offset, header.checkpoint_id, *finding.missing, "compaction"))
        found.rows.append(_row(record, header, digest, keep_events))
        heads[header.checkpoint_id] = found.heads[header.checkpoint_id] = Head.of(
            header, digest, record.partition, record.offset, record.recorded_at
        )
    return found


def _decoded(record: Record, partition_of: Callable[[str], int] | None, encrypted: bool) -> tuple[EventHeader, bytes] | str:
    """The header and hash, or why there are none."""
    if record.damage is not None:
        return record.damage
    if record.value is None:
        return "a tombstone that no purge wrote"
    try:
        header, digest = codec.decode_header(record.value)
    except (Corrupted, SchemaMismatch) as error:
        return str(error)
    if record.key is not None and record.key != header.checkpoint_id.encode():
        return f"its key is not the id of its checkpoint {header.checkpoint_id}"
    if partition_of is not None and partition_of(header.checkpoint_id) != record.partition:
        return f"it belongs to partition {partition_of(header.checkpoint_id)}"
    return misfit(header, encrypted=encrypted) or (header, digest)


def checkpoint_of(record: Record, partition_of: Callable[[str], int] | None) -> str | None:
    """The checkpoint that a bad record stands in the way of: the one of its key, in whose partition compaction would keep it."""
    try:
        key = (record.key or b"").decode("ascii")
        checkpoint_id = CheckpointId(key)
    except (UnicodeDecodeError, InvalidRequest):
        return None
    elsewhere = partition_of is not None and partition_of(checkpoint_id) != record.partition
    return None if checkpoint_id != key or elsewhere else checkpoint_id


def _quarantine(found: Interpreted, blocked: dict[str, str], record: Record, checkpoint_id: str | None, reason: str) -> None:
    found.quarantined.append(
        QuarantineRow(record.partition, record.offset, record.recorded_at, checkpoint_id, reason, record.key, record.value)
    )
    if checkpoint_id is not None:
        blocked.setdefault(checkpoint_id, reason)


def _row(record: Record, header: EventHeader, digest: bytes, keep_events: bool) -> RevisionRow:
    assert record.value is not None
    return RevisionRow(
        record.partition,
        record.offset,
        record.recorded_at,
        header.checkpoint_id,
        header.revision,
        header.event_id,
        header.run_id,
        header.type,
        header.tenant,
        header.kind,
        header.schema_version,
        header.phase,
        header.updated_at,
        header.actor,
        header.labels,
        header.usage,
        header.payload_size,
        len(record.value),
        header.payload_digest,
        header.encoding,
        None if header.encryption is None else header.encryption["key_id"],
        digest,
        header.previous_hash,
        record.value if keep_events else None,
    )


def head_of_row(row: HeadRow | RevisionRow) -> Head:
    """The head that a projection keeps, or that a row on its way there will be."""
    return Head(
        row.checkpoint_id,
        row.event_id,
        row.type,
        row.tenant,
        row.run_id,
        row.revision,
        row.kind,
        row.schema_version,
        dict(row.usage),
        row.event_hash,
        row.partition,
        row.offset,
        row.recorded_at,
    )


def tell_quarantined(store: str, rows: Sequence[QuarantineRow]) -> None:
    """One notice a batch, with its first record. `doctor` says why: a reason may quote what a foreign record holds."""
    if rows:
        partition, offset, _, checkpoint_id, *_ = rows[0]
        tell(Notice.QUARANTINED, store=store, events=len(rows), checkpoint_id=checkpoint_id, partition=partition, offset=offset)


class Readable(Protocol):
    """The part of a log that a projection is built from."""

    @property
    def identity(self) -> LogIdentity: ...

    def read(self, after: Position) -> Iterable[tuple[Sequence[Record], Position]]: ...


class Followed(Readable, Protocol):
    """A log that a projection is kept current with."""

    def end(self) -> Position: ...


def follow(
    log: Readable,
    projection: Projection,
    *,
    keep_events: bool,
    compacted_before: Callable[[], int] = lambda: 0,
    partition_of: Callable[[str], int] | None = None,
    progress: Callable[[int], None] | None = None,
    quarantined: Callable[[Sequence[QuarantineRow]], None] | None = None,
) -> None:
    """Brings a projection up to the log's end. Killed at any instruction, it goes on where the last transaction ended.

    `progress` is called with the number of records of each batch, `quarantined` with those that are set aside. The other arguments are
    those of `interpret`; `compacted_before` is asked anew for each batch, since compaction goes on while the log is read.
    """

    def heads_of(ids: list[str]) -> dict[str, Head]:
        return {key: head_of_row(row) for key, row in projection.heads(ids, events=False).items()}

    before = projection.positions()
    blocked = dict.fromkeys(projection.quarantined_ids(), QUARANTINED_BEFORE)
    pending: list[Record] = []
    reached = Position.of(before)

    def apply() -> None:
        found = interpret(
            pending,
            heads_of=heads_of,
            blocked=blocked,
            keep_events=keep_events,
            compacted_before=compacted_before(),
            partition_of=partition_of,
            encrypted=log.identity.encrypted,
        )
        for each in found.quarantined:
            if each.checkpoint_id is not None:
                blocked.setdefault(each.checkpoint_id, each.reason)
        projection.apply(Batch(dict(reached.offsets), found.rows, found.gaps, found.quarantined))
        if quarantined is not None:
            quarantined(found.quarantined)
        if progress is not None:
            progress(len(pending))
        pending.clear()

    for records, reached in log.read(Position.of(before)):  # noqa: B007 - `apply` reads it
        pending.extend(records)
        if len(pending) >= _BATCH_ROWS:
            apply()
    if dict(reached.offsets) != before:
        apply()


class Projector:
    """Keeps the projection of an embedded log, brought up to the log's end whenever something is asked of it.

    The directory's projection belongs to one process. Another one that asks meanwhile builds a private one, from the last
    snapshot on, and throws it away when it closes; so does one that is there to look on (`private`), for as long as it likes.
    """

    def __init__(self, *, log: Followed, directory: Path, private: bool = False) -> None:
        self._log = log
        self._keeps_off = private
        self._directory = directory
        self._projection: Projection | None = None
        self._private: tempfile.TemporaryDirectory[str] | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._pid = os.getpid()

    def current(self) -> Projection:
        """The projection, with everything that was acknowledged before this call."""
        self._require_open()
        with self._lock, translated(self._directory):
            self._require_open()
            if self._projection is None:
                self._projection = self._open()
            with self._let_go_when_damaged():
                follow(self._log, self._projection, keep_events=False, quarantined=partial(tell_quarantined, "embedded"))
            return self._projection

    def rebuild(self, progress: Callable[[int], None] | None = None) -> None:
        """Builds the projection anew beside the old one and puts it in its place; reads go on meanwhile."""
        self._require_open()
        with self._lock, told_rebuild("embedded"), translated(self._directory):
            self._require_open()
            if self._projection is None:
                self._projection = self._open(rebuilding=True)
            if self._private is not None:
                raise Busy(str(self._directory), "the projection is in use by another process")
            draft = self._directory / f"rebuild-{PROJECTION_FILE}"
            discard_file(draft)
            new = self._make(draft).open()
            try:
                follow(self._log, new, keep_events=False, progress=progress)
            except BaseException:
                new.close()
                discard_file(draft)
                raise
            with self._let_go_when_damaged():
                self._projection.replace_with(new)
                follow(self._log, self._projection, keep_events=False)

    def backlog(self) -> tuple[int | None, int | None]:
        """How many offsets it is behind the log, and how many checkpoints are quarantined; None before anything was asked of it."""
        projection = None if self._closed or self._pid != os.getpid() else self._projection
        if projection is None:
            return None, None
        reached = projection.positions()
        behind = sum(max(0, end - reached.get(number, 0)) for number, end in self._log.end().offsets)
        return behind, len(projection.quarantined_ids())

    def close(self) -> None:
        """Writes the snapshot for others, and closes. In a forked child nothing is touched: the files are the parent's."""
        if self._pid != os.getpid():
            return
        with self._lock:
            self._closed = True
            projection, self._projection = self._projection, None
            if projection is not None:
                try:
                    with translated(self._directory):
                        if self._private is None:
                            snapshot(projection, self._directory / SNAPSHOT_FILE)
                finally:
                    projection.close()
            if self._private is not None:
                self._private.cleanup()

    @contextlib.contextmanager
    def _let_go_when_damaged(self) -> Iterator[None]:
        """A write that failed once makes DuckDB refuse all that follows: the next question opens the file anew, and its journal with it."""
        try:
            yield
        except ProjectionDamaged:
            projection, self._projection = self._projection, None
            assert projection is not None
            with contextlib.suppress(ProjectionError):  # of the same failure, which is on its way to the caller
                projection.close()
            if self._private is not None:
                self._private.cleanup()
                self._private = None
            raise

    def _require_open(self) -> None:
        if self._closed or self._pid != os.getpid():
            raise StoreClosed("the store is not open in this process", hint="Open the store in the process that uses it, after forking.")

    def _make(self, path: Path) -> Projection:
        identity = self._log.identity
        return Projection(path=path, store_id=identity.pinned, partitions=identity.partitions, keep_events=False)

    def _open(self, *, rebuilding: bool = False) -> Projection:
        path = self._directory / PROJECTION_FILE
        try:
            if self._keeps_off:
                return self._open_private()
            return self._make(path).open()
        except ProjectionLocked:
            return self._open_private()
        except (ProjectionDamaged, ProjectionForeign):
            if not rebuilding:
                raise
            discard_file(path)  # disposable, and the person has just asked for a new one
            return self._make(path).open()

    def _open_private(self) -> Projection:
        self._private = tempfile.TemporaryDirectory(prefix="eventlog-projection-")
        directory = Path(self._private.name)
        last = self._directory / SNAPSHOT_FILE
        if last.exists():
            with contextlib.suppress(ProjectionError, OSError, CheckpointError):  # a stale or foreign snapshot is only a slower start
                return self._make(private_copy(last, directory)).open()
            shutil.rmtree(directory)
            directory.mkdir()
        return self._make(directory / PROJECTION_FILE).open()


def discard_file(path: Path) -> None:
    """Removes a projection's file and journal, not its lock."""
    for each in path.parent.glob(f"{path.name}*"):
        if not each.name.endswith(".lock"):
            each.unlink(missing_ok=True)
