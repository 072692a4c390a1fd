"""Embedded: an event in clear text that was put into an encrypted store past it, and the reverse, is refused wherever it is met."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from eventlog import Checkpoint, CheckpointStore, EncryptionMismatch, create_store, open_store
from eventlog.doctor import State, examine
from eventlog.embedded_files import LOG_FILE, checksum
from eventlog.findings import FaultKind
from eventlog.privacy.providers.key_file import KeyFile
from eventlog.verification import verify
from tests.kafka_log.samples import event_of
from tests.store.samples import initial, stream


def put_past_the_store(directory: Path, checkpoint: Checkpoint, event: bytes) -> None:
    with sqlite3.connect(directory / LOG_FILE) as connection:
        (position, recorded_at) = connection.execute(
            "SELECT coalesce(max(position) + 1, 0), coalesce(max(recorded_at), 0) FROM events"
        ).fetchone()
        proof = checksum(position, checkpoint.id, checkpoint.revision, recorded_at, event)
        row = (position, checkpoint.id, checkpoint.revision, checkpoint.event_id, recorded_at, proof, event)
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    connection.close()


def sealed_event(store: CheckpointStore, checkpoint: Checkpoint) -> bytes:
    record = store.log.revision(checkpoint.id, checkpoint.revision)
    assert record is not None
    assert record.value is not None
    return record.value


@pytest.fixture
def encrypted(tmp_path: Path) -> Path:
    create_store(tmp_path / "encrypted", encryption=KeyFile(path=tmp_path / "key.json"))
    return tmp_path / "encrypted"


def test_clear_text_in_an_encrypted_store(encrypted: Path) -> None:
    foreign = initial({"text": "in clear"})
    put_past_the_store(encrypted, foreign, event_of(foreign))
    with open_store(encrypted) as store:
        (ours,) = stream(store, 1)
        for read in (store.load, store.load_revision, lambda each: list(store.history(each))):
            with pytest.raises(EncryptionMismatch, match="in clear text, and this store is encrypted"):
                read(foreign.id)
        assert [each.id for each in store.list().items] == [ours.id]
        (row,) = store.catalog.sql("SELECT reason FROM quarantined_records").rows
        assert "in clear text" in row[0]
        assert verify(store).fault_counts == {FaultKind.WRONG_ENCRYPTION: 1}
    checks = {check.check: check for check in examine(str(encrypted))}
    assert checks["quarantine"].state is State.FAIL
    assert checks["encryption"].state is State.OK


def test_a_sealed_event_in_a_store_in_clear_text(encrypted: Path, tmp_path: Path) -> None:
    with open_store(encrypted) as store:
        (sealed,) = stream(store, 1)
        event = sealed_event(store, sealed)
    create_store(tmp_path / "plain")
    put_past_the_store(tmp_path / "plain", sealed, event)
    with open_store(tmp_path / "plain") as store:
        with pytest.raises(EncryptionMismatch, match="this store is not encrypted"):
            store.load(sealed.id)
        assert store.list().items == ()
        assert verify(store).fault_counts == {FaultKind.WRONG_ENCRYPTION: 1}


def test_a_sealed_event_of_another_encrypted_store_does_not_open(encrypted: Path, tmp_path: Path) -> None:
    with open_store(encrypted) as store:
        (sealed,) = stream(store, 1)
        event = sealed_event(store, sealed)
    create_store(tmp_path / "another", encryption=KeyFile(path=tmp_path / "key.json"))
    put_past_the_store(tmp_path / "another", sealed, event)
    with open_store(tmp_path / "another") as store, pytest.raises(Exception, match="not among the store's keys"):
        store.load(sealed.id)
