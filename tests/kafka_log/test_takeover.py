"""Taking a partition over: no proposal is validated before everything that an earlier owner committed has been seen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from eventlog import CheckpointStore, Conflict, OutcomeUnknown, Receipt
from eventlog.address import KafkaAddress
from eventlog.kafka import client
from eventlog.kafka.log import KafkaLog
from eventlog.kafka.topic import partition_of
from eventlog.log import Record
from tests.kafka_log.conftest import OpenStore
from tests.kafka_log.samples import PARTITIONS, event_of, initial
from tests.metrics.counting import adds
from tests.waiting import eventually


def log_of(store: CheckpointStore) -> KafkaLog:
    assert isinstance(store.log, KafkaLog)
    return store.log


def earlier_owner(broker: str, topic: str, partition: int) -> client.TransactionalProducer:
    """A writer that owns a partition and follows no rule but the fence."""
    producer = client.producer(KafkaAddress((broker,), topic), transactional_id=f"{topic}-writer-{partition}", max_event_bytes=1 << 20)
    producer.init_transactions()
    return producer


class StoppedTail:
    """Holds back what the tail reads, as a slow process would."""

    def __init__(self, store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.let_go = threading.Event()
        tail = log_of(store)._tail
        assert tail is not None
        original: Callable[[Sequence[Record], Mapping[int, int]], None] = tail._sink

        def held(records: Sequence[Record], positions: Mapping[int, int]) -> None:
            self.let_go.wait(30)
            original(records, positions)

        monkeypatch.setattr(tail, "_sink", held)


def test_a_commit_that_nobody_acknowledged_is_seen_before_anything_is_validated(
    broker: str, topic: str, store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = initial({"writer": "ours"}), None
    theirs = ours.model_copy(update={"payload": {"writer": "theirs"}, "event_id": initial().event_id})
    partition = partition_of(ours.id, PARTITIONS)
    tail = StoppedTail(store, monkeypatch)
    producer = earlier_owner(broker, topic, partition)
    producer.begin_transaction()
    producer.send(topic, key=ours.id.encode(), value=event_of(theirs), partition=partition).get(10)
    producer.commit_transaction()
    client.discard(producer)

    told: list[object] = []

    def commit() -> None:
        try:
            told.append(store.compare_and_swap(ours, None))
        except Conflict as error:
            told.append(error)

    caller = threading.Thread(target=commit)
    caller.start()
    eventually(lambda: log_of(store).writer.writers[partition].busy)
    caller.join(1.0)
    assert told == [], "a proposal was judged by heads that lag behind the log"
    tail.let_go.set()
    caller.join(30)
    assert isinstance(told[0], Conflict)
    assert told[0].actual == 0
    assert store.load(ours.id).payload == {"writer": "theirs"}


def test_an_open_transaction_of_the_earlier_owner_is_never_visible(broker: str, topic: str, store: CheckpointStore) -> None:
    zombies = initial({"writer": "zombie"})
    partition = partition_of(zombies.id, PARTITIONS)
    zombie = earlier_owner(broker, topic, partition)
    zombie.begin_transaction()
    zombie.send(topic, key=zombies.id.encode(), value=event_of(zombies), partition=partition).get(10)

    ours = zombies.model_copy(update={"payload": {"writer": "ours"}, "event_id": initial().event_id})
    assert store.compare_and_swap(ours, None).revision == 0
    result = zombie._transaction_manager.begin_commit()
    zombie._sender.wakeup()
    with pytest.raises(Exception, match=r"Fenced|fenced|newer producer|Invalid"):
        result.wait(timeout_ms=10_000)
    client.discard(zombie)
    assert store.load(ours.id).payload == {"writer": "ours"}
    assert [each.checkpoint.event_id for each in store.history(ours.id)] == [ours.event_id]  # type: ignore[union-attr]


def test_an_owner_that_was_fenced_takes_over_again_and_goes_on(opening: OpenStore) -> None:
    one, other = opening(), opening()
    checkpoint = initial()
    one.compare_and_swap(checkpoint, None)
    for _ in range(3):
        for store in (other, one):
            current = store.load(checkpoint.id)
            store.compare_and_swap(current.next({"by": str(id(store))}), current.revision)
    assert one.load(checkpoint.id).revision == 6
    assert log_of(one).ownership.takeovers >= 2
    assert log_of(other).ownership.takeovers >= 2


def test_resolve_fences_whoever_could_still_commit_the_event(broker: str, topic: str, store: CheckpointStore) -> None:
    undecided = initial()
    partition = partition_of(undecided.id, PARTITIONS)
    sender = earlier_owner(broker, topic, partition)
    sender.begin_transaction()
    sender.send(topic, key=undecided.id.encode(), value=event_of(undecided), partition=partition).get(10)
    assert store.resolve(undecided) is None
    result = sender._transaction_manager.begin_commit()
    sender._sender.wakeup()
    with pytest.raises(Exception, match=r"Fenced|fenced|newer producer|Invalid"):
        result.wait(timeout_ms=10_000)
    client.discard(sender)
    assert store.resolve(undecided) is None
    assert isinstance(store.compare_and_swap(undecided, None), Receipt)
    assert isinstance(store.resolve(undecided.event_id), Receipt)


def test_what_was_sent_when_its_partition_was_lost_is_settled_not_guessed(opening: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The records are acknowledged and the commit is asked for; then the partition is lost before the tail has shown anything."""
    store = opening(timeout=20)
    checkpoint = initial()
    partition = partition_of(checkpoint.id, PARTITIONS)
    writer = log_of(store).writer.writers[partition]
    original: Any = writer._seen
    lost: list[bool] = []

    def lose_once(now: float) -> bool:
        if not lost:
            lost.append(True)
            writer._lost(now, "a test says so")
            return True
        return bool(original(now))

    monkeypatch.setattr(writer, "_seen", lose_once)
    receipt = store.compare_and_swap(checkpoint, None)
    assert receipt.revision == 0
    assert [each.checkpoint.event_id for each in store.history(checkpoint.id)] == [checkpoint.event_id]  # type: ignore[union-attr]


