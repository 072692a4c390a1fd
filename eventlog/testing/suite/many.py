"""Many in one call: independent revisions, one outcome each."""

from __future__ import annotations

from typing import Any

from eventlog.errors import Conflict, Deleted, NotFound
from eventlog.testing.suite.features import Feature, Subject, needs
from eventlog.testing.suite.samples import held, initial, is_receipt, pairs, stream


class Many(Subject):
    """compare_and_swap_many."""

    @needs(Feature.MANY)
    def test_each_gets_its_own_outcome_in_order(self, store: Any) -> None:
        written, fresh = stream(store, 2), [initial(), initial()]
        stale, following = written[0].next({"stale": True}), written[1].next({"good": True})
        outcomes = store.compare_and_swap_many([(fresh[0], None), (stale, 0), (initial(), 7), (following, 1), (fresh[1], None)])
        assert [is_receipt(each, checkpoint) for each, checkpoint in zip(outcomes[::3], (fresh[0], following), strict=True)] == [True, True]
        assert [type(each) for each in outcomes[1:3]] == [Conflict, NotFound]
        assert is_receipt(outcomes[4], fresh[1])
        assert [store.load(each.id) for each in fresh] == fresh
        assert held(store, following.id) == pairs(*written, following)

    @needs(Feature.MANY)
    def test_successors_in_one_call_follow_each_other(self, store: Any) -> None:
        first = initial()
        second = first.next({"step": 1})
        third = second.next({"step": 2})
        outcomes = store.compare_and_swap_many([(first, None), (second, 0), (third, 1)])
        assert all(is_receipt(each, checkpoint) for each, checkpoint in zip(outcomes, (first, second, third), strict=True))
        assert held(store, first.id) == pairs(first, second, third)

    @needs(Feature.MANY)
    def test_of_rivals_in_one_call_the_first_wins(self, store: Any) -> None:
        first = stream(store, 1)[0]
        winner, loser = first.next({"first": True}), first.next({"second": True})
        won, lost = store.compare_and_swap_many([(winner, 0), (loser, 0)])
        assert is_receipt(won, winner)
        assert isinstance(lost, Conflict)
        assert lost.actual == 1
        assert held(store, first.id) == pairs(first, winner)

    @needs(Feature.MANY, Feature.RETRY)
    def test_the_same_event_twice_in_one_call_is_written_once(self, store: Any) -> None:
        first = initial()
        one, two = store.compare_and_swap_many([(first, None), (first, None)])
        assert is_receipt(one, first)
        assert is_receipt(two, first, duplicate=True)
        assert held(store, first.id) == pairs(first)

    @needs(Feature.MANY, Feature.DELETE)
    def test_one_that_follows_a_deletion_is_refused_among_others(self, store: Any) -> None:
        gone, fresh = stream(store, 1)[0], initial()
        store.delete(gone.id, 0)
        refused, committed = store.compare_and_swap_many([(gone.next({}), 0), (fresh, None)])
        assert isinstance(refused, Deleted)
        assert is_receipt(committed, fresh)
