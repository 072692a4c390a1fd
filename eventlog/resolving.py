"""What became of an event whose outcome was unclear: answered from the log, never from a guess."""

from __future__ import annotations

from uuid import UUID

from eventlog.catalog import Catalog
from eventlog.checkpoint import Checkpoint, Receipt
from eventlog.codec import decode_header
from eventlog.errors import HistoryRemoved, OutcomeUnknown
from eventlog.ids import EventId
from eventlog.log import Log, Record
from eventlog.reading import RevisionReader
from eventlog.retry import receipt


def resolved(event: EventId | UUID | str | Checkpoint, *, log: Log, catalog: Catalog, reader: RevisionReader) -> Receipt | None:
    """See `CheckpointStore.resolve`, which has settled it in the log."""
    if isinstance(event, Checkpoint):
        event_id: str = event.event_id
        if reader.latest(event.id) is None:
            return None
        record = _at_its_place(event, log)
    else:
        event_id = EventId(event)
        record = log.by_event_id(event_id)
        if record is None and catalog.has_gaps():
            reason = "compaction has removed revisions from the log, and nothing shows whether it was one of them"
            raise OutcomeUnknown(None, event_id=event_id, reason=reason)
    if record is None:
        return None
    assert record.value is not None
    header, _ = decode_header(record.value)
    if header.event_id != event_id or not reader.visible(header.tenant):
        return None
    return receipt(header, record)


def _at_its_place(event: Checkpoint, log: Log) -> Record | None:
    try:
        return log.revision(event.id, event.revision)
    except HistoryRemoved as error:
        reason = f"revision {event.revision} was removed from the log ({error.reason}): nothing shows which event it was"
        raise OutcomeUnknown(event.id, event_id=event.event_id, reason=reason) from error
