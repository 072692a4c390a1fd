"""PostgreSQL with a revision check, every revision kept: what someone would write by hand with a server at hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from benchmarks.peers import postgres_server
from benchmarks.peers.peer import Lost, Peer, Session, State

_TABLE = "CREATE TABLE checkpoints (id uuid, revision bigint, payload bytea, PRIMARY KEY (id, revision))"
_SWAP = """
    INSERT INTO checkpoints
    SELECT %(id)s, %(next)s, %(payload)s
    WHERE coalesce((SELECT max(revision) FROM checkpoints WHERE id = %(id)s), -1) = %(next)s - 1
    ON CONFLICT DO NOTHING
"""


class Postgres(Peer):
    """A table of revisions in one statement a commit; a connection a caller."""

    KEY = "postgres"
    NAME = "PostgreSQL compare-and-swap"

    @staticmethod
    def missing() -> str | None:
        return postgres_server.missing()

    @contextmanager
    def running(self) -> Iterator[None]:
        with postgres_server.server(self.directory) as self._conninfo:
            with self._connected() as connection:
                connection.execute(_TABLE)
            yield

    def bytes_on_disk(self) -> int:
        return postgres_server.bytes_of_tables(self._conninfo)

    @contextmanager
    def session(self) -> Iterator[Session]:
        with self._connected() as connection:
            yield _Session(connection)

    def _connected(self) -> Any:
        import psycopg

        return psycopg.connect(self._conninfo, autocommit=True, prepare_threshold=0)


class _Session(Session):
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def commit(self, stream: str, expected: int | None, state: State) -> None:
        following = 0 if expected is None else expected + 1
        done = self._connection.execute(_SWAP, {"id": stream, "next": following, "payload": orjson.dumps(state)}, binary=True)
        if done.rowcount != 1:
            raise Lost(stream)

    def load(self, stream: str) -> object:
        query = "SELECT payload FROM checkpoints WHERE id = %s ORDER BY revision DESC LIMIT 1"
        return orjson.loads(self._connection.execute(query, (stream,), binary=True).fetchone()[0])

    def history(self, stream: str) -> int:
        query = "SELECT payload FROM checkpoints WHERE id = %s ORDER BY revision"
        return len([orjson.loads(payload) for (payload,) in self._connection.execute(query, (stream,), binary=True)])
