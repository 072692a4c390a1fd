"""What cleaning leaves of a fence's abort marker stops the client's reader for ever, but for one guard (docs/decisions.md, "Guards").

The marker of an aborted transaction stays until its records are gone and `delete.retention.ms` is over; if it is the last thing that its
producer wrote, the cleaner keeps the batch and empties it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka.consumer.fetcher import Fetcher

from eventlog import CheckpointStore, Position, create_store, open_store
from eventlog.kafka import client
from eventlog.kafka.topic import DAY_MS
from eventlog.verification import verify
from tests.conftest import OwnBroker
from tests.faults.topic.topics import TINY, StoredBatch, Topic
from tests.kafka_log.samples import event_of, initial
from tests.waiting import eventually

# The topic check insists on a day, for the very reason that this test does not keep to it.
SHORT_RETENTION = {**TINY, "delete.retention.ms": "100"}
RIGHT_RETENTION = {**TINY, "delete.retention.ms": str(DAY_MS)}
# A producer that is forgotten needs no marker, so none of them is here.
SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.initial.task.delay.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


def empty_control_batches(made: Topic) -> list[StoredBatch]:
    return [batch for batch in made.stored(0) if batch.is_control and batch.records == 0]


def aborted_by_a_fence(made: Topic) -> None:
    name = f"{made.name}-fenced"
    leave_open(made, made.producer(name))
    client.discard(made.producer(name))


def aborted_by_its_time_out(made: Topic) -> None:
    leave_open(made, made.producer(f"{made.name}-timed-out", transaction_timeout_ms=300))


def leave_open(made: Topic, producer: client.TransactionalProducer) -> None:
    loser = initial({"never": "committed"}, partition=0)
    producer.begin_transaction()
    producer.send(made.name, key=loser.id.encode(), value=event_of(loser), partition=0).get(10)
    client.discard(producer)


def commit_until(store: CheckpointStore, ids: list[str], condition: Callable[[], bool]) -> None:
    """Commits a checkpoint at a time: a segment is rolled, and then cleaned, by what is appended to it."""

    def committed_and_true() -> bool:
        checkpoint = initial({"number": len(ids)}, partition=0)
        store.compare_and_swap(checkpoint, None)
        ids.append(checkpoint.id)
        return condition()

    eventually(committed_and_true, seconds=60)


def unguarded(_: object, batch: Any) -> bool:
    """As kafka-python 3.0.12 has it."""
    return bool(batch.is_control_batch and next(batch).abort)


def test_a_log_is_read_from_its_beginning_across_empty_control_batches(
    own_broker: OwnBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Topic(broker=own_broker(config=SETTINGS), name="emptied", partitions=2, hold_ms=1_000)
    create_store(made.address, partitions=made.partitions)
    ids: list[str] = []
    started = time.monotonic()
    with open_store(f"{made.address}&state={tmp_path / 'live'}") as live:
        made.alter(SHORT_RETENTION)
        for abort in (aborted_by_a_fence, aborted_by_its_time_out):
            abort(made)
            commit_until(live, ids, lambda: True)
        commit_until(live, ids, lambda: len(empty_control_batches(made)) >= 2)
        made.alter(RIGHT_RETENTION)
        found = empty_control_batches(made)
        sys.stdout.write(f"{len(found)} empty control batches within {time.monotonic() - started:.1f} s, {len(ids)} commits\n")

        live.catalog.rebuild()
        assert verify(live).is_clean
        keys = [record.key.decode() for records, _ in live.log.read(Position()) for record in records if record.key is not None]
        assert sorted(keys) == sorted(ids)
        with open_store(f"{made.address}&state={tmp_path / 'fresh'}") as fresh:
            assert {each: fresh.load(each).payload for each in ids} == {each: {"number": number} for number, each in enumerate(ids)}
            following = initial(partition=0)
            fresh.compare_and_swap(following, None)
            assert live.load(following.id).revision == 0

        monkeypatch.setattr(Fetcher.PartitionRecords, "_contains_abort_marker", unguarded)
        with pytest.raises(RuntimeError, match="StopIteration"):
            list(live.log.read(Position()))  # so that these are the batches that the guard is there for
