"""compare_and_swap_many, further than the contract goes: malformed revisions, and many of them."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import CheckpointStore, InvalidPayload, InvalidRequest, NotFound, Receipt
from tests.store.samples import initial, nothing_written


def test_a_malformed_one_is_an_outcome_and_the_others_are_written(store: CheckpointStore) -> None:
    good, bad = [initial(), initial()], initial({"when": {1, 2}})
    wrong: Any = "no checkpoint"
    outcomes = store.compare_and_swap_many([(good[0], None), (bad, None), (wrong, None), (good[1], None), (initial(), -1)])
    assert [type(each) for each in outcomes] == [Receipt, InvalidPayload, InvalidRequest, Receipt, InvalidRequest]
    assert [store.load(each.id) for each in good] == good
    with pytest.raises(NotFound):
        store.load(bad.id)


def test_only_malformed_ones_write_nothing(store: CheckpointStore) -> None:
    with nothing_written(store):
        outcomes = store.compare_and_swap_many([(initial(float("nan")), None), (initial({1: 2}), None)])
    assert [type(each) for each in outcomes] == [InvalidPayload, InvalidPayload]


def test_more_than_a_commit_takes_are_all_written(store: CheckpointStore) -> None:
    many = [initial({"number": number}) for number in range(2500)]
    outcomes = store.compare_and_swap_many((each, None) for each in many)
    assert all(isinstance(each, Receipt) for each in outcomes)
    assert [store.load(each.id).payload for each in many[::500]] == [each.payload for each in many[::500]]


def test_an_empty_call_is_refused(store: CheckpointStore) -> None:
    with nothing_written(store), pytest.raises(InvalidRequest, match="revisions"):
        store.compare_and_swap_many([])
