"""Serves the metrics over HTTP, for a process that has no endpoint of its own."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self
from wsgiref.simple_server import WSGIServer

from prometheus_client import start_http_server

from eventlog.errors import InvalidRequest, Unavailable
from eventlog.metrics.collected import registry


class MetricsServer:
    """`/metrics` at an address, from `start()` to `stop()`; as a context manager from one to the other."""

    def __init__(self, *, port: int, address: str) -> None:
        if type(port) is not int or not 0 <= port <= 65_535:
            raise InvalidRequest("port", f"{port!r:.40} is not within 0 to 65535")
        self._wanted = port
        self._address = address
        self._running: tuple[WSGIServer, threading.Thread] | None = None

    @property
    def port(self) -> int:
        """Where it listens; the one that was found where 0 was asked for."""
        return self._wanted if self._running is None else self._running[0].server_port

    def start(self) -> Self:
        """Begins to listen. Raises `Unavailable` when the address cannot be had. Starting it twice is harmless."""
        if self._running is None:
            try:
                self._running = start_http_server(self._wanted, addr=self._address, registry=registry())
            except OSError as error:
                where = f"{self._address}:{self._wanted}"
                raise Unavailable(where, f"cannot listen: {error.strerror or error}", hint="Choose another port.") from error
        return self

    def stop(self) -> None:
        """Ends it; no thread and no socket is left. Stopping it twice is harmless."""
        if self._running is not None:
            server, thread = self._running
            self._running = None
            server.shutdown()
            server.server_close()
            thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def serve_metrics(port: int, address: str = "127.0.0.1") -> MetricsServer:
    """Serves the metrics of all stores of this process at `http://address:port/metrics`, until `stop()` is called or the block is left.

    Arguments:
        port: 0 to 65535; 0: any free one, see `MetricsServer.port`.
        address: of this machine; only itself may ask by default. Whoever reaches it may read it: keep it off foreign networks.

    Raises `InvalidRequest`, and `Unavailable` when the address cannot be had.
    """
    return MetricsServer(port=port, address=address).start()
