"""Transactions that nobody ends: one of an earlier owner is ended by the take-over, a foreign one holds the log's end for its time-out."""

from __future__ import annotations

import sys
import time

import pytest

from eventlog import Checkpoint, CheckpointStore, OutcomeUnknown, Position, Revision, Unavailable
from eventlog.kafka import client
from tests.faults.topic.conftest import OpenTopic
from tests.faults.topic.topics import Topic
from tests.kafka_log.samples import event_of, initial
from tests.waiting import eventually


def leave_open(made: Topic, transactional_id: str, *, timeout_ms: int) -> str:
    """The id of a checkpoint whose only record lies in a transaction of a producer that is gone."""
    producer = made.producer(transactional_id, transaction_timeout_ms=timeout_ms)
    never = initial({"never": "committed"}, partition=0)
    producer.begin_transaction()
    producer.send(made.name, key=never.id.encode(), value=event_of(never), partition=0).get(10)
    client.discard(producer)
    return never.id


def test_an_open_transaction_of_a_dead_owner_hangs_neither_readers_nor_the_next_owner(made: Topic, opening: OpenTopic) -> None:
    store, reader = opening(timeout=20), opening()
    checkpoint = initial(partition=0)
    store.compare_and_swap(checkpoint, None)
    never = leave_open(made, made.transactional_id(0), timeout_ms=60_000)
    started = time.monotonic()
    assert reader.load(checkpoint.id).revision == 0
    assert len(list(reader.history(checkpoint.id))) == 1
    read = time.monotonic() - started
    store.compare_and_swap(checkpoint.next({}), 0)
    written = time.monotonic() - started
    sys.stdout.write(f"read after {read:.2f} s, committed after {written:.2f} s, with a time-out of 60 s open\n")
    assert written < 15, "the take-over ends it; its time-out is not waited for"
    assert reader.load(checkpoint.id).revision == 1
    assert reader.log.latest(never) is None


class TestForeignTransaction:
    """Of another transactional id: no fence of ours ends it. What is committed behind it is seen by nobody until it ends."""

    def test_reads_go_on_and_commits_are_answered_in_time_naming_it(self, made: Topic, opening: OpenTopic) -> None:
        store = opening(timeout=12)
        checkpoint, elsewhere = initial(partition=0), initial(partition=1)
        store.compare_and_swap(checkpoint, None)
        leave_open(made, f"{made.name}-somebody-else", timeout_ms=25_000)
        began = time.monotonic()

        following = checkpoint.next({"behind": "a foreign transaction"})
        with pytest.raises(OutcomeUnknown) as unknown:
            store.compare_and_swap(following, 0)
        assert time.monotonic() - began < 16, "the caller's time-out was 12 s"
        assert "holds a transaction open in partition 0" in str(unknown.value)
        with pytest.raises(Unavailable, match="holds a transaction open in partition 0") as refused:
            store.compare_and_swap(initial(partition=0), None, timeout=5)
        assert "nothing was written" in str(refused.value)

        started = time.monotonic()
        assert store.load(checkpoint.id).revision == 0
        assert len(list(store.history(checkpoint.id))) == 1
        assert store.list().items
        assert store.compare_and_swap(elsewhere, None).revision == 0
        assert time.monotonic() - started < 8, "reads and the other partition wait for nothing"

        eventually(lambda: self.settled(store, following), seconds=60)
        receipt = store.resolve(following)
        sys.stdout.write(f"{'committed' if receipt else 'aborted'}; settled {time.monotonic() - began:.1f} s after the transaction began\n")
        assert store.compare_and_swap(following, 0).duplicate == (receipt is not None)
        revisions = [each for each in store.history(checkpoint.id) if isinstance(each, Revision)]
        assert [each.checkpoint.event_id for each in revisions] == [checkpoint.event_id, following.event_id]
        assert opening().load(checkpoint.id).event_id == following.event_id

    def settled(self, store: CheckpointStore, event: Checkpoint) -> bool:
        try:
            store.resolve(event, timeout=5)
        except (OutcomeUnknown, Unavailable):
            return False
        return True

    def test_a_rebuild_meanwhile_ends_where_the_log_can_be_read(self, made: Topic, opening: OpenTopic) -> None:
        store = opening()
        checkpoint = initial(partition=0)
        store.compare_and_swap(checkpoint, None)
        leave_open(made, f"{made.name}-somebody-else", timeout_ms=20_000)
        started = time.monotonic()
        store.catalog.rebuild()
        fresh = opening()
        assert fresh.load(checkpoint.id).revision == 0
        assert sum(len(records) for records, _ in fresh.log.read(Position())) == 1
        assert time.monotonic() - started < 15
