"""Retention of the access log: what is older than somebody wants to keep it goes, and that it went is on record."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from eventlog.checkpoint import to_millis
from eventlog.errors import InvalidRequest
from eventlog.position import Position
from eventlog.privacy.guard import Access
from eventlog.privacy.principals import Operation
from eventlog.store import CheckpointStore


class Pruned(NamedTuple):
    """What went, and where the access log begins now."""

    removed: int
    start: Position


def prune_accesses(store: CheckpointStore, before: datetime) -> Pruned:
    """Removes the accesses that were recorded before a time, by the access log's own clock; the projection follows.

    It is recorded, durably, before anything goes: with the position at which the log begins from then on, which is what `verify` accepts
    as the reason for the missing beginning. Killed in between, it may be done again.

    Raises `AccessDenied`, `InvalidRequest` (nothing is recorded here; a time without zone), `AuditUnavailable`, `StorageError` or
    `Unavailable`.
    """
    millis = to_millis(before, "before")
    recorder = store.recorder
    if recorder is None:
        raise InvalidRequest("access", "this store records no accesses", hint="There is nothing to remove.")
    log = recorder.log
    start, now = log.start_at(millis), log.start()
    if now.covers(start):  # there is nothing so old
        start = now
    count = start.next_offset(0) - now.next_offset(0)
    access = Access(Operation.ACCESS_PRUNE, position=str(start), items=count, target=before.isoformat())
    with store.entrusted(Operation.ACCESS_PRUNE, access):
        recorder.flush()
        return Pruned(log.prune(start) if count else 0, start)
