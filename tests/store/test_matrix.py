"""Promise 1, further than the contract goes: another process, a reopened store, no record of what was refused, the last revision."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import CheckpointStore, Conflict, Gap, Receipt, open_store
from eventlog.testing.suite.matrix import CURRENT, LAST, ROWS, Row, check_answer, prepared
from tests.store.other_process import Refused, calling
from tests.store.samples import initial, nothing_written, numbered, outcome


@pytest.mark.parametrize("row", [row for row in ROWS if row.result], ids=lambda row: f"{row.stored}-{row.expected}-{row.revision}")
def test_what_is_refused_leaves_no_record_in_the_log(store: CheckpointStore, row: Row) -> None:
    proposal = prepared(store, row)
    with nothing_written(store):
        check_answer(outcome(store, proposal, row.expected), row, proposal)


def test_another_process_decides_alike(store: CheckpointStore, second_address: str) -> None:
    proposals = [prepared(store, row) for row in ROWS]
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("compare_and_swap", (proposal, row.expected), {}) for row, proposal in zip(ROWS, proposals, strict=True)
    ]
    for row, proposal, answer in zip(ROWS, proposals, calling(second_address, *calls), strict=True):
        if row.result is None:
            assert (answer.event_id, answer.revision) == (proposal.event_id, row.revision)
            assert store.load(proposal.id) == proposal
        else:
            assert isinstance(answer, Refused)
            assert answer.error == row.result.__name__
            if row.result is Conflict:
                assert answer.attributes["actual"] == CURRENT[row.stored]


def test_what_was_decided_stands_after_reopening(fresh_address: str) -> None:
    with open_store(fresh_address) as store:
        proposals = [prepared(store, row) for row in ROWS]
        results = [outcome(store, proposal, row.expected) for row, proposal in zip(ROWS, proposals, strict=True)]
    with open_store(fresh_address) as store:
        for row, proposal, result in zip(ROWS, proposals, results, strict=True):
            again = outcome(store, proposal, row.expected)
            if isinstance(result, Receipt):
                assert again == result._replace(duplicate=True)
            else:
                check_answer(again, row, proposal)


def test_the_last_revision_has_no_successor(store: CheckpointStore) -> None:
    last = numbered(initial(), LAST)
    store.import_revision(last)
    assert store.load(last.id).revision == LAST
    with nothing_written(store):
        assert type(outcome(store, numbered(last, LAST), LAST)) is Conflict
    assert list(store.history(last.id)) == [Gap(last.id, 0, LAST - 1, "import"), store.load_revision(last.id)]
