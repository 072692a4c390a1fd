"""Whether a log is what its writers made of it, and a projection what the log makes of it.

Reads the whole log in order and keeps one small entry a checkpoint, never an event.
"""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from eventlog import codec, payload
from eventlog.errors import CheckpointError, HistoryRemoved
from eventlog.event import CheckpointEvent, EventHeader, EventType, check_body, misfit
from eventlog.log import Record
from eventlog.position import Position
from eventlog.privacy.access_verification import verify_accesses
from eventlog.privacy.principals import Operation
from eventlog.projection_errors import translated
from eventlog.projector import checkpoint_of
from eventlog.rules import Head, judge
from eventlog.store import CheckpointStore, json_text_by
from projections.engine import Projection

MOST_FINDINGS = 200  # kept; all are counted

_REVISIONS = """
SELECT partition, "offset", checkpoint_id::VARCHAR, revision, event_hash FROM revisions
WHERE partition = $partition AND "offset" >= $first AND "offset" <= $last
"""
_HEADS = """
SELECT checkpoint_id::VARCHAR, partition, "offset", revision, event_hash FROM heads
WHERE $after IS NULL OR checkpoint_id > $after::UUID ORDER BY checkpoint_id LIMIT 2000
"""


class FaultKind(StrEnum):
    """What can be wrong."""

    UNREADABLE = "unreadable"  # not an event that this version can decode
    WRONG_KEY = "wrong key"
    WRONG_PARTITION = "wrong partition"  # not the one that its key belongs to: nobody looks for it there
    WRONG_DIGEST = "wrong digest"  # the body is not the one that the header speaks of
    WRONG_ENCRYPTION = "wrong encryption"  # in clear text in an encrypted store, or sealed in another
    BROKEN_RULE = "broken rule"  # the hash chain, the order of revisions, the identity: see `rules.judge`
    WRONG_PAYLOAD = "wrong payload"  # not JSON, or not of the stated size
    BEHIND_A_FAULT = "behind a fault"  # nothing wrong by itself, but what it builds on is
    ACCESS = "access log"  # it is not what its writers made of it
    PROJECTION = "projection"  # the read side says something else than the log


class Fault(NamedTuple):
    """One thing that is wrong. `position` is the record's own place, partition:offset; None for the projection as a whole."""

    position: str | None
    checkpoint_id: str | None
    kind: FaultKind
    problem: str


class MissingRevisions(NamedTuple):
    """Revisions that the log no longer holds: a fact, not a fault."""

    checkpoint_id: str
    first_revision: int
    last_revision: int


@dataclass
class Verification:
    """What a verification found. Of `faults` and `gaps` the first 200 are kept; the counts are of all."""

    events: int = 0
    checkpoints: int = 0
    payload_bytes: int = 0
    erased: int = 0  # payloads whose body was emptied or whose key was destroyed; everything else about them was checked
    sealed: int = 0  # encrypted payloads in a store that was opened without keys: all but what is in them was checked
    accesses: int = 0  # records of the access log, where there is one
    position: Position = field(default_factory=Position)  # how far the log was read
    faults: list[Fault] = field(default_factory=list)
    fault_counts: Counter[FaultKind] = field(default_factory=Counter)
    gaps: list[MissingRevisions] = field(default_factory=list)
    gap_count: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.fault_counts

    def first_of_each_kind(self) -> list[Fault]:
        """The first fault of each kind."""
        first: dict[FaultKind, Fault] = {}
        for fault in self.faults:
            first.setdefault(fault.kind, fault)
        return list(first.values())

    def add(self, fault: Fault) -> None:
        """Counts a fault; keeps it if it is the first of its kind or there is room."""
        if not self.fault_counts[fault.kind] or len(self.faults) < MOST_FINDINGS:
            self.faults.append(fault)
        self.fault_counts[fault.kind] += 1


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


def verify(store: CheckpointStore, *, progress: Callable[[int], None] | None = None) -> Verification:
    """Checks every event of a log, and the projection against it.

    Of each event: that it decodes, stands under its key and in its key's partition, matches its digest, continues its checkpoint's hash
    chain and keeps the rules, and that its payload is JSON of the stated size. Of the projection: that it holds the same revisions and
    heads at the same places.

    Arguments:
        progress: called with the number of events checked so far.

    Of the access log, where there is one, and what the projection has of it: see `verify_accesses`.

    Raises only when the log or the projection cannot be read at all, and `AccessDenied`.
    """
    with store.entrusted(Operation.VERIFY) as whole:
        return _verify(whole, progress)


def _verify(store: CheckpointStore, progress: Callable[[int], None] | None) -> Verification:
    found = Verification()
    with translated():
        projection = store.catalog.projection()
        reached = projection.positions()
    check = _LogCheck(found, store)
    seen: dict[int, int] = {}
    for records, _ in store.log.read(Position()):
        check.compacted_before = store.log.compacted_before()  # anew: compaction goes on while the log is read
        accepted = [place for record in records if (place := check.record(record)) is not None]
        for record in records:
            seen[record.partition] = record.offset + 1
        with translated():
            _compare_revisions(projection, accepted, records, reached, found)
        if progress is not None:
            progress(found.events)
    found.position = Position.of(seen)
    found.checkpoints = len(check.trails)
    with translated():
        _compare_heads(projection, check, reached, found)
    if store.recorder is not None:
        store.recorder.flush()
        with translated():
            for fault in verify_accesses(store.recorder.log, projection):
                if isinstance(fault, int):
                    found.accesses += fault
                else:
                    found.add(Fault(fault.position, None, FaultKind.ACCESS, fault.problem))
    return found


