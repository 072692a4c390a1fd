"""The eventsourcing package's recorder on SQLite: a unique (originator, version) is its compare-and-swap."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any
from uuid import UUID

import orjson

from benchmarks.peers.peer import Peer, Session, State


class EventsourcingSqlite(Peer, Session):
    """Its application recorder, which numbers all events as our log does. WAL, synchronous FULL (SQLite's default)."""

    KEY = "eventsourcing"
    NAME = "eventsourcing, SQLite"
    EMBEDDED = True

    @staticmethod
    def missing() -> str | None:
        return None if find_spec("eventsourcing") is not None else "eventsourcing is not installed: pip install '.[bench]'"

    @contextmanager
    def running(self) -> Iterator[None]:
        from eventsourcing.sqlite import SQLiteFactory

        factory = SQLiteFactory({"SQLITE_DBNAME": str(self.directory / "events.sqlite3"), "SQLITE_LOCK_TIMEOUT": "60"})
        self._recorder: Any = factory.application_recorder()
        try:
            yield
        finally:
            factory.close()

    def session(self) -> nullcontext[Session]:
        return nullcontext(self)

    def commit(self, stream: str, expected: int | None, state: State) -> None:
        from eventsourcing.persistence import StoredEvent

        version = 0 if expected is None else expected + 1
        self._recorder.insert_events([StoredEvent(UUID(stream), version, "bench:Committed", orjson.dumps(state))])

    def load(self, stream: str) -> object:
        (found,) = self._recorder.select_events(UUID(stream), desc=True, limit=1)
        return orjson.loads(found.state)

    def history(self, stream: str) -> int:
        return len([orjson.loads(event.state) for event in self._recorder.select_events(UUID(stream))])
