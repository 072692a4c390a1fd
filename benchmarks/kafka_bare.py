"""Bare kafka-python, tuned as our own clients are: what the machinery under the store can do without it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

Pair = tuple[bytes, bytes]

EVENTS_A_TRANSACTION = 1_000


class BareProducer:
    """A transactional producer on partition 0 of a topic."""

    def __init__(self, servers: str, topic: str) -> None:
        self._topic = topic
        # Tuned in its favour: with the client's own retry back-off, 100 ms, it makes 10 transactions a second (facts).
        self._producer: Any = KafkaProducer(
            bootstrap_servers=servers,
            transactional_id=f"bare-{uuid.uuid4().hex}",
            acks="all",
            retry_backoff_ms=5,
            batch_size=1 << 20,
            max_request_size=9 << 20,
            compression_type="zstd",
        )
        self._producer.init_transactions()

    def transaction(self, events: Iterable[Pair]) -> None:
        """Sends events and commits them."""
        self._producer.begin_transaction()
        for key, value in events:
            self._producer.send(self._topic, value=value, key=key, partition=0)
        self._producer.commit_transaction()

    def write_all(self, events: Iterable[Pair]) -> int:
        """Sends any number of events in transactions of a thousand; how many there were."""
        pending: list[Pair] = []
        count = 0
        for event in events:
            pending.append(event)
            if len(pending) == EVENTS_A_TRANSACTION:
                self.transaction(pending)
                count += len(pending)
                pending.clear()
        if pending:
            self.transaction(pending)
        return count + len(pending)

    def close(self) -> None:
        self._producer.close()


def read_all(servers: str, topic: str, wanted: int) -> None:
    """Reads partition 0 with a read_committed consumer up to a number of events."""
    consumer: Any = KafkaConsumer(
        bootstrap_servers=servers,
        group_id=None,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=2_000,
        fetch_max_bytes=16 << 20,
        max_partition_fetch_bytes=16 << 20,
    )
    try:
        consumer.assign([TopicPartition(topic, 0)])
        seen = 0
        while seen < wanted:
            for batch in consumer.poll(timeout_ms=1_000).values():
                seen += len(batch)
    finally:
        consumer.close()
