"""Checkpoints to write, and what became of writing them."""

from __future__ import annotations

from typing import Any

from eventlog.checkpoint import Checkpoint
from eventlog.errors import CheckpointError
from eventlog.ids import CheckpointId, EventId, RunId
from eventlog.testing.history import LogEntry
from eventlog.testing.recorder import log_of


def initial(payload: Any = None) -> Checkpoint:
    """Revision 0 of a checkpoint that nothing has used."""
    return Checkpoint.initial(CheckpointId.new(), RunId.new(), "test.contract", 1, {"step": 0} if payload is None else payload)


def stream(store: Any, revisions: int) -> list[Checkpoint]:
    """A committed checkpoint with so many revisions."""
    written = [initial()]
    store.compare_and_swap(written[0], None)
    for step in range(1, revisions):
        written.append(written[-1].next({"step": step}))
        store.compare_and_swap(written[-1], step - 1)
    return written


def numbered(checkpoint: Checkpoint, revision: int) -> Checkpoint:
    """The same checkpoint with another number, as another event."""
    return checkpoint.model_copy(update={"revision": revision, "event_id": EventId.new()})


def outcome(store: Any, checkpoint: Checkpoint, expected: int | None) -> Any:
    """A receipt or an error."""
    try:
        return store.compare_and_swap(checkpoint, expected)
    except CheckpointError as error:
        return error


def held(store: Any, checkpoint_id: str) -> list[tuple[int, str]]:
    """Revision and event id of everything that the store has of a checkpoint."""
    return [(each.revision, each.event_id) for each in log_of(store, [checkpoint_id])[checkpoint_id] if isinstance(each, LogEntry)]


def pairs(*written: Checkpoint) -> list[tuple[int, str]]:
    """The same of checkpoints."""
    return [(each.revision, each.event_id) for each in written]


def is_receipt(answer: Any, checkpoint: Checkpoint, *, duplicate: bool = False) -> bool:
    """Whether this acknowledges a checkpoint. `duplicate` is looked at where a store says it."""
    return (
        not isinstance(answer, BaseException | None)
        and (answer.event_id, answer.revision) == (checkpoint.event_id, checkpoint.revision)
        and getattr(answer, "duplicate", duplicate) == duplicate
    )
