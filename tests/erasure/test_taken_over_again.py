"""What was erased does not come back by the way that it came in: another import or ingest, also into an older backup that was restored."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from eventlog import CheckpointStore, Deleted, open_store
from eventlog.backup.making import backup
from eventlog.backup.restoring import restore
from eventlog.importing import import_runifold
from eventlog.ingest import ingest_chats
from eventlog.verification import verify
from tests.backup.samples import erased
from tests.erasure.planting import shown

MARKER = "PLANTED-taken-over-3b1d"
WANTED = {MARKER: MARKER.encode()}


class Origin(NamedTuple):
    """A file elsewhere that holds one checkpoint, and how it is taken over; the number of checkpoints that were refused."""

    file: Path
    take: Callable[[CheckpointStore, Path], int]


def _runifold(folder: Path) -> Origin:
    record = {
        "id": "0197a0b0-0000-7000-8000-000000000001",
        "revision": 3,
        "run_id": "0197a0b0-0000-7000-8000-0000000000aa",
        "kind": "runifold.agent",
        "schema_version": 1,
        "payload": {"said": MARKER * 20},
        "updated_at_ms": 1_750_000_000_000,
    }
    with closing(sqlite3.connect(folder / "runifold.sqlite3", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE runifold_checkpoints (checkpoint_id TEXT PRIMARY KEY, revision INTEGER, record_json TEXT)")
        connection.execute("INSERT INTO runifold_checkpoints VALUES (?, ?, ?)", (record["id"], record["revision"], json.dumps(record)))
        connection.execute("PRAGMA user_version = 2")
    return Origin(folder / "runifold.sqlite3", lambda store, file: len(import_runifold(store, file).rejected))


def _chats(folder: Path) -> Origin:
    messages = [{"role": "user", "content": MARKER * 20}, {"role": "assistant", "content": "Yes?"}]
    (folder / "chats.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    return Origin(folder / "chats.jsonl", lambda store, file: len(ingest_chats(store, file).malformed))


@pytest.mark.parametrize("origin_of", [_runifold, _chats], ids=["import runifold", "ingest chats"])
def test_what_was_erased_is_not_taken_over_once_more(tmp_path: Path, directory: Path, origin_of: Callable[[Path], Origin]) -> None:
    (tmp_path / "origin").mkdir()
    origin = origin_of(tmp_path / "origin")
    keys = tmp_path / "wrapped"
    with open_store(directory) as store:
        keys_to = None if store.keys is None else keys
        backup(store, tmp_path / "before", keys_to=keys_to)  # its log never knew the checkpoint
        assert origin.take(store, origin.file) == 0
        taken = store.load(store.list().items[0].id)
        register = erased(store, taken)
        before = store.position()
        origin.take(store, origin.file)  # refused, or answered with the first receipt
        assert store.position() == before
        with pytest.raises(Deleted):
            store.load(taken.id)
        assert verify(store).is_clean
    assert shown(directory, WANTED, tmp_path) == {}
    restored = tmp_path / "restored"
    restore(tmp_path / "before", restored, erasure_register=register, keys_from=keys_to)
    with open_store(restored) as store:
        assert origin.take(store, origin.file) == 1
        assert [each.kind for each in store.list().items if each.kind != "eventlog.restore"] == []
    assert shown(restored, WANTED, tmp_path) == {}
