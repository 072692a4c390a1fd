"""Promise 4, further than the contract goes: the same id with other content is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from eventlog import CheckpointId, CheckpointStore, EventIdReused, RunId
from tests.store.other_process import calling
from tests.store.samples import initial, nothing_written, revisions, stream

FULL: dict[str, Any] = {
    "labels": {"env": "prod"},
    "usage": {"turns": 3},
    "phase": "ready",
    "payload": {"a": 1, "b": [1.5, None, "x" * 5000]},
}


def test_a_retry_gets_its_first_receipt(store: CheckpointStore) -> None:
    first = initial(**FULL)
    receipt = store.compare_and_swap(first, None)
    assert not receipt.duplicate
    with nothing_written(store):
        assert store.compare_and_swap(first, None) == receipt._replace(duplicate=True)


def test_a_retry_from_another_process_gets_the_first_receipt(store: CheckpointStore, second_address: str) -> None:
    first = initial(**FULL)
    receipt = store.compare_and_swap(first, None)
    assert calling(second_address, ("compare_and_swap", (first, None), {})) == [receipt._replace(duplicate=True)]
    assert len(revisions(store, first.id)) == 1


@pytest.mark.parametrize(
    "payload", [{"a": 1, "b": {"c": 2, "d": 3}}, {"a": 2**70, "b": {"c": 2, "d": -(2**70)}}], ids=["small", "big integers"]
)
def test_the_order_of_keys_makes_no_other_event(store: CheckpointStore, payload: dict[str, Any]) -> None:
    first = initial(payload, labels={"x": "1", "y": "2"}, usage={"t": 1, "u": 2})
    receipt = store.compare_and_swap(first, None)
    turned = {key: dict(reversed(value.items())) if isinstance(value, dict) else value for key, value in reversed(payload.items())}
    again = first.model_copy(update={"payload": turned, "labels": {"y": "2", "x": "1"}, "usage": {"u": 2, "t": 1}})
    assert store.compare_and_swap(again, None) == receipt._replace(duplicate=True)


OTHER_CONTENT: list[tuple[str, dict[str, Any]]] = [
    ("payload", {"payload": {"a": 1, "b": [1.5, None, "y" * 5000]}}),
    ("payload", {"payload": {"a": 1.0, "b": [1.5, None, "x" * 5000]}}),
    ("payload", {"payload": {"a": True, "b": [1.5, None, "x" * 5000]}}),
    ("payload", {"payload": None}),
    ("labels", {"labels": {"env": "test"}}),
    ("labels", {"labels": {}}),
    ("usage", {"usage": {"turns": 4}}),
    ("usage", {"usage": {"turns": 3, "calls": 0}}),
    ("phase", {"phase": "done"}),
    ("phase", {"phase": None}),
    ("kind", {"kind": "acme.invoice"}),
    ("schema_version", {"schema_version": 2}),
    ("run_id", {"run_id": RunId("00000000-0000-7000-8000-000000000001")}),
]


@pytest.mark.parametrize(("field", "update"), OTHER_CONTENT, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("later", [False, True], ids=["at the head", "in the past"])
def test_the_same_event_id_with_other_content_is_refused(store: CheckpointStore, field: str, update: dict[str, Any], later: bool) -> None:
    first = initial(**FULL)
    store.compare_and_swap(first, None)
    if later:
        store.compare_and_swap(first.next(None), 0)
    with nothing_written(store), pytest.raises(EventIdReused, match=f"another {field}") as caught:
        store.compare_and_swap(first.model_copy(update=update), None)
    assert (caught.value.checkpoint_id, caught.value.event_id, caught.value.differs) == (first.id, first.event_id, field)


def test_the_same_event_id_at_another_time_is_refused(store: CheckpointStore) -> None:
    first = initial()
    store.compare_and_swap(first, None)
    with nothing_written(store), pytest.raises(EventIdReused, match="updated_at"):
        store.compare_and_swap(first.model_copy(update={"updated_at": first.updated_at + timedelta(seconds=1)}), None)


def test_the_heads_event_id_on_the_next_revision_is_refused(store: CheckpointStore) -> None:
    first = initial()
    store.compare_and_swap(first, None)
    with nothing_written(store), pytest.raises(EventIdReused, match="revision"):
        store.compare_and_swap(first.next({"step": 1}, event_id=first.event_id), 0)


def test_the_heads_event_id_further_on_is_refused(store: CheckpointStore) -> None:
    first = initial()
    store.compare_and_swap(first, None)
    with nothing_written(store), pytest.raises(EventIdReused, match="revision"):
        store.compare_and_swap(first.model_copy(update={"revision": 4}), 3)


def test_an_event_id_of_an_earlier_revision_is_refused(store: CheckpointStore) -> None:
    # Once: decide() looks at the head's event id only; an older one is taken again, and resolve(event_id) then answers for the other.
    written = stream(store, 3)
    with nothing_written(store), pytest.raises(EventIdReused):
        store.compare_and_swap(written[-1].next({"step": 3}, event_id=written[0].event_id), 2)


def test_an_event_id_of_another_checkpoint_is_refused(store: CheckpointStore) -> None:
    # Once: nothing looks at other checkpoints, and resolve(event_id) then answers for the wrong one.
    first = stream(store, 1)[0]
    with nothing_written(store), pytest.raises(EventIdReused):
        store.compare_and_swap(first.model_copy(update={"id": CheckpointId.new()}), None)
