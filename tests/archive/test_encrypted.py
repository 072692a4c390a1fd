"""An archive of an encrypted store: sealed as the log is, made without keys, and opened by those of the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog import PAYLOAD_WITHHELD, HistoryRemoved, KeyFile, NoKeys, Position, Principal, Revision, create_store, open_store
from eventlog.archive.compacting import compact
from eventlog.archive.directory import Archive
from eventlog.archive.running import run_archive
from eventlog.verification import verify
from tests.store.samples import initial


@pytest.fixture
def address(tmp_path: Path) -> Path:
    create_store(tmp_path / "store", encryption=KeyFile(path=tmp_path / "key.json"))
    return tmp_path / "store"


def test_it_is_made_without_keys_goes_on_and_shows_nothing(address: Path, tmp_path: Path) -> None:
    archive = Archive(directory=tmp_path / "archive")
    last = initial({"secret": "marker-of-the-payload"})
    with open_store(address) as store:
        store.compare_and_swap(last, None)
        for number in range(3):
            last = last.next({"secret": f"marker-of-the-payload {number}"})
            store.compare_and_swap(last, number)
    with open_store(address, keys=NoKeys()) as store:
        assert run_archive(store, archive).events == 4
    with open_store(address) as store:
        store.delete(last.id, 3)
    with open_store(address, keys=NoKeys()) as store:
        assert run_archive(store, archive).events == 1
        assert verify(store, archive=archive).is_clean
        assert compact(store, archive, hold_ms=0).moved == 4
    with open_store(address) as store:
        payloads = [each.checkpoint.payload for each in store.history(last.id) if isinstance(each, Revision)]
        assert payloads[1:4] == [{"secret": f"marker-of-the-payload {number}"} for number in range(3)]
        assert verify(store, archive=archive).is_clean
    kept = b"".join(each.read_bytes() for each in archive.directory.rglob("*") if each.is_file())
    assert kept
    assert b"marker-of-the-payload" not in kept


def test_whoever_may_see_metadata_only_needs_neither_keys_nor_archive(address: Path, tmp_path: Path) -> None:
    archive = Archive(directory=tmp_path / "archive")
    last = initial()
    with open_store(address) as store:
        store.compare_and_swap(last, None)
        store.compare_and_swap(last.next({"step": 1}), 0)
        run_archive(store, archive)
        assert compact(store, archive, hold_ms=0).moved == 1
    archive.directory.rename(tmp_path / "elsewhere")
    with open_store(address, principal=Principal("ann", None, ["reader"])) as store, pytest.raises(HistoryRemoved):
        store.load_revision(last.id, revision=0)
    with open_store(address, keys=NoKeys(), principal=Principal("zoe", None, ["auditor"])) as store:
        found = [store.load_revision(last.id, revision=0), *store.history(last.id), *store.subscribe(Position(), idle_timeout=0)]
        assert found
        assert all(isinstance(each, Revision) and each.checkpoint.payload is PAYLOAD_WITHHELD for each in found)
