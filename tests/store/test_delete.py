"""delete, further than the contract goes: what the tombstone holds, other processes, malformed requests."""

from __future__ import annotations

import time
from typing import Any

import pytest

from eventlog import CheckpointStore, Deleted, EventId, EventIdReused, EventType, InvalidRequest, NotFound
from tests.store.other_process import Refused, calling
from tests.store.samples import initial, nothing_written, numbered, revisions, stream


def test_a_deleted_checkpoint_is_gone_and_its_history_stays(store: CheckpointStore) -> None:
    written = stream(store, 3, usage={"turns": 2}, labels={"env": "prod"}, phase="ready")
    before = store.position()
    receipt = store.delete(written[0].id, 2)
    assert receipt.revision == 3
    with pytest.raises(Deleted) as caught:
        store.load(written[0].id)
    assert (caught.value.checkpoint_id, caught.value.last_revision) == (written[0].id, 3)
    assert isinstance(caught.value, NotFound)
    with pytest.raises(Deleted):
        store.load(written[0].id, revision=3)
    with pytest.raises(Deleted):
        store.load(written[0].id, at=store.position())
    assert [store.load(written[0].id, revision=number) for number in range(3)] == written
    assert store.load(written[0].id, at=before) == written[-1]
    last = store.load_revision(written[0].id)
    assert (last.type, last.checkpoint.payload, last.checkpoint.revision, last.actor) == (EventType.DELETED, None, 3, "tester")
    assert (last.checkpoint.usage, last.checkpoint.labels) == ({"turns": 2}, {"env": "prod"})
    assert len(revisions(store, written[0].id)) == 4


def test_an_import_does_not_start_it_again(store: CheckpointStore) -> None:
    first = stream(store, 1)[0]
    store.delete(first.id, 0)
    with nothing_written(store), pytest.raises(Deleted):
        store.import_revision(numbered(first, 9))


def test_it_stays_deleted_for_other_processes_and_after_reopening(store: CheckpointStore, second_address: str) -> None:
    first = stream(store, 1)[0]
    store.delete(first.id, 0)
    answers = calling(second_address, ("load", (first.id,), {}), ("compare_and_swap", (numbered(first, 0), None), {}))
    assert [(each.error, each.attributes["last_revision"]) for each in answers if isinstance(each, Refused)] == [("Deleted", 1)] * 2


def test_a_retried_delete_gets_its_first_receipt(store: CheckpointStore) -> None:
    # Once: each attempt takes its own time as updated_at, so that a retry a millisecond later is EventIdReused.
    first = stream(store, 1)[0]
    event_id = EventId.new()
    receipt = store.delete(first.id, 0, event_id=event_id)
    now = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 < now + 3:
        time.sleep(0.001)
    with nothing_written(store):
        assert store.delete(first.id, 0, event_id=event_id) == receipt._replace(duplicate=True)


def test_a_delete_with_the_event_id_of_a_revision_is_refused(store: CheckpointStore) -> None:
    first = stream(store, 1)[0]
    with nothing_written(store), pytest.raises(EventIdReused, match="revision"):
        store.delete(first.id, 0, event_id=first.event_id)


def test_an_imported_one_can_be_deleted(store: CheckpointStore) -> None:
    moved = numbered(initial(), 5)
    store.import_revision(moved)
    assert store.delete(moved.id, 5).revision == 6


@pytest.mark.parametrize("expected", [None, "0", 0.0, True, -1, 2**63 - 1, 2**63], ids=repr)
def test_a_malformed_revision_is_refused(store: CheckpointStore, expected: Any) -> None:
    # Once: None and "0" raise a bare TypeError
    first = stream(store, 1)[0]
    with nothing_written(store), pytest.raises(InvalidRequest):
        store.delete(first.id, expected)
