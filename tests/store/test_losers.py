"""Promises 3 and 5: what is reported a conflict is not in the log, and never will be; the last record is always the winner's."""

from __future__ import annotations

from eventlog import CheckpointStore, Conflict, Position, Receipt
from tests.store.samples import initial, outcome, revisions, since, stream


def test_a_losing_event_is_never_in_the_log(store: CheckpointStore) -> None:
    written = stream(store, 2)
    before = store.position()
    losers = [written[0].next({"late": True}), written[1].next({"early": True}).next(None)]
    for loser, expected in ((losers[0], 0), (losers[1], 2)):
        assert isinstance(outcome(store, loser, expected), Conflict)
    winner = written[1].next({"won": True})
    store.compare_and_swap(winner, 1)
    assert [each.checkpoint for each in since(store, before)] == [winner]
    assert [store.resolve(loser.event_id) for loser in losers] == [None, None]
    assert [store.resolve(loser) for loser in losers] == [None, None]


def test_a_loser_stays_refused_however_often_it_is_sent(store: CheckpointStore) -> None:
    written = stream(store, 3)
    loser = written[0].next({"late": True})
    for _ in range(5):
        error = outcome(store, loser, 0)
        assert isinstance(error, Conflict)
        assert (error.expected, error.actual, error.proposed) == (0, 2, 1)
    assert [each.checkpoint for each in revisions(store, loser.id)] == written


def test_a_conflict_never_reloads_by_itself(store: CheckpointStore) -> None:
    """adk-python#4751: the caller has to decide again; its next attempt from the same state conflicts again."""
    written = stream(store, 2)
    for _ in range(3):
        error = outcome(store, written[0].next({"stale": True}), 0)
        assert isinstance(error, Conflict)
        assert error.actual == 1
    assert store.load(written[0].id) == written[-1]


def test_every_receipt_points_just_behind_its_event(store: CheckpointStore) -> None:
    first = initial()
    receipt = store.compare_and_swap(first, None)
    assert isinstance(receipt, Receipt)
    (found,) = (each for each in since(store, Position()) if each.checkpoint.event_id == first.event_id)
    assert (found.position, found.recorded_at) == (receipt.position, receipt.recorded_at)
    assert store.position().covers(receipt.position)
