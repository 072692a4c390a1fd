"""Reports, SQL, rebuild: what the projection answers, as far as a principal's roles go, and recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eventlog.archive.directory import Archive
from eventlog.catalog import ACCESS_REPORT, Catalog, Page
from eventlog.ids import CheckpointId
from eventlog.privacy.guard import Access, AccessGuard
from eventlog.privacy.principals import Operation
from eventlog.reading import RevisionReader
from eventlog.revision import Gap
from projections.database import Table
from projections.engine import Projection


class GuardedCatalog(Catalog):
    """The catalogue of a `PrincipalStore`; see `Catalog` for what each call does."""

    def __init__(self, catalog: Catalog, guard: AccessGuard, reader: RevisionReader) -> None:
        self._inner = catalog
        self._guard = guard
        self._reader = reader
        self.tenant = catalog.tenant
        self.keeps_gaps = catalog.keeps_gaps

    def list(self, **filters: Any) -> Page:
        """See `CheckpointStore.list`, which is the way to it."""
        limit = self._inner.tenant
        filters["tenant"] = filters.get("tenant") if limit is None else limit
        with self._guard.reading(Access(Operation.LIST, tenant=filters["tenant"])) as access:
            page = self._inner.list(**filters)
            access.items, access.position = len(page.items), str(page.position)
        return page

    def gaps(self, checkpoint_id: str) -> Sequence[Gap]:
        """See `Catalog.gaps`. Another tenant's checkpoint has none."""
        identity = CheckpointId(checkpoint_id)
        with self._guard.reading(Access(Operation.HISTORY, identity)):
            return () if self._reader.latest(identity) is None else self._inner.gaps(identity)

    def has_gaps(self) -> bool:
        """See `Catalog.has_gaps`."""
        self._guard.grant(Access(Operation.POSITION))
        return self._inner.has_gaps()

    def quarantined(self) -> frozenset[str]:
        """See `Catalog.quarantined`; of the principal's tenant alone, if they have one."""
        with self._guard.reading(Access(Operation.LIST, target="quarantined")) as access:
            found = self._inner.quarantined()
            if self.tenant is not None:
                found = frozenset(each for each in found if self._reader.latest(CheckpointId(each)) is not None)
            access.items = len(found)
        return found

    def report(self, name: str, parameters: Mapping[str, Any]) -> Table:
        """See `Catalog.report`."""
        operation = Operation.REPORT_ACCESS if name == ACCESS_REPORT else Operation.REPORT
        asked = Access(operation, parameters.get("checkpoint"), tenant=parameters.get("tenant"), target=name)
        with self._guard.reading(asked) as access:
            table = self._inner.report(name, parameters)
            access.items = len(table.rows)
        return table

    def sql(self, statement: str) -> Table:
        """See `Catalog.sql`."""
        with self._guard.reading(Access(Operation.SQL, target=statement)) as access:
            table = self._inner.sql(statement)
            access.items = len(table.rows)
        return table

    def rebuild(self, progress: Callable[[int], None] | None = None, *, archive: Archive | None = None) -> None:
        """See `Catalog.rebuild`."""
        with self._guard.writing(Access(Operation.REBUILD, target=None if archive is None else str(archive.directory))):
            self._inner.rebuild(progress, archive=archive)

    def rewrite(self, work: Callable[[Projection], None]) -> Sequence[Path]:
        """See `Catalog.rewrite`; what is done with it is recorded by `entrusted`."""
        self._guard.grant(Access(Operation.INTERNALS))
        return self._inner.rewrite(work)

    def backlog(self) -> tuple[int | None, int | None]:
        """See `Catalog.backlog`. It is of all tenants, and asked for by the metrics of the whole store."""
        self._guard.grant(Access(Operation.INTERNALS))
        return self._inner.backlog()

    def projection(self) -> Projection:
        """See `Catalog.projection`; what is done with it is recorded by `entrusted`."""
        self._guard.grant(Access(Operation.INTERNALS))
        return self._inner.projection()

    def limited(self, tenant: str | None) -> Catalog:
        """See `Catalog.limited`: one that asks nobody any more, so only for whoever may have the internals."""
        self._guard.grant(Access(Operation.INTERNALS))
        return self._inner.limited(tenant)

    def close(self) -> None:
        """The whole store's is closed."""
