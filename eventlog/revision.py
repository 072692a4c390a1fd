"""What a read of the history gives: revisions as they were committed, and gaps where the log no longer has them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from eventlog import codec
from eventlog.checkpoint import Checkpoint, from_millis
from eventlog.errors import Corrupted
from eventlog.event import CheckpointEvent, EventType, checkpoint_of, to_checkpoint
from eventlog.log import Record
from eventlog.no_payload import PAYLOAD_ERASED, PAYLOAD_WITHHELD
from eventlog.position import Position

JsonText = Callable[[CheckpointEvent], bytes]  # from an event to the JSON text of its payload


class Revision(NamedTuple):
    """A committed revision: the checkpoint as it was, and how it came into the log."""

    # The payload of a DELETED event is None, an erased one `PAYLOAD_ERASED`; `PAYLOAD_WITHHELD` for whoever may see metadata only.
    checkpoint: Checkpoint
    type: EventType
    actor: str | None
    recorded_at: datetime  # the log's clock
    position: Position  # just behind the event
    hash: bytes
    previous_hash: bytes
    payload_size: int  # bytes of the JSON text
    as_of: Position | None = None  # the past that a read was resolved to, when it asked for one


class Gap(NamedTuple):
    """Revisions that the log no longer holds: reported, never bridged."""

    checkpoint_id: str
    first_revision: int
    last_revision: int
    reason: str  # compaction | import | archived (a compact has moved it to an archive that is not at hand) | unknown


def read_revision(
    record: Record, as_of: Position | None = None, json_text: JsonText | None = CheckpointEvent.json_text, *, trail: bool = False
) -> Revision:
    """The revision that a record holds; in a `trail`, an erased payload is `PAYLOAD_ERASED`.

    Raises `Corrupted`, `SchemaMismatch`, `HistoryRemoved` (an erased payload), or what `json_text`, which opens its payload, raises. None:
    `PAYLOAD_WITHHELD` stands in the place of the payload, which is neither decrypted nor decoded.
    """
    if record.damage is not None or record.value is None:
        raise Corrupted(f"{record.partition}:{record.offset}", record.damage or "there is no event")
    event = codec.decode(record.value)
    header = event.header
    if json_text is None:
        checkpoint = checkpoint_of(header, PAYLOAD_WITHHELD)
    elif trail and not event.salt and not event.stored:
        checkpoint = checkpoint_of(header, PAYLOAD_ERASED)
    else:
        checkpoint = to_checkpoint(header, b"null" if header.type == EventType.DELETED else json_text(event))
    return Revision(
        checkpoint,
        EventType(header.type),
        header.actor,
        from_millis(record.recorded_at),
        Position.after(record.partition, record.offset),
        event.hash,
        header.previous_hash,
        header.payload_size,
        as_of,
    )
