"""A line to a store on which requests and answers get lost, as when a connection breaks or a caller dies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eventlog.checkpoint import Checkpoint
from eventlog.errors import CheckpointError, OutcomeUnknown
from eventlog.ids import EventId


class Forgetful:
    """Wraps a store. Everything else than `compare_and_swap` and `delete` is the store's own.

    Arguments:
        store: the store.
        lose: asked at each write: "request" (nothing is written), "answer" (it is written, or refused, and nobody learns of it) or None.
            Either way the caller gets `OutcomeUnknown`.
    """

    def __init__(self, store: Any, *, lose: Callable[[], str | None]) -> None:
        self._store = store
        self._lose = lose

    def compare_and_swap(self, checkpoint: Checkpoint, expected: int | None, **options: Any) -> Any:
        """The store's, if nothing gets lost."""
        return self._send(checkpoint.id, checkpoint.event_id, lambda: self._store.compare_and_swap(checkpoint, expected, **options))

    def delete(self, checkpoint_id: str, expected: int, *, event_id: EventId, **options: Any) -> Any:
        """The store's, if nothing gets lost."""
        return self._send(checkpoint_id, event_id, lambda: self._store.delete(checkpoint_id, expected, event_id=event_id, **options))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _send(self, checkpoint_id: str, event_id: str, call: Callable[[], Any]) -> Any:
        lost = self._lose()
        if lost == "request":
            raise OutcomeUnknown(checkpoint_id, event_id=event_id, reason="the request was lost")
        if lost is None:
            return call()
        try:
            call()
        except CheckpointError as error:
            raise OutcomeUnknown(checkpoint_id, event_id=event_id, reason="the answer, a refusal, was lost") from error
        raise OutcomeUnknown(checkpoint_id, event_id=event_id, reason="the answer was lost")
