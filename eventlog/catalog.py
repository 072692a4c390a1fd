"""Questions that the projection answers: lists, gaps, reports, SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from eventlog.archive.directory import Archive
from eventlog.archive.replay import ArchiveAndLog
from eventlog.checkpoint import from_millis
from eventlog.errors import InvalidRequest
from eventlog.ids import CheckpointId, EventId, RunId
from eventlog.position import Position
from eventlog.privacy.access_trail import follow_accesses
from eventlog.privacy.recorder import AccessRecorder
from eventlog.projection_errors import translated
from eventlog.projector import Archived
from eventlog.revision import Gap
from projections import heads, history, reports
from projections.database import Table
from projections.engine import Projection

ACCESS_REPORT = "access"


class CheckpointSummary(NamedTuple):
    """A checkpoint in a list: everything about its latest revision but the payload."""

    id: CheckpointId
    revision: int
    event_id: EventId
    run_id: RunId
    tenant: str
    kind: str
    schema_version: int
    phase: str | None
    labels: dict[str, str]
    usage: dict[str, int]
    actor: str | None
    updated_at: datetime
    recorded_at: datetime
    payload_size: int  # bytes of the JSON text
    position: Position
    deleted: bool


class Page(NamedTuple):
    """A page of a list. Pass `next` as `after` for the following one; None: this was the last."""

    items: tuple[CheckpointSummary, ...]
    next: str | None
    position: Position  # the cut through the log that the page shows


class CurrentProjection(Protocol):
    """Whatever keeps a projection."""

    def current(self) -> Projection: ...
    def backlog(self) -> tuple[int | None, int | None]: ...
    def rebuild(self, progress: Callable[[int], None] | None = None, archived: Archived | None = None) -> None: ...
    def rewrite(self, work: Callable[[Projection], None]) -> Sequence[Path]: ...
    def close(self) -> None: ...


class Catalog:
    """The read side, as the store uses it. Every answer holds at least what was acknowledged before the question."""

    def __init__(
        self, *, projector: CurrentProjection, keeps_gaps: bool, tenant: str | None, accesses: AccessRecorder | None = None
    ) -> None:
        self._projector = projector
        self.tenant = tenant
        self._accesses = accesses
        self.keeps_gaps = keeps_gaps  # an embedded log has none

    def limited(self, tenant: str | None) -> Catalog:
        """The same for one tenant. The whole store's closes it."""
        return Catalog(projector=self._projector, keeps_gaps=self.keeps_gaps, tenant=tenant, accesses=self._accesses)

    def list(self, *, at: Position | None, limit: int, after: str | None, run_id: UUID | str | None, **filters: Any) -> Page:
        """See `CheckpointStore.list`."""
        if type(limit) is not int or not 1 <= limit <= 1000:
            raise InvalidRequest("limit", f"{limit!r} is not within 1 to 1000")
        after = None if after is None else CheckpointId(after)
        run_id = None if run_id is None else RunId(run_id)
        with translated():
            projection = self._projector.current()
            position = Position.of(projection.positions()) if at is None else at
            rows = heads.list_heads(
                projection, after=after, limit=limit + 1, run_id=run_id, at=None if at is None else dict(at.offsets), **filters
            )
        items = tuple(_summary(row) for row in rows[:limit])
        return Page(items, items[-1].id if len(rows) > limit else None, position)

    def gaps(self, checkpoint_id: str) -> Sequence[Gap]:
        """What the log no longer holds of a checkpoint."""
        with translated():
            rows = history.gaps(self._projector.current(), checkpoint_id)
        return [Gap(checkpoint_id, row.first_revision, row.last_revision, row.reason) for row in rows]

    def has_gaps(self) -> bool:
        """Whether the log has lost anything, of whatever checkpoint."""
        if not self.keeps_gaps:
            return False
        with translated():
            return history.any_gap(self._projector.current())

    def quarantined(self) -> frozenset[str]:
        """The checkpoints that are read-only because of a record that breaks the rules, of all tenants."""
        with translated():
            return self._projector.current().quarantined_ids()

    def report(self, name: str, parameters: Mapping[str, Any]) -> Table:
        """Runs a report of `projections/reports/`, of the store's tenant only if it has one.

        Raises `InvalidRequest` for an unknown report or parameter.
        """
        if self.tenant is not None:
            if parameters.get("tenant", self.tenant) != self.tenant:
                raise InvalidRequest("tenant", f"is {parameters['tenant']} where this store is opened for {self.tenant}")
            parameters = {**parameters, "tenant": self.tenant}
        if name == ACCESS_REPORT and self._accesses is None:
            raise InvalidRequest(
                "report", "this store records no accesses", hint="Choose it when a store is made: --access buffered|strict."
            )
        with translated():
            return reports.run(self._projection(accesses=name == ACCESS_REPORT), name, dict(parameters))

    def sql(self, statement: str) -> Table:
        """Answers a SELECT over the documented views. Not a sandbox: for people who may read everything, so not for one tenant."""
        if self.tenant is not None:
            raise InvalidRequest("tenant", "SQL sees all tenants", hint="Open the store without a tenant, or use a report.")
        with translated():
            return self._projection(accesses=ACCESS_REPORT in statement.casefold()).sql(statement)

    def rebuild(self, progress: Callable[[int], None] | None = None, *, archive: Archive | None = None) -> None:
        """Makes the projection anew from the log, or from its archive and the log, and puts it in the place of the old one.

        Reads go on meanwhile. Raises `HistoryRemoved` when revisions would be lost, `Corrupted` naming a segment of the archive that is
        missing, altered or out of order, or an event of the log that is another than the archived one.
        """
        self._projector.rebuild(progress, None if archive is None else lambda log: ArchiveAndLog(archive, log))

    def rewrite(self, work: Callable[[Projection], None]) -> Sequence[Path]:
        """Has something taken out of the projection for good: `work`, while nothing else changes it, then its file and its snapshot are
        written anew. Returns the files. Raises `Busy` when another process has the projection, `StorageError`.
        """
        return self._projector.rewrite(work)

    def projection(self) -> Projection:
        """The projection itself, up to date: for `doctor`, `verify` and the tests."""
        return self._projector.current()

    def backlog(self) -> tuple[int | None, int | None]:
        """Events that the projection has yet to take, and quarantined checkpoints; None where that is not known without building it."""
        with translated():
            return self._projector.backlog()

    def close(self) -> None:
        self._projector.close()

    def _projection(self, *, accesses: bool) -> Projection:
        """The projection; with everything that the access log holds too where that is asked about. Whoever asks about something else may
        lack the right to read it (docs/kafka-security.md).
        """
        projection = self._projector.current()
        if accesses and self._accesses is not None:
            self._accesses.flush()
            follow_accesses(self._accesses.log, projection)
        return projection


def _summary(row: heads.HeadSummary) -> CheckpointSummary:
    return CheckpointSummary(
        CheckpointId.trusted(row.checkpoint_id),
        row.revision,
        EventId.trusted(row.event_id),
        RunId.trusted(row.run_id),
        row.tenant,
        row.kind,
        row.schema_version,
        row.phase,
        dict(row.labels),
        dict(row.usage),
        row.actor,
        from_millis(row.updated_at),
        from_millis(row.recorded_at),
        row.payload_size,
        Position.after(row.partition, row.offset),
        row.deleted,
    )
