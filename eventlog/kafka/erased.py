"""Records of a topic, as they are read: whose they are, and those of erased checkpoints without their payloads."""

from __future__ import annotations

from collections.abc import Container, Sequence

from eventlog.codec import decode_header, without_body
from eventlog.errors import CheckpointError
from eventlog.event import EventType
from eventlog.log import Record


def without_erased(records: Sequence[Record], erased: Container[str]) -> list[Record]:
    """The records, those of erased checkpoints without their payloads, whether or not compaction has come by."""
    return [_emptied(record) if _checkpoint_of(record) in erased else record for record in records]


def _checkpoint_of(record: Record) -> str | None:
    if record.key is not None:
        return record.key.decode("ascii", "replace")
    return None if record.value is None else decode_header(record.value)[0].checkpoint_id  # from an archive, where every event decodes


def _emptied(record: Record) -> Record:
    try:
        return record if record.value is None or is_deletion(record) else record._replace(value=without_body(record.value))
    except CheckpointError:  # a foreign record under an erased key is none of ours; its bytes are not kept either
        return record._replace(value=b"")


def is_deletion(record: Record) -> bool:
    """Whether a record is a DELETED event."""
    try:
        return record.value is not None and decode_header(record.value)[0].type == EventType.DELETED
    except CheckpointError:
        return False


def is_sealed(record: Record) -> bool:
    """Whether a record is an event whose payload is encrypted."""
    try:
        return record.value is not None and decode_header(record.value)[0].encryption is not None
    except CheckpointError:
        return False
