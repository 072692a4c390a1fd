"""A topic that a backup is being restored into: no store opens it until it is complete, and what an interrupted restore left is known.

Kafka cannot rename a topic, so that its settings say what it is. Until the last step they are none of a log's: nothing is compacted,
records keep the times that they were first appended at, and one value is a mark that nobody else sets.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource

from eventlog.address import KafkaAddress
from eventlog.errors import ConfigurationError, Unavailable
from eventlog.kafka.access import AccessTopicSpec, access_address
from eventlog.kafka.client import (
    REQUEST_TIMEOUT_MS,
    TransactionalProducer,
    admin,
    begin_commit,
    discard,
    plain_producer,
    producer,
    require_topic,
    translated,
)
from eventlog.kafka.keys_topic import KeysTopicSpec, keys_address, topic_state
from eventlog.kafka.rights import Operation
from eventlog.kafka.topic import RESTORING, TopicSpec, TopicState, create_topic, is_restoring
from eventlog.log import Record
from eventlog.privacy.access_log import AccessMode

_ANSWER_SECONDS = 11.0  # the client gives up by itself after 10
_DELETE_SECONDS = 30.0
_TRANSACTION_BYTES = 4 << 20
_PAUSE = 0.1


@dataclass(frozen=True, slots=True)
class RestoringSpec:
    """The settings of a topic that is being restored into."""

    final: TopicSpec

    def settings(self, replication: int) -> dict[str, str]:
        """See `Spec.settings`."""
        return {
            **self.final.settings(replication),
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "retention.bytes": "-1",
            "message.timestamp.type": "CreateTime",
            "min.compaction.lag.ms": RESTORING,
            "max.compaction.lag.ms": RESTORING,
        }


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """The settings of a topic of accesses while it is filled: nothing is removed, and records keep their times."""

    final: AccessTopicSpec

    def settings(self, replication: int) -> dict[str, str]:
        """See `Spec.settings`."""
        return {**self.final.settings(replication), "message.timestamp.type": "CreateTime", "retention.ms": "-1"}


def begin(address: KafkaAddress, *, partitions: int, encrypted: bool, access: AccessMode = AccessMode.OFF) -> TopicState:
    """Makes the topics of a store, marked; what an interrupted restore has left there is deleted before.

    Raises `ConfigurationError` when one of them exists and is not marked, `InvalidRequest` or `Unavailable`.
    """
    where, keys = address, keys_address(address)
    if require_free(address) is not None:
        discard(_fenced(where))  # whoever was at it, if anybody still is, writes no more
        delete(where)
    for each in (keys, access_address(where)):
        if topic_state(each) is not None:
            raise ConfigurationError(f"{each} exists: it belongs to a log that was here before", hint="Choose another name, or delete it.")
    create_topic(where, spec=RestoringSpec(TopicSpec.of(where)), partitions=partitions)  # before the others: it bears the mark
    if encrypted:
        create_topic(keys, spec=KeysTopicSpec(), partitions=1)
    if access is not AccessMode.OFF:
        create_topic(access_address(where), spec=_Unfinished(replace(AccessTopicSpec.of(where), mode=access)), partitions=1)
    made = topic_state(where)
    if made is None:
        raise Unavailable(str(where), "was made, and is gone again")
    return made


def require_free(address: KafkaAddress) -> TopicState | None:
    """What an interrupted restore has left, if anything. Raises `ConfigurationError` when there is a topic that is not marked."""
    there = topic_state(address)
    if there is not None and not is_restoring(there):
        raise ConfigurationError(f"{address} already exists", hint="Restore into a topic that is not there.")
    return there


def finish(address: KafkaAddress, state: TopicState) -> None:
    """Gives a topic the settings of a log, so that it can be opened. Raises `Unavailable`."""
    _configure(address, TopicSpec.of(address).settings(state.replication))


def finish_accesses(address: KafkaAddress, mode: AccessMode) -> None:
    """Gives the topic of accesses, if there is one, its settings, so that the store can be opened. Raises `Unavailable`."""
    state = topic_state(access_address(address))
    if state is not None:
        spec = replace(AccessTopicSpec.of(address), mode=mode)
        _configure(access_address(address), spec.settings(state.replication))


def _configure(address: KafkaAddress, wanted: dict[str, str]) -> None:
    client = admin(address)
    try:
        with translated(address, Operation.ALTER_CONFIGS):
            client.alter_configs([ConfigResource("TOPIC", address.topic, configs=wanted)], incremental=True)
    finally:
        client.close()


def delete(address: KafkaAddress) -> None:
    """Deletes the topics of a store that was never finished: the one that bears the mark last. Raises `ConfigurationError`."""
    state = topic_state(address)
    if state is None:
        return
    if not is_restoring(state):
        raise ConfigurationError(f"{address} is not being restored", hint="A store is not deleted.")
    client = admin(address)
    try:
        for each in (keys_address(address), access_address(address), address):
            _delete(client, each)
    finally:
        client.close()


def _delete(client: KafkaAdminClient, address: KafkaAddress) -> None:
    if topic_state(address) is None:
        return
    with translated(address, Operation.DELETE):
        client.delete_topics([address.topic], timeout_ms=10_000)
    deadline = time.monotonic() + _DELETE_SECONDS
    while topic_state(address) is not None:
        if time.monotonic() > deadline:
            raise Unavailable(str(address), "was deleted, and is still there")
        time.sleep(_PAUSE)


def _fenced(address: KafkaAddress) -> TransactionalProducer:
    name = f"{address.topic}-restore"
    owner = producer(address, transactional_id=name, max_event_bytes=TopicSpec.of(address).max_event_bytes)
    try:
        with translated(address, Operation.WRITE, transactional_id=name):
            owner.init_transactions()
    except BaseException:
        discard(owner)
        raise
    return owner


def produce(
    address: KafkaAddress, topic_id: str, batches: Iterable[Sequence[Record]], *, progress: Callable[[int], None] | None = None
) -> None:
    """Appends records to their partitions in their order: the same keys, the same bytes, the same times. Only offsets are new.

    By the one transactional producer of the topic's restores, so that two at a time cannot mix. Raises `Unavailable`: then the restore has
    to begin again.
    """
    done = 0
    with contextlib.ExitStack() as stack:
        owner = _fenced(address)
        stack.callback(discard, owner)
        with translated(address, Operation.WRITE):
            owner.partitions_for(address.topic)
            require_topic(owner._metadata, address, topic_id)
            for records in batches:
                for part in _transactions(records):
                    _append(owner, address, part)
                    done += len(part)
                    if progress is not None:
                        progress(done)


def produce_accesses(address: KafkaAddress, batches: Iterable[Sequence[tuple[int, bytes]]]) -> None:
    """Appends accesses, each with the time that it was recorded at (milliseconds since 1970 UTC), in their order. Raises `Unavailable`."""
    where = access_address(address)
    with contextlib.ExitStack() as stack:
        client = plain_producer(where)
        stack.callback(discard, client)
        with translated(where, Operation.WRITE):
            for batch in batches:
                sends = [client.send(where.topic, value=value, partition=0, timestamp_ms=recorded_at) for recorded_at, value in batch]
                for send in sends:
                    send.get(timeout=_ANSWER_SECONDS)


def _transactions(records: Sequence[Record]) -> Iterable[list[Record]]:
    part: list[Record] = []
    size = 0
    for record in records:
        part.append(record)
        size += len(record.value or b"")
        if size >= _TRANSACTION_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _append(owner: TransactionalProducer, address: KafkaAddress, records: Sequence[Record]) -> None:
    owner.begin_transaction()
    sends = [
        owner.send(address.topic, key=each.key, value=each.value, partition=each.partition, timestamp_ms=each.recorded_at)
        for each in records
    ]
    for send in sends:
        send.get(timeout=_ANSWER_SECONDS)
    answered = threading.Event()
    result = begin_commit(owner, lambda _: answered.set())
    if not answered.wait(REQUEST_TIMEOUT_MS / 1000 + 1) or not result.succeeded:
        raise Unavailable(str(address), f"the commit was not confirmed: {result.exception or 'no answer'}", hint="Restore again.")
