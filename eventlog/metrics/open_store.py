"""An open store: the metrics ask it for its state, and its opening and closing are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from eventlog.catalog import Catalog
from eventlog.diagnostics import Notice, tell
from eventlog.log import Log
from eventlog.metrics.collected import Backlog, metrics_of


class OpenStore:
    """See `Watched`."""

    def __init__(self, log: Log, catalog: Catalog) -> None:
        self._log = log
        self._catalog = catalog
        self._store_id = log.identity.store_id

    def opened(self) -> None:
        """From now on its state is reported."""
        metrics_of(self._log.kind).opened(self)
        tell(Notice.STORE_OPENED, store=self._log.kind, store_id=self._store_id)

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Around the closing of its parts. A store that was closed before, or whose parts are another one's, has nothing to tell."""
        was_open = metrics_of(self._log.kind).closed(self)
        yield
        if was_open:
            tell(Notice.STORE_CLOSED, store=self._log.kind, store_id=self._store_id)

    def backlog(self) -> Backlog:
        """See `Watched.backlog`."""
        projection, quarantined = self._catalog.backlog()
        return Backlog(projection, self._log.unread(), quarantined)
