"""The reference: a store in memory, under one lock, simple enough to be seen to be right. What it answers is what the suite asks for."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from uuid import UUID

from eventlog.checkpoint import Checkpoint, Receipt
from eventlog.errors import CheckpointError, Conflict, Deleted, EventIdReused, InvalidRequest, NotFound
from eventlog.ids import CheckpointId, EventId
from eventlog.position import Position
from eventlog.testing.store import Committed


class MemoryStore:
    """Commits checkpoints to a list. Safe to share between threads.

    It has the methods of `CheckpointStore` that the conformance suite asks for, with the same meaning. It does not check what a payload or
    a field holds, nor what a successor keeps; it knows neither tenants nor lists.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._log: list[Committed] = []

    def compare_and_swap(self, checkpoint: Checkpoint, expected: int | None) -> Receipt:
        """See `CheckpointStore.compare_and_swap`."""
        return self._commit(checkpoint, expected, "REVISION")

    def compare_and_swap_many(self, revisions: Iterable[tuple[Checkpoint, int | None]]) -> list[Receipt | CheckpointError]:
        """See `CheckpointStore.compare_and_swap_many`."""
        outcomes: list[Receipt | CheckpointError] = []
        for checkpoint, expected in revisions:
            try:
                outcomes.append(self.compare_and_swap(checkpoint, expected))
            except CheckpointError as error:
                outcomes.append(error)
        if not outcomes:
            raise InvalidRequest("revisions", "is empty")
        return outcomes

    def delete(self, checkpoint_id: CheckpointId | UUID | str, expected: int, *, event_id: EventId | UUID | str | None = None) -> Receipt:
        """See `CheckpointStore.delete`."""
        last = self._history(checkpoint_id)[-1].checkpoint
        return self._commit(last.model_copy(update={"revision": expected}).next(None, event_id=event_id), expected, "DELETED")

    def resolve(self, event: EventId | UUID | str | Checkpoint) -> Receipt | None:
        """See `CheckpointStore.resolve`."""
        event_id = event.event_id if isinstance(event, Checkpoint) else EventId(event)
        with self._lock:
            return next((_receipt(each) for each in self._log if each.checkpoint.event_id == event_id), None)

    def load(self, checkpoint_id: CheckpointId | UUID | str, *, revision: int | None = None, at: Position | None = None) -> Checkpoint:
        """See `CheckpointStore.load`."""
        found = [each for each in self._history(checkpoint_id) if at is None or at.covers(each.position)]
        if revision is not None:
            found = [each for each in found if each.checkpoint.revision == revision]
        if not found:
            raise NotFound(CheckpointId(checkpoint_id), revision=revision)
        if found[-1].type == "DELETED":
            raise Deleted(found[-1].checkpoint.id, last_revision=found[-1].checkpoint.revision)
        return found[-1].checkpoint.model_copy(deep=True)

    def history(self, checkpoint_id: CheckpointId | UUID | str) -> Iterator[Committed]:
        """See `CheckpointStore.history`."""
        return iter(self._history(checkpoint_id))

    def position(self) -> Position:
        """See `CheckpointStore.position`."""
        with self._lock:
            return Position(((0, len(self._log)),))

    def close(self) -> None:
        """There is nothing to let go of, and what was written stays: opening it again is using it again."""

    def _history(self, checkpoint_id: CheckpointId | UUID | str) -> list[Committed]:
        identity = CheckpointId(checkpoint_id)
        with self._lock:
            found = [each for each in self._log if each.checkpoint.id == identity]
        if not found:
            raise NotFound(identity)
        return found

    def _commit(self, checkpoint: Checkpoint, expected: int | None, kind: str) -> Receipt:
        identity, revision = checkpoint.id, checkpoint.revision
        with self._lock:
            for each in self._log:
                if each.checkpoint.event_id == checkpoint.event_id:
                    return _retried(each, checkpoint, kind)
            mine = [each for each in self._log if each.checkpoint.id == identity]
            actual = mine[-1].checkpoint.revision if mine else None
            if mine and mine[-1].type == "DELETED":
                raise Deleted(identity, last_revision=mine[-1].checkpoint.revision)
            if not mine and expected is not None:
                raise NotFound(identity)
            if expected != actual or revision != (0 if expected is None else expected + 1):
                raise Conflict(identity, expected=expected, actual=actual, proposed=revision)
            position = Position.after(0, len(self._log))
            self._log.append(Committed(checkpoint.model_copy(deep=True), kind, position, datetime.now(UTC)))
            return _receipt(self._log[-1])


def _retried(there: Committed, checkpoint: Checkpoint, kind: str) -> Receipt:
    ignored = {"updated_at"} if kind == "DELETED" else set()
    if there.type != kind or there.checkpoint.model_dump(exclude=ignored) != checkpoint.model_dump(exclude=ignored):
        raise EventIdReused(checkpoint.id, event_id=checkpoint.event_id, differs="content")
    return _receipt(there)._replace(duplicate=True)


def _receipt(there: Committed) -> Receipt:
    return Receipt(there.checkpoint.event_id, there.checkpoint.revision, there.position, there.recorded_at)
