"""Where the ends of partitions are: the two bounds that the protocol waits for.

A barrier for reads is the last stable offset: nothing is acknowledged before a read_committed tail has seen it, so every acknowledged
event lies below it, and a dead writer's open transaction does not hang readers. The high watermark is for a take-over only, where
commits that nobody acknowledged matter too (facts: bounding a take-over by the last stable offset loses them silently).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError, UnknownTopicOrPartitionError
from kafka.structs import OffsetAndTimestamp

from eventlog.address import KafkaAddress
from eventlog.errors import CheckpointError, StoreClosed
from eventlog.group_commit import GroupCommit
from eventlog.kafka.client import admin, unavailable
from eventlog.kafka.refusals import REFUSED, missing, refusal
from eventlog.kafka.rights import Operation, Resource, Right
from eventlog.kafka.topic import may_describe

_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_PAUSE = 0.05  # seconds between attempts while the broker does not answer


class OpenTransaction(NamedTuple):
    """A transaction that holds the last stable offset back."""

    producer_id: int
    offset: int  # of its first record
    written_at: int  # when its producer last wrote, milliseconds since 1970 UTC by the broker's clock


class Offsets:
    """Asks for ends. Concurrent callers share one request, which is always sent after each of them has called."""

    def __init__(self, *, address: KafkaAddress, partitions: int) -> None:
        self._address = address
        self._partitions = tuple(TopicPartition(address.topic, number) for number in range(partitions))
        self._client: KafkaAdminClient | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._stable = GroupCommit[float, dict[int, int]](self._last_stable)

    def last_stable(self, *, timeout: float) -> dict[int, int]:
        """The last stable offset of every partition. Raises `Unavailable` after `timeout` seconds."""
        return self._stable.submit((time.monotonic() + timeout,))[0]

    def high_watermark(self, partition: int, *, timeout: float) -> int:
        """The high watermark of a partition. Raises `Unavailable` after `timeout` seconds."""
        found = self._ask(self._partitions[partition : partition + 1], _READ_UNCOMMITTED, time.monotonic() + timeout)
        return int(found[partition].offset)

    def newest_time(self, *, timeout: float) -> int:
        """Milliseconds of the log's clock: when the newest record was appended, 0 for an empty log. Raises `Unavailable`."""
        found = self._ask(self._partitions, _READ_UNCOMMITTED, time.monotonic() + timeout, OffsetSpec.MAX_TIMESTAMP)
        return max(0, *(int(end.timestamp) for end in found.values()))

    def open_transaction(self, partition: int) -> OpenTransaction | None:
        """The oldest transaction that is open in a partition, if the broker tells."""
        where = self._partitions[partition]
        try:
            with self._lock:
                if self._closed:
                    return None
                client = self._client = self._client or admin(self._address)
                found = client.describe_producers([where])[where].active_producers
        except (KafkaError, CheckpointError):
            return None  # only asked to say more in an error; without the right to describe the topic it says less
        opened = [
            OpenTransaction(each.producer_id, each.current_transaction_start_offset, each.last_timestamp)
            for each in found
            if each.current_transaction_start_offset >= 0
        ]
        return min(opened, key=lambda each: each.offset, default=None)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._drop()

    def _last_stable(self, deadlines: Sequence[float]) -> list[dict[int, int]]:
        ends = self._ask(self._partitions, _READ_COMMITTED, max(deadlines))
        return [{number: end.offset for number, end in ends.items()}] * len(deadlines)

    def _ask(
        self, partitions: Sequence[TopicPartition], isolation: int, deadline: float, spec: OffsetSpec = OffsetSpec.LATEST
    ) -> dict[int, OffsetAndTimestamp]:
        while True:
            try:
                with self._lock:
                    if self._closed:
                        raise StoreClosed("the store was closed")
                    if self._client is None:
                        self._client = admin(self._address)
                    found: dict[TopicPartition, OffsetAndTimestamp] = self._client.list_partition_offsets(
                        dict.fromkeys(partitions, spec), isolation_level=isolation, timeout_ms=2_000
                    )
                    return {each.partition: end for each, end in found.items()}
            except (KafkaError, CheckpointError) as error:
                if isinstance(error, StoreClosed):
                    raise
                refused = self._refusal(error)
                with self._lock:
                    self._drop()  # facts: after a broker's restart the admin client fails every call until it is made anew
                if refused is not None:
                    raise refused from error
                if time.monotonic() > deadline:
                    raise error if isinstance(error, CheckpointError) else unavailable(self._address, error) from error
                time.sleep(_PAUSE)

    def _refusal(self, error: KafkaError | CheckpointError) -> CheckpointError | None:
        """What nothing is gained by waiting for."""
        if isinstance(error, CheckpointError):
            return error if isinstance(error, REFUSED) else None
        if isinstance(error, UnknownTopicOrPartitionError):  # or a topic that may not be seen: to this client both look alike
            with self._lock:
                if self._client is not None and not may_describe(self._client, self._address):
                    return missing(self._address, Right(Resource.TOPIC, self._address.topic, Operation.DESCRIBE))
        return refusal(self._address, error)

    def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
