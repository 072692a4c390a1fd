"""A retry is not a conflict: whether an event in the log is the very one that is proposed again."""

from __future__ import annotations

from eventlog import codec, payload
from eventlog.checkpoint import Receipt, from_millis
from eventlog.errors import CheckpointError, EventIdReused, HistoryRemoved
from eventlog.event import EventHeader, EventType
from eventlog.ids import EventId
from eventlog.log import Record
from eventlog.position import Position
from eventlog.rules import Head, Proposal, rejection

# Not part of what the caller said: `actor` is who sends, the digest is salted anew, the rest says how the payload is stored.
_NOT_COMPARED = frozenset({"actor", "payload_digest", "payload_size", "encoding", "encryption", "previous_hash"})


def answer(head: Head, proposal: Proposal, stored: Record | None) -> Receipt | CheckpointError:
    """The original receipt when `stored`, the event of the proposed revision, is the proposed one; otherwise why it is refused.

    `stored` is None when the log does not hold that revision: then nothing shows that this is a retry.
    """
    if stored is None or stored.value is None:
        return reused(proposal) if head.event_id == proposal.event_id else rejection(head, proposal)
    header, _ = codec.decode_header(stored.value)
    if header.event_id != proposal.event_id:
        return reused(proposal) if head.event_id == proposal.event_id else rejection(head, proposal)
    differs = _difference(stored.value, header, proposal)
    if differs is not None:
        return EventIdReused(proposal.checkpoint_id, event_id=proposal.event_id, differs=differs)
    return receipt(header, stored, duplicate=True)


def reused(proposal: Proposal) -> EventIdReused:
    """The refusal of an event id that names another revision."""
    return EventIdReused(proposal.checkpoint_id, event_id=proposal.event_id, differs="checkpoint or revision")


def receipt(header: EventHeader, record: Record, *, duplicate: bool = False) -> Receipt:
    """The receipt of an event that stands in the log."""
    place = Position.after(record.partition, record.offset)
    return Receipt(EventId.trusted(header.event_id), header.revision, place, from_millis(record.recorded_at), duplicate)


def _difference(stored: bytes, header: EventHeader, proposal: Proposal) -> str | None:
    proposed = codec.decode_draft(proposal.draft)
    # A deletion says nothing but that; who repeats it has no earlier clock reading to repeat.
    ignored = _NOT_COMPARED | {"updated_at"} if header.type == EventType.DELETED else _NOT_COMPARED
    for name, there, here in zip(header._fields, header, proposed.header, strict=True):
        if name not in ignored and there != here:
            return name
    committed = codec.decode(stored)
    if header.type == EventType.DELETED:
        return None
    try:
        text = proposal.json_text(committed)
    except HistoryRemoved:
        return None  # the payload or its key is gone; all that is left to compare agrees
    return None if payload.same_json(text, proposal.json_text(proposed)) else "payload"
