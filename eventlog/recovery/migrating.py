"""Migrates the checkpoints of a store, or undoes it: plan, run, undo. What becomes of one checkpoint: `carrying.py`.

Each is one commit of its own by compare-and-swap. Beside live writers a lost race means: load anew, plan that checkpoint again. After a
kill the same call goes on where it was, since what is migrated already is nothing to migrate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from eventlog.catalog import CheckpointSummary
from eventlog.checkpoint import Checkpoint, Receipt
from eventlog.errors import CheckpointError, Conflict, Corrupted, Deleted, ErrorKind, InvalidRequest, NotFound, OutcomeUnknown, Quarantined
from eventlog.ids import CheckpointId
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.carrying import CannotBeMigrated, Refusal
from eventlog.recovery.migration_direction import Back, Up
from eventlog.recovery.migration_report import EVERYTHING, MigrationReport, Refused, Selection
from eventlog.recovery.migrations import Migrations, Schema
from eventlog.recovery.steps import Commit, Steps, check_store, drive
from eventlog.store import CheckpointStore

_PAGE = 500
_ATTEMPTS = 50  # lost races for one checkpoint before it is left to its writers
_UNREADABLE = frozenset({ErrorKind.HISTORY_REMOVED, ErrorKind.SCHEMA_MISMATCH, ErrorKind.INVALID_PAYLOAD})
# What is wrong with one revision and not with the store; the others go on.
_REFUSED = frozenset({ErrorKind.INVALID_PAYLOAD, ErrorKind.INVALID_REQUEST, ErrorKind.TOO_LARGE, ErrorKind.CONFLICT})


Progress = Callable[[MigrationReport], None]


class _Seen(NamedTuple):
    revision: int | None
    kind: str | None
    schema_version: int | None
    phase: str | None


_NOTHING = _Seen(None, None, None, None)


def plan_migration(
    store: CheckpointStore,
    migrations: Migrations,
    selection: Selection = EVERYTHING,
    *,
    to: tuple[str, int] | None = None,
    progress: Progress | None = None,
) -> MigrationReport:
    """What `run_migration` would do now. Takes every payload over every step, and writes nothing."""
    return _Migrating(store, migrations, selection, lambda: Up(migrations, selection, to)).look_at_each(progress)


def run_migration(
    store: CheckpointStore,
    migrations: Migrations,
    selection: Selection = EVERYTHING,
    *,
    to: tuple[str, int] | None = None,
    progress: Progress | None = None,
) -> MigrationReport:
    """Migrates each checkpoint by one MIGRATED revision, over all steps at once; its usage, labels, run and tenant stay, its history too.

    Arguments:
        selection: which checkpoints.
        to: how far; None: to where the steps end.
        progress: called after each checkpoint with the report so far.

    A checkpoint that cannot be migrated is in the report and stays as it is. Raises `InvalidRequest` before anything is done for steps that
    do not lead to one place by one way, and what the store raises when nothing can be written at all; run it again then.
    """
    return _Migrating(store, migrations, selection, lambda: Up(migrations, selection, to)).commit_each(
        Boundary.CHECKPOINT_MIGRATED, progress
    )


def plan_undo(
    store: CheckpointStore, migrations: Migrations, selection: Selection = EVERYTHING, *, progress: Progress | None = None
) -> MigrationReport:
    """What `undo_migration` would do now. Writes nothing."""
    return _Migrating(store, migrations, selection, lambda: Back(migrations, selection)).look_at_each(progress)


def undo_migration(
    store: CheckpointStore, migrations: Migrations, selection: Selection = EVERYTHING, *, progress: Progress | None = None
) -> MigrationReport:
    """Takes back what each checkpoint was migrated by last: one more MIGRATED revision, with its present payload in the earlier version.

    One that was written since is taken back too, if the earlier version can hold what it has come to; otherwise it is refused, and
    nothing is lost. Arguments and errors as for `run_migration`.
    """
    return _Migrating(store, migrations, selection, lambda: Back(migrations, selection)).commit_each(Boundary.MIGRATION_UNDONE, progress)


class _Migrating:
    """One call over many checkpoints."""

    def __init__(self, store: CheckpointStore, migrations: Migrations, selection: Selection, direction: Callable[[], Up | Back]) -> None:
        check_store("store", store, wants_async=False)
        if not isinstance(migrations, Migrations):
            raise InvalidRequest("migrations", f"must be Migrations, not {type(migrations).__name__}")
        if selection.limit is not None and (type(selection.limit) is not int or selection.limit < 1):
            raise InvalidRequest("limit", f"{selection.limit!r:.40} is not a number of checkpoints from 1 on")
        self._store = store
        self._selection = selection
        self._direction = direction()
        self._report = MigrationReport()
        self._seen = _NOTHING  # of the checkpoint that is looked at, for a refusal

    def look_at_each(self, progress: Progress | None) -> MigrationReport:
        """What would be done."""
        return self._each(None, progress)

    def commit_each(self, boundary: Boundary, progress: Progress | None) -> MigrationReport:
        """Does it."""
        return self._each(boundary, progress)

    def _each(self, boundary: Boundary | None, progress: Progress | None) -> MigrationReport:
        report, limit = self._report, self._selection.limit
        quarantined = self._store.catalog.quarantined()
        for checkpoint_id, listed in self._candidates():
            try:
                self._one(checkpoint_id, listed, checkpoint_id in quarantined, boundary)
            except CannotBeMigrated as error:
                report.refused.append(Refused(checkpoint_id, *self._seen, error.why, error.detail))
            if progress is not None:
                progress(report)
            if limit is not None and report.moves.total() >= limit:
                break
        return report

    def _candidates(self) -> Iterator[tuple[CheckpointId, CheckpointSummary | None]]:
        selection = self._selection
        if selection.ids is not None:
            for checkpoint_id in dict.fromkeys(CheckpointId(each) for each in selection.ids):
                yield checkpoint_id, None
            return
        for kind in self._direction.kinds:
            after: str | None = None
            while True:
                page = self._store.list(
                    kind=kind, tenant=selection.tenant, include_deleted=self._direction.tells_deleted, after=after, limit=_PAGE
                )
                for each in page.items:
                    yield each.id, each
                if page.next is None:
                    break
                after = page.next

    def _one(self, checkpoint_id: CheckpointId, listed: CheckpointSummary | None, quarantined: bool, boundary: Boundary | None) -> None:
        """Migrates one, or plans it. What is known of its schema from a list spares loading it."""
        report, selection = self._report, self._selection
        self._seen = _NOTHING if listed is None else _Seen(listed.revision, listed.kind, listed.schema_version, listed.phase)
        if listed is not None and not self._direction.concerns(Schema(listed.kind, listed.schema_version)):
            report.unchanged += 1
            return
        for attempt in range(_ATTEMPTS):
            with _named_if_unreadable():
                found = self._store.load(checkpoint_id)
            if attempt == 0 and (selection.tenant not in (None, found.tenant) or selection.kind not in (None, found.kind)):
                return
            schema = Schema(found.kind, found.schema_version)
            self._seen = _Seen(found.revision, *schema, found.phase)
            with _named_if_unreadable():
                after = self._direction.after(self._store, found) if self._direction.concerns(schema) else None
            if after is None:
                report.unchanged += 1
                return
            if quarantined:
                raise CannotBeMigrated(Refusal.QUARANTINED, "a record that breaks the rules stands behind its last good revision")
            receipt = None if boundary is None else self._committed(after, found.revision, boundary)
            if receipt is not None and receipt.duplicate:
                report.unchanged += 1  # another process was about the same, and first
                return
            if boundary is None or receipt is not None:
                report.moves[schema, Schema(after.kind, after.schema_version)] += 1
                return
            report.conflicts += 1
        raise CannotBeMigrated(Refusal.BUSY, f"others have written it first {_ATTEMPTS} times")

    def _committed(self, after: Checkpoint, expected: int, boundary: Boundary) -> Receipt | None:
        """Its receipt; None, when somebody else was first and it is to be planned again."""
        try:
            return drive(_commit_steps(self._store, after, expected, boundary))
        except (Conflict, NotFound):  # written or deleted since it was loaded
            return None
        except Quarantined as error:
            raise CannotBeMigrated(Refusal.QUARANTINED, error.reason) from error
        except OutcomeUnknown:
            return self._store.resolve(after)
        except CheckpointError as error:
            if error.kind in _REFUSED:
                raise CannotBeMigrated(Refusal.NOT_COMMITTED, str(error)) from error
            raise


@contextmanager
def _named_if_unreadable() -> Iterator[None]:
    """What is wrong with one checkpoint's revisions is no reason to stop before the others."""
    try:
        yield
    except Deleted as error:
        raise CannotBeMigrated(Refusal.DELETED, f"deleted at revision {error.last_revision}") from error
    except NotFound as error:
        raise CannotBeMigrated(Refusal.NOT_FOUND, "there is no such checkpoint") from error
    except CheckpointError as error:
        if error.kind in _UNREADABLE or isinstance(error, Corrupted):
            raise CannotBeMigrated(Refusal.UNREADABLE, str(error)) from error
        raise


def _commit_steps(store: CheckpointStore, after: Checkpoint, expected: int, boundary: Boundary) -> Steps[Receipt]:
    receipt: Receipt = yield Commit(store, after, expected, boundary, migrates=True)
    return receipt
