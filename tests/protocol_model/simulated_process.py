"""One process that writes: the product's own view, ownership and partition writer, with what they wait for in the scheduler's hands.

Not driven here, for each has threads and tests of its own: the dispatcher's loop (`Writer._run`, whose turn is repeated below for one
partition), the tail's thread, and DuckDB, which would take a hundred times as long as all the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, cast

from eventlog.address import KafkaAddress
from eventlog.errors import Unavailable
from eventlog.kafka.ownership import Hold, Ownership
from eventlog.kafka.partition import PartitionWriter
from eventlog.kafka.view import View
from eventlog.log import LogIdentity, Record
from eventlog.rules import Head
from projections.engine import Projection
from projections.rows import Batch, RevisionRow
from tests.protocol_model.simulated_client import Fault, Kind, Request, SimulatedProducer, arrive
from tests.protocol_model.simulated_kafka import SimulatedKafka
from tests.protocol_model.tasks import Pool, TurnCondition, pause

TOPIC = "orders"


class Order(Enum):
    """Who comes first where two could move."""

    READER_FIRST = "what was decided is shown at once"
    WRITER_FIRST = "what was decided is shown when nobody has anything else to do"


class Cut(Enum):
    """What does not get through between a process's producer and the broker."""

    NOTHING = "nothing"
    REQUESTS = "requests"
    ANSWERS = "answers"


class SimulatedProjection:
    """Stands for the file: what a process finds again after it was killed."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], RevisionRow] = {}
        self._heads: dict[str, RevisionRow] = {}
        self._next = 0

    def apply(self, batch: Batch) -> None:
        for row in batch.rows:
            if row.offset >= self._next:
                self._rows[row.checkpoint_id, row.revision] = self._heads[row.checkpoint_id] = row
        self._next = max(self._next, batch.next_offsets.get(0, 0))

    def heads(self, ids: Sequence[str], *, events: bool = True) -> dict[str, RevisionRow]:  # noqa: ARG002
        return {each: self._heads[each] for each in ids if each in self._heads}

    def positions(self) -> dict[int, int]:
        return {0: self._next}

    def revision(self, checkpoint_id: str, revision: int) -> RevisionRow | None:
        return self._rows.get((checkpoint_id, revision))


class SimulatedView(View):
    """The product's view; its waiting is the scheduler's, and its projection is in memory."""

    def __init__(self, broker: SimulatedKafka, projection: SimulatedProjection) -> None:
        super().__init__(identity=LogIdentity("simulated", 1), directory=Path("simulated"), hold_ms=int(broker.hold * 1000))
        self.broker = broker
        self.file = projection
        self._changed = TurnCondition()  # type: ignore[assignment]
        self._projection = cast(Projection, projection)
        self._applied = projection.positions()
        self._positions = projection.positions()

    def compacted_before(self) -> int:
        return int((self.broker.now - self.broker.hold) * 1000)

    def write_pending(self) -> bool:
        """What the view's own thread does from time to time; whether there was anything."""
        if not self._pending:
            return False
        while self._pending:
            self._apply_next()
        return True

    def revision(self, checkpoint_id: str, revision: int) -> Record | None:
        self.write_pending()
        row = self.file.revision(checkpoint_id, revision)
        return None if row is None else Record(row.partition, row.offset, row.recorded_at, None, row.event)


class SimulatedOffsets:
    """Stands for `Offsets`: one question to the broker."""

    def __init__(self, broker: SimulatedKafka) -> None:
        self._broker = broker

    def high_watermark(self, partition: int, *, timeout: float) -> int:  # noqa: ARG002
        pause()
        return self._broker.end

    def last_stable(self, *, timeout: float) -> dict[int, int]:  # noqa: ARG002
        pause()
        return {0: self._broker.stable}

    def open_transaction(self, partition: int) -> None:
        """There is no foreign writer here."""


@dataclass(frozen=True)
class Variant:
    """Which parts a process is made of. The tests of removed steps replace one."""

    writer: type[PartitionWriter] = PartitionWriter
    ownership: type[Ownership] = Ownership
    view: type[SimulatedView] = SimulatedView
    hold: type[Hold] = Hold
    offsets: type[SimulatedOffsets] = SimulatedOffsets
    verification: bool = True
    committed_only: bool = True
    settles_by_itself: bool = False  # `resolve()` looks into the log without asking the writer


