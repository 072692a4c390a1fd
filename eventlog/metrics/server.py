"""Serves the metrics over HTTP, for a process that has no endpoint of its own."""

from __future__ import annotations

import contextlib
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server

from eventlog.errors import InvalidRequest, Unavailable
from eventlog.metrics.collected import registry
from eventlog.metrics.survey import MarginOf, Survey
from eventlog.privacy.principals import Operation

if TYPE_CHECKING:
    from eventlog.store import CheckpointStore


class MetricsServer:
    """`/metrics` at an address, from `start()` to `stop()`; as a context manager from one to the other."""

    def __init__(self, *, port: int, address: str, store: CheckpointStore | None = None, archive_margin: MarginOf | None = None) -> None:
        if type(port) is not int or not 0 <= port <= 65_535:
            raise InvalidRequest("port", f"{port!r:.40} is not within 0 to 65535")
        self._wanted = port
        self._address = address
        self._store = store
        self._archive_margin = archive_margin
        self._running: tuple[WSGIServer, threading.Thread, contextlib.ExitStack] | None = None

    @property
    def port(self) -> int:
        """Where it listens; the one that was found where 0 was asked for."""
        return self._wanted if self._running is None else self._running[0].server_port

    def start(self) -> Self:
        """Begins to listen. Raises `Unavailable` when the address cannot be had, and `AccessDenied`. Starting it twice is harmless."""
        if self._running is None:
            with contextlib.ExitStack() as lent:
                served = self._served(lent)
                try:
                    server, thread = start_http_server(self._wanted, addr=self._address, registry=served)
                except OSError as error:
                    where = f"{self._address}:{self._wanted}"
                    raise Unavailable(where, f"cannot listen: {error.strerror or error}", hint="Choose another port.") from error
                self._running = server, thread, lent.pop_all()
        return self

    def stop(self) -> None:
        """Ends it; no thread and no socket is left. Stopping it twice is harmless."""
        if self._running is not None:
            server, thread, lent = self._running
            self._running = None
            server.shutdown()
            server.server_close()
            thread.join()
            lent.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _served(self, lent: contextlib.ExitStack) -> CollectorRegistry:
        """What the process counts, and what a survey of the store finds. That it is looked over is on record once, not at each scrape."""
        if self._store is None:
            return registry()
        whole = lent.enter_context(self._store.entrusted(Operation.DOCTOR))
        whole.catalog.projection()  # whatever keeps it, or the archive, from being read is said now, not at each scrape
        if self._archive_margin is not None:
            self._archive_margin(whole)
        both = CollectorRegistry(auto_describe=False)
        both.register(registry())
        both.register(Survey(whole, archive_margin=self._archive_margin))
        return both


def serve_metrics(
    port: int,
    address: str = "127.0.0.1",
    *,
    store: CheckpointStore | None = None,
    archive_margin: MarginOf | None = None,
) -> MetricsServer:
    """Serves the metrics of all stores of this process at `http://address:port/metrics`, until `stop()` is called or the block is left.

    Arguments:
        port: 0 to 65535; 0: any free one, see `MetricsServer.port`.
        address: of this machine; only itself may ask by default. Whoever reaches it may read it: keep it off foreign networks.
        store: is asked besides, each time, for the runs that are open in it and the number of its checkpoints. Opened for all tenants, and
            closed after this.
        archive_margin: is asked, with that store, how far its archive is ahead of compaction (`eventlog.archive.margin`).

    Raises `InvalidRequest`, `Unavailable` when the address cannot be had, `AccessDenied` for a principal who may not look the store over,
    and what the store raises when it cannot be asked.
    """
    if store is None and archive_margin is not None:
        raise InvalidRequest("archive_margin", "is that of a store, and there is none")
    if store is not None and store.tenant is not None:
        raise InvalidRequest("store", f"is opened for {store.tenant} alone", hint="Open it without a tenant: metrics see all of them.")
    return MetricsServer(port=port, address=address, store=store, archive_margin=archive_margin).start()
