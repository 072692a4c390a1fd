"""Encrypted stores as principals have them: readers get what is sealed, auditors need no keys, and whoever uses the keys is on record."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog import (
    PAYLOAD_WITHHELD,
    AccessDenied,
    CheckpointStore,
    ConfigurationError,
    KeyFile,
    KeysUnavailable,
    NoKeys,
    Position,
    Revision,
    create_store,
    open_store,
)
from eventlog.event import EventType
from eventlog.privacy.key_care import keys_status, rotate_keys
from eventlog.verification import verify
from tests.access.conftest import Recorded
from tests.access.samples import outcomes, somebody, trail
from tests.store.samples import initial, stream


@pytest.fixture
def address(tmp_path: Path) -> Path:
    create_store(tmp_path / "store", encryption=KeyFile(path=tmp_path / "key.json"), access="strict")
    return tmp_path / "store"


def test_a_reader_reads_and_a_writer_writes_what_is_sealed(recorded: Recorded) -> None:
    writer, reader = recorded.store.for_principal(somebody("writer")), recorded.store.for_principal(somebody("reader"))
    last = stream(writer, 3)[-1]
    assert reader.load(last.id) == last
    assert [each.checkpoint.payload for each in reader.history(last.id) if isinstance(each, Revision)][-1] == last.payload
    assert recorded.store.log.identity.encrypted


def test_an_auditor_and_an_operator_need_no_keys(address: Path, tmp_path: Path) -> None:
    with open_store(address, actor="root") as store:
        last = stream(store, 2)[-1]
    (tmp_path / "key.json").rename(tmp_path / "taken-away.json")
    with pytest.raises(KeysUnavailable):
        open_store(address, principal=somebody("auditor"))
    for role in ("auditor", "operator"):
        with open_store(address, keys=NoKeys(), principal=somebody(role)) as store:
            seen = [store.load_revision(last.id), *store.history(last.id), *store.subscribe(Position(), idle_timeout=0)]
            assert len(seen) == 5
            assert all(isinstance(each, Revision) and each.checkpoint.payload is PAYLOAD_WITHHELD for each in seen)
            found = verify(store)
            assert (found.is_clean, found.sealed) == (True, 2)


def test_a_rotation_is_on_record_before_a_key_is_used_and_when_it_is_done(recorded: Recorded) -> None:
    who = somebody("operator")
    last = stream(recorded.store, 1)[-1]
    mine = recorded.store.for_principal(who, reason="yearly")
    assert keys_status(mine).counts
    done = rotate_keys(mine)
    assert done.rewrapped > 0
    assert recorded.store.load(last.id) == last
    begun, ended = [row for row in trail(recorded.store, subject=who.subject) if row["action"] == "keys_rotate"]
    assert (begun["items"], ended["items"], ended["reason"]) == (None, done.rewrapped, "yearly")
    assert "key.json" in ended["target"]
    assert all(count.current for count in keys_status(mine).counts)


def test_a_rotation_that_fails_is_on_record(address: Path) -> None:
    who = somebody("operator")
    with open_store(address, keys=NoKeys(), principal=who) as store, pytest.raises(KeysUnavailable):
        rotate_keys(store)
    with open_store(address, actor="root") as store:
        assert outcomes(store, subject=who.subject) == [("keys_rotate", "allowed"), ("keys_rotate", "failed")]


def test_keys_are_in_nobodys_hands_but_an_admins_who_is_on_record(store: CheckpointStore) -> None:
    for role in ("reader", "writer", "auditor", "operator"):
        with pytest.raises(AccessDenied):
            _ = store.for_principal(somebody(role)).keys
    who = somebody("admin")
    assert store.for_principal(who).keys is not None
    assert outcomes(store, subject=who.subject) == [("keys", "allowed")]


def test_a_store_in_clear_text_has_no_keys_to_care_for(tmp_path: Path) -> None:
    create_store(tmp_path / "clear", access="strict")
    with open_store(tmp_path / "clear", principal=somebody("operator")) as store:
        for call in (keys_status, rotate_keys):
            with pytest.raises(ConfigurationError, match="not encrypted"):
                call(store)


def test_what_a_principal_commits_is_sealed_whatever_its_type(recorded: Recorded) -> None:
    writer = recorded.store.for_principal(somebody("writer"))
    first = initial({"secret": "marker"})
    writer.compare_and_swap(first, None)
    writer.migrate_revision(first.next({"secret": "marker"}).model_copy(update={"schema_version": 9}), 0)
    writer.delete(first.id, 1)
    found = [each for each in writer.history(first.id) if isinstance(each, Revision)]
    assert [each.type for each in found] == [EventType.REVISION, EventType.MIGRATED, EventType.DELETED]
    for number in range(2):
        record = recorded.store.log.revision(first.id, number)
        assert record is not None
        assert record.value is not None
        assert b"marker" not in record.value
