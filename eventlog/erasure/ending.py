"""DELETED events: what answers for an erased checkpoint for ever."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eventlog import codec
from eventlog.erasure.certificate import EndOf
from eventlog.errors import CheckpointError, Conflict, Corrupted, Deleted, NotFound
from eventlog.event import EventHeader, EventType, to_checkpoint
from eventlog.holds.refusals import Wanted
from eventlog.log import Log, Record
from eventlog.position import Position
from eventlog.proposing import propose
from eventlog.rules import Condition, Proposal
from eventlog.store import CheckpointStore

_ATTEMPTS = 20  # against a writer that commits without a pause
_PAGE = 200


def latest_header(store: CheckpointStore, checkpoint_id: str) -> EventHeader:
    """The header of a checkpoint's latest event, as of now, without its payload. Raises `NotFound`."""
    if store.log.place(checkpoint_id, at_least=None) is None:
        raise NotFound(checkpoint_id)
    return codec.decode_header(_event(store.log.latest(checkpoint_id), checkpoint_id))[0]


def end_all(store: CheckpointStore, checkpoint_ids: Sequence[str], *, actor: str, unheld: str | None = None) -> list[EndOf]:
    """Ends checkpoints by a DELETED event each, where they have none; the events that stand there now.

    By compare-and-swap: a writer that was faster is followed. With `unheld`, the reason for the erasure, only what no legal hold lies on:
    the log decides that with each event, so that a hold placed meanwhile is not overtaken. Raises what `CheckpointStore.delete` does.
    """
    left = list(checkpoint_ids)
    for _ in range(_ATTEMPTS):
        conflicts: list[Conflict] = []
        again: list[str] = []
        for start in range(0, len(left), _PAGE):
            headers = [latest_header(store, each) for each in left[start : start + _PAGE]]
            alive = [header for header in headers if header.type != EventType.DELETED]
            proposals = [_tombstone(store, header, actor)._replace(only_if=_unheld(store, header, unheld)) for header in alive]
            outcomes = store.log.append(proposals, timeout=store.timeout) if proposals else ()
            for proposal, outcome in zip(proposals, outcomes, strict=True):
                if isinstance(outcome, Conflict | Deleted):
                    conflicts += [outcome] if isinstance(outcome, Conflict) else []
                    again.append(proposal.checkpoint_id)
                elif isinstance(outcome, CheckpointError):
                    raise outcome
        if not again:
            return [_end_of(store, each) for each in checkpoint_ids]
        left = again
    raise conflicts[0]


def _unheld(store: CheckpointStore, header: EventHeader, reason: str | None) -> Condition | None:
    return None if reason is None else store._deleter.require_not_held(header, wanted=Wanted.ERASE, reason=reason)


def _tombstone(store: CheckpointStore, header: EventHeader, actor: str) -> Proposal:
    following = to_checkpoint(header, b"null").next(None, phase=header.phase)
    return propose(following, header.revision, actor=actor, max_event_bytes=store.log.max_event_bytes, event_type=EventType.DELETED)


def events_of(log: Log, checkpoint_id: str) -> Iterator[tuple[Record, EventHeader, bytes]]:
    """Every event of a checkpoint that the log or the projection has, with header and hash, oldest first."""
    after = -1
    while records := log.history(checkpoint_id, after=after, position=None, limit=_PAGE):
        for record in records:
            header, digest = codec.decode_header(_event(record, checkpoint_id))
            after = header.revision
            yield record, header, digest


def _end_of(store: CheckpointStore, checkpoint_id: str) -> EndOf:
    record = store.log.latest(checkpoint_id)
    header, digest = codec.decode_header(_event(record, checkpoint_id))
    assert record is not None
    position = str(Position.after(record.partition, record.offset))
    return EndOf(checkpoint_id, header.revision, position, record.recorded_at, header.actor, digest.hex())


def _event(record: Record | None, checkpoint_id: str) -> bytes:
    if record is None or record.value is None:
        raise Corrupted(f"checkpoint {checkpoint_id}", "its latest event cannot be read")
    return record.value
