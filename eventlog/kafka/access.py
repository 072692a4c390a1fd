"""The access log on Kafka: the topic `<topic>.access`, of one partition, which only retention removes anything from.

It needs no owner and no transactions: records of any number of processes stand in it in the order of their arrival, each in the chain
of its own session. An append is answered when every in-sync replica has it; in strict mode brokers also flush it (`flush.messages`).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kafka import TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError

from eventlog.address import KafkaAddress
from eventlog.errors import AuditUnavailable, CheckpointError, ConfigurationError, InvalidRequest, MissingRight, NotAStore
from eventlog.group_commit import GroupCommit, LeaderInterrupted
from eventlog.kafka.client import TransactionalProducer, admin, consumer, discard, plain_producer, require_topic, translated
from eventlog.kafka.rights import Operation
from eventlog.kafka.tail import following, poll
from eventlog.kafka.topic import DAY_MS, create_topic, describe
from eventlog.position import Position
from eventlog.privacy.access_event import AccessEvent
from eventlog.privacy.access_log import AccessLog, AccessMode, AccessRecord, Chain

RETENTION_MS = 365 * DAY_MS
RETENTION_SETTING = "access_retention_ms"
_ACKNOWLEDGED_SECONDS = 10.0  # as the log's own delivery time-out
_NEVER_FLUSHED = str(2**63 - 1)  # Kafka's default: replicas are what makes a record durable
_POLL_MS = 100


@dataclass(frozen=True, slots=True)
class AccessTopicSpec:
    """The settings that an access topic must have.

    `retention_ms`: how long accesses are kept; -1: for ever. `mode`: the one that its settings are to remember; None: whichever they do.
    """

    retention_ms: int = RETENTION_MS
    mode: AccessMode | None = None

    @classmethod
    def of(cls, address: KafkaAddress) -> AccessTopicSpec:
        """What the access topic of an address must be. Raises `InvalidRequest`."""
        given = address.settings.get(RETENTION_SETTING, str(RETENTION_MS))
        if given != "-1" and not (given.isascii() and given.isdigit() and len(given) <= 15):
            raise InvalidRequest("address", f"{RETENTION_SETTING} is {given!r}, not a number of milliseconds, nor -1 for ever")
        return cls(int(given))

    def settings(self, replication: int) -> dict[str, str]:
        """As Kafka names and spells them."""
        flush = {} if self.mode is None else {"flush.messages": "1" if self.mode is AccessMode.STRICT else _NEVER_FLUSHED}
        return {
            "cleanup.policy": "delete",
            "message.timestamp.type": "LogAppendTime",
            "retention.ms": str(self.retention_ms),
            "retention.bytes": "-1",
            "min.insync.replicas": "2" if replication >= 3 else "1",
            "unclean.leader.election.enable": "false",
            **flush,
        }


def access_address(address: KafkaAddress) -> KafkaAddress:
    """The topic of a store's accesses."""
    return replace(address, topic=f"{address.topic}.access")


def create_access_topic(address: KafkaAddress, *, mode: AccessMode, replication: int | None) -> None:
    """Makes the access topic of a store that is not there yet. The topic's settings remember the mode.

    One that a process has left that died in here is used: nothing is in it. Raises as `create_topic` does.
    """
    where = access_address(address)
    if _is_left(address, mode):
        return
    spec = replace(AccessTopicSpec.of(address), mode=mode)
    exists = "It holds accesses of an earlier topic: keep it elsewhere."
    create_topic(where, spec=spec, partitions=1, replication=replication, if_it_exists=exists)


def _is_left(address: KafkaAddress, mode: AccessMode) -> bool:
    found = open_access_topic(address)
    if found is None:
        return False
    log, own = found
    try:
        return own is mode and log.end().next_offset(0) == 0
    finally:
        log.close()


def open_access_topic(address: KafkaAddress) -> tuple[AccessLog, AccessMode] | None:
    """The access log of a store and its mode; None: there is no such topic, so the store records nothing.

    Raises `ConfigurationError` with every difference from what the topic must be, or `Unavailable`.
    """
    where = access_address(address)
    client = admin(where)
    try:
        with translated(where):
            state = describe(client, where)
    except NotAStore:
        return None
    finally:
        client.close()
    settings, flush = state.settings, state.settings.get("flush.messages")
    wrong = [
        f"{name} is {settings.get(name, 'not set')}; it must be {value}"
        for name, value in AccessTopicSpec.of(address).settings(state.replication).items()
        if settings.get(name) != value
    ]
    if state.partitions != 1:
        wrong.append(f"it has {state.partitions} partitions; it must have 1")
    if flush not in ("1", _NEVER_FLUSHED):
        wrong.append(f"flush.messages is {flush}; it must be 1 (strict) or {_NEVER_FLUSHED} (buffered)")
    if wrong:
        hint = "Correct the topic's settings; the store does not start, because accesses could be lost."
        raise ConfigurationError(f"{where} is not set up as an access log", differences=wrong, hint=hint)
    log = KafkaAccessLog(address=where, topic_id=state.topic_id, identity=f"{state.cluster_id}/{state.topic_id}")
    return log, AccessMode.STRICT if flush == "1" else AccessMode.BUFFERED


