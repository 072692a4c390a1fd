"""The access log in the projection, where it can be asked about."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.errors import ConfigurationError, Corrupted, InvalidRequest, SchemaMismatch
from eventlog.ids import CheckpointId
from eventlog.position import Position
from eventlog.privacy.access_event import decode
from eventlog.privacy.access_log import AccessLog, AccessRecord
from projections.access import AccessBatch, apply_accesses, progress, retain
from projections.engine import Projection
from projections.rows import AccessRow

UNREADABLE = "unreadable"


def follow_accesses(log: AccessLog, projection: Projection) -> None:
    """Brings a projection up to the access log's end, and lets go in it of what retention has removed from the log.

    Killed at any instruction, it goes on where the last transaction ended. Raises `ConfigurationError` when the projection has followed
    another access log.
    """
    before = progress(projection)
    if before is not None and before.log_id != log.identity:
        raise ConfigurationError(
            f"the projection has followed the access log {before.log_id}; the store has {log.identity} now",
            hint="Find out who exchanged it: what the other one held is missing. `eventlog rebuild` starts with the new one.",
        )
    reached = Position.of({} if before is None else before.next_offsets)
    for records, following in log.read(reached):
        apply_accesses(projection, AccessBatch(log.identity, dict(following.offsets), rows_of(records)))
    retain(projection, dict(log.start().offsets))


def rows_of(records: Sequence[AccessRecord]) -> list[AccessRow]:
    """Records as the projection takes them. One that cannot be read, which only a foreign writer's can be, is a row that says so."""
    return [_row(record) for record in records]


def _row(record: AccessRecord) -> AccessRow:
    place = (record.partition, record.offset)
    try:
        sealed = decode(record.value)
        event = sealed.event
        ids = [None if each is None else CheckpointId(each) for each in (event.checkpoint_id, event.event_id)]
    except (SchemaMismatch, Corrupted, InvalidRequest) as error:
        unknown = (None,) * 8
        return AccessRow(*place, record.recorded_at, UNREADABLE, "", None, UNREADABLE, "failed", *unknown, str(error), "", 0, b"")
    return AccessRow(
        *place,
        event.at,
        event.subject,
        ",".join(event.roles),
        event.tenant,
        event.action,
        event.outcome.value,
        ids[0],
        event.revision,
        event.last_revision,
        ids[1],
        event.target,
        event.items,
        event.position,
        event.reason,
        event.detail,
        sealed.session,
        sealed.number,
        sealed.hash,
    )
