"""LangGraph's PostgresSaver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from benchmarks.peers import postgres_server
from benchmarks.peers.langgraph_steps import SaverSession
from benchmarks.peers.peer import Peer, Session


class LangGraphPostgres(Peer):
    """A saver and a connection a caller, as `from_conn_string` connects."""

    KEY = "postgres-saver"
    NAME = "LangGraph PostgresSaver"

    @staticmethod
    def missing() -> str | None:
        installed = find_spec("langgraph") is not None and find_spec("langgraph.checkpoint.postgres") is not None
        return postgres_server.missing() if installed else "langgraph-checkpoint-postgres is not installed: pip install '.[bench]'"

    @contextmanager
    def running(self) -> Iterator[None]:
        from langgraph.checkpoint.postgres import PostgresSaver

        with postgres_server.server(self.directory) as self._conninfo:
            with PostgresSaver.from_conn_string(self._conninfo) as saver:
                saver.setup()
            yield

    def bytes_on_disk(self) -> int:
        return postgres_server.bytes_of_tables(self._conninfo)

    @contextmanager
    def session(self) -> Iterator[Session]:
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(self._conninfo) as saver:
            yield SaverSession(saver)
