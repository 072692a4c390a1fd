"""What someone would write by hand: a compare-and-swap in SQLite. No model, no checks, no Avro, no hash, no compression, no retry."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import orjson

NAME = "plain SQLite compare-and-swap"


class Plain:
    """A table of revisions, durable on every commit."""

    def __init__(self, directory: Path) -> None:
        self._connection = sqlite3.connect(directory / "plain.sqlite3", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE checkpoints (id TEXT, revision INTEGER, payload BLOB, PRIMARY KEY (id, revision))")

    def swap(self, checkpoint_id: str, expected: int | None, state: dict[str, Any]) -> bool:
        """Commits the successor of `expected`; whether it won."""
        execute = self._connection.execute
        payload = orjson.dumps(state)
        execute("BEGIN IMMEDIATE")
        (current,) = execute("SELECT max(revision) FROM checkpoints WHERE id = ?", (checkpoint_id,)).fetchone()
        if current != expected:
            execute("ROLLBACK")
            return False
        execute("INSERT INTO checkpoints VALUES (?, ?, ?)", (checkpoint_id, 0 if expected is None else expected + 1, payload))
        execute("COMMIT")
        return True

    def close(self) -> None:
        self._connection.close()
