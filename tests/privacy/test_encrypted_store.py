"""An encrypted store seals every payload, opens it for whoever has the keys, and takes nothing in clear text."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from eventlog import (
    CheckpointId,
    CheckpointStore,
    ConfigurationError,
    Corrupted,
    EncryptionMismatch,
    EventIdReused,
    EventType,
    HistoryRemoved,
    InvalidRequest,
    KeyDestroyed,
    KeysUnavailable,
    NotFound,
    Receipt,
    Revision,
    TooLarge,
    create_store,
    open_store,
)
from eventlog.codec import decode
from eventlog.event import CheckpointEvent
from eventlog.findings import FaultKind
from eventlog.privacy.data_keys import PROBE
from eventlog.privacy.providers import NoKeys
from eventlog.privacy.providers.key_file import KeyFile
from eventlog.proposing import propose
from eventlog.verification import verify
from tests.privacy.conftest import OpenStore, keys_of
from tests.store.samples import UNUSED_ID, initial, outcome, stream

SECRET = "the customer is Ada Lovelace"


def event_of(store: CheckpointStore, checkpoint_id: str, revision: int = 0) -> CheckpointEvent:
    record = store.log.revision(checkpoint_id, revision)
    assert record is not None
    assert record.value is not None
    return decode(record.value)


def test_the_log_holds_a_payload_sealed_and_the_rest_in_clear(store: CheckpointStore) -> None:
    first = initial({"text": SECRET, "more": "x" * 5000}, labels={"region": "eu"}, phase="ready")
    store.compare_and_swap(first, None)
    event = event_of(store, first.id)
    assert event.header.encryption is not None
    assert event.header.encoding == "json+zstd"  # compressed before: what is sealed cannot be compressed
    assert len(event.stored) < 1000
    assert SECRET.encode() not in event.stored
    assert (event.header.phase, event.header.labels) == ("ready", {"region": "eu"})
    assert store.load(first.id) == first


def test_one_key_a_checkpoint_and_a_nonce_a_revision(store: CheckpointStore) -> None:
    streams = [stream(store, 3) for _ in range(2)]
    sealed = [[event_of(store, each[0].id, revision).header.encryption or {} for revision in range(3)] for each in streams]
    assert [len({each["key_id"] for each in of_one}) for of_one in sealed] == [1, 1]
    assert sealed[0][0]["key_id"] != sealed[1][0]["key_id"]
    assert len({each["nonce"] for of_one in sealed for each in of_one}) == 6


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("tenant", "north"),
        ("checkpoint_id", UNUSED_ID),
        ("revision", 1),
        ("kind", "acme.invoice"),
        ("schema_version", 2),
        ("event_id", UNUSED_ID),
        ("encoding", "json+zstd"),
        ("payload_size", 3),
    ],
)
@pytest.mark.parametrize("kind", ["embedded"])
def test_a_sealed_payload_under_another_header_is_corrupted(store: CheckpointStore, field: str, other: Any) -> None:
    first = initial({"text": SECRET})
    store.compare_and_swap(first, None)
    event = event_of(store, first.id)
    assert getattr(event.header, field) != other
    keys_of(store).json_text(event)
    with pytest.raises(Corrupted, match="sealed for another"):
        keys_of(store).json_text(event._replace(header=event.header._replace(**{field: other})))


@pytest.mark.parametrize("kind", ["embedded"])
def test_a_payload_sealed_with_another_revisions_nonce_is_corrupted(store: CheckpointStore) -> None:
    written = stream(store, 2)
    event, other = (event_of(store, written[0].id, revision) for revision in (0, 1))
    with pytest.raises(Corrupted):
        keys_of(store).json_text(event._replace(header=event.header._replace(encryption=other.header.encryption)))
    with pytest.raises(Corrupted):
        keys_of(store).json_text(event._replace(stored=other.stored))


def test_another_process_opens_what_was_just_written(opening: OpenStore) -> None:
    one, other = opening(), opening()
    for _ in range(5):
        first = initial({"text": SECRET})
        one.compare_and_swap(first, None)
        assert other.load(first.id) == first
        following = first.next({"text": "more"})
        other.compare_and_swap(following, 0)
        assert one.load(first.id) == following


def test_two_keys_made_at_once_for_a_checkpoint_are_both_good(opening: OpenStore) -> None:
    one, other = opening(), opening()
    first = initial({"text": SECRET})
    made = [keys_of(each).for_writing(first.id, first.tenant, expected=None, begins=True).key_id for each in (one, other)]
    one.compare_and_swap(first, None)
    keys_of(other).clear()
    following = first.next({"text": "more"})
    other.compare_and_swap(following, 0)
    third = opening()
    assert [each.checkpoint.payload for each in third.history(first.id) if isinstance(each, Revision)] == [first.payload, following.payload]
    assert {key.key_id for key in keys_of(third).table.of(first.id)} >= {made[0]}
    assert {event_of(third, first.id, each).header.encryption["key_id"] for each in (0, 1)} <= {  # type: ignore[index]
        key.key_id for key in keys_of(third).table.of(first.id)
    }


def held(store: CheckpointStore) -> int:
    return sum(key.checkpoint_id != PROBE for key in keys_of(store).table.all())


def test_no_key_is_made_for_what_cannot_be_committed(store: CheckpointStore) -> None:
    absent = initial().model_copy(update={"id": CheckpointId(UNUSED_ID)})
    for checkpoint, expected in (
        (absent.model_copy(update={"revision": 4}), 3),
        (absent.model_copy(update={"revision": 4}), None),
        (initial(os.urandom(9 << 20).hex()), None),
    ):
        assert isinstance(outcome(store, checkpoint, expected), Exception)
    assert isinstance(outcome(store, absent.model_copy(update={"revision": 4}), 3), NotFound)
    assert isinstance(outcome(store, initial(os.urandom(9 << 20).hex()), None), TooLarge)
    assert held(store) == 0


def test_a_retry_is_compared_by_what_was_sealed(store: CheckpointStore) -> None:
    first = initial({"text": SECRET})
    receipt = store.compare_and_swap(first, None)
    keys_of(store).clear()
    assert store.compare_and_swap(first, None) == receipt._replace(duplicate=True)
    error = outcome(store, first.model_copy(update={"payload": {"text": "another"}}), None)
    assert isinstance(error, EventIdReused)
    assert error.differs == "payload"


def test_a_proposal_in_clear_text_is_refused_by_the_log_itself(store: CheckpointStore) -> None:
    first = initial({"text": SECRET})
    clear = propose(first, None, actor=None, max_event_bytes=1 << 20)
    try:
        (refused,) = store.log.append([clear], timeout=10)
    except EncryptionMismatch as error:
        refused = error
    assert isinstance(refused, EncryptionMismatch)
    assert "in clear text" in str(refused)
    with pytest.raises(NotFound):
        store.load(first.id)
    store.compare_and_swap(first, None)
    clear = propose(first.next({}), 0, actor=None, max_event_bytes=1 << 20)  # its head is in memory now
    try:
        (refused,) = store.log.append([clear], timeout=10)
    except EncryptionMismatch as error:
        refused = error
    assert isinstance(refused, EncryptionMismatch)
    assert isinstance(outcome(store, first.next({}), 0), Receipt)


def test_a_destroyed_key_makes_its_payloads_unreadable_and_nothing_else(opening: OpenStore) -> None:
    store = opening()
    gone, stays = stream(store, 3), stream(store, 2)
    assert keys_of(store).table.destroy(gone[0].id, UNUSED_ID) == 1
    assert keys_of(store).table.destroy(gone[0].id) == 0
    other = opening()
    with pytest.raises(KeyDestroyed) as raised:
        other.load(gone[0].id)
    assert (raised.value.checkpoint_id, raised.value.revision) == (gone[0].id, 2)
    with pytest.raises(HistoryRemoved):
        list(other.history(gone[0].id))
    assert other.load(stays[0].id) == stays[-1]
    assert {each.id for each in other.list().items} == {gone[0].id, stays[0].id}
    found = verify(other)
    assert (found.is_clean, found.erased, found.events) == (True, 3, 5)


def test_the_process_that_had_it_loses_a_destroyed_key_with_the_next_look(opening: OpenStore) -> None:
    store, other = opening(), opening()
    (gone,) = stream(store, 1)
    keys_of(other).table.destroy(gone.id)
    keys_of(store).clear()  # as when its time is up
    with pytest.raises(KeyDestroyed):
        store.load(gone.id)


def test_what_becomes_of_a_checkpoint_whose_key_is_destroyed_is_still_decided_by_the_log(opening: OpenStore) -> None:
    store = opening()
    written = stream(store, 2)
    deleted = store.delete(written[0].id, 1)
    keys_of(store).table.destroy(written[0].id)
    before = held(store)
    other = opening()
    again = outcome(other, written[1], 0)
    assert isinstance(again, Receipt)  # a retry: all that is left to compare agrees
    assert again.duplicate
    late = outcome(other, written[1].next({"late": True}), 1)
    assert type(late).__name__ == "Deleted"
    assert held(other) == before
    assert other.load_revision(written[0].id).type is EventType.DELETED
    assert deleted.revision == 2


def test_a_successor_of_a_live_checkpoint_without_its_key_is_refused(opening: OpenStore) -> None:
    store = opening()
    (first,) = stream(store, 1)
    keys_of(store).table.destroy(first.id)
    assert isinstance(outcome(opening(), first.next({}), 0), KeyDestroyed)


def test_without_keys_everything_but_payloads_is_there(opening: OpenStore) -> None:
    written = stream(opening(), 2)
    auditor = opening(keys=NoKeys())
    with pytest.raises(KeysUnavailable):
        auditor.load(written[0].id)
    assert isinstance(outcome(auditor, written[1].next({}), 1), KeysUnavailable)
    assert isinstance(outcome(auditor, initial(), None), KeysUnavailable)
    assert [each.id for each in auditor.list().items] == [written[0].id]
    found = verify(auditor)
    assert (found.is_clean, found.sealed, found.events) == (True, 2, 2)
    auditor.delete(written[0].id, 1)


def test_the_keys_that_it_was_made_with_are_insisted_on(opening: OpenStore, key_file: KeyFile, tmp_path: Path) -> None:
    opening()
    other = KeyFile(path=tmp_path / "other.json")
    other.create()
    with pytest.raises(KeysUnavailable, match="not the keys that the store was made with"):
        opening(keys=other)
    moved = tmp_path / "moved.json"
    key_file.path.rename(moved)
    with pytest.raises(KeysUnavailable, match="No such file") as raised:
        opening()
    assert str(key_file.path) in str(raised.value)
    assert not key_file.path.exists()
    opening(keys=KeyFile(path=moved))


def test_keys_for_a_store_in_clear_text_are_refused(key_file: KeyFile, tmp_path: Path) -> None:
    create_store(tmp_path / "plain")
    key_file.path.parent.mkdir()
    key_file.create()
    with pytest.raises(ConfigurationError, match="not encrypted"):
        open_store(tmp_path / "plain", keys=key_file)
    open_store(tmp_path / "plain", keys=NoKeys()).close()


def test_a_key_file_inside_of_the_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="inside of the store"):
        create_store(tmp_path / "new", encryption=KeyFile(path=tmp_path / "new" / "key.json"))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("kind", ["embedded"])
def test_its_keys_leave_the_process_by_no_repr_and_no_pickle(store: CheckpointStore) -> None:
    stream(store, 1)
    assert repr(keys_of(store)).startswith("DataKeys(1 at hand")
    with pytest.raises(TypeError):
        pickle.dumps(keys_of(store))


@pytest.mark.parametrize("kind", ["embedded"])
def test_a_key_that_no_longer_unwraps_is_a_fault_in_a_verification(store: CheckpointStore) -> None:
    (first,) = stream(store, 1)
    table = keys_of(store).table
    (key,) = table.of(first.id)
    table.replace([(key, key._replace(wrapped=key.wrapped[:-1] + bytes([key.wrapped[-1] ^ 1])))])
    keys_of(store).clear()
    assert verify(store).fault_counts == {FaultKind.WRONG_PAYLOAD: 1}