class KafkaAccessLog:
    """See `AccessLog`. Any number of threads may share it, a forked child may not. Connects when it is first used."""

    notes_retention = False  # the broker removes what is too old, and tells nobody

    def __init__(self, *, address: KafkaAddress, topic_id: str, identity: str) -> None:
        self.address = address
        self.identity = identity
        self._topic_id = topic_id
        self._partition = TopicPartition(address.topic, 0)
        self._group = GroupCommit[AccessEvent, None](self._write)
        self._chain = Chain()
        self._producer: TransactionalProducer | None = None
        self._newest = -1
        self._closed = threading.Event()
        self._pid = os.getpid()

    def close(self) -> None:
        """Lets what is under way end, then lets go of the producer."""
        self._closed.set()
        while not self._group.idle:
            time.sleep(0.001)
        if self._pid == os.getpid():
            self._discard()

    def append(self, events: Sequence[AccessEvent]) -> None:
        """See `AccessLog.append`."""
        try:
            self._group.submit(events)
        except LeaderInterrupted as error:
            raise AuditUnavailable(str(self.address), "whoever wrote for all was interrupted") from error

    def read(self, after: Position) -> Iterator[tuple[Sequence[AccessRecord], Position]]:
        """See `AccessLog.read`."""
        client = consumer(self.address)
        try:
            with translated(self.address, Operation.READ):
                client.assign([self._partition])
                first = client.beginning_offsets([self._partition])[self._partition]
                end = client.end_offsets([self._partition])[self._partition]
                require_topic(client._cluster, self.address, self._topic_id)
                reached = max(first, after.next_offset(0))
                if reached < end:
                    client.seek(self._partition, reached)
            most = 500
            while reached < end:
                with translated(self.address, Operation.READ):
                    records, positions = poll(client, _POLL_MS, most)
                most, reached = following(records), positions[0]
                found = [AccessRecord(0, each.offset, each.recorded_at, each.value or b"") for each in records if each.offset < end]
                yield found, Position(((0, min(reached, end)),))
        finally:
            client.close()

    def start(self) -> Position:
        """See `AccessLog.start`."""
        return Position(((0, self._offset(OffsetSpec.EARLIEST)),))

    def end(self) -> Position:
        """See `AccessLog.end`."""
        return Position(((0, self._offset(OffsetSpec.LATEST)),))

    def start_at(self, millis: int) -> Position:
        """See `AccessLog.start_at`."""
        found = self._offset(millis)
        return self.end() if found < 0 else Position(((0, found),))

    def prune(self, start: Position) -> int:
        """See `AccessLog.prune`. The broker removes the bytes when nothing of a segment is left."""
        before, first = self.start().next_offset(0), start.next_offset(0)
        client = admin(self.address)
        try:
            with translated(self.address, Operation.DELETE):
                client.delete_records({self._partition: first})
        finally:
            client.close()
        return max(0, first - before)

    def _offset(self, spec: Any) -> int:
        client = admin(self.address)
        try:
            with translated(self.address, Operation.READ):
                return int(client.list_partition_offsets({self._partition: spec}, timeout_ms=5_000)[self._partition].offset)
        finally:
            client.close()

    # -- appending ------------------------------------------------------------------------------------------------

    def _write(self, events: Sequence[AccessEvent]) -> Sequence[None]:
        """Appends what concurrent callers have given, and waits for all of it. Runs in one thread at a time (`GroupCommit`).

        After any doubt the producer is thrown away, and the session ends: what was sent may or may not arrive, and is not counted on.
        """
        if self._closed.is_set() or self._pid != os.getpid():
            raise AuditUnavailable(str(self.address), "it is not open in this process")
        deadline = time.monotonic() + _ACKNOWLEDGED_SECONDS
        try:
            with translated(self.address, Operation.WRITE):
                if self._producer is None:
                    self._producer = plain_producer(self.address)
                sent = [self._producer.send(self.address.topic, value=value, partition=0) for value in self._chain.seal(events)]
                offsets = [each.get(timeout=max(0.001, deadline - time.monotonic())).offset for each in sent]
                require_topic(self._producer._metadata, self.address, self._topic_id)
                if offsets[0] <= self._newest:
                    raise ConfigurationError(f"{self.address} was cut or made anew: it gives offset {offsets[0]} a second time")
                self._newest = offsets[-1]
        except BaseException as error:
            self._chain.renew()
            self._discard()
            if isinstance(error, CheckpointError):
                hint = error.hint if isinstance(error, MissingRight) else None  # the command that grants it
                raise AuditUnavailable(str(self.address), str(error), hint=hint) from error
            raise
        return [None] * len(events)

    def _discard(self) -> None:
        client, self._producer = self._producer, None
        if client is not None:
            with contextlib.suppress(KafkaError):
                discard(client)
