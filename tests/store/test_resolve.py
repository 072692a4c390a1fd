"""Promise 3, further than the contract goes: every spelling of an event, what lies before an import."""

from __future__ import annotations

from uuid import UUID

import pytest

from eventlog import CheckpointStore, EventId, InvalidRequest
from tests.store.samples import UNUSED_ID, initial, numbered, stream


def test_a_committed_event_is_found_by_id_and_by_its_checkpoint(store: CheckpointStore) -> None:
    first = initial()
    receipt = store.compare_and_swap(first, None)
    second = first.next({"step": 1})
    later = store.compare_and_swap(second, 0)
    for event, answer in ((first, receipt), (second, later)):
        assert store.resolve(event) == answer
        assert store.resolve(event.event_id) == answer
        assert store.resolve(UUID(event.event_id)) == answer
        assert store.resolve(event.event_id.upper()) == answer


def test_an_absent_event_is_none(store: CheckpointStore) -> None:
    assert store.resolve(EventId.new()) is None
    assert store.resolve(UNUSED_ID) is None
    assert store.resolve(initial()) is None
    assert store.resolve(stream(store, 2)[-1].next({})) is None


def test_an_event_before_an_import_is_none(store: CheckpointStore) -> None:
    # Once: the embedded log, which loses nothing, answers OutcomeUnknown: "was removed from the log".
    moved = numbered(initial(), 5)
    store.import_revision(moved)
    assert store.resolve(numbered(moved, 3)) is None


def test_what_is_no_event_id_is_refused(store: CheckpointStore) -> None:
    with pytest.raises(InvalidRequest, match="event_id"):
        store.resolve("not an id")
