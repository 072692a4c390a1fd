"""A retry is not a conflict: whether an event in the log is the very one that is proposed again."""

from __future__ import annotations

from eventlog import codec, payload
from eventlog.checkpoint import Receipt, from_millis
from eventlog.errors import CheckpointError, EventIdReused
from eventlog.event import EventHeader
from eventlog.ids import EventId
from eventlog.position import Position
from eventlog.rules import Head, Proposal, rejection

# Not part of what the caller said: `actor` is who sends, the digest is salted anew, the rest says how the payload is stored.
_NOT_COMPARED = frozenset({"actor", "payload_digest", "payload_size", "encoding", "encryption", "previous_hash"})


def answer(
    head: Head, proposal: Proposal, stored: bytes | None, partition: int, offset: int, recorded_at: int
) -> Receipt | CheckpointError:
    """The original receipt when `stored`, the event of the proposed revision, is the proposed one; otherwise why it is refused.

    `stored` is None when the log no longer holds that revision: then nothing shows that this is a retry.
    """
    if stored is None:
        reused = head.event_id == proposal.event_id
        return (
            EventIdReused(proposal.checkpoint_id, event_id=proposal.event_id, differs="revision") if reused else rejection(head, proposal)
        )
    header, _ = codec.decode_header(stored)
    if header.event_id != proposal.event_id:
        if head.event_id == proposal.event_id:
            return EventIdReused(proposal.checkpoint_id, event_id=proposal.event_id, differs="revision")
        return rejection(head, proposal)
    differs = _difference(stored, header, proposal)
    if differs is not None:
        return EventIdReused(proposal.checkpoint_id, event_id=proposal.event_id, differs=differs)
    return receipt(header, partition, offset, recorded_at, duplicate=True)


def receipt(header: EventHeader, partition: int, offset: int, recorded_at: int, *, duplicate: bool = False) -> Receipt:
    """The receipt of an event that stands in the log."""
    place = Position.after(partition, offset)
    return Receipt(EventId.trusted(header.event_id), header.revision, place, from_millis(recorded_at), duplicate)


def _difference(stored: bytes, header: EventHeader, proposal: Proposal) -> str | None:
    proposed = codec.decode_draft(proposal.draft)
    for name, there, here in zip(header._fields, header, proposed.header, strict=True):
        if name not in _NOT_COMPARED and there != here:
            return name
    committed = codec.decode(stored)
    if not committed.salt or header.encryption is not None:
        return None  # the payload is gone or sealed; all that is left to compare agrees
    return None if payload.same_json(committed.json_text(), proposed.json_text()) else "payload"