def test_a_caller_that_cannot_wait_learns_that_the_outcome_is_unknown_and_resolve_answers(
    opening: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opening()
    first = initial()
    store.compare_and_swap(first, None)
    tail = StoppedTail(store, monkeypatch)
    following = first.next({"step": 1})
    with adds(1, "eventlog_unknown_outcomes_total", "kafka"), pytest.raises(OutcomeUnknown) as caught:
        store.compare_and_swap(following, 0, timeout=0.5)
    assert caught.value.event_id == following.event_id
    tail.let_go.set()
    receipt = store.resolve(following)
    assert receipt is not None, "it was committed; the log says so"
    assert store.compare_and_swap(following, 0) == receipt._replace(duplicate=True)


def test_an_owner_knows_its_topic_before_it_sends_so_that_sending_never_blocks_the_dispatcher(store: CheckpointStore, topic: str) -> None:
    owner = log_of(store).ownership.take(0)
    try:
        assert owner._metadata.partitions_for_topic(topic) is not None
    finally:
        client.discard(owner)


@pytest.mark.parametrize("behind", [1, 2], ids=["a new event where one stands", "an event that follows an old revision"])
def test_a_loser_at_an_owner_fenced_unknowingly_is_told_the_current_revision(
    opening: OpenStore, monkeypatch: pytest.MonkeyPatch, behind: int
) -> None:
    """Its heads are old and it does not know: a process that was stopped for a while, whose tail has not come on yet."""
    fenced, owner = opening(), opening()
    first = initial()
    fenced.compare_and_swap(first, None)
    second = first.next({"writer": "fenced"})
    fenced.compare_and_swap(second, 0)
    tail = StoppedTail(fenced, monkeypatch)
    current = second
    for _ in range(3):
        following = current.next({"writer": "owner"})
        owner.compare_and_swap(following, current.revision)
        current = following

    told: list[object] = []

    def lose() -> None:
        loser = first.next({"writer": "late"}) if behind == 1 else first.model_copy(update={"event_id": initial().event_id})
        try:
            told.append(fenced.compare_and_swap(loser, 0 if behind == 1 else None))
        except Conflict as error:
            told.append(error.actual)

    caller = threading.Thread(target=lose)
    caller.start()
    caller.join(1.0)
    assert told == [], "a refusal named a revision that was not the current one any more"
    tail.let_go.set()
    caller.join(30)
    assert told == [current.revision]
