"""Unclear outcomes: the answer was lost on its way, and the caller finds out what became of its event, from the log."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog.errors import Conflict, OutcomeUnknown
from eventlog.ids import EventId
from eventlog.testing.forgetful import Forgetful
from eventlog.testing.suite.features import Feature, Subject, needs
from eventlog.testing.suite.samples import held, initial, is_receipt, outcome, pairs, stream


def lost(store: Any, call: str, *arguments: Any, written: bool, **named: Any) -> None:
    """A write whose answer does not arrive."""
    forgetful = Forgetful(store, lose=lambda: "answer" if written else "request")
    with pytest.raises(OutcomeUnknown):
        getattr(forgetful, call)(*arguments, **named)


class Unclear(Subject):
    """What `OutcomeUnknown` leaves to do."""

    @needs(Feature.RESOLVE)
    def test_resolve_finds_what_was_committed_by_id_and_by_its_checkpoint(self, store: Any) -> None:
        written = stream(store, 2)
        for each in written:
            assert is_receipt(store.resolve(each), each)
            assert is_receipt(store.resolve(each.event_id), each)

    @needs(Feature.RESOLVE)
    def test_resolve_of_an_absent_event_is_none(self, store: Any) -> None:
        assert store.resolve(EventId.new()) is None
        assert store.resolve(initial()) is None
        assert store.resolve(stream(store, 2)[-1].next({})) is None

    @needs(Feature.RESOLVE)
    def test_another_event_of_the_same_revision_is_none(self, store: Any) -> None:
        written = stream(store, 3)
        rival = written[0].next({"rival": True})
        assert isinstance(outcome(store, rival, 0), Conflict)
        assert store.resolve(rival) is None
        assert store.resolve(rival.event_id) is None

    @needs(Feature.RESOLVE)
    @pytest.mark.parametrize("written", [True, False], ids=["written", "not written"])
    def test_resolve_tells_what_became_of_an_unclear_event(self, store: Any, another: Any, written: bool) -> None:
        first = stream(store, 1)[0]
        second = first.next({"unclear": True})
        lost(store, "compare_and_swap", second, 0, written=written)
        for opened in (store, another):
            for event in (second, second.event_id):
                assert is_receipt(opened.resolve(event), second) if written else opened.resolve(event) is None
        assert held(store, first.id) == pairs(first, *([second] if written else []))

    @needs(Feature.RETRY)
    @pytest.mark.parametrize("written", [True, False], ids=["written", "not written"])
    def test_sending_an_unclear_event_again_writes_it_once(self, store: Any, written: bool) -> None:
        first = initial()
        lost(store, "compare_and_swap", first, None, written=written)
        assert is_receipt(store.compare_and_swap(first, None), first, duplicate=written)
        assert held(store, first.id) == pairs(first)

    @needs(Feature.RETRY)
    def test_an_unclear_event_that_another_has_overtaken_is_a_conflict(self, store: Any) -> None:
        first = stream(store, 1)[0]
        unclear, winner = first.next({"unclear": True}), first.next({"won": True})
        lost(store, "compare_and_swap", unclear, 0, written=False)
        store.compare_and_swap(winner, 0)
        error = outcome(store, unclear, 0)
        assert isinstance(error, Conflict)
        assert error.actual == 1
        assert held(store, first.id) == pairs(first, winner)

    @needs(Feature.RETRY)
    def test_an_unclear_event_that_others_have_followed_gets_its_receipt(self, store: Any) -> None:
        first = stream(store, 1)[0]
        unclear = first.next({"unclear": True})
        lost(store, "compare_and_swap", unclear, 0, written=True)
        following = store.load(first.id).next({"followed": True})
        store.compare_and_swap(following, 1)
        assert is_receipt(store.compare_and_swap(unclear, 0), unclear, duplicate=True)
        assert held(store, first.id) == pairs(first, unclear, following)

    @needs(Feature.RESOLVE, Feature.DELETE)
    def test_resolve_finds_a_deletion(self, store: Any) -> None:
        first = stream(store, 1)[0]
        event_id = EventId.new()
        lost(store, "delete", first.id, 0, event_id=event_id, written=True)
        assert store.resolve(event_id).revision == 1
