"""Checkpoints of Runifold's, as an import and a migration leave them."""

from __future__ import annotations

from typing import Any

from eventlog import Checkpoint, CheckpointStore
from eventlog.recovery import Migrations, Selection, run_migration
from tests.recovery.migration_samples import built_in, sample, stored
from tests.recovery.schemas import conforms
from tests.store.samples import nothing_written


def migrated(store: CheckpointStore, kind: str, version: int, name: str) -> Checkpoint:
    """A sample as an import and a migration leave it."""
    first = stored(store, sample(kind, version, name, revision=4, labels={"imported_from": "runifold"}))
    report = run_migration(store, built_in(first.payload), Selection(ids=[first.id]))
    assert (report.moves.total(), report.refused) == (1, [])
    found = store.load(first.id)
    conforms(f"{found.kind}.v1", found.payload)
    return found


def refused(store: CheckpointStore, first: Checkpoint, migrations: Migrations | None = None) -> str:
    """Why a checkpoint is not migrated."""
    stored(store, first)
    with nothing_written(store):
        report = run_migration(store, migrations or built_in(first.payload), Selection(ids=[first.id]))
    (row,) = report.refused
    assert row.why.value in ("cannot_carry", "invalid_result")
    return row.detail


def changed(kind: str, name: str, **fields: Any) -> Checkpoint:
    """A sample with other fields."""
    version = 1 if kind == "runifold.agent" else 4
    made = sample(kind, version, name)
    return made.model_copy(update={"payload": {**made.payload, **fields}})
