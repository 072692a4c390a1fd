"""Which way a checkpoint goes: up, where the steps lead from what it is, or back, where it was migrated from last."""

from __future__ import annotations

from collections.abc import Iterable

from eventlog.checkpoint import Checkpoint
from eventlog.errors import InvalidRequest
from eventlog.recovery.carrying import CannotBeMigrated, Refusal, carried, carried_back, last_migration
from eventlog.recovery.migration_report import Selection
from eventlog.recovery.migrations import Migrations, Schema, schema_of
from eventlog.store import CheckpointStore


class Up:
    """Where each schema leads to; found out before anything is done."""

    tells_deleted = True

    def __init__(self, migrations: Migrations, selection: Selection, to: tuple[str, int] | None) -> None:
        self._migrations = migrations
        self._to = None if to is None else schema_of("to", to)
        starts = {step.from_: None for step in migrations.steps}
        if self._to is not None and not migrations.knows(self._to):
            raise InvalidRequest("to", f"no step leads to {self._to}")
        if selection.kind is not None and selection.kind not in {each.kind for each in starts}:
            raise InvalidRequest("kind", f"no step starts from {selection.kind}; steps start from {_named(starts)}")
        wanted = [each for each in starts if selection.kind in (None, each.kind)]
        self._ways = {start: way for start in wanted if (way := migrations.way(start, self._to))}
        self.kinds = sorted({start.kind for start in self._ways})

    def concerns(self, schema: Schema) -> bool:
        """Whether a checkpoint that is this has a way to go. Raises `CannotBeMigrated` where nothing leads on, and it has not arrived."""
        if schema in self._ways:
            return True
        if any(schema == way[-1].to for way in self._ways.values()) or (self._to is not None and self._migrations.way(self._to, schema)):
            return False  # it has arrived, or gone on from there
        raise CannotBeMigrated(Refusal.NO_WAY, f"no step starts from {schema}" + (f" towards {self._to}" if self._to else ""))

    def after(self, _store: CheckpointStore, found: Checkpoint) -> Checkpoint | None:
        """The revision that follows; None: there is nothing to do. Raises `CannotBeMigrated`."""
        return carried(self._migrations, self._ways[Schema(found.kind, found.schema_version)], found)


class Back:
    """What each checkpoint was migrated by last."""

    tells_deleted = False  # whether it was migrated, only its history would tell

    def __init__(self, migrations: Migrations, selection: Selection) -> None:
        self._migrations = migrations
        ends = {step.to: None for step in migrations.steps}
        if selection.kind is not None and selection.kind not in {each.kind for each in ends}:
            raise InvalidRequest("kind", f"no step leads to {selection.kind}; steps lead to {_named(ends)}")
        self._ends = frozenset(ends)
        self.kinds = sorted({each.kind for each in ends if selection.kind in (None, each.kind)})

    def concerns(self, schema: Schema) -> bool:
        """Whether these steps may have led here."""
        return schema in self._ends

    def after(self, store: CheckpointStore, found: Checkpoint) -> Checkpoint | None:
        """As for `Up`. What these steps did not migrate is nothing to undo."""
        schema = Schema(found.kind, found.schema_version)
        last = last_migration(store.history(found.id), found.revision)
        if last is None:
            return None
        try:
            way = self._migrations.way(last.origin, schema)
        except InvalidRequest as error:  # two ways have led here
            raise CannotBeMigrated(Refusal.NO_WAY, error.problem) from error
        if way is None:
            return None  # other steps have led here
        return carried_back(self._migrations, way, found, moved_on=found.revision > last.revision)


def _named(schemas: Iterable[Schema]) -> str:
    return ", ".join(sorted(map(str, schemas))) or "nothing"
