"""What is planted in a store before an erasure, and how it is looked for afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import duckdb

from eventlog import Checkpoint, CheckpointStore, RunId
from eventlog.archive.directory import Archive
from eventlog.archive.running import Limits, run_archive
from eventlog.privacy.data_keys import unwrapped
from projections.archive import read_segment
from tests.archive.samples import noise
from tests.privacy.conftest import keys_of
from tests.privacy.test_byte_scan import found_in
from tests.store.samples import initial

SMALL, LARGE, LATE, OTHERS = "PLANTED-small-7f3a", "PLANTED-large-91bc", "PLANTED-late-c2e8", "OTHERS-keep-55d0"
SUBJECT = ("subject", "s-17")


class Planted(NamedTuple):
    """What is to go, and what is to stay."""

    victims: list[Checkpoint]  # the latest revision of each
    others: list[Checkpoint]
    run_id: str


def plant(store: CheckpointStore) -> Planted:
    """Small and large ones, with superseded revisions, one of them deleted already; and others beside them, before, between and after."""
    others = [_grown(store, OTHERS, 3, 40)]
    run_id = RunId.new()
    victims = [
        _grown(store, SMALL, 5, 40, run_id=run_id, labels=dict([SUBJECT])),
        _grown(store, LARGE, 4, 30_000, run_id=run_id, labels=dict([SUBJECT])),
    ]
    others.append(_grown(store, OTHERS, 3, 20_000))
    gone = _grown(store, LATE, 2, 300, run_id=run_id, labels=dict([SUBJECT]))
    store.delete(gone.id, gone.revision)
    others.append(_grown(store, OTHERS, 2, 300))
    return Planted([*victims, gone], others, run_id)


def _grown(
    store: CheckpointStore, marker: str, revisions: int, size: int, *, run_id: str | None = None, labels: dict[str, str] | None = None
) -> Checkpoint:
    made = initial({"step": 0, "said": f"0 {marker} {noise(marker, size)}"}, labels=labels)
    if run_id is not None:
        made = made.model_copy(update={"run_id": run_id})
    store.compare_and_swap(made, None)
    for step in range(1, revisions):
        made = made.next({"step": step, "said": f"{step} {marker} {noise(marker, size)}"})
        store.compare_and_swap(made, step - 1)
    store.load(made.id)
    return made


def archived(store: CheckpointStore, directory: Path) -> Archive:
    archive = Archive(directory=directory)
    run_archive(store, archive, limits=Limits(rows=6))
    return archive


def secrets(store: CheckpointStore, planted: Planted) -> dict[str, bytes]:
    """The markers of what is to go; of an encrypted store its data keys too, wrapped and in hand."""
    found = {marker: marker.encode() for marker in (SMALL, LARGE, LATE)}
    if store.keys is not None:
        ids = {each.id for each in planted.victims}
        keys = keys_of(store)
        for each in keys.table.all():
            if each.checkpoint_id in ids:
                found[f"wrapped {each.key_id}"] = each.wrapped
                found[f"key {each.key_id}"] = unwrapped(keys.provider, each)
    return found


def sealed_bodies(store: CheckpointStore, planted: Planted) -> dict[str, bytes]:
    """A stretch of each body as it is stored, sealed or compressed: it must be gone as well."""
    found = {}
    for each in planted.victims:
        for record in store.log.history(each.id, after=-1, position=None, limit=100):
            assert record.value is not None
            if len(record.value) > 400:
                found[f"body {each.id} {record.offset}"] = record.value[-40:]
    return found


def shown(folder: Path, wanted: dict[str, bytes], scratch: Path) -> dict[str, str]:
    """Which of these any file of a folder shows, Parquet and DuckDB opened too."""
    decoded = scratch / "decoded"
    shutil.rmtree(decoded, ignore_errors=True)
    decoded.mkdir()
    for number, path in enumerate(sorted(folder.rglob("*.parquet*"))):
        (decoded / f"{number}.rows").write_bytes(b"\n".join(repr(row).encode() + (row.event or b"") for row in read_segment(path)))
    return found_in(folder, wanted) | found_in(decoded, wanted)


def duckdb_tables(path: Path) -> int:
    """Opens a DuckDB file that nobody has open, to see that it is one."""
    with duckdb.connect(str(path), read_only=True) as connection:
        return len(connection.execute("SHOW TABLES").fetchall())
