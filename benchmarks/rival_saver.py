"""LangGraph's SqliteSaver, used as its own runtime does: one thread, a new id a step, the state in the channels."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

try:
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.base.id import uuid6
    from langgraph.checkpoint.sqlite import SqliteSaver
except ImportError as error:
    MISSING: str | None = f"langgraph-checkpoint-sqlite is not installed ({error}): pip install '.[bench]'"
else:
    MISSING = None

NAME = "LangGraph SqliteSaver"


class Saver:
    """One SqliteSaver with one thread of checkpoints, durable on every put."""

    def __init__(self, directory: Path) -> None:
        # As `SqliteSaver.from_conn_string` connects.
        self._connection = sqlite3.connect(directory / "saver.sqlite3", check_same_thread=False)
        self.saver: Any = SqliteSaver(self._connection)
        self.saver.setup()
        self._connection.execute("PRAGMA synchronous = FULL")
        self.thread: Any = {"configurable": {"thread_id": "thread-1", "checkpoint_ns": ""}}
        self._config = self.thread
        self._template: dict[str, Any] = dict(empty_checkpoint())
        self._step = 0

    def put(self, state: dict[str, Any]) -> None:
        """Saves the next checkpoint of the thread."""
        step = self._step = self._step + 1
        checkpoint: dict[str, Any] = {
            **self._template,
            "id": str(uuid6(clock_seq=step)),
            "ts": datetime.now(UTC).isoformat(),
            "channel_values": state,
            "channel_versions": {"messages": step},
        }
        self._config = self.saver.put(self._config, checkpoint, {"source": "loop", "step": step, "parents": {}}, {"messages": step})

    def get(self) -> Any:
        """The thread's latest checkpoint, decoded."""
        return self.saver.get_tuple(self.thread)

    def all(self, limit: int) -> int:
        """Lists the thread's checkpoints, decoded; how many there were."""
        return len(list(self.saver.list(self.thread, limit=limit)))

    def close(self) -> None:
        self._connection.close()
