"""What a user would otherwise pick, each behind the same few calls, so that all are measured in the same way in the same run."""

from __future__ import annotations

from benchmarks.peers import (
    eventsourcing_sqlite,
    langgraph_postgres,
    langgraph_sqlite,
    plain_sqlite,
    postgres,
    redis_append_only,
    umadb_server,
)
from benchmarks.peers.peer import Peer

PEERS: tuple[type[Peer], ...] = (
    langgraph_sqlite.LangGraphSqlite,
    plain_sqlite.PlainSqlite,
    eventsourcing_sqlite.EventsourcingSqlite,
    postgres.Postgres,
    langgraph_postgres.LangGraphPostgres,
    redis_append_only.RedisAppendOnly,
    umadb_server.UmaDb,
)

__all__ = ["PEERS", "Peer"]