class SimulatedProcess:
    """`turn`, `work` and what they are made of: each call is one step of one of the process's threads."""

    def __init__(self, number: int, broker: SimulatedKafka, wire: list[Request], variant: Variant, projection: SimulatedProjection) -> None:
        self.number = number
        self.projection = projection
        self.view = variant.view(broker, projection)
        self.hold = variant.hold()
        self.pool = Pool()
        self.producers: list[SimulatedProducer] = []
        self.ownership = variant.ownership(
            address=KafkaAddress((f"127.0.0.1:{number}",), TOPIC),
            view=self.view,
            offsets=cast(Any, variant.offsets(broker)),
            max_event_bytes=1,
            topic_id="simulated",
        )
        self.writer = variant.writer(
            topic=TOPIC,
            partition=0,
            view=self.view,
            ownership=self.ownership,
            hold=self.hold,
            pool=cast(Any, self.pool),
            wake=lambda: None,
        )
        self.cut = Cut.NOTHING
        self.fault: Fault | None = None  # of the next request that it concerns
        self._stray: Any = None
        self.variant = variant
        self.wire = wire
        self._broker = broker

    # -- the steps ------------------------------------------------------------------------------------------------

    def turn(self) -> bool:
        """One turn of the dispatcher; whether it moved anything."""
        now = self._broker.now
        until = self.hold.until(now)
        if until is not None:
            self.writer.step_back(until)
        moved = self.writer.advance(now)
        self.writer.expire(now)
        return moved

    def run_task(self) -> bool:
        """One step of one task of the pool; whether there is one."""
        return self.pool.run_next()

    def move_client(self, batch: int) -> bool:
        """One step of the clients' own threads and of the wire; whether there was one. See `cut` and `fault`."""
        for producer in self.producers:
            if producer.notice_time():
                return True
            if producer.waits_for_an_answer:
                if self._carry(producer):
                    return True
            elif producer.emit(batch):
                return True
        return False

    def _carry(self, producer: SimulatedProducer) -> bool:
        request = producer.in_flight
        assert request is not None
        if request not in self.wire:
            return self.cut is Cut.NOTHING and producer.send_again()
        if self.fault is not None and request.kind is self.fault.kind and self._meet(self.fault, request):
            self._broker.happened[self.fault.value] += 1
            self.fault = None
            return True
        if request.kind is Kind.PRODUCE and self._stray in self.wire:
            arrive(self._broker, self._stray, answer=False)
            self.wire.remove(self._stray)
            self._broker.write_markers()
        if self.cut is Cut.REQUESTS or not arrive(self._broker, request, answer=self.cut is Cut.NOTHING):
            return False
        self.wire.remove(request)
        return True

    def _meet(self, fault: Fault, request: Request) -> bool:
        """Lets a fault happen to a request; False: the broker is busy, so not yet."""
        producer = request.producer
        if fault in (Fault.COMMIT_FAILS, Fault.COMMIT_TWICE) and not arrive(self._broker, request, answer=fault is Fault.COMMIT_TWICE):
            return False
        if fault not in (Fault.BATCH_LATE, Fault.COMMIT_LATE, Fault.COMMIT_TWICE):
            self.wire.remove(request)
        if fault is Fault.BATCH_EXPIRES:
            producer.give_up()
        elif fault is Fault.COMMIT_FAILS:
            producer.fail_commit()
        elif fault is Fault.COMMIT_LIES:
            producer.lie()
        elif fault is Fault.COMMIT_TWICE:
            self._stray = request  # for the next transaction
        else:
            producer.get_stuck()
        return True

    def poll(self, most: int = 1_000) -> bool:
        """One poll of the tail; whether it brought anything."""
        before = self.view.next_offset(0)
        slots, position = self._broker.fetch(before, most, committed_only=self.variant.committed_only)
        if position == before:
            return False
        self.view.ingest([Record(0, slot.offset, int(slot.at * 1000), slot.key, slot.value) for slot in slots], {0: position})
        return True

    def work(self, batch: int, order: Order) -> bool:
        """The next step that this process, or the broker on its behalf, would take; whether there is one."""
        broker = self._broker
        if self.turn() or self.move_client(batch):
            return True
        if order is Order.READER_FIRST:
            return broker.write_markers() or broker.advance_stable() or self.poll() or self.run_task()
        return self.run_task() or self.poll() or broker.advance_stable() or broker.write_markers()

    # -- faults ---------------------------------------------------------------------------------------------------

    def interrupt(self) -> bool:
        """Whatever a task waits for fails, as when the broker does not answer in time; whether one waits."""
        for task in self.pool.tasks:
            if task.started:
                task.interruption = Unavailable("kafka", "no answer in time")
                return True
        return False

    def kill(self) -> None:
        self.pool.kill()
        for producer in self.producers:
            producer.discard()

    # -- what the checks look at ----------------------------------------------------------------------------------

    def owns(self) -> bool:
        """Whether the broker agrees that this process owns the partition."""
        producer: Any = self.writer._producer
        return producer is not None and producer.epoch == self._broker.transactions(producer.transactional_id).epoch

    def heads(self, ids: Sequence[str]) -> Mapping[str, Head]:
        return self.view.heads(list(ids))
