"""Several processes on one partition: every move that a run can be made of, and what must hold after each."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from eventlog.checkpoint import Checkpoint
from eventlog.errors import CheckpointError, OutcomeUnknown, Unavailable
from eventlog.event import EventType
from eventlog.ids import CheckpointId, EventId, RunId
from eventlog.kafka import ownership, partition
from eventlog.kafka.waiting import Call
from eventlog.log import Outcome
from eventlog.proposing import propose
from eventlog.rules import Proposal
from tests.protocol_model.promises import Asked, Promises, hold
from tests.protocol_model.simulated_client import Request, SimulatedProducer, arrive
from tests.protocol_model.simulated_kafka import SimulatedKafka
from tests.protocol_model.simulated_process import Cut, Order, SimulatedProcess, SimulatedProjection, Variant

IDS = tuple(CheckpointId(f"00000000-0000-7000-8000-00000000000{number}") for number in range(2))
RUN = RunId("00000000-0000-7000-8000-0000000000aa")


class World:
    """A broker, `processes` writers and their callers.

    Arguments:
        variant: what the processes are made of.
        init_waits: see `SimulatedKafka`.
        eager: whether every process that starts to work has a caller with something to propose.
        late_first: whether everything that is still on the wire arrives before anybody moves again, once the faults stop.
        strict: whether an owner's heads are compared with the log's whenever it validates. A variant has to break a promise instead.
    """

    def __init__(
        self,
        *,
        processes: int,
        variant: Variant,
        init_waits: bool = True,
        eager: bool = False,
        late_first: bool = False,
        strict: bool = True,
    ) -> None:
        self.broker = SimulatedKafka(verification=variant.verification, init_waits=init_waits)
        self.promises = Promises(self.broker, self.broker.happened)
        self.wire: list[Request] = []
        self.variant = variant
        self.eager = eager
        self.late_first = late_first
        self.strict = strict
        self._events = 0
        self._resolving: list[Resolving] = []
        self._patches = contextlib.ExitStack()
        # Where the product makes and ends its clients: the one seam, and the reason why a run needs no broker.
        self._patches.enter_context(patch.object(ownership, "producer", self._connect))
        self._patches.enter_context(patch.object(ownership, "discard", SimulatedProducer.discard))
        self._patches.enter_context(patch.object(ownership, "require_topic", lambda *_: None))  # there is only one
        self._patches.enter_context(patch.object(partition, "discard", SimulatedProducer.discard))
        self.processes = [self._start(number, SimulatedProjection()) for number in range(1, processes + 1)]

    def warm_up(self) -> None:
        """Every process has had the partition once. All but the last believe that they still have it."""
        for number in range(len(self.processes)):
            self.propose(number, number % len(IDS), 0, 1, timeout=30.0)
            self.work(number, 60, 100)

    def close(self) -> None:
        for process in self.processes:
            process.kill()
        self._patches.close()

    @property
    def happened(self) -> Counter[str]:
        return self.broker.happened

    def _start(self, number: int, projection: SimulatedProjection) -> SimulatedProcess:
        return SimulatedProcess(number, self.broker, self.wire, self.variant, projection)

    def _connect(self, address: Any, *, transactional_id: str, max_event_bytes: int) -> SimulatedProducer:  # noqa: ARG002
        process = self.processes[int(address.servers[0].partition(":")[2]) - 1]
        process.producers = [each for each in process.producers if not each.discarded]
        process.producers.append(SimulatedProducer(self.broker, self.wire, transactional_id))
        return process.producers[-1]

    # -- callers --------------------------------------------------------------------------------------------------

    def propose(self, process: int, which: int, jump: int, count: int, timeout: float, *, delete: bool = False) -> None:
        """A caller proposes `count` successive revisions, `jump` beyond the newest that anybody was told of."""
        known = self.promises.known.get(IDS[which])
        first = max(0, (-1 if known is None else known) + 1 + jump)
        proposals = []
        for revision in range(first, first + count):
            self._events += 1
            kind = EventType.DELETED if delete and revision else EventType.REVISION
            checkpoint = Checkpoint.initial(IDS[which], RUN, "model", 1, None).model_copy(
                update={"revision": revision, "event_id": EventId(f"00000000-0000-7000-9000-{self._events:012}")}
            )
            expected = revision - 1 if revision else None
            proposals.append(propose(checkpoint, expected, actor=None, max_event_bytes=1 << 20, event_type=kind))
        self._send(process, proposals, timeout)

    def propose_again(self, process: int, index: int, timeout: float) -> None:
        """A caller who does not know what became of its event sends it once more."""
        unclear = self.promises.unclear()
        if unclear:
            asked = unclear[index % len(unclear)]
            self._resolving = [each for each in self._resolving if each.asked.proposal is not asked.proposal]
            self.happened["sent again"] += 1
            self._send(process, [asked.proposal], timeout)

    def _send(self, process: int, proposals: Sequence[Proposal], timeout: float) -> None:
        for proposal in proposals:  # a call each: the first answer is not to wait for the last
            asked = self.promises.ask(proposal)
            self._queue(process, proposal, timeout, lambda outcome, asked=asked: self._answered(asked, outcome))

    def _answered(self, asked: Asked, outcome: Outcome | None) -> None:
        assert outcome is not None
        if not asked.lost:
            self.promises.answer(asked, outcome)

    def _queue(self, process: int, proposal: Proposal | None, timeout: float, done: Any) -> None:
        call = Call([proposal], timeout=0, done=lambda outcomes: done(outcomes[0]))
        call.items[0].deadline = self.broker.now + timeout
        self.processes[process].writer.queue.append(call.items[0])

    def resolve(self, process: int, index: int, timeout: float) -> None:
        """A caller asks what became of an event."""
        unclear = self.promises.unclear()
        if unclear:
            asked = unclear[index % len(unclear)]
            resolving = Resolving(process, asked)
            self._resolving.append(resolving)
            if self.variant.settles_by_itself:
                resolving.settled(self.broker.stable, None)
            else:
                self._queue(process, None, timeout, lambda error: resolving.settled(self.broker.stable, error))

    def load(self, process: int, which: int) -> None:
        """A caller reads: a barrier at the last stable offset, then what the process has seen."""
        known = self.promises.known.get(IDS[which])
        view, end = self.processes[process].view, self.broker.stable
        while view.next_offset(0) < end:
            self.processes[process].poll()
        head = view.head(IDS[which])
        self.promises.read(IDS[which], known, None if head is None else head.revision)

    # -- steps and faults -----------------------------------------------------------------------------------------

    def work(self, process: int, steps: int, batch: int, order: Order = Order.READER_FIRST) -> None:
        """So many steps of one process, in the order in which they come when nothing goes wrong."""
        if self.eager and not self.processes[process].writer.has_work:
            self.propose(process, 0, 0, 2, timeout=10.0)
        for _ in range(steps):
            if not self.processes[process].work(batch, order):
                return
            self.check()

    def arrive(self, index: int, *, answer: bool) -> None:
        """A request on the wire reaches the broker, however late; its answer may be lost."""
        if self.wire:
            request = self.wire[index % len(self.wire)]
            if request.producer.discarded:
                self.happened["zombies' requests"] += 1
            if arrive(self.broker, request, answer=answer):
                self.wire.remove(request)

    def lose(self, index: int) -> None:
        if self.wire:
            self.happened["lost requests"] += 1
            del self.wire[index % len(self.wire)]

    def interrupt(self, process: int) -> None:
        """A take-over waits in vain."""
        if self.processes[process].interrupt():
            self.happened["take-overs that waited in vain"] += 1

    def kill(self, process: int) -> None:
        """The process dies, and another starts with its projection."""
        self.happened["kills"] += 1
        dead = self.processes[process]
        dead.kill()
        for item in (*dead.writer._batch, *dead.writer.queue):
            for asked in self.promises.asked.get(item.proposal.event_id, ()) if item.proposal is not None else ():
                asked.lost = asked.lost or asked.outcome is None
        self._resolving = [each for each in self._resolving if each.process != process]
        self.processes[process] = self._start(process + 1, dead.projection)

    def check(self) -> None:
        self.promises.watch()
        for process in self.processes:
            if self.strict and process.writer.state is partition.State.READY and process.owns():
                heads = process.heads(IDS)
                for which in IDS:
                    head = heads.get(which)
                    seen = None if head is None else head.revision
                    hold(seen == self.promises.revision(which), f"process {process.number} owns the partition and lags behind it")
            blocked = process.view.quarantined()
            hold(not blocked, f"process {process.number} has quarantined {blocked}")
        for each in list(self._resolving):
            if each.barrier is not None and self.processes[each.process].view.next_offset(0) >= each.barrier:
                self._resolving.remove(each)
                self._look_up(each)
            elif each.failed:
                self._resolving.remove(each)

    def _look_up(self, resolving: Resolving) -> None:
        proposal = resolving.asked.proposal
        view = self.processes[resolving.process].view
        head = view.head(proposal.checkpoint_id)
        if head is None or head.revision < proposal.revision:
            self.promises.resolve(resolving.asked, found=False)
            return
        record = view.revision(proposal.checkpoint_id, proposal.revision)
        if record is not None:
            found = view.file.revision(proposal.checkpoint_id, proposal.revision)
            assert found is not None
            self.promises.resolve(resolving.asked, found=found.event_id == proposal.event_id)
            return
        # Compaction has taken that revision, later than its hold: `resolve()` says so, and claims nothing.
        resolving.asked.resolved = True
        self.happened["resolved: removed"] += 1

    # -- the end --------------------------------------------------------------------------------------------------

    def settle_down(self) -> None:
        """The faults stop: everything must be answered within bounded steps, new proposals with a plain yes or no."""
        self.eager = False
        for process in self.processes:
            process.cut, process.fault = Cut.NOTHING, None
        while self.late_first and self.wire and self.arrive_late():
            pass
        self._quiesce()
        fresh = []
        for number in range(len(self.processes)):
            self.propose(number, 0, 0, 1, timeout=30.0)
            fresh.append(next(reversed(self.promises.asked.values()))[-1])
            self._quiesce()
        for asked in fresh:
            answered = asked.outcome is not None and not isinstance(asked.outcome, OutcomeUnknown | Unavailable)
            hold(answered, f"without any fault: {asked.outcome}")
        for _ in range(len(self.promises.unclear())):
            self.resolve(0, 0, timeout=30.0)
            self._quiesce()
        hold(not self.promises.unclear(), "resolve() does not answer")
        # Whatever still lies on the wire comes now; nothing that was answered may change.
        while self.wire and self.arrive_late():
            pass
        self._quiesce()

    def arrive_late(self) -> bool:
        """The oldest request on the wire arrives; whether it does not have to be asked again."""
        before = len(self.wire)
        self.arrive(0, answer=True)
        self.broker.write_markers()
        self.check()
        return len(self.wire) < before

    def _quiesce(self) -> None:
        for _ in range(120):  # turns of half a second: more than every time-out and hold together
            for number in range(len(self.processes)):
                self.work(number, 60, 100)
            if not any(process.writer.has_work or process.writer.busy for process in self.processes) and not self._resolving:
                return
            self.wait(0.5)
        waiting = [process.number for process in self.processes if process.writer.has_work or process.writer.busy]
        hold(not waiting, f"processes {waiting} do not come to an end")

    def wait(self, seconds: float) -> None:
        self.broker.now += seconds
        self.broker.expire_transactions()


class Resolving:
    """A `resolve()` on its way: first the partition is settled, then everything up to a barrier is read, then it looks."""

    def __init__(self, process: int, asked: Asked) -> None:
        self.process = process
        self.asked = asked
        self.barrier: int | None = None
        self.failed = False

    def settled(self, stable: int, error: CheckpointError | None) -> None:
        self.barrier = stable if error is None else None
        self.failed = error is not None
