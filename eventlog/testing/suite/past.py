"""The order of revisions, and the past: one revision, or what was current at a position."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from eventlog.errors import Deleted, NotFound
from eventlog.testing.suite.features import Feature, Subject, needs
from eventlog.testing.suite.samples import held, initial, pairs, stream


class Past(Subject):
    """history, load(revision=) and load(at=)."""

    def test_a_history_has_every_revision_oldest_first(self, store: Any) -> None:
        one, two = stream(store, 5), stream(store, 3)
        assert held(store, one[0].id) == pairs(*one)
        assert held(store, two[0].id) == pairs(*two)

    def test_a_writers_clock_that_goes_back_changes_no_order(self, store: Any) -> None:
        """langgraph#6869."""
        written = [initial()]
        store.compare_and_swap(written[0], None)
        for hours in (-1, 5, -1000, 0, 0):
            written.append(written[-1].next({"hours": hours}, updated_at=written[0].updated_at + timedelta(hours=hours)))
            store.compare_and_swap(written[-1], written[-1].revision - 1)
        assert held(store, written[0].id) == pairs(*written)
        assert store.load(written[0].id) == written[-1]

    @needs(Feature.REVISIONS)
    def test_a_certain_revision_is_loaded_as_it_was(self, store: Any) -> None:
        written = stream(store, 4)
        assert [store.load(written[0].id, revision=number) for number in range(4)] == written
        with pytest.raises(NotFound) as caught:
            store.load(written[0].id, revision=4)
        assert type(caught.value) is NotFound

    @needs(Feature.REVISIONS, Feature.DELETE)
    def test_a_deleted_ones_revisions_stay_readable(self, store: Any) -> None:
        written = stream(store, 2)
        store.delete(written[0].id, 1)
        assert [store.load(written[0].id, revision=number) for number in range(2)] == written
        with pytest.raises(Deleted):
            store.load(written[0].id, revision=2)

    @needs(Feature.AS_OF)
    def test_what_was_current_at_a_position_is_loaded(self, store: Any, another: Any) -> None:
        before = store.position()
        first = initial()
        store.compare_and_swap(first, None)
        between = store.position()
        second = first.next({"step": 1})
        store.compare_and_swap(second, 0)
        for opened in (store, another):
            assert opened.load(first.id, at=between) == first
            assert opened.load(first.id, at=opened.position()) == second
            with pytest.raises(NotFound):
                opened.load(first.id, at=before)

    @needs(Feature.AS_OF, Feature.DELETE)
    def test_before_its_deletion_a_checkpoint_was_there(self, store: Any) -> None:
        first = stream(store, 1)[0]
        before = store.position()
        store.delete(first.id, 0)
        assert store.load(first.id, at=before) == first
        with pytest.raises(Deleted):
            store.load(first.id, at=store.position())
