"""The wrapped data keys of a store on Kafka: a compacted topic, key by key, of which this process keeps what it has read in memory.

A destroyed key is a null value. Readers take every record as it is appended, committed or not, so that no transaction of a process that
died hides a key; who may append what makes that sound:

- A new key is a record of its own, with a key id that nobody else has. It changes nothing that was there.
- A null value is never part of a transaction, so that none is read that is then undone.
- A new form of a key (rotation) is always part of one, of the only transactional producer, which the broker fences. One that is undone
  is read all the same, and opens as well as the one before it.

Whoever destroys keys appends the null values first and fences after: whatever a rotation has read before is refused then, or was committed
between, which the look afterwards finds; whatever reads later finds the null values.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from eventlog.address import KafkaAddress
from eventlog.errors import CheckpointError, StoreClosed, Unavailable
from eventlog.group_commit import GroupCommit
from eventlog.kafka import keys_record as record
from eventlog.kafka.client import TransactionalProducer, discard, plain_producer, require_topic, translated, unavailable
from eventlog.kafka.keys_rotation import Rotation, fenced
from eventlog.kafka.offsets import Offsets
from eventlog.kafka.rights import Operation
from eventlog.kafka.tail import poll, read_partitions, read_until
from eventlog.privacy.keys import WrappedKey

_SECONDS = 30.0  # for a barrier, or for what takes several attempts
_ANSWER_SECONDS = 11.0  # the client gives up by itself after 10
_FRESH_SECONDS = 1.0  # for so long a key that is known is not asked about again
_PAUSE = 0.1
_POLL_MS = 100

Result = TypeVar("Result")


class KafkaKeys:
    """A `KeyTable` in a topic. `open()` before use; any number of threads may share it, a forked child may not.

    In memory it takes about 500 bytes a checkpoint (measured).
    """

    def __init__(self, *, address: KafkaAddress, topic_id: str) -> None:
        self._address = address
        self._topic_id = topic_id
        self._partition = TopicPartition(address.topic, 0)
        self._held: dict[str, tuple[bytes, ...]] = {}  # by checkpoint: the values of its keys
        self.source: str | None = None  # where the store's keys are
        self._next = 0
        self._read_at = 0.0
        self._barrier = GroupCommit[None, None](self._read_up)
        self._client: KafkaConsumer | None = None
        self._producer: TransactionalProducer | None = None
        self._producing = threading.Lock()
        self._rotation = Rotation(address=address, committed=self._committed)
        self._offsets = Offsets(address=address, partitions=1)
        self._pid = os.getpid()
        self._closed = False

    def open(self) -> None:
        """Reads the topic. Raises `ConfigurationError`, `Unavailable`."""
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def get(self, checkpoint_id: str, key_id: str) -> WrappedKey | None:
        """See `KeyTable.get`. One that is not known here is looked for behind a barrier; so is any, a second after the last one."""
        found = self._known(checkpoint_id, key_id)
        if found is None or time.monotonic() - self._read_at > _FRESH_SECONDS:
            self._read()
            found = self._known(checkpoint_id, key_id)
        return found

    def of(self, checkpoint_id: str, *, now: bool = True) -> Sequence[WrappedKey]:
        """See `KeyTable.of`."""
        if now:
            self._read()
        return [record.decode(value) for value in self._held.get(checkpoint_id, ())]

    def put(self, key: WrappedKey) -> None:
        """See `KeyTable.put`."""
        self._append([(record.key_of(key), record.encode(key))])

    def put_all(self, keys: Sequence[WrappedKey]) -> None:
        """As `put`, for many."""
        self._append([(record.key_of(key), record.encode(key)) for key in keys])

    def remember(self, source: str) -> None:
        """Of a new store: where its keys are."""
        self._append([(record.SETTINGS, record.encode_settings(source))])

    def replace(self, pairs: Sequence[tuple[WrappedKey, WrappedKey]]) -> int:
        """See `KeyTable.replace`. In transactions of a producer that anybody who destroys keys fences: see above."""
        self._require_open()
        return self._again(lambda: self._rotation.replace(pairs))

    def destroy(self, *checkpoint_ids: str) -> int:
        """See `KeyTable.destroy`."""
        destroyed: set[bytes] = set()

        def once() -> bool:
            self._read()
            keys = [record.key_of(key) for each in checkpoint_ids for key in self.of(each, now=False)]
            if not keys:
                return True
            self._append([(key, None) for key in keys])
            discard(fenced(self._address))
            destroyed.update(keys)
            return False

        while not self._again(once):
            pass
        return len(destroyed)

    def all(self) -> Iterator[WrappedKey]:
        """See `KeyTable.all`. Read from the topic anew, committed only."""
        self._require_open()
        yield from self._committed().values()

    def values_left(self, checkpoint_ids: Collection[str]) -> dict[str, int]:
        """How many wrapped keys of some checkpoints the topic still holds, destroyed or not: until it is compacted."""
        left: dict[str, int] = {}
        ends = self._offsets.last_stable(timeout=_SECONDS)
        for records, _ in read_until(self._address, self._topic_id, {0: 0}, ends):
            for each in records:
                if each.value is None or each.key is None or each.key == record.SETTINGS:
                    continue
                checkpoint_id, _ = record.parse_key(each.key)
                if checkpoint_id in checkpoint_ids:
                    left[checkpoint_id] = left.get(checkpoint_id, 0) + 1
        return left

    def close(self) -> None:
        """See `KeyTable.close`."""
        self._closed = True
        if self._pid != os.getpid():
            return
        with self._producing:
            self._drop_producer()
        self._rotation.close()
        while not self._barrier.idle:
            time.sleep(0.001)
        self._drop_client()
        self._offsets.close()

    # -- reading --------------------------------------------------------------------------------------------------

    def _known(self, checkpoint_id: str, key_id: str) -> WrappedKey | None:
        keys = map(record.decode, self._held.get(checkpoint_id, ()))
        return next((key for key in keys if key.key_id == key_id), None)

    def _read(self) -> None:
        """A barrier: everything that was acknowledged to anybody before the call is known here when it returns."""
        self._require_open()
        self._barrier.submit((None,))

    def _read_up(self, waiting: Sequence[None]) -> list[None]:
        self._again(self._read_to_the_end)
        return [None] * len(waiting)

    def _read_to_the_end(self) -> None:
        try:
            with translated(self._address, Operation.READ):
                client = self._client = self._client or read_partitions(
                    self._address, self._topic_id, {0: self._next}, isolation="read_uncommitted"
                )
                asked_at = time.monotonic()
                end = client.end_offsets([self._partition])[self._partition]
                while self._next < end:
                    records, positions = poll(client, _POLL_MS)
                    for each in records:
                        self._apply(each.key, each.value)
                    self._next = positions[0]
                require_topic(client._cluster, self._address, self._topic_id)
                self._read_at = asked_at
        except BaseException:
            self._drop_client()
            raise

    def _apply(self, key: bytes | None, value: bytes | None) -> None:
        if key == record.SETTINGS:
            self.source = None if value is None else record.decode_settings(value)
            return
        checkpoint_id, key_id = record.parse_key(key)
        others = tuple(each for each in self._held.get(checkpoint_id, ()) if record.decode(each).key_id != key_id)
        kept = others if value is None else (*others, value)
        if value is not None:
            record.decode(value)  # refused now rather than when it is needed
        if kept:
            self._held[checkpoint_id] = kept
        else:
            self._held.pop(checkpoint_id, None)

    def _committed(self) -> dict[bytes, WrappedKey]:
        """Every key by its record's key, as far as it is committed."""
        found: dict[bytes, WrappedKey] = {}
        ends = self._offsets.last_stable(timeout=_SECONDS)
        for records, _ in read_until(self._address, self._topic_id, {0: 0}, ends):
            for each in records:
                if each.key is None or each.key == record.SETTINGS:
                    continue
                if each.value is None:
                    found.pop(each.key, None)
                else:
                    found[each.key] = record.decode(each.value)
        return found

    # -- writing --------------------------------------------------------------------------------------------------

    def _append(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Durable when it returns. Raises `Unavailable`: then some may have been appended, which does no harm."""
        self._require_open()
        with self._producing:
            producer = self._producer = self._producer or self._new_producer()
        try:
            with translated(self._address, Operation.WRITE):
                sends = [producer.send(self._address.topic, key=key, value=value, partition=0) for key, value in records]
                for send in sends:
                    send.get(timeout=_ANSWER_SECONDS)
        except BaseException:
            with self._producing:
                if self._producer is producer:
                    self._drop_producer()
            raise

    def _new_producer(self) -> TransactionalProducer:
        producer = plain_producer(self._address)
        try:
            with translated(self._address, Operation.WRITE):
                producer.partitions_for(self._address.topic)
                require_topic(producer._metadata, self._address, self._topic_id)
        except BaseException:
            discard(producer)
            raise
        return producer

    def _again(self, attempt: Callable[[], Result]) -> Result:
        """Tries until the broker answers, for half a minute."""
        deadline = time.monotonic() + _SECONDS
        while True:
            self._require_open()
            try:
                return attempt()
            except (KafkaError, Unavailable) as error:
                if time.monotonic() > deadline:
                    raise error if isinstance(error, CheckpointError) else unavailable(self._address, error) from error
                time.sleep(random.uniform(_PAUSE, 3 * _PAUSE))  # random: two that fence each other must not do so in step

    def _require_open(self) -> None:
        if self._pid != os.getpid():
            raise StoreClosed("the store is not open in this process", hint="Open the store in the process that uses it, after forking.")
        if self._closed:
            raise StoreClosed("the store was closed")

    def _drop_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(KafkaError):
                client.close()

    def _drop_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            discard(producer)
