"""Promise 1: a revision is committed only as the exact successor. Every row of the table of compare-and-swap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from eventlog import Checkpoint, CheckpointError, CheckpointStore, Conflict, Deleted, Gap, NotFound, Receipt
from tests.store.other_process import Refused, calling
from tests.store.samples import initial, nothing_written, numbered, outcome, since, stream

LAST = 2**63 - 1


class Row(NamedTuple):
    stored: str  # absent, a revision, or deleted (at revision 3)
    expected: int | None
    revision: int
    result: type


ROWS = [
    Row("absent", None, 0, Receipt),
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
    Row("0", 0, 1, Receipt),
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
    Row("2", 2, 3, Receipt),
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


def prepared(store: CheckpointStore, row: Row) -> Checkpoint:
    """The proposal of a row, its checkpoint in the state that the row wants."""
    if row.stored == "absent":
        return numbered(initial(), row.revision)
    written = stream(store, 1 if row.stored == "0" else 3)
    if row.stored == "deleted":
        store.delete(written[0].id, 2)
    return numbered(written[-1], row.revision)


def check_refusal(error: CheckpointError | Receipt, row: Row, proposal: Checkpoint) -> None:
    assert type(error) is row.result
    assert proposal.id in str(error)
    if isinstance(error, Conflict):
        assert (error.checkpoint_id, error.expected, error.actual, error.proposed) == (
            proposal.id,
            row.expected,
            CURRENT[row.stored],
            row.revision,
        )
    if isinstance(error, Deleted):
        assert error.last_revision == 3


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.stored}-{row.expected}-{row.revision}")
def test_a_revision_is_committed_only_as_the_exact_successor(store: CheckpointStore, row: Row) -> None:
    proposal = prepared(store, row)
    before = store.position()
    result = outcome(store, proposal, row.expected)
    if row.result is Receipt:
        assert isinstance(result, Receipt)
        assert (result.event_id, result.revision, result.duplicate) == (proposal.event_id, row.revision, False)
        assert [each.checkpoint for each in since(store, before)] == [proposal]
        assert store.load(proposal.id) == proposal
    else:
        check_refusal(result, row, proposal)
        assert since(store, before) == []


def test_a_second_store_object_decides_alike(store: CheckpointStore, opening: Callable[..., CheckpointStore]) -> None:
    proposals = [prepared(store, row) for row in ROWS]
    other = opening()
    results = [outcome(other, proposal, row.expected) for row, proposal in zip(ROWS, proposals, strict=True)]
    for row, proposal, result in zip(ROWS, proposals, results, strict=True):
        if row.result is Receipt:
            assert isinstance(result, Receipt)
            assert store.load(proposal.id) == proposal
        else:
            check_refusal(result, row, proposal)


def test_another_process_decides_alike(store: CheckpointStore, second_address: str) -> None:
    proposals = [prepared(store, row) for row in ROWS]
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("compare_and_swap", (proposal, row.expected), {}) for row, proposal in zip(ROWS, proposals, strict=True)
    ]
    for row, proposal, answer in zip(ROWS, proposals, calling(second_address, *calls), strict=True):
        if row.result is Receipt:
            assert (answer.event_id, answer.revision) == (proposal.event_id, row.revision)
            assert store.load(proposal.id) == proposal
        else:
            assert isinstance(answer, Refused)
            assert answer.error == row.result.__name__
            if row.result is Conflict:
                assert answer.attributes["actual"] == CURRENT[row.stored]


def test_what_was_decided_stands_after_reopening(fresh_address: str) -> None:
    from eventlog import open_store

    with open_store(fresh_address) as store:
        proposals = [prepared(store, row) for row in ROWS]
        results = [outcome(store, proposal, row.expected) for row, proposal in zip(ROWS, proposals, strict=True)]
    with open_store(fresh_address) as store:
        for row, proposal, result in zip(ROWS, proposals, results, strict=True):
            again = outcome(store, proposal, row.expected)
            if isinstance(result, Receipt):
                assert again == result._replace(duplicate=True)
            else:
                check_refusal(again, row, proposal)


def test_the_last_revision_has_no_successor(store: CheckpointStore) -> None:
    last = numbered(initial(), LAST)
    store.import_revision(last)
    assert store.load(last.id).revision == LAST
    with nothing_written(store):
        assert type(outcome(store, numbered(last, LAST), LAST)) is Conflict
    assert list(store.history(last.id)) == [Gap(last.id, 0, LAST - 1, "import"), store.load_revision(last.id)]
