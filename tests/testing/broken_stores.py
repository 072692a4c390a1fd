"""Stores with the faults that real ones have had. Each is the reference store with one thing done wrong."""

from __future__ import annotations

from typing import Any

from eventlog import Checkpoint, Conflict, Deleted, NotFound, Position, Receipt
from eventlog.testing.memory import MemoryStore
from eventlog.testing.store import Committed


class LastWriterWins(MemoryStore):
    """Looks before it writes, but not while it writes: two that looked at the same time both get through, and the last one stays."""

    def compare_and_swap(self, checkpoint: Checkpoint, expected: int | None) -> Receipt:
        try:
            return super().compare_and_swap(checkpoint, expected)
        except Conflict as error:
            if error.actual != checkpoint.revision:
                raise
        with self._lock:
            at = next(
                n
                for n, each in enumerate(self._log)
                if (each.checkpoint.id, each.checkpoint.revision) == (checkpoint.id, checkpoint.revision)
            )
            self._log[at] = self._log[at]._replace(checkpoint=checkpoint)
            return Receipt(checkpoint.event_id, checkpoint.revision, self._log[at].position, self._log[at].recorded_at)


class AcknowledgesBeforeWriting(MemoryStore):
    """Keeps what it has acknowledged in a buffer, where the next writer does not look; what cannot follow then is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._buffer: list[tuple[Checkpoint, int | None]] = []

    def compare_and_swap(self, checkpoint: Checkpoint, expected: int | None) -> Receipt:
        if len(self._buffer) >= 2:
            self.flush()
        end = self.position()
        self._buffer.append((checkpoint, expected))
        return Receipt(checkpoint.event_id, checkpoint.revision, end, checkpoint.updated_at)

    def flush(self) -> None:
        for checkpoint, expected in self._buffer:
            try:
                super().compare_and_swap(checkpoint, expected)
            except (Conflict, NotFound):
                continue
        self._buffer.clear()


class ForgetsOnRestart(MemoryStore):
    """The last write was not flushed when the machine went down."""

    def restart(self) -> None:
        self._log.pop()


class AppliesAConflict(MemoryStore):
    """Sends the event to the log before it compares, and finds out too late."""

    def compare_and_swap(self, checkpoint: Checkpoint, expected: int | None) -> Receipt:
        try:
            return super().compare_and_swap(checkpoint, expected)
        except Conflict as error:
            following = checkpoint.model_copy(update={"revision": 1 + (error.actual or 0)})
            super().compare_and_swap(following, error.actual)
            raise


class ResurrectsAfterDelete(MemoryStore):
    """Removes the rows instead of keeping the deletion; so the same id starts again."""

    def delete(self, checkpoint_id: Any, expected: int, *, event_id: Any = None) -> Receipt:
        receipt = super().delete(checkpoint_id, expected, event_id=event_id)
        self._log = [each for each in self._log if each.checkpoint.id != checkpoint_id]
        return receipt


class ReadsBehindADeletion(MemoryStore):
    """Loads from a cache that the deletion does not reach."""

    def load(self, checkpoint_id: Any, *, revision: int | None = None, at: Position | None = None) -> Checkpoint:
        try:
            return super().load(checkpoint_id, revision=revision, at=at)
        except Deleted as error:
            return super().load(checkpoint_id, revision=error.last_revision - 1)


class ReadsFromAReplica(MemoryStore):
    """Loads what was there before the last write."""

    def load(self, checkpoint_id: Any, *, revision: int | None = None, at: Position | None = None) -> Checkpoint:
        before = Position(((0, self.position().next_offset(0) - 1),))
        return super().load(checkpoint_id, revision=revision, at=at or before)


class GuessesAnOutcome(MemoryStore):
    """Answers a question about an event from what it last heard, not from the log."""

    def resolve(self, event: Any) -> Receipt | None:
        super().resolve(event)
        return None


class WritesARetryAgain(MemoryStore):
    """Does not know a retry when it sees one, and renumbers it to fit."""

    def compare_and_swap(self, checkpoint: Checkpoint, expected: int | None) -> Receipt:
        with self._lock:
            mine = [each for each in self._log if each.checkpoint.id == checkpoint.id]
            if any(each.checkpoint.event_id == checkpoint.event_id for each in mine):
                following = checkpoint.model_copy(update={"revision": len(mine)})
                self._log.append(Committed(following, "REVISION", Position.after(0, len(self._log)), checkpoint.updated_at))
                return Receipt(checkpoint.event_id, checkpoint.revision, Position.after(0, len(self._log)), checkpoint.updated_at)
        return super().compare_and_swap(checkpoint, expected)
