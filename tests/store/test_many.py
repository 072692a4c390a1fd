"""compare_and_swap_many: independent revisions, one outcome each."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import CheckpointStore, Conflict, Deleted, InvalidPayload, InvalidRequest, NotFound, Receipt
from tests.store.samples import initial, nothing_written, revisions, stream


def test_each_gets_its_own_outcome_in_order(store: CheckpointStore) -> None:
    written = stream(store, 2)
    gone = stream(store, 1)[0]
    store.delete(gone.id, 0)
    fresh = [initial(), initial()]
    stale, following = written[0].next({"stale": True}), written[1].next({"good": True})
    outcomes = store.compare_and_swap_many(
        [(fresh[0], None), (stale, 0), (initial(), 7), (following, 1), (gone.next({}), 0), (fresh[1], None), (written[0], None)]
    )
    assert [type(each) for each in outcomes] == [Receipt, Conflict, NotFound, Receipt, Deleted, Receipt, Receipt]
    receipts = [each for each in outcomes if isinstance(each, Receipt)]
    assert [each.event_id for each in receipts] == [fresh[0].event_id, following.event_id, fresh[1].event_id, written[0].event_id]
    assert [each.duplicate for each in receipts] == [False, False, False, True]
    assert [store.load(each.id) for each in fresh] == fresh
    assert [each.checkpoint for each in revisions(store, following.id)] == [*written, following]


def test_a_malformed_one_is_an_outcome_and_the_others_are_written(store: CheckpointStore) -> None:
    good, bad = [initial(), initial()], initial({"when": {1, 2}})
    wrong: Any = "no checkpoint"
    outcomes = store.compare_and_swap_many([(good[0], None), (bad, None), (wrong, None), (good[1], None), (initial(), -1)])
    assert [type(each) for each in outcomes] == [Receipt, InvalidPayload, InvalidRequest, Receipt, InvalidRequest]
    assert [store.load(each.id) for each in good] == good
    with pytest.raises(NotFound):
        store.load(bad.id)


def test_only_malformed_ones_write_nothing(store: CheckpointStore) -> None:
    with nothing_written(store):
        outcomes = store.compare_and_swap_many([(initial(float("nan")), None), (initial({1: 2}), None)])
    assert [type(each) for each in outcomes] == [InvalidPayload, InvalidPayload]


def test_successors_in_one_call_follow_each_other(store: CheckpointStore) -> None:
    first = initial()
    second = first.next({"step": 1})
    third = second.next({"step": 2})
    outcomes = store.compare_and_swap_many([(first, None), (second, 0), (third, 1)])
    assert [type(each) for each in outcomes] == [Receipt, Receipt, Receipt]
    assert [each.checkpoint for each in revisions(store, first.id)] == [first, second, third]


def test_rivals_in_one_call_the_first_wins(store: CheckpointStore) -> None:
    first = stream(store, 1)[0]
    winner, loser = first.next({"first": True}), first.next({"second": True})
    outcomes = store.compare_and_swap_many([(winner, 0), (loser, 0)])
    assert isinstance(outcomes[0], Receipt)
    assert isinstance(outcomes[1], Conflict)
    assert outcomes[1].actual == 1
    assert [each.checkpoint for each in revisions(store, first.id)] == [first, winner]


def test_the_same_event_twice_in_one_call_is_written_once(store: CheckpointStore) -> None:
    first = initial()
    one, two = store.compare_and_swap_many([(first, None), (first, None)])
    assert isinstance(one, Receipt)
    assert two == one._replace(duplicate=True)
    assert len(revisions(store, first.id)) == 1


def test_more_than_a_commit_takes_are_all_written(store: CheckpointStore) -> None:
    many = [initial({"number": number}) for number in range(2500)]
    outcomes = store.compare_and_swap_many((each, None) for each in many)
    assert all(isinstance(each, Receipt) for each in outcomes)
    assert [store.load(each.id).payload for each in many[::500]] == [each.payload for each in many[::500]]


def test_an_empty_call_is_refused(store: CheckpointStore) -> None:
    with nothing_written(store), pytest.raises(InvalidRequest, match="revisions"):
        store.compare_and_swap_many([])
