"""load and load_revision: the latest, a certain one, the one at a position or time."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from eventlog import CheckpointStore, EventType, HistoryRemoved, InvalidRequest, NotFound, Position, Revision
from tests.store.other_process import calling
from tests.store.samples import UNUSED_ID, initial, numbered, stream


def test_what_was_committed_is_loaded_as_it_was(store: CheckpointStore) -> None:
    first = initial(
        {"text": "Grüße 🎉", "n": [1, -0.5, None, True]}, labels={"env": "prod"}, usage={"turns": 1}, phase="ready", schema_version=7
    )
    store.compare_and_swap(first, None)
    loaded = store.load(first.id)
    assert loaded == first
    assert type(loaded) is type(first)
    assert store.load(UUID(first.id)) == store.load(first.id.upper()) == first


def test_every_load_gets_a_payload_of_its_own(store: CheckpointStore) -> None:
    first = initial({"list": [1]}, labels={"a": "b"}, usage={"t": 1})
    store.compare_and_swap(first, None)
    one = store.load(first.id)
    one.payload["list"].append(2)
    one.labels["a"] = "changed"
    one.usage["t"] = 0
    assert store.load(first.id) == first


def test_a_commit_of_another_process_is_seen_at_once(store: CheckpointStore, second_address: str) -> None:
    first = stream(store, 1)[0]
    assert store.load(first.id) == first
    following = first.next({"by": "another"})
    calling(second_address, ("compare_and_swap", (following, 0), {}))
    assert store.load(first.id) == following


def test_by_revision(store: CheckpointStore) -> None:
    written = stream(store, 4)
    assert [store.load(written[0].id, revision=number) for number in range(4)] == written
    with pytest.raises(NotFound) as caught:
        store.load(written[0].id, revision=4)
    assert (caught.value.checkpoint_id, caught.value.revision) == (written[0].id, 4)
    assert type(caught.value) is NotFound


def test_by_position(store: CheckpointStore) -> None:
    before = store.position()
    first = initial()
    receipts = [store.compare_and_swap(first, None)]
    between = store.position()
    second = first.next({"step": 1})
    receipts.append(store.compare_and_swap(second, 0))
    assert store.load(first.id, at=between) == first
    assert store.load(first.id, at=receipts[0].position) == first
    assert store.load(first.id, at=receipts[1].position) == second
    assert store.load(first.id, at=store.position()) == second
    for past in (before, Position()):
        with pytest.raises(NotFound):
            store.load(first.id, at=past)
    assert store.load_revision(first.id, at=between).as_of == between


def test_by_time_resolves_to_a_position_of_the_logs_clock(store: CheckpointStore) -> None:
    first = initial()
    receipt = store.compare_and_swap(first, None)
    while datetime.now(UTC) <= receipt.recorded_at + timedelta(milliseconds=2):
        time.sleep(0.001)
    second = first.next({"step": 1})
    later = store.compare_and_swap(second, 0)
    assert later.recorded_at > receipt.recorded_at
    assert store.load(first.id, at=receipt.recorded_at) == first
    assert store.load(first.id, at=later.recorded_at) == second
    assert store.load(first.id, at=later.recorded_at + timedelta(days=1)) == second
    found = store.load_revision(first.id, at=receipt.recorded_at)
    assert found.as_of is not None
    assert found.as_of.covers(receipt.position)
    assert not found.as_of.covers(later.position)
    with pytest.raises(NotFound):
        store.load(first.id, at=datetime(2001, 1, 1, tzinfo=UTC))


def test_at_least_sees_ones_own_writes(store: CheckpointStore) -> None:
    first = initial()
    receipt = store.compare_and_swap(first, None)
    assert store.load(first.id, at_least=Position()) == first
    assert store.load(first.id, at_least=receipt.position) == first


def test_a_revision_tells_how_it_came_into_the_log(store: CheckpointStore) -> None:
    first = initial({"a": 1})
    receipt = store.compare_and_swap(first, None)
    second = first.next({"a": 22})
    store.compare_and_swap(second, 0)
    found = [store.load_revision(first.id, revision=0), store.load_revision(first.id)]
    assert [each.checkpoint for each in found] == [first, second]
    assert found[0] == Revision(
        first, EventType.REVISION, "tester", receipt.recorded_at, receipt.position, found[0].hash, bytes(32), len(b'{"a":1}')
    )
    assert found[1].previous_hash == found[0].hash


def test_an_absent_one_is_not_found(store: CheckpointStore) -> None:
    for call in (store.load, store.load_revision):
        with pytest.raises(NotFound) as caught:
            call(UNUSED_ID)
        assert type(caught.value) is NotFound
        assert UNUSED_ID in str(caught.value)


def test_what_lies_before_an_import_is_reported_as_removed(store: CheckpointStore) -> None:
    """Promise 10."""
    moved = numbered(initial(), 5)
    store.import_revision(moved)
    with pytest.raises(HistoryRemoved, match="revision 3"):
        store.load(moved.id, revision=3)
    assert store.load(moved.id, revision=5) == moved


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"revision": -1}, "revision"),
    ({"revision": 2**63}, "revision"),
    ({"revision": True}, "revision"),
    ({"revision": "0"}, "revision"),
    ({"revision": 0.0}, "revision"),
    ({"revision": 0, "at": Position()}, "revision"),
    ({"at": datetime(2030, 1, 1)}, "time zone"),
]


@pytest.mark.parametrize(("arguments", "named"), WRONG, ids=str)
def test_a_malformed_question_is_refused(store: CheckpointStore, arguments: dict[str, Any], named: str) -> None:
    first = stream(store, 1)[0]
    with pytest.raises(InvalidRequest, match=named):
        store.load(first.id, **arguments)


@pytest.mark.parametrize("at", ["yesterday", 17, (0, 1)], ids=str)
def test_a_past_that_is_neither_position_nor_time_is_refused(store: CheckpointStore, at: Any) -> None:
    # Once: AttributeError: 'str' object has no attribute 'tzinfo'
    first = stream(store, 1)[0]
    with pytest.raises(InvalidRequest):
        store.load(first.id, at=at)


@pytest.mark.parametrize(
    "wrong", ["", "no id", "1234", "x" * 10_000, "01234567-89ab-7cde-8f01-23456789abcg", None, 5, b"01234567"], ids=repr
)
def test_a_malformed_id_is_refused(store: CheckpointStore, wrong: Any) -> None:
    for call in (store.load, store.load_revision, store.history):
        with pytest.raises(InvalidRequest, match="not a UUID") as caught:
            call(wrong)
        assert caught.value.field == "id"
        assert len(str(caught.value)) < 200
