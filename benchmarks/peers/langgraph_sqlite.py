"""LangGraph's SqliteSaver."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

from benchmarks.peers.langgraph_steps import SaverSession
from benchmarks.peers.peer import Peer, Session


class LangGraphSqlite(Peer):
    """One saver, durable on every put; it has a lock of its own."""

    KEY = "saver"
    NAME = "LangGraph SqliteSaver"
    EMBEDDED = True

    @staticmethod
    def missing() -> str | None:
        installed = find_spec("langgraph") is not None and find_spec("langgraph.checkpoint.sqlite") is not None
        return None if installed else "langgraph-checkpoint-sqlite is not installed: pip install '.[bench]'"

    @contextmanager
    def running(self) -> Iterator[None]:
        from langgraph.checkpoint.sqlite import SqliteSaver

        # As `SqliteSaver.from_conn_string` connects.
        with closing(sqlite3.connect(self.directory / "saver.sqlite3", check_same_thread=False)) as connection:
            self._saver: Any = SqliteSaver(connection)
            self._saver.setup()
            connection.execute("PRAGMA synchronous = FULL")
            yield

    def session(self) -> nullcontext[Session]:
        return nullcontext(SaverSession(self._saver))