class _Place(NamedTuple):
    partition: int
    offset: int
    checkpoint_id: str
    revision: int
    hash: bytes


class _LogCheck:
    """The log by itself, event by event."""

    def __init__(self, found: Verification, store: CheckpointStore) -> None:
        self.trails: dict[bytes, _Trail] = {}
        self.compacted_before = 0
        self._found = found
        self._partition_of = store.log.partition_of
        self._encrypted = store.log.identity.encrypted
        self._json_text = json_text_by(store.keys)
        self._can_open = store.keys is not None and store.keys.can_open
        self._blocked: set[bytes] = set()  # read-only checkpoints, those included that have no good revision

    def record(self, record: Record) -> _Place | None:
        """Checks a record; where it stands when nothing is wrong with its header."""
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
        for kind, problem in self._body(event):
            found.add(Fault(at, checkpoint_id, kind, problem))
        return self._chain(record, event, at)

    def _chain(self, record: Record, event: CheckpointEvent, at: str) -> _Place | None:
        found, header = self._found, event.header
        key = UUID(header.checkpoint_id).bytes
        trail = self.trails.get(key)
        if key in self._blocked:
            found.add(Fault(at, header.checkpoint_id, FaultKind.BEHIND_A_FAULT, f"revision {header.revision} follows a broken rule"))
            return None
        finding = judge(
            None if trail is None else trail.head(header.checkpoint_id), header, compacted=record.recorded_at < self.compacted_before
        )
        if finding.fault is not None:
            found.add(Fault(at, header.checkpoint_id, FaultKind.BROKEN_RULE, finding.fault))
            self._blocked.add(key)
            return None
        if finding.missing is not None:
            found.gap_count += 1
            if len(found.gaps) < MOST_FINDINGS:
                found.gaps.append(MissingRevisions(header.checkpoint_id, *finding.missing))
        self.trails[key] = _trail(header, event.hash, record, trail)
        return _Place(record.partition, record.offset, header.checkpoint_id, header.revision, event.hash)

    def _block(self, record: Record) -> None:
        """A record that cannot be accepted makes the checkpoint of its key read-only, in that key's partition: as `interpret` has it."""
        checkpoint_id = checkpoint_of(record, self._partition_of)
        if checkpoint_id is not None:
            self._blocked.add(UUID(checkpoint_id).bytes)

    def _body(self, event: CheckpointEvent) -> Iterator[tuple[FaultKind, str]]:
        header = event.header
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


def _compare_revisions(
    projection: Projection, accepted: Sequence[_Place], records: Sequence[Record], reached: dict[int, int], found: Verification
) -> None:
    """A batch of the log against the rows of the same stretch. On Kafka the projection also holds what compaction has removed."""
    bounds: dict[int, tuple[int, int]] = {}
    for record in records:
        first, _ = bounds.get(record.partition, (record.offset, 0))
        bounds[record.partition] = (first, record.offset)
    there: dict[tuple[int, int], _Place] = {}
    for partition, (first, last) in bounds.items():
        for fields in projection.query(_REVISIONS, {"partition": partition, "first": first, "last": last}):
            there[fields[0], fields[1]] = _Place._make(fields)
    for place in accepted:
        if place.offset >= reached.get(place.partition, 0):
            continue  # committed after the projection was brought up to date
        row = there.get((place.partition, place.offset))
        at = f"{place.partition}:{place.offset}"
        if row is None:
            found.add(Fault(at, place.checkpoint_id, FaultKind.PROJECTION, f"lacks revision {place.revision}"))
        elif row != place:
            problem = f"has {_shown(row)}; the log has {_shown(place)}"
            found.add(Fault(at, place.checkpoint_id, FaultKind.PROJECTION, problem))
    in_log = {(record.partition, record.offset): None for record in records}
    for place in accepted:
        in_log.pop((place.partition, place.offset), None)
    for where in in_log.keys() & there.keys():
        found.add(Fault(f"{where[0]}:{where[1]}", there[where].checkpoint_id, FaultKind.PROJECTION, "accepted a record that is at fault"))


def _compare_heads(projection: Projection, check: _LogCheck, reached: dict[int, int], found: Verification) -> None:
    """Every head against the log's, then whether any is missing."""
    after: str | None = None
    matched = 0
    while rows := projection.query(_HEADS, {"after": after}):
        for checkpoint_id, partition, offset, revision, digest in rows:
            after = checkpoint_id
            trail = check.trails.get(UUID(checkpoint_id).bytes)
            if trail is None:
                found.add(
                    Fault(f"{partition}:{offset}", checkpoint_id, FaultKind.PROJECTION, "knows a checkpoint that the log does not hold")
                )
                continue
            if trail.offset >= reached.get(trail.partition, 0):
                continue  # it has moved on since the projection was brought up to date
            matched += 1
            if (trail.partition, trail.offset, trail.revision, trail.hash) != (partition, offset, revision, digest):
                problem = f"its head is revision {revision} at {partition}:{offset}"
                problem += f"; the log's is {trail.revision} at {trail.partition}:{trail.offset}"
                found.add(Fault(f"{partition}:{offset}", checkpoint_id, FaultKind.PROJECTION, problem))
    expected = sum(trail.offset < reached.get(trail.partition, 0) for trail in check.trails.values())
    if matched < expected:
        found.add(Fault(None, None, FaultKind.PROJECTION, f"lacks the heads of {expected - matched} checkpoints"))


def _shown(place: _Place) -> str:
    return f"revision {place.revision} of {place.checkpoint_id}, hash {place.hash.hex()[:12]}"


def _text(key: bytes | None) -> str | None:
    return None if key is None else key.decode("utf-8", "replace")[:80]
