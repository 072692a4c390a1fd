"""langgraph#6869: equal and backward clocks change no order; the order is the log's."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from eventlog import CheckpointStore, InvalidRequest
from tests.store.samples import initial, nothing_written


def test_the_logs_clock_never_goes_back(store: CheckpointStore) -> None:
    checkpoint = initial()
    times = [store.compare_and_swap(checkpoint, None).recorded_at]
    for _ in range(20):
        checkpoint = checkpoint.next({})
        times.append(store.compare_and_swap(checkpoint, checkpoint.revision - 1).recorded_at)
    assert times == sorted(times)
    assert {moment.tzinfo for moment in times} == {UTC}


@pytest.mark.parametrize(
    "moment",
    [datetime(1, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)],
    ids=str,
)
def test_any_time_of_a_writer_is_kept_and_listed(store: CheckpointStore, moment: datetime) -> None:
    odd = initial(kind=f"clocks.y{moment.year}").model_copy(update={"updated_at": moment})
    store.compare_and_swap(odd, None)
    assert store.load(odd.id).updated_at == moment
    assert moment in [each.updated_at for each in store.list(kind=odd.kind).items]


def test_milliseconds_are_kept(store: CheckpointStore) -> None:
    first = initial().model_copy(update={"updated_at": datetime(2026, 1, 2, 3, 4, 5, 678999, tzinfo=UTC)})
    store.compare_and_swap(first, None)
    assert store.load(first.id).updated_at == datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


def test_a_time_without_a_zone_is_refused(store: CheckpointStore) -> None:
    naive = initial().model_copy(update={"updated_at": datetime(2026, 1, 2)})
    with nothing_written(store), pytest.raises(InvalidRequest, match="time zone"):
        store.compare_and_swap(naive, None)
