"""langgraph#6869: equal and backward clocks change no order; the order is the log's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from eventlog import CheckpointStore, InvalidRequest, Receipt
from tests.store.samples import initial, nothing_written, outcome, revisions, since


def test_a_writers_clock_that_goes_back_changes_no_order(store: CheckpointStore) -> None:
    before = store.position()
    written = [initial()]
    start = written[0].updated_at
    store.compare_and_swap(written[0], None)
    for hours in (-1, 5, -1000, 0, 0):
        written.append(written[-1].next({"hours": hours}, updated_at=start + timedelta(hours=hours)))
        assert isinstance(outcome(store, written[-1], written[-1].revision - 1), Receipt)
    assert [each.checkpoint for each in revisions(store, written[0].id)] == written
    assert [each.checkpoint for each in since(store, before)] == written
    assert store.load(written[0].id) == written[-1]


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
