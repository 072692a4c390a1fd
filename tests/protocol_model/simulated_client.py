"""A transactional producer of kafka-python 3.0.12 as the writer sees it, its defects included, and the wire between it and the broker.

A request leaves the producer, lies on the wire, reaches the broker, and is answered: each only when the scheduler says so. What lies on
the wire may be lost, or arrive after its producer was thrown away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import Any

from kafka.errors import KafkaError, KafkaTimeoutError, RequestTimedOutError

from eventlog.kafka.client import DELIVERY_TIMEOUT_MS, REQUEST_TIMEOUT_MS
from tests.protocol_model.simulated_kafka import Busy, SimulatedKafka
from tests.protocol_model.tasks import pause


class Send:
    """What `send` returns."""

    def __init__(self, key: bytes, value: bytes) -> None:
        self.record = (key, value)
        self.value: Any = None
        self.is_done = False
        self.exception: Exception | None = None
        self.sent_at = 0.0

    def failed(self) -> bool:
        return self.exception is not None

    def add_both(self, callback: Callable[..., None]) -> None:  # the scheduler looks by itself
        pass

    def acknowledge(self, offset: int) -> None:
        self.value = SimpleNamespace(offset=offset)
        self.is_done = True

    def fail(self, error: Exception) -> None:
        if not self.is_done:
            self.is_done, self.exception = True, error


class CommitResult:
    """What `begin_commit` returns. As in the original, `wait` raises the error of a commit that failed."""

    def __init__(self, asked_at: float) -> None:
        self.asked_at = asked_at
        self.is_done = False
        self.exception: Exception | None = None

    @property
    def failed(self) -> bool:
        return self.is_done and self.exception is not None

    @property
    def succeeded(self) -> bool:
        return self.is_done and self.exception is None

    def wait(self, timeout_ms: int) -> bool:  # noqa: ARG002
        if self.exception is not None:
            raise self.exception
        return self.is_done

    def done(self, error: Exception | None = None) -> None:
        if not self.is_done:
            self.is_done, self.exception = True, error


class Kind(Enum):
    ADD_PARTITION = "add partition"
    PRODUCE = "produce"
    END = "end"


class Fault(Enum):
    """What may become of the next request of a kind."""

    BATCH_EXPIRES = "a batch expires"
    BATCH_FORGOTTEN = "a batch is forgotten"
    BATCH_LATE = "a batch comes late"
    COMMIT_FORGOTTEN = "a commit is forgotten"
    COMMIT_FAILS = "a commit is done and reported as failed"
    COMMIT_LATE = "a commit comes late"
    COMMIT_TWICE = "a commit comes again in the next transaction"
    COMMIT_LIES = "a commit is reported and never sent"

    @property
    def kind(self) -> Kind:
        return Kind.PRODUCE if self.name.startswith("BATCH") else Kind.END


@dataclass(slots=True, eq=False)
class Request:
    producer: SimulatedProducer
    kind: Kind
    epoch: int
    sends: list[Send] = field(default_factory=list)
    sequence: int = 0
    result: CommitResult | None = None


class SimulatedProducer:
    """One client with a transactional id. `fences`: whether `init_transactions` does what it says."""

    def __init__(self, broker: SimulatedKafka, wire: list[Request], transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.epoch = -1
        self.discarded = False
        self.in_flight: Request | None = None  # one at a time: idempotence, and the order of the coordinator's requests
        self._broker = broker
        self._wire = wire
        self._unsent: list[Send] = []
        self._commit: CommitResult | None = None
        self._added = False
        self._sequence = 0
        self._open = False
        self._error: Exception | None = None
        self._stuck = False
        self._transaction_manager = SimpleNamespace(begin_commit=self._begin_commit)
        self._metadata = None
        self._sender = SimpleNamespace(wakeup=lambda: None)

    # -- what the writer calls ------------------------------------------------------------------------------------

    def init_transactions(self) -> None:
        """A second call does nothing, as in the original."""
        while self.epoch < 0:
            pause()  # the request travels
            try:
                _, self.epoch = self._broker.init(self.transactional_id)
            except Busy:
                pause(until=lambda: not self._broker.transactions(self.transactional_id).decided)

    def partitions_for(self, topic: str) -> set[int]:  # noqa: ARG002
        return {0}

    def join_without_fencing(self) -> None:
        """Not in the original: what a client would be like that shares the id of another."""
        self.epoch = max(0, self._broker.transactions(self.transactional_id).epoch)
        self._broker.transactions(self.transactional_id).epoch = self.epoch
        self._sequence = (self._broker.end + 1) * 1_000  # not taken for a batch of the other's that is sent again

    def begin_transaction(self) -> None:
        if self.epoch < 0 or self._open or self._error is not None:
            raise KafkaError(f"Invalid transition: {self._error!r}")
        self._open, self._added = True, False

    def send(self, topic: str, *, value: bytes, key: bytes, partition: int) -> Send:  # noqa: ARG002
        send = Send(key, value)
        send.sent_at = self._broker.now
        self._unsent.append(send)
        return send

    def _begin_commit(self) -> CommitResult:
        if self._error is not None:
            raise KafkaError(f"Invalid transition: {self._error!r}")
        self._commit = CommitResult(self._broker.now)
        return self._commit

    def revive(self) -> None:
        """Not in the original: what would be left of a producer that is used again after an error."""
        self.discarded, self.in_flight, self._unsent, self._commit = False, None, [], None
        self._open, self._error, self._stuck = False, None, False

    def discard(self) -> None:
        """What was not sent never will be; what is on the wire may arrive."""
        self.discarded = True

    # -- what its own thread does ---------------------------------------------------------------------------------

    def emit(self, batch: int) -> bool:
        """Sends the next request, of up to `batch` records; whether there was one."""
        if self.discarded or self.in_flight is not None or not self._open or self._stuck:
            return False
        if self._unsent and not self._added:
            self._put(Request(self, Kind.ADD_PARTITION, self.epoch))
        elif self._unsent:
            sends, self._unsent = self._unsent[:batch], self._unsent[batch:]
            self._put(Request(self, Kind.PRODUCE, self.epoch, sends, self._sequence))
            self._sequence += 1
        elif self._commit is not None and not self._commit.is_done:
            self._put(Request(self, Kind.END, self.epoch, result=self._commit))
        else:
            return False
        return True

    def _put(self, request: Request) -> None:
        self.in_flight = request
        self._wire.append(request)

    def send_again(self) -> bool:
        """After a lost connection: the same request once more, while the first may still arrive."""
        if self.discarded or self.in_flight is None:
            return False
        self._wire.append(self.in_flight)
        return True

    def answered(self, request: Request, error: Exception | None, offset: int) -> None:
        """The broker's answer arrives. That of a request which nobody waits for any more changes nothing."""
        if self.discarded or request is not self.in_flight:
            return
        self.in_flight = None
        if error is not None:
            self._fail(error, request)
        elif request.kind is Kind.ADD_PARTITION:
            self._added = True
        elif request.kind is Kind.PRODUCE:
            for place, send in enumerate(request.sends):
                send.acknowledge(offset + place)
        else:
            assert request.result is not None
            request.result.done()
            self._commit, self._open = None, False

    def _fail(self, error: Exception, request: Request) -> None:
        self._error = error
        for send in (*request.sends, *self._unsent):
            send.fail(error)
        self._unsent.clear()
        if self._commit is not None:
            self._commit.done(KafkaError(f"unknown reasons: {error!r}"))

    def notice_time(self) -> bool:
        """Gives up what has waited too long; whether there was anything."""
        request, now = self.in_flight, self._broker.now
        if self.discarded or request is None:
            return False
        if request.kind is Kind.END:
            assert request.result is not None
            if self._stuck or now - request.result.asked_at <= REQUEST_TIMEOUT_MS / 1000:
                return False
            self.fail_commit()
            return True
        waiting = (*request.sends, *self._unsent)
        return now - waiting[0].sent_at > DELIVERY_TIMEOUT_MS / 1000 and self.give_up()

    def give_up(self) -> bool:
        """Defect B: a batch expires, which changes no state, and a commit would go on without it; whether one was on its way.

        A request to add the partition that is lost (defect C) leaves all records to expire.
        """
        request = self.in_flight
        if self.discarded or request is None or request.kind is Kind.END:
            return False
        self.in_flight = None
        for send in request.sends or self._unsent:
            send.fail(KafkaTimeoutError("the batch expired"))
        if not request.sends:
            self._unsent.clear()
        return True

    def get_stuck(self) -> None:
        """Defect C: the request on its way is forgotten, and whoever waits for it waits for ever."""
        self._stuck = True

    def fail_commit(self) -> None:
        """What the client says of a commit whose answer it did not get."""
        request, self.in_flight = self.in_flight, None
        assert request is not None
        self._fail(RequestTimedOutError(), request)

    @property
    def waits_for_an_answer(self) -> bool:
        return self.in_flight is not None and not self.discarded and not self._stuck

    def lie(self) -> None:
        """Defect A: the commit is reported as done, and nothing was sent."""
        assert self._commit is not None
        self._commit.done()
        self.in_flight, self._commit, self._open = None, None, False


def arrive(broker: SimulatedKafka, request: Request, *, answer: bool) -> bool:
    """A request reaches the broker, and its answer (if `answer`) its producer. False: it has to be asked again."""
    producer, error, offset = request.producer, None, 0
    try:
        if request.kind is Kind.ADD_PARTITION:
            broker.add_partition(producer.transactional_id, request.epoch)
        elif request.kind is Kind.PRODUCE:
            offset = broker.produce(producer.transactional_id, request.epoch, request.sequence, [send.record for send in request.sends])
        else:
            broker.end_transaction(producer.transactional_id, request.epoch)
    except Busy:
        return False
    except KafkaError as refused:
        error = refused
    if answer:
        producer.answered(request, error, offset)
    return True
