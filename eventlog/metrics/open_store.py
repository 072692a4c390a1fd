"""An open store, as the metrics ask for its state."""

from __future__ import annotations

from eventlog.catalog import Catalog
from eventlog.log import Log
from eventlog.metrics.collected import Backlog


class OpenStore:
    """See `Watched`."""

    def __init__(self, log: Log, catalog: Catalog) -> None:
        self._log = log
        self._catalog = catalog

    def backlog(self) -> Backlog:
        """See `Watched.backlog`."""
        projection, quarantined = self._catalog.backlog()
        return Backlog(projection, self._log.unread(), quarantined)
