"""A retry is not a conflict: the same event sent again gets its first receipt."""

from __future__ import annotations

from typing import Any

from eventlog.testing.suite.features import Feature, Subject, needs
from eventlog.testing.suite.samples import held, initial, is_receipt, pairs, stream


class Retries(Subject):
    """Idempotent writes."""

    @needs(Feature.RETRY)
    def test_a_retry_gets_its_first_receipt(self, store: Any) -> None:
        first = initial({"a": 1, "b": [1.5, None, "x" * 5000]})
        receipt = store.compare_and_swap(first, None)
        again = store.compare_and_swap(first, None)
        assert is_receipt(receipt, first)
        assert is_receipt(again, first, duplicate=True)
        assert getattr(again, "position", None) == getattr(receipt, "position", None)
        assert held(store, first.id) == pairs(first)

    @needs(Feature.RETRY)
    def test_a_retry_gets_its_first_receipt_after_later_revisions(self, store: Any) -> None:
        written = stream(store, 3)
        for checkpoint, expected in ((written[0], None), (written[1], 0), (written[2], 1)):
            assert is_receipt(store.compare_and_swap(checkpoint, expected), checkpoint, duplicate=True)
        assert held(store, written[0].id) == pairs(*written)

    @needs(Feature.RETRY, Feature.DELETE)
    def test_a_retry_gets_its_first_receipt_after_the_deletion(self, store: Any) -> None:
        first = stream(store, 1)[0]
        store.delete(first.id, 0)
        assert is_receipt(store.compare_and_swap(first, None), first, duplicate=True)
        assert len(held(store, first.id)) == 2

    @needs(Feature.RETRY)
    def test_what_was_loaded_can_be_sent_again(self, store: Any) -> None:
        first = stream(store, 1)[0]
        assert is_receipt(store.compare_and_swap(store.load(first.id), None), first, duplicate=True)

    @needs(Feature.RETRY)
    def test_a_retry_through_another_store_object_gets_the_first_receipt(self, store: Any, another: Any) -> None:
        first = stream(store, 1)[0]
        assert is_receipt(another.compare_and_swap(first, None), first, duplicate=True)
        assert held(store, first.id) == held(another, first.id) == pairs(first)
