"""What someone would write by hand: a compare-and-swap in SQLite. No model, no checks, no Avro, no hash, no compression, no retry."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext

import orjson

from benchmarks.peers.peer import Lost, Peer, Session, State


class PlainSqlite(Peer, Session):
    """A table of revisions, durable on every commit; callers take turns behind a lock."""

    KEY = "plain"
    NAME = "plain SQLite compare-and-swap"
    EMBEDDED = True

    @staticmethod
    def missing() -> str | None:
        return None

    @contextmanager
    def running(self) -> Iterator[None]:
        self._lock = threading.Lock()
        connection = sqlite3.connect(self.directory / "plain.sqlite3", isolation_level=None, check_same_thread=False)
        with closing(connection):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("CREATE TABLE checkpoints (id TEXT, revision INTEGER, payload BLOB, PRIMARY KEY (id, revision))")
            self._execute = connection.execute
            yield

    def session(self) -> nullcontext[Session]:
        return nullcontext(self)

    def commit(self, stream: str, expected: int | None, state: State) -> None:
        execute, payload = self._execute, orjson.dumps(state)
        with self._lock:
            execute("BEGIN IMMEDIATE")
            (current,) = execute("SELECT max(revision) FROM checkpoints WHERE id = ?", (stream,)).fetchone()
            if current != expected:
                execute("ROLLBACK")
                raise Lost(stream)
            execute("INSERT INTO checkpoints VALUES (?, ?, ?)", (stream, 0 if expected is None else expected + 1, payload))
            execute("COMMIT")

    def load(self, stream: str) -> object:
        found = self._execute("SELECT payload FROM checkpoints WHERE id = ? ORDER BY revision DESC LIMIT 1", (stream,)).fetchone()
        return orjson.loads(found[0])

    def history(self, stream: str) -> int:
        rows = self._execute("SELECT payload FROM checkpoints WHERE id = ? ORDER BY revision", (stream,))
        return len([orjson.loads(payload) for (payload,) in rows])
