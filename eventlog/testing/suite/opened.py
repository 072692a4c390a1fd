"""One store, opened more than once: at the same time, and again after it was closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eventlog.errors import Conflict, Deleted
from eventlog.testing.suite.features import Feature, Subject, close, needs
from eventlog.testing.suite.samples import held, initial, outcome, pairs, stream


class Opened(Subject):
    """What one has written, all others have."""

    def test_a_commit_is_seen_by_every_store_at_once(self, store: Any, another: Any) -> None:
        checkpoint, expected = initial(), None
        for _ in range(4):
            store.compare_and_swap(checkpoint, expected)
            assert another.load(checkpoint.id) == store.load(checkpoint.id) == checkpoint
            checkpoint, expected = checkpoint.next({"more": checkpoint.revision}), checkpoint.revision

    def test_they_write_in_turns(self, store: Any, another: Any) -> None:
        written = stream(store, 1)
        for writer in (another, store, another, store):
            written.append(written[-1].next({"step": len(written)}))
            writer.compare_and_swap(written[-1], written[-1].revision - 1)
            error = outcome(store if writer is another else another, written[-2].next({"late": True}), written[-2].revision)
            assert isinstance(error, Conflict)
            assert error.actual == written[-1].revision
        assert held(store, written[0].id) == held(another, written[0].id) == pairs(*written)

    def test_what_was_written_stands_after_opening_it_again(self, opening: Callable[[], Any]) -> None:
        opened = opening()
        written = stream(opened, 3)
        close(opened)
        again = opening()
        assert again.load(written[0].id) == written[-1]
        assert held(again, written[0].id) == pairs(*written)
        assert isinstance(outcome(again, written[0].next({"late": True}), 0), Conflict)
        close(again)

    @needs(Feature.DELETE)
    def test_a_deletion_stands_after_opening_it_again(self, opening: Callable[[], Any]) -> None:
        opened = opening()
        first = stream(opened, 1)[0]
        opened.delete(first.id, 0)
        close(opened)
        again = opening()
        with pytest.raises(Deleted):
            again.load(first.id)
        close(again)
