"""Redis with its append-only file flushed at every write, compare-and-swap in a script, every revision kept in a list."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import orjson

from benchmarks.bench import Stopwatch
from benchmarks.peers.peer import Lost, Peer, Session, State
from benchmarks.peers.server import free_port, serving
from benchmarks.row import Sample

_SWAP = "if redis.call('LLEN', KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end redis.call('RPUSH', KEYS[1], ARGV[2]) return 1"


class RedisAppendOnly(Peer):
    """One server; many callers share one event loop, which is how it is fastest from Python."""

    KEY = "redis"
    NAME = "Redis, append-only file, fsync always"

    @staticmethod
    def missing() -> str | None:
        if shutil.which("redis-server") is None:
            return "Redis is not installed: apt-get install redis-server"
        return None if find_spec("redis") is not None else "redis is not installed: pip install '.[bench]'"

    @contextmanager
    def running(self) -> Iterator[None]:
        self._port = free_port()
        options = {"bind": "127.0.0.1", "port": str(self._port), "dir": str(self.directory), "save": "", "appendonly": "yes"}
        options |= {"appendfsync": "always", "daemonize": "no"}
        command = ["redis-server", *(part for name, value in options.items() for part in (f"--{name}", value))]
        with serving(command, self._port, self.directory / "output"):
            yield

    @contextmanager
    def session(self) -> Iterator[Session]:
        from redis import Redis

        with Redis(host="127.0.0.1", port=self._port) as client:
            yield _Session(client)

    def many_callers(self, streams: Sequence[str], state: State, commits: int) -> Sample:
        return asyncio.run(self._many_callers(streams, state, commits))

    async def _many_callers(self, streams: Sequence[str], state: State, commits: int) -> Sample:
        from redis.asyncio import BlockingConnectionPool, Redis

        pool: Any = BlockingConnectionPool(host="127.0.0.1", port=self._port, max_connections=len(streams), timeout=60)
        client: Any = Redis(connection_pool=pool)
        swap = client.register_script(_SWAP)
        watch = Stopwatch()

        async def caller(stream: str) -> None:
            now = time.perf_counter()
            for length in range(max(1, commits // len(streams))):
                if await swap(keys=[stream], args=[length, orjson.dumps(state)]) != 1:
                    raise Lost(stream)
                now = watch.lap(now)

        started = time.perf_counter()
        try:
            await asyncio.gather(*[caller(stream) for stream in streams])
            watch.ran(time.perf_counter() - started)
        finally:
            await client.aclose()
            await pool.aclose()
        return watch.per_second()


class _Session(Session):
    def __init__(self, client: Any) -> None:
        self._client = client
        self._swap = client.register_script(_SWAP)

    def commit(self, stream: str, expected: int | None, state: State) -> None:
        if self._swap(keys=[stream], args=[0 if expected is None else expected + 1, orjson.dumps(state)]) != 1:
            raise Lost(stream)

    def load(self, stream: str) -> object:
        return orjson.loads(self._client.lindex(stream, -1))

    def history(self, stream: str) -> int:
        return len([orjson.loads(payload) for payload in self._client.lrange(stream, 0, -1)])
