"""The log's own clock: the running maximum, whatever the machine's clock does."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eventlog import CheckpointStore, Position, open_store
from tests.store.samples import initial, stream

NOW = 1_800_000_000_000  # milliseconds


def at(monkeypatch: pytest.MonkeyPatch, millis: int) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: millis * 1_000_000)


def moment(millis: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)


@pytest.mark.parametrize("warm", [True, False], ids=["head in memory", "after reopening"])
def test_a_clock_that_goes_back_stops_the_logs(directory: Path, monkeypatch: pytest.MonkeyPatch, warm: bool) -> None:
    at(monkeypatch, NOW)
    with open_store(directory) as store:
        checkpoint = initial()
        receipts = [store.compare_and_swap(checkpoint, None)]
        at(monkeypatch, NOW - 3_600_000)
        with open_store(directory) as other:
            for _ in range(3):
                checkpoint = checkpoint.next({})
                receipts.append((store if warm else other).compare_and_swap(checkpoint, checkpoint.revision - 1))
        at(monkeypatch, NOW + 5)
        receipts.append(store.compare_and_swap(checkpoint.next({}), checkpoint.revision))
        assert [each.recorded_at for each in receipts] == [moment(NOW)] * 4 + [moment(NOW + 5)]
        assert [each.revision for each in receipts] == [0, 1, 2, 3, 4]
        assert checkpoint.updated_at == moment(NOW - 3_600_000)


def test_a_time_means_everything_recorded_up_to_it(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for offset in (0, 0, 10, 10, 20):
        at(monkeypatch, NOW + offset)
        stream(store, 1)
    answers = {-1: 0, 0: 2, 5: 2, 10: 4, 19: 4, 20: 5, 10**9: 5}
    assert {offset: store.position_at(moment(NOW + offset)) for offset in answers} == {
        offset: Position(((0, position),)) for offset, position in answers.items()
    }


def test_an_empty_log_has_a_start(store: CheckpointStore) -> None:
    assert store.position() == store.position_at(datetime.now(UTC)) == Position(((0, 0),))
