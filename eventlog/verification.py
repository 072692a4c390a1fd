"""Whether a log is what its writers made of it, and a projection what the log makes of it.

Reads the whole log in order and keeps one small entry a checkpoint, never an event.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple
from uuid import UUID

from eventlog import codec, payload
from eventlog.archive.anchors import Anchor
from eventlog.archive.directory import Archive
from eventlog.archive.evidence import check_history
from eventlog.backup.record import origins_of
from eventlog.errors import CheckpointError, HistoryRemoved
from eventlog.event import CheckpointEvent, EventHeader, EventType, check_body, misfit
from eventlog.findings import MOST_FINDINGS, Fault, FaultKind, MissingRevisions, Verification
from eventlog.interpreting import checkpoint_of, row_of
from eventlog.log import Record
from eventlog.position import Position
from eventlog.privacy.access_verification import verify_accesses
from eventlog.privacy.data_keys import json_text_by
from eventlog.privacy.principals import Operation
from eventlog.privacy.recorder import AccessRecorder
from eventlog.projection_check import compare_heads, compare_rows
from eventlog.projection_errors import translated
from eventlog.rules import Head, judge
from eventlog.store import CheckpointStore
from projections.checking import HeadPlace, quarantined_places
from projections.engine import Projection
from projections.rows import RevisionRow


class _Trail(NamedTuple):
    """The small entry a checkpoint: what `judge` asks of a head, packed (about 600 bytes)."""

    type: str
    tenant: str
    run: bytes
    revision: int
    hash: bytes
    partition: int
    offset: int
    kind: str
    schema_version: int
    usage: dict[str, int]

    def head(self, checkpoint_id: str) -> Head:
        run = str(UUID(bytes=self.run))
        return Head(
            checkpoint_id,
            "",
            self.type,
            self.tenant,
            run,
            self.revision,
            self.kind,
            self.schema_version,
            self.usage,
            self.hash,
            self.partition,
            self.offset,
            0,
        )


def verify(
    store: CheckpointStore,
    *,
    archive: Archive | None = None,
    anchor: Anchor | None = None,
    progress: Callable[[int], None] | None = None,
) -> Verification:
    """Checks every event of a log, the projection against it, and what its archive and an anchor say of it.

    Of each event: that it decodes, stands under its key and in its key's partition, matches its digest, continues its checkpoint's hash
    chain and keeps the rules, and that its payload is JSON of the stated size. Of the projection: that it holds the same revisions and
    heads at the same places; on Kafka also what only it has, event by event. Of the archive: that every segment is as it was sealed and
    holds the log's events. Of the anchor: that the log is a continuation of the one that was anchored.

    Arguments:
        progress: called with the number of events checked so far.

    Of the access log, where there is one, and what the projection has of it: see `verify_accesses`.

    Raises `ConfigurationError` when the archive or the anchor is another store's, `AccessDenied`, `AuditUnavailable`, otherwise only when
    the log or the projection cannot be read at all.
    """
    with store.entrusted(Operation.VERIFY) as whole:
        return _verify(whole, archive, anchor, progress)


def _verify(store: CheckpointStore, archive: Archive | None, anchor: Anchor | None, progress: Callable[[int], None] | None) -> Verification:
    if archive is not None:
        archive.require_of(store.log.identity)
    if anchor is not None and anchor.store_id in origins_of(store):
        anchor = anchor._replace(store_id=store.log.identity.store_id)  # the same events, restored from a backup into a new topic
    if anchor is not None:
        anchor.require_of(store.log.identity)
    found = Verification()
    with translated():
        projection = store.catalog.projection()
        reached = projection.positions()
        quarantined = quarantined_places(projection)
    check = _LogCheck(found, store, quarantined=quarantined)
    seen: dict[int, int] = {}
    for records, _ in store.log.read(Position()):
        check.compacted_before = store.log.compacted_before()  # anew: compaction goes on while the log is read
        good = [row for record in records if (row := check.record(record)) is not None]
        for record in records:
            seen[record.partition] = record.offset + 1
        with translated():
            compare_rows(projection, good, records, reached, found)
        if progress is not None:
            progress(found.events)
    found.position = Position.of(seen)
    found.checkpoints = len(check.trails)
    with translated():
        expected = sum(trail.offset < reached.get(trail.partition, 0) for trail in check.trails.values())
        lost = check.is_blocked if store.catalog.keeps_gaps else lambda _: False
        compare_heads(projection, check.head_of, lost, expected, reached, found)
    check_history(store, found, archive=archive, anchor=anchor)
    if store.recorder is not None:
        _check_accesses(store.recorder, projection, found)
    return found


def _check_accesses(recorder: AccessRecorder, projection: Projection, found: Verification) -> None:
    recorder.flush()
    with translated():
        for fault in verify_accesses(recorder.log, projection):
            if isinstance(fault, int):
                found.accesses += fault
            else:
                found.add(Fault(fault.position, None, FaultKind.ACCESS, fault.problem))


class _LogCheck:
    """The log by itself, event by event."""

    def __init__(self, found: Verification, store: CheckpointStore, *, quarantined: frozenset[tuple[int, int]]) -> None:
        """`quarantined`: places of records that were judged before compaction took anything; now one might pass for what follows a gap."""
        self.trails: dict[bytes, _Trail] = {}
        self.compacted_before = 0
        self._found = found
        self._partition_of = store.log.partition_of
        self._encrypted = store.log.identity.encrypted
        self._json_text = json_text_by(store.keys)
        self._can_open = store.keys is not None and store.keys.can_open
        self._quarantined = quarantined
        self._blocked: set[bytes] = set()  # read-only checkpoints, those included that have no good revision

    def head_of(self, checkpoint_id: str) -> HeadPlace | None:
        """The last good revision of a checkpoint."""
        trail = self.trails.get(UUID(checkpoint_id).bytes)
        return None if trail is None else HeadPlace(checkpoint_id, trail.partition, trail.offset, trail.revision, trail.hash)

    def is_blocked(self, checkpoint_id: str) -> bool:
        """Whether a record that is at fault stands in a checkpoint's way."""
        return UUID(checkpoint_id).bytes in self._blocked

    def record(self, record: Record) -> RevisionRow | None:
        """Checks a record; the row that it makes when nothing is wrong with its header."""
        found = self._found
        found.events += 1
        at = f"{record.partition}:{record.offset}"
        if record.damage is not None:
            found.add(Fault(at, _text(record.key), FaultKind.UNREADABLE, record.damage))
            self._block(record)
            return None
        if record.value is None:
            found.add(Fault(at, _text(record.key), FaultKind.UNREADABLE, "a tombstone that no purge wrote"))
            self._block(record)
            return None
        try:
            event = codec.decode(record.value, verify=False)
        except CheckpointError as error:
            found.add(Fault(at, _text(record.key), FaultKind.UNREADABLE, str(error)))
            self._block(record)
            return None
        header = event.header
        checkpoint_id = header.checkpoint_id
        if record.key is not None and record.key != checkpoint_id.encode():
            found.add(Fault(at, checkpoint_id, FaultKind.WRONG_KEY, f"stands under the key {_text(record.key)!r}"))
            self._block(record)
            return None
        if self._partition_of(checkpoint_id) != record.partition:
            belongs = f"belongs to partition {self._partition_of(checkpoint_id)}"
            found.add(Fault(at, checkpoint_id, FaultKind.WRONG_PARTITION, belongs))
            return None
        problem = misfit(header, encrypted=self._encrypted)
        if problem is not None:
            found.add(Fault(at, checkpoint_id, FaultKind.WRONG_ENCRYPTION, problem))
            self._block(record)
            return None
        for kind, problem in self._body(event, moved=record.moved is not None):
            found.add(Fault(at, checkpoint_id, kind, problem))
        return self._chain(record, event, at)

    def _chain(self, record: Record, event: CheckpointEvent, at: str) -> RevisionRow | None:
        found, header = self._found, event.header
        key = UUID(header.checkpoint_id).bytes
        trail = self.trails.get(key)
        if key in self._blocked:
            found.add(Fault(at, header.checkpoint_id, FaultKind.BEHIND_A_FAULT, f"revision {header.revision} follows a broken rule"))
            return None
        compacted = record.recorded_at < self.compacted_before and (record.partition, record.offset) not in self._quarantined
        finding = judge(None if trail is None else trail.head(header.checkpoint_id), header, compacted=compacted)
        if finding.fault is not None:
            found.add(Fault(at, header.checkpoint_id, FaultKind.BROKEN_RULE, finding.fault))
            self._blocked.add(key)
            return None
        if finding.missing is not None:
            found.gap_count += 1
            if len(found.gaps) < MOST_FINDINGS:
                found.gaps.append(MissingRevisions(header.checkpoint_id, *finding.missing))
        self.trails[key] = _trail(header, event.hash, record, trail)
        return row_of(record, header, event.hash, keep_events=False)

    def _block(self, record: Record) -> None:
        """A record that cannot be accepted makes the checkpoint of its key read-only, in that key's partition: as `interpret` has it."""
        checkpoint_id = checkpoint_of(record, self._partition_of)
        if checkpoint_id is not None:
            self._blocked.add(UUID(checkpoint_id).bytes)

    def _body(self, event: CheckpointEvent, *, moved: bool) -> Iterator[tuple[FaultKind, str]]:
        header = event.header
        if moved:
            self._found.moved += 1
            return
        try:
            check_body(event, hashlib.sha256(event.salt + event.stored).digest())
        except CheckpointError as error:
            yield FaultKind.WRONG_DIGEST, str(error)
            return
        if header.type == EventType.DELETED:
            return
        if header.encryption is not None and not self._can_open:
            self._found.sealed += 1
            return
        try:
            payload.load_json(self._json_text(event))
        except HistoryRemoved:
            self._found.erased += 1
        except CheckpointError as error:
            yield FaultKind.WRONG_PAYLOAD, str(error)
        else:
            self._found.payload_bytes += header.payload_size


def _trail(header: EventHeader, digest: bytes, record: Record, before: _Trail | None) -> _Trail:
    run = UUID(header.run_id).bytes if before is None else before.run  # the same object: judged equal
    tenant = header.tenant if before is None else before.tenant
    return _Trail(
        str(EventType(header.type).value),
        tenant,
        run,
        header.revision,
        digest,
        record.partition,
        record.offset,
        sys.intern(header.kind),
        header.schema_version,
        header.usage,
    )


def _text(key: bytes | None) -> str | None:
    return None if key is None else key.decode("utf-8", "replace")[:80]
