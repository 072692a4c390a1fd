"""What records of a log are to a projection: rows, gaps, or quarantined. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field

from eventlog import codec
from eventlog.errors import Corrupted, InvalidRequest, SchemaMismatch
from eventlog.event import EventHeader, misfit
from eventlog.ids import CheckpointId
from eventlog.log import Record
from eventlog.rules import Head, judge
from projections.engine import HeadRow
from projections.rows import GapRow, QuarantineRow, RevisionRow

QUARANTINED_BEFORE = "a record behind its last good revision breaks the rules"


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
    known_gaps: Container[tuple[int, int]] = (),
    encrypted: bool = False,
) -> Interpreted:
    """Judges records in the log's order against the heads before them.

    Arguments:
        heads_of: the current heads of the ids that it is given.
        blocked: the checkpoints that are quarantined already, and why.
        keep_events: whether rows carry the events' bytes.
        compacted_before: milliseconds of the log's clock; what was recorded earlier may have lost its predecessors to compaction.
        partition_of: where a checkpoint's records belong; None: there is one partition only.
        known_gaps: partition and offset of records that are known to stand behind a gap, whatever their age.
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
        compacted = record.recorded_at < compacted_before or (record.partition, record.offset) in known_gaps
        finding = judge(heads.get(header.checkpoint_id), header, compacted=compacted)
        if finding.fault is not None:
            _quarantine(found, blocked, record, header.checkpoint_id, finding.fault)
            continue
        if finding.missing is not None:
            found.gaps.append(GapRow(record.partition, record.offset, header.checkpoint_id, *finding.missing, "compaction"))
        found.rows.append(row_of(record, header, digest, keep_events=keep_events))
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


def row_of(record: Record, header: EventHeader, digest: bytes, *, keep_events: bool) -> RevisionRow:
    """A good record as a row."""
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
        len(record.value) if record.moved is None else record.moved,
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
