"""A topic as an administrator and a disk see it: settings, records deleted, made anew, and the batches that lie in its segments."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource
from kafka.errors import TransactionalIdNotFoundError

from eventlog import create_store
from eventlog.address import KafkaAddress
from eventlog.kafka import client
from eventlog.kafka.local import LocalBroker
from tests.waiting import eventually

# A segment is rolled by the first append behind this time, and cleaned as soon as it is older than the hold.
TINY = {"segment.ms": "200", "min.cleanable.dirty.ratio": "0.01"}
_BATCH = struct.Struct(">qiibIhiqqqhii")  # baseOffset, length, leaderEpoch, magic, crc, attributes, lastOffsetDelta, two times, producer
_CONTROL = 0x20


class StoredBatch(NamedTuple):
    """A batch of records as it lies in a segment."""

    offset: int
    producer_id: int
    epoch: int
    is_control: bool
    records: int


@dataclass(frozen=True)
class Topic:
    """One topic of one broker."""

    broker: LocalBroker
    name: str
    partitions: int
    hold_ms: int

    @property
    def address(self) -> str:
        """Without a state directory; further settings go behind `&`."""
        return f"kafka://{self.broker.bootstrap}/{self.name}?hold_ms={self.hold_ms}"

    def transactional_id(self, partition: int) -> str:
        return f"{self.name}-writer-{partition}"

    @contextmanager
    def admin(self) -> Iterator[KafkaAdminClient]:
        made = KafkaAdminClient(bootstrap_servers=self.broker.bootstrap)
        try:
            yield made
        finally:
            made.close()

    def alter(self, settings: dict[str, str]) -> None:
        with self.admin() as admin:
            told = admin.alter_configs([ConfigResource("TOPIC", self.name, configs=settings)])
        assert "error" not in str(told).lower(), told

    def delete_records(self, partition: int, before: int) -> None:
        """Moves the log's start, which a broker does for no topic that is compacted only."""
        self.alter({"cleanup.policy": "delete"})
        with self.admin() as admin:
            admin.delete_records({TopicPartition(self.name, partition): before})
        self.alter({"cleanup.policy": "compact"})

    def delete(self) -> None:
        with self.admin() as admin:
            admin.delete_topics([self.name])
            eventually(lambda: self.name not in admin.list_topics())

    def make_again(self) -> None:
        """The same name and settings, another topic."""
        self.delete()
        create_store(self.address, partitions=self.partitions)

    def grow(self, partitions: int) -> None:
        with self.admin() as admin:
            admin.create_partitions({self.name: partitions})
            eventually(lambda: len(admin.describe_topics([self.name])[0]["partitions"]) == partitions)

    def knows_producers(self, partition: int) -> bool:
        """Whether the partition still keeps any producer's sequence numbers."""
        with self.admin() as admin:
            where = TopicPartition(self.name, partition)
            return bool(admin.describe_producers([where])[where].active_producers)

    def knows_writer(self, partition: int) -> bool:
        """Whether the coordinator still knows the writer's transactional id."""
        with self.admin() as admin:
            try:
                return str(admin.describe_transactions([self.transactional_id(partition)])) != "{}"
            except TransactionalIdNotFoundError:
                return False

    def producer(self, transactional_id: str, **overrides: int) -> client.TransactionalProducer:
        """Somebody's transactional producer; with a writer's id it fences that writer."""
        where = KafkaAddress((self.broker.bootstrap,), self.name)
        made = client.producer(where, transactional_id=transactional_id, max_event_bytes=1 << 20, **overrides)
        made.init_transactions()
        return made

    def stored(self, partition: int) -> list[StoredBatch]:
        """Every batch of a partition's segments, as the cleaner left them."""
        found: list[StoredBatch] = []
        for segment in sorted((self.broker.data / f"{self.name}-{partition}").glob("*.log")):
            try:
                data = segment.read_bytes()
            except FileNotFoundError:  # cleaned away meanwhile
                continue
            at = 0
            while at + _BATCH.size <= len(data):
                offset, length, _, _, _, attributes, _, _, _, producer_id, epoch, _, records = _BATCH.unpack_from(data, at)
                if length <= 0:
                    break  # the active segment is preallocated nowhere here, but a batch may be half written
                found.append(StoredBatch(offset, producer_id, epoch, bool(attributes & _CONTROL), records))
                at += 12 + length
        return found
