"""A revision is committed only as the exact successor: every row of the table of compare-and-swap."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from eventlog.checkpoint import Checkpoint
from eventlog.errors import CheckpointError, Conflict, Deleted, NotFound
from eventlog.testing.suite.features import Feature, Subject
from eventlog.testing.suite.samples import held, initial, is_receipt, numbered, outcome, pairs, stream

LAST = 2**63 - 1


class Row(NamedTuple):
    """What is stored, what is asked for, and what comes of it."""

    stored: str  # absent, a revision, or deleted (at revision 3)
    expected: int | None
    revision: int
    result: type[CheckpointError] | None  # None: committed


ROWS = [
    Row("absent", None, 0, None),
    Row("absent", None, 1, Conflict),
    Row("absent", None, 7, Conflict),
    Row("absent", None, LAST, Conflict),
    Row("absent", 0, 0, NotFound),
    Row("absent", 0, 1, NotFound),
    Row("absent", 5, 6, NotFound),
    Row("absent", LAST, LAST, NotFound),
    Row("0", None, 0, Conflict),
    Row("0", None, 1, Conflict),
    Row("0", 0, 0, Conflict),
    Row("0", 0, 1, None),
    Row("0", 0, 2, Conflict),
    Row("0", 1, 2, Conflict),
    Row("2", None, 0, Conflict),
    Row("2", None, 2, Conflict),
    Row("2", None, 3, Conflict),
    Row("2", 0, 1, Conflict),
    Row("2", 1, 2, Conflict),
    Row("2", 1, 3, Conflict),
    Row("2", 2, 1, Conflict),
    Row("2", 2, 2, Conflict),
    Row("2", 2, 3, None),
    Row("2", 2, 4, Conflict),
    Row("2", 2, LAST, Conflict),
    Row("2", 3, 3, Conflict),
    Row("2", 3, 4, Conflict),
    Row("2", LAST, LAST, Conflict),
    Row("deleted", None, 0, Deleted),
    Row("deleted", None, 4, Deleted),
    Row("deleted", 0, 1, Deleted),
    Row("deleted", 2, 3, Deleted),
    Row("deleted", 3, 4, Deleted),
    Row("deleted", 3, 5, Deleted),
    Row("deleted", 9, 10, Deleted),
]
CURRENT = {"absent": None, "0": 0, "2": 2, "deleted": 3}


def prepared(store: Any, row: Row) -> Checkpoint:
    """The proposal of a row, its checkpoint in the state that the row wants."""
    if row.stored == "absent":
        return numbered(initial(), row.revision)
    written = stream(store, 1 if row.stored == "0" else 3)
    if row.stored == "deleted":
        store.delete(written[0].id, 2)
    return numbered(written[-1], row.revision)


def check_answer(answer: Any, row: Row, proposal: Checkpoint) -> None:
    """Whether it is the row's."""
    if row.result is None:
        assert is_receipt(answer, proposal)
        return
    assert type(answer) is row.result
    assert proposal.id in str(answer)
    if isinstance(answer, Conflict):
        told = answer.checkpoint_id, answer.expected, answer.actual, answer.proposed
        assert told == (proposal.id, row.expected, CURRENT[row.stored], row.revision)
    if isinstance(answer, Deleted):
        assert answer.last_revision == 3


class Matrix(Subject):
    """Compare-and-swap."""

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.stored}-{row.expected}-{row.revision}")
    def test_a_revision_is_committed_only_as_the_exact_successor(self, store: Any, row: Row) -> None:
        if row.stored == "deleted":
            self.skip_without(Feature.DELETE)
        proposal = prepared(store, row)
        before = held(store, proposal.id)
        check_answer(outcome(store, proposal, row.expected), row, proposal)
        assert held(store, proposal.id) == [*before, *([] if row.result else pairs(proposal))]
        if row.result is None:
            assert store.load(proposal.id) == proposal

    def test_a_second_store_object_decides_alike(self, store: Any, another: Any) -> None:
        rows = [row for row in ROWS if row.stored != "deleted" or self.has(Feature.DELETE)]
        proposals = [prepared(store, row) for row in rows]
        for row, proposal in zip(rows, proposals, strict=True):
            check_answer(outcome(another, proposal, row.expected), row, proposal)
            if row.result is None:
                assert store.load(proposal.id) == another.load(proposal.id) == proposal

    def test_an_absent_one_is_not_found(self, store: Any) -> None:
        absent = initial()
        for read in (store.load, lambda checkpoint_id: list(store.history(checkpoint_id))):
            with pytest.raises(NotFound) as caught:
                read(absent.id)
            assert type(caught.value) is NotFound

    def test_a_losing_event_is_never_in_the_log(self, store: Any) -> None:
        written = stream(store, 2)
        losers = [written[0].next({"late": True}), written[1].next({"early": True}).next(None)]
        for loser, expected in ((losers[0], 0), (losers[1], 2)):
            assert isinstance(outcome(store, loser, expected), Conflict)
        winner = written[1].next({"won": True})
        store.compare_and_swap(winner, 1)
        assert held(store, winner.id) == pairs(*written, winner)
        if self.has(Feature.RESOLVE):
            assert [store.resolve(loser) for loser in losers] == [None, None]
            assert [store.resolve(loser.event_id) for loser in losers] == [None, None]

    def test_a_loser_stays_refused_however_often_it_is_sent(self, store: Any) -> None:
        written = stream(store, 3)
        loser = written[0].next({"late": True})
        for _ in range(5):
            error = outcome(store, loser, 0)
            assert isinstance(error, Conflict)
            assert (error.expected, error.actual, error.proposed) == (0, 2, 1)
        assert held(store, loser.id) == pairs(*written)

    def test_a_conflict_never_reloads_by_itself(self, store: Any) -> None:
        """adk-python#4751: the caller has to decide again; its next attempt from the same state conflicts again."""
        written = stream(store, 2)
        for _ in range(3):
            error = outcome(store, written[0].next({"stale": True}), 0)
            assert isinstance(error, Conflict)
            assert error.actual == 1
        assert store.load(written[0].id) == written[-1]
