"""UmaDB: an event store for dynamic consistency boundaries; a condition on the stream's tag is its compare-and-swap."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import orjson

from benchmarks.peers.peer import Lost, Peer, Session, State
from benchmarks.peers.server import free_port, serving


class UmaDb(Peer):
    """The server that its Python package brings, and a client a caller. What it expects is the position of the stream's last event."""

    KEY = "umadb"
    NAME = "UmaDB"

    @staticmethod
    def missing() -> str | None:
        return None if find_spec("umadb") is not None else "umadb is not installed: pip install '.[bench]'"

    @contextmanager
    def running(self) -> Iterator[None]:
        port = free_port()
        self._url = f"http://127.0.0.1:{port}"
        start = "from umadb.umadb_server_cli import main; main()"
        database = self.directory / "uma.db"
        command = [sys.executable, "-c", start, "--listen", f"127.0.0.1:{port}", "--db-path", str(database)]
        with serving(command, port, self.directory / "output"):
            yield

    @contextmanager
    def session(self) -> Iterator[Session]:
        from umadb import Client

        with Client(self._url) as client:
            yield _Session(client)


class _Session(Session):
    def __init__(self, client: Any) -> None:
        self._client = client
        self._last: dict[str, int] = {}

    def commit(self, stream: str, expected: int | None, state: State) -> None:
        from umadb import AppendCondition, Event, IntegrityError

        condition = AppendCondition(_of(stream), after=None if expected is None else self._last[stream])
        try:
            event = Event("Committed", orjson.dumps(state), [stream])
            self._last[stream] = self._client.append([event], condition)
        except IntegrityError as error:
            raise Lost(stream) from error

    def load(self, stream: str) -> object:
        (found,) = self._client.read(_of(stream), backwards=True, limit=1)
        return orjson.loads(found.event.data)

    def history(self, stream: str) -> int:
        return len([orjson.loads(found.event.data) for found in self._client.read(_of(stream))])


def _of(stream: str) -> Any:
    from umadb import Query, QueryItem

    return Query([QueryItem(tags=[stream])])
