"""Promise 7, and what a successor keeps: run, tenant, kind, schema version; no number in `usage` goes down."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import CheckpointStore, Conflict, EventIdReused, EventType, Gap, InvalidRequest, NotFound, Revision, RunId
from tests.store.samples import initial, nothing_written, numbered, outcome, stream

USAGE = {"input_tokens": 100, "turns": 2}


@pytest.mark.parametrize(
    ("usage", "named"),
    [
        ({"input_tokens": 99, "turns": 2}, "usage.input_tokens"),
        ({"input_tokens": 100}, "usage.turns"),
        ({}, "usage.input_tokens"),
        ({"input_tokens": 10**9, "turns": 1}, "usage.turns"),
    ],
)
@pytest.mark.parametrize("warm", [True, False], ids=["head in memory", "head from the log"])
def test_usage_never_decreases(store: CheckpointStore, opening: Any, usage: dict[str, int], named: str, warm: bool) -> None:
    first = initial(usage=USAGE)
    store.compare_and_swap(first, None)
    writer: CheckpointStore = store if warm else opening()
    with nothing_written(store), pytest.raises(InvalidRequest, match=named) as caught:
        writer.compare_and_swap(first.next({}, usage=usage), 0)
    assert caught.value.field == named


def test_usage_may_stay_grow_and_gain_names(store: CheckpointStore) -> None:
    checkpoint = initial(usage=USAGE)
    store.compare_and_swap(checkpoint, None)
    for usage in (None, {"input_tokens": 100, "turns": 3}, {"input_tokens": 2**63 - 1, "turns": 3, "tool_calls": 0}):
        checkpoint = checkpoint.next({}, usage=usage)
        store.compare_and_swap(checkpoint, checkpoint.revision - 1)
    assert store.load(checkpoint.id).usage == {"input_tokens": 2**63 - 1, "turns": 3, "tool_calls": 0}


def test_a_deletion_carries_usage_on(store: CheckpointStore) -> None:
    first = initial(usage=USAGE)
    store.compare_and_swap(first, None)
    store.delete(first.id, 0)
    assert store.load_revision(first.id, revision=1).checkpoint.usage == USAGE


def test_usage_changed_in_the_callers_dict_does_not_change_what_was_committed(store: CheckpointStore) -> None:
    # Once: the head in memory holds the caller's own dict, so that changing it makes the store forget what was spent.
    first = initial(usage=USAGE)
    store.compare_and_swap(first, None)
    first.usage["input_tokens"] = 0
    with pytest.raises(InvalidRequest, match=r"usage\.input_tokens"):
        store.compare_and_swap(first.next({}), 0)


def test_usage_raised_in_the_callers_dict_does_not_refuse_others(store: CheckpointStore) -> None:
    # Once: as above, the other way round: `following.usage[...] += 1` after next() raises what the store believes to be spent.
    first = initial(usage=USAGE)
    store.compare_and_swap(first, None)
    lost = first.next({})
    lost.usage["turns"] += 5
    store.compare_and_swap(store.load(first.id).next({}), 0)
    assert store.load(first.id).usage == USAGE


@pytest.mark.parametrize(
    ("field", "value"), [("run_id", RunId("00000000-0000-7000-8000-000000000001")), ("kind", "acme.invoice"), ("schema_version", 2)]
)
def test_a_successor_keeps_run_kind_and_schema_version(store: CheckpointStore, field: str, value: object) -> None:
    last = stream(store, 2)[-1]
    with nothing_written(store), pytest.raises(InvalidRequest) as caught:
        store.compare_and_swap(last.next({}).model_copy(update={field: value}), 1)
    assert caught.value.field == field
    assert str(value) in str(caught.value)


def test_a_successor_keeps_its_tenant(store: CheckpointStore) -> None:
    last = stream(store, 2, tenant="north")[-1]
    with nothing_written(store), pytest.raises(NotFound):
        store.compare_and_swap(last.next({}).model_copy(update={"tenant": "south"}), 1)


def test_labels_are_carried_on_unless_given(store: CheckpointStore) -> None:
    first = initial(labels={"env": "prod"})
    store.compare_and_swap(first, None)
    second = first.next({})
    store.compare_and_swap(second, 0)
    assert store.load(first.id).labels == {"env": "prod"}
    store.compare_and_swap(second.next({}, labels={}), 1)
    assert store.load(first.id).labels == {}


def test_an_import_starts_at_another_stores_revision_and_goes_on_from_there(store: CheckpointStore) -> None:
    moved = numbered(initial(), 41)
    receipt = store.import_revision(moved)
    assert (receipt.revision, receipt.duplicate) == (41, False)
    assert store.import_revision(moved) == receipt._replace(duplicate=True)
    assert store.load_revision(moved.id).type is EventType.IMPORTED
    following = moved.next({})
    store.compare_and_swap(following, 41)
    gap, *found = store.history(moved.id)
    assert gap == Gap(moved.id, 0, 40, "import")
    assert [each.checkpoint for each in found if isinstance(each, Revision)] == [moved, following]
    assert store.import_revision(moved) == receipt._replace(duplicate=True)


def test_an_import_never_overwrites(store: CheckpointStore) -> None:
    last = stream(store, 3)[-1]
    with nothing_written(store):
        for revision in (0, 2, 3, 9):
            with pytest.raises(Conflict) as caught:
                store.import_revision(numbered(last, revision))
            assert caught.value.actual == 2


def test_an_import_sent_again_as_a_plain_revision_is_refused(store: CheckpointStore) -> None:
    moved = initial()
    store.import_revision(moved)
    with nothing_written(store):
        error = outcome(store, moved, None)
    assert isinstance(error, EventIdReused)
    assert error.differs == "type"
