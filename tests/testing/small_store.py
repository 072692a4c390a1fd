"""A store with the least that the contract asks for, as a stranger's may be."""

from __future__ import annotations

import threading
from typing import NamedTuple

from eventlog import Checkpoint, Conflict, NotFound


class Done(NamedTuple):
    event_id: str
    revision: int


class SmallStore:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, list[Checkpoint]] = {}

    def compare_and_swap(self, checkpoint: Checkpoint, expected: int | None) -> Done:
        with self._lock:
            rows = self._rows.get(checkpoint.id, [])
            if checkpoint.event_id not in {row.event_id for row in rows}:
                if not rows and expected is not None:
                    raise NotFound(checkpoint.id)
                actual = len(rows) - 1 if rows else None
                if (expected, checkpoint.revision) != (actual, len(rows)):
                    raise Conflict(checkpoint.id, expected=expected, actual=actual, proposed=checkpoint.revision)
                self._rows[checkpoint.id] = [*rows, checkpoint]
            return Done(checkpoint.event_id, checkpoint.revision)

    def load(self, checkpoint_id: str) -> Checkpoint:
        return self.history(checkpoint_id)[-1]

    def history(self, checkpoint_id: str) -> list[Checkpoint]:
        if checkpoint_id not in self._rows:
            raise NotFound(checkpoint_id)
        return self._rows[checkpoint_id]
