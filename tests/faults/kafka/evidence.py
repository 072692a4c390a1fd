"""What really happened: the topic read raw, past the store, held against what everybody was told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kafka import KafkaConsumer, TopicPartition

from eventlog import Position, codec
from eventlog.event import GENESIS, EventHeader
from eventlog.testing import Action, LogEntry, Operation, Outcome, Summary, check


@dataclass(frozen=True)
class RawEvent:
    """One record as it stands in the topic."""

    offset: int
    header: EventHeader
    digest: bytes


@dataclass(frozen=True)
class Topic:
    """The whole of partition 0."""

    committed: list[RawEvent]
    written: list[RawEvent]  # those of aborted transactions too
    hidden: int  # offsets that an open transaction keeps from readers

    @property
    def event_ids(self) -> set[str]:
        return {each.header.event_id for each in self.committed}

    @property
    def aborted(self) -> int:
        return len(self.written) - len(self.committed)

    @property
    def end(self) -> int:
        """Behind the last committed record."""
        return self.committed[-1].offset + 1


def read_topic(broker: str, topic: str) -> Topic:
    committed, stable = _read(broker, topic, "read_committed")
    written, end = _read(broker, topic, "read_uncommitted")
    return Topic(committed, written, end - stable)


def _read(broker: str, topic: str, isolation: str) -> tuple[list[RawEvent], int]:
    consumer = KafkaConsumer(
        bootstrap_servers=broker, group_id=None, isolation_level=isolation, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    partition = TopicPartition(topic, 0)
    found: list[RawEvent] = []
    try:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        end = int(consumer.end_offsets([partition])[partition])
        while consumer.position(partition) < end:
            for record in consumer.poll(timeout_ms=200).get(partition, ()):
                if record.offset < end:
                    found.append(RawEvent(record.offset, *codec.decode_header(record.value)))
    finally:
        consumer.close()
    return found, end


def in_flight(operations: Sequence[Operation]) -> list[str]:
    """The events whose callers have not been told anything. A proposal that was late when it was made is none of them."""
    acknowledged = last_acknowledged(operations)
    return [
        str(each.event_id)
        for each in operations
        if each.action is Action.COMMIT
        and each.outcome is Outcome.PENDING
        and each.proposed is not None
        and each.proposed > acknowledged.get(str(each.checkpoint_id), -1)
    ]


def last_acknowledged(operations: Sequence[Operation]) -> dict[str, int]:
    """The last revision of each checkpoint that somebody was told is committed."""
    found: dict[str, int] = {}
    for each in operations:
        if each.action is Action.COMMIT and each.outcome is Outcome.COMMITTED and each.checkpoint_id and each.revision is not None:
            found[each.checkpoint_id] = max(found.get(each.checkpoint_id, -1), each.revision)
    return found


def hold_against(operations: Sequence[Operation], topic: Topic) -> Summary:
    """Fails when anybody was told what is not so, when the chain of hashes is broken, or when a transaction hangs."""
    log: dict[str, list[LogEntry]] = defaultdict(list)
    chain: dict[str, bytes] = {}
    for each in topic.committed:
        header = each.header
        log[header.checkpoint_id].append(LogEntry(header.revision, header.event_id))
        assert header.previous_hash == chain.get(header.checkpoint_id, GENESIS), f"the chain of {header.checkpoint_id} is broken"
        chain[header.checkpoint_id] = each.digest
    verdict = check(operations, log)
    verdict.require_none()
    places = {each.header.event_id: str(Position.after(0, each.offset)) for each in topic.committed}
    for operation in operations:
        if operation.position is not None:
            assert operation.position == places.get(str(operation.event_id)), f"a receipt names another place: {operation}"
    assert topic.hidden == 0, "a transaction hangs"
    return verdict.summary
