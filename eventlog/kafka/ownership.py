"""Owning a partition: one writer at a time, fenced by the broker."""

from __future__ import annotations

import random
import threading

from kafka.errors import KafkaError

from eventlog.address import KafkaAddress
from eventlog.diagnostics import Notice, tell
from eventlog.errors import CheckpointError, ConfigurationError, Unavailable
from eventlog.kafka.boundaries import Boundary, passed
from eventlog.kafka.client import TransactionalProducer, discard, producer, require_topic, translated
from eventlog.kafka.offsets import Offsets
from eventlog.kafka.refusals import refusal
from eventlog.kafka.rights import Operation
from eventlog.kafka.view import View
from eventlog.metrics.collected import metrics_of

# After losing a partition, wait this long before taking it back. facts: two processes without a hold fenced each other without end
# (183 take-overs for 11 transactions); with it they made 208 commits a second where one alone makes 222.
HOLD_SECONDS = (0.3, 0.6)
_CATCH_UP_SECONDS = 30.0  # without any progress
_BLOCKED_SECONDS = 3.0  # without any progress, before it is asked what holds the tail back


class Hold:
    """How long to stay away after a loss: one for all partitions of a process, random, so that two processes do not wait in step.

    One for all, because callers use several partitions: with a hold for each, the callers of both processes end up waiting for one that
    is not theirs. So processes take turns as a whole.
    """

    def __init__(self) -> None:
        self._until = 0.0

    def until(self, now: float) -> float | None:
        """The end of the hold that is on at `now`; None: there is none."""
        return self._until if now < self._until else None

    def after_loss(self, now: float) -> float:
        """Until when to wait after a partition was lost at `now`; further losses meanwhile do not prolong it."""
        if now >= self._until:
            self._until = now + random.uniform(*HOLD_SECONDS)
        return self._until


class Ownership:
    """Takes partitions over. Counts it: each time is an exception, and too many are a sign of two stores on one topic."""

    def __init__(self, *, address: KafkaAddress, topic_id: str, view: View, offsets: Offsets, max_event_bytes: int) -> None:
        self._address = address
        self._topic_id = topic_id
        self._view = view
        self._offsets = offsets
        self._max_event_bytes = max_event_bytes
        self._lock = threading.Lock()
        self.takeovers = 0

    def transactional_id(self, partition: int) -> str:
        """The same for every process: that is what fences."""
        return f"{self._address.topic}-writer-{partition}"

    def take(self, partition: int) -> TransactionalProducer:
        """Takes a partition over and returns the producer that owns it.

        Raises `Unavailable`, `StoreClosed`, `MissingRight`, `AuthenticationFailed`, or `ConfigurationError` when the topic is another one
        now.

        The steps stand in this order, and none can be left out:

        1. A new producer. The one before is never used again: after any doubt its state machine can report what did not happen.
        2. `init_transactions`. The broker fences every earlier owner, completes or aborts its open transaction, and answers only when
           that is decided and its markers are written. From here on no request of an earlier owner can change the partition.
           The id outlives the topic: a topic that was made anew under the same name is refused here, before heads of the old one are
           used to write to it.
        3. Take the high watermark, after 2. It covers whatever an earlier owner committed, acknowledged to its callers or not. The
           last stable offset would not do: it may trail commits that step 2 has just decided.
        4. Wait until this process's own read_committed tail has come that far. Only then are the heads in memory the true ones, and only
           then may a proposal be validated: a proposal judged by older heads could repeat a revision that is already in the log.

        What was sent before and is not seen after step 4 was aborted, and never will be in the log.
        """
        owner = producer(self._address, transactional_id=self.transactional_id(partition), max_event_bytes=self._max_event_bytes)
        try:
            passed(Boundary.FENCING)
            with translated(self._address, Operation.WRITE, transactional_id=self.transactional_id(partition)):
                owner.init_transactions()
                passed(Boundary.FENCED)
                # Otherwise the first send would ask, in the dispatcher's thread, and hold up every partition while no broker answers.
                owner.partitions_for(self._address.topic)
                self._require_topic(owner)
            end = self._offsets.high_watermark(partition, timeout=_CATCH_UP_SECONDS)
            passed(Boundary.BARRIER_SET)
            self._await_end(partition, end)
            passed(Boundary.CAUGHT_UP)
        except BaseException:
            discard(owner)
            raise
        with self._lock:
            self.takeovers += 1
        metrics_of("kafka").taken_over()
        tell(Notice.PARTITION_TAKEN_OVER, store="kafka", topic=self._address.topic, partition=partition)
        return owner

    def refusal(self, error: KafkaError, partition: int) -> CheckpointError | None:
        """What an error of a producer of this partition says, if it is one that no other attempt will change."""
        return refusal(self._address, error, operation=Operation.WRITE, transactional_id=self.transactional_id(partition))

    def catch_up(self, partition: int) -> None:
        """Waits until this process has seen everything that was acknowledged to anybody before the call. Raises `Unavailable`."""
        end = self._offsets.last_stable(timeout=_CATCH_UP_SECONDS)[partition]
        self._view.await_position({partition: end}, _CATCH_UP_SECONDS)

    def _require_topic(self, owner: TransactionalProducer) -> None:
        try:
            require_topic(owner._metadata, self._address, self._topic_id)
        except ConfigurationError as error:
            self._view.fail(error)  # nothing that this store holds is true of that topic
            raise

    def _await_end(self, partition: int, end: int) -> None:
        """Waits for the tail. What holds it back is somebody else's open transaction: those of earlier owners ended with the fence."""
        try:
            self._view.await_position({partition: end}, _BLOCKED_SECONDS)
        except Unavailable as error:
            blocker = self._offsets.open_transaction(partition)
            if blocker is None:
                self._view.await_position({partition: end}, _CATCH_UP_SECONDS)
                return
            raise Unavailable(
                str(self._address),
                f"producer {blocker.producer_id} holds a transaction open in partition {partition} since offset {blocker.offset};"
                " what was written behind it cannot be read yet",
                hint="Somebody else writes to the topic: restrict write access by ACLs. The broker ends the transaction when its time-out"
                " is over; Kafka's tools can abort it before (`kafka-transactions.sh`).",
            ) from error
