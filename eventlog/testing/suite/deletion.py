"""Deletion: an event ends a checkpoint; its id never starts again, and its history stays."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog.errors import Conflict, Deleted, NotFound
from eventlog.ids import EventId
from eventlog.testing.suite.features import Feature, Subject, needs
from eventlog.testing.suite.samples import held, initial, is_receipt, numbered, outcome, pairs, stream


class Deletion(Subject):
    """delete."""

    @needs(Feature.DELETE)
    def test_a_deleted_checkpoint_is_gone_and_its_history_stays(self, store: Any) -> None:
        written = stream(store, 3)
        event_id = EventId.new()
        receipt = store.delete(written[0].id, 2, event_id=event_id)
        assert (receipt.revision, receipt.event_id) == (3, event_id)
        with pytest.raises(Deleted) as caught:
            store.load(written[0].id)
        assert (caught.value.checkpoint_id, caught.value.last_revision) == (written[0].id, 3)
        assert held(store, written[0].id) == [*pairs(*written), (3, event_id)]

    @needs(Feature.DELETE)
    def test_a_deleted_one_never_starts_again(self, store: Any, another: Any) -> None:
        first = stream(store, 1)[0]
        store.delete(first.id, 0)
        before = held(store, first.id)
        for opened in (store, another):
            for revision, expected in ((0, None), (1, 0), (2, 1), (3, 2)):
                error = outcome(opened, numbered(first, revision), expected)
                assert isinstance(error, Deleted)
                assert error.last_revision == 1
            for expected in (0, 1):
                with pytest.raises(Deleted):
                    opened.delete(first.id, expected)
        assert held(store, first.id) == before

    @needs(Feature.DELETE)
    def test_a_stale_delete_conflicts(self, store: Any) -> None:
        written = stream(store, 3)
        for expected in (0, 1, 3, 7):
            with pytest.raises(Conflict) as caught:
                store.delete(written[0].id, expected)
            assert caught.value.actual == 2
        assert store.load(written[0].id) == written[-1]
        assert held(store, written[0].id) == pairs(*written)

    @needs(Feature.DELETE)
    def test_an_absent_one_cannot_be_deleted(self, store: Any) -> None:
        with pytest.raises(NotFound) as caught:
            store.delete(initial().id, 0)
        assert type(caught.value) is NotFound

    @needs(Feature.DELETE, Feature.RETRY)
    def test_a_retried_delete_gets_its_first_receipt(self, store: Any) -> None:
        first = stream(store, 1)[0]
        event_id = EventId.new()
        store.delete(first.id, 0, event_id=event_id)
        again = store.delete(first.id, 0, event_id=event_id)
        assert is_receipt(again, first.next(None, event_id=event_id), duplicate=True)
        assert len(held(store, first.id)) == 2
