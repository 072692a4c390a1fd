"""An event over the size limit is refused with both sizes; nothing is written."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from eventlog import CheckpointStore, InvalidRequest, Receipt, TooLarge
from tests.store.samples import initial, nothing_written

LIMIT = 20_000


def noise(size: int) -> str:
    """Text that compresses to half its size at best."""
    return os.urandom(size // 2).hex()


def test_an_event_over_the_limit_names_both_sizes(opening: Callable[..., CheckpointStore]) -> None:
    small = opening(max_event_bytes=LIMIT)
    first = initial({"blob": noise(60_000)})
    with nothing_written(small), pytest.raises(TooLarge) as caught:
        small.compare_and_swap(first, None)
    assert (caught.value.checkpoint_id, caught.value.limit) == (first.id, LIMIT)
    assert LIMIT < caught.value.size < 60_000
    assert str(caught.value.size) in str(caught.value)
    assert str(LIMIT) in str(caught.value)


def test_the_limit_is_of_what_is_stored_exactly(opening: Callable[..., CheckpointStore]) -> None:
    small = opening(max_event_bytes=LIMIT)
    with pytest.raises(TooLarge) as caught:
        small.compare_and_swap(first := initial({"blob": noise(50_000)}), None)
    exact = opening(max_event_bytes=caught.value.size)
    assert isinstance(exact.compare_and_swap(first, None), Receipt)
    with nothing_written(small), pytest.raises(TooLarge):
        opening(max_event_bytes=caught.value.size - 1).compare_and_swap(initial(first.payload, kind=first.kind), None)


def test_what_compresses_well_fits(opening: Callable[..., CheckpointStore]) -> None:
    small = opening(max_event_bytes=LIMIT)
    first = initial({"blob": "a" * 1_000_000})
    small.compare_and_swap(first, None)
    assert small.load(first.id) == first


def test_a_large_one_among_others_is_an_outcome(opening: Callable[..., CheckpointStore]) -> None:
    small = opening(max_event_bytes=LIMIT)
    outcomes = small.compare_and_swap_many([(initial(), None), (initial({"blob": noise(60_000)}), None), (initial(), None)])
    assert [type(each) for each in outcomes] == [Receipt, TooLarge, Receipt]


def test_the_logs_own_limit_holds(store: CheckpointStore) -> None:
    with nothing_written(store), pytest.raises(TooLarge):
        store.compare_and_swap(initial({"blob": noise(20 << 20)}), None)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_cannot_be_is_refused(opening: Callable[..., CheckpointStore], limit: int) -> None:
    # Once: 0 means the default, -1 refuses everything
    with pytest.raises(InvalidRequest):
        opening(max_event_bytes=limit)
