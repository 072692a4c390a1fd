"""One partition's writer: a state machine that is never blocked, driven by the dispatcher."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from enum import Enum
from typing import Any

from kafka.errors import KafkaError

from eventlog import codec, retry
from eventlog.checkpoint import Receipt, from_millis
from eventlog.diagnostics import Notice, tell
from eventlog.errors import CheckpointError, Conflict, NotFound, Quarantined
from eventlog.event import GENESIS
from eventlog.ids import EventId
from eventlog.kafka.boundaries import Boundary, is_heard, passed
from eventlog.kafka.client import DELIVERY_TIMEOUT_MS, REQUEST_TIMEOUT_MS, TransactionalProducer, begin_commit, discard
from eventlog.kafka.comparing import compare
from eventlog.kafka.doubts import Doubts
from eventlog.kafka.ownership import Hold, Ownership
from eventlog.kafka.refusals import REFUSED
from eventlog.kafka.view import View
from eventlog.kafka.waiting import Item, named_by
from eventlog.position import Position
from eventlog.rules import Head, Proposal, Verdict, decide, rejection, unmet

MOST_IN_A_TRANSACTION = 1_000  # facts: 28.7k events a second in transactions of 1000; larger ones gain nothing
_MOST_BYTES = 16 << 20
_SEND_SECONDS = DELIVERY_TIMEOUT_MS / 1000 + 1  # the client gives up by itself within its delivery time-out
_COMMIT_SECONDS = REQUEST_TIMEOUT_MS / 1000 + 1  # one request; an answer lost on the way is settled by taking over
_ANSWER_SECONDS = 1.0  # for the same answer once the tail has shown the events: nobody waits but the next transaction
_EXPIRE_SECONDS = 0.1  # how late a caller in line may learn that its time is up
_IN_THIS_BATCH = -1  # the offset of a head that is only proposed yet
_RETRY_SECONDS = 0.2  # between attempts to take a partition over while the broker does not answer


class State(Enum):
    IDLE = "idle"  # not owned
    ACQUIRING = "acquiring"
    READY = "ready"  # owned, nothing in flight
    SENT = "sent"  # records sent, acknowledgements outstanding
    COMMITTING = "committing"  # commit sent, the tail has not shown the events yet


class PartitionWriter:
    """Commits the proposals of one partition, one transaction at a time. Every method runs in the dispatcher's thread."""

    def __init__(
        self, *, topic: str, partition: int, view: View, ownership: Ownership, hold: Hold, pool: Executor, wake: Callable[[], None]
    ) -> None:
        self.queue: deque[Item] = deque()
        self.state = State.IDLE
        self.transactions = 0
        self.lost = False  # this process had the partition, and is to take it back as soon as it writes anything
        self._topic = topic
        self._partition = partition
        self._view = view
        self._ownership = ownership
        self._hold = hold
        self._pool = pool
        self._wake = wake
        self._producer: TransactionalProducer | None = None
        self._taking: Future[TransactionalProducer] | None = None
        self._batch: list[Item] = []
        self._settling: list[Item] = []  # of the queue: those that the take-over under way answers
        self._doubts = Doubts(catch_up=self._catch_up)
        self._deferred: list[Item] = []
        self._sends: list[Any] = []
        self._commit: Any = None
        self._begun_at = 0
        self._last_offset = -1
        self._step_ends = 0.0
        self._not_before = 0.0
        self._look_again = 0.0
        self._trouble = "the partition could not be taken over"

    @property
    def has_work(self) -> bool:
        return bool(self.queue or self._batch or self._doubts)

    @property
    def busy(self) -> bool:
        return self.state in (State.ACQUIRING, State.SENT, State.COMMITTING)

    def advance(self, now: float) -> bool:
        """Takes the next step, if it can be taken; whether it did."""
        self.queue.extendleft(reversed(self._doubts.caught_up()))
        if self.state is State.READY:
            return bool(self.queue) and self._begin(now)
        if self.state is State.SENT:
            return self._acknowledged(now)
        if self.state is State.COMMITTING:
            return self._seen(now)
        if self.state is State.ACQUIRING:
            return self._taken(now)
        if (self.has_work or self.lost) and now >= self._not_before:
            self.lost = False
            self.state = State.ACQUIRING
            self._settling = [item for item in self.queue if item.proposal is None]
            self._taking = self._pool.submit(self._ownership.take, self._partition)
            self._taking.add_done_callback(lambda _: self._wake())
            return True
        return False

    def step_back(self, until: float) -> None:
        """Gives the partition up with the one that was just lost, unless something is in flight. Otherwise two processes that have lost
        one to the other each keep one of two, and the callers of both wait (0.2 of the commits of one process, measured)."""
        if self.state is State.READY:
            self._give_up()
            self.lost, self._not_before = True, until

    def expire(self, now: float) -> None:
        """Answers whoever has waited long enough. An item that was sent stays in the batch: it may still turn out committed."""
        for item in self._batch:
            if now > item.deadline and not item.answered:
                item.expire(f"the log did not confirm it in time ({self._trouble})")
        if now > self._look_again:
            self._look_again = now + _EXPIRE_SECONDS
            for item in (*self.queue, *self._doubts.items):
                if now > item.deadline:
                    item.expire(f"the log could not be reached in time ({self._trouble})")
            self.queue = deque(item for item in self.queue if not item.answered)

    def abandon(self, error: CheckpointError) -> None:
        """Answers everybody: nothing more will be written for them."""
        for item in (*self._batch, *self.queue, *self._doubts.items):
            item.answer(item.unanswered(error))
        self._batch, self.queue = [], deque()
        self._doubts.clear()

    def refuse_queued(self, error: CheckpointError) -> None:
        """Answers whoever has nothing in flight."""
        kept = [item for item in self.queue if item.sent]
        for item in self.queue:
            if not item.sent:
                item.answer(error)
        self.queue = deque(kept)

    def release(self) -> None:
        """Ends the producer. Called once nothing is in flight, by whoever closes the writer."""
        if self._taking is not None and self._producer is None:
            try:
                self._producer = self._taking.result(timeout=60)
            except CheckpointError:
                return
        if self._producer is not None:
            discard(self._producer)
            self._producer = None

    # -- the steps of a transaction -------------------------------------------------------------------------------

    def _begin(self, now: float) -> bool:
        """Validates what waits, and sends it in one transaction.

        Together with the two steps after it this is the append on Kafka. The order is the promise:

        1. Validate against the heads that the tail has shown, and against this batch. While the partition is owned nothing else can
           be added, so that what is validated now still holds when it is committed; if ownership was lost, step 3 or 4 fails.
        2. Begin, and send all records to this one partition. Independent events need no more, and a transaction that spans
           partitions would make one slow partition hold the others.
        3. Wait for every acknowledgement before asking for the commit. The client would otherwise commit a transaction that has lost a
           batch, or report a commit that it never sent (defects A and B). An acknowledgement also says where the records went: into a
           topic that was just made anew under this name they are not committed.
        4. Ask for the commit, bounded. Its answer only says when to look: "committed" may be false, "failed" may be late.
        5. Wait until this process's own tail has shown the events, then answer the callers. The tail alone decides.
        6. On any error throw the producer away, take the partition over again, and only then settle each open proposal by its event id:
           what the tail has not shown by then was aborted, and is validated again, unless its caller has been told "unknown".
        7. Answer whoever asks what became of an event behind a take-over that begins after the question. A process that was fenced
           does not know it, and would call an event absent that its new owner is about to commit.

        For the same reason whoever is refused waits until the tail has caught up: heads that are old would name a revision that is not the
        current one any more.
        """
        taken = self._take(now)
        if not taken and self.queue:
            self._give_up()  # whoever is first in line waits for a take-over that begins after it asked
            return True
        passed(Boundary.VALIDATING)
        heads = self._view.heads(list(named_by(taken)))
        events: list[tuple[Item, bytes]] = []
        for item in taken:
            event = self._validate(item, heads)
            if event is not None:
                events.append((item, event))
        self.queue.extendleft(reversed(self._deferred))
        self._deferred.clear()
        passed(Boundary.VALIDATED)
        self._doubts.ask()
        if not events:
            return True
        assert self._producer is not None
        self._batch = [item for item, _ in events]
        self._begun_at = self._view.next_offset(self._partition)
        self._last_offset = -1
        try:
            self._producer.begin_transaction()
            passed(Boundary.BEGUN)
            for item, _ in events:
                item.sent = True
            self._sends = [
                self._send(self._producer, item.proposal.checkpoint_id, event) for item, event in events if item.proposal is not None
            ]
        except (KafkaError, ValueError, AssertionError) as error:
            self._failed(now, error)
            return True
        self._sends[-1].add_both(lambda *_: self._wake())
        self.state = State.SENT
        self._step_ends = now + _SEND_SECONDS
        return True

    def _send(self, producer: TransactionalProducer, checkpoint_id: str, event: bytes) -> Any:
        sending = producer.send(self._topic, value=event, key=checkpoint_id.encode(), partition=self._partition)
        if is_heard():
            sending.add_callback(lambda _: passed(Boundary.ACKNOWLEDGED))  # 1 us a record, where a whole event takes 35
        passed(Boundary.SENT)
        return sending

    def _acknowledged(self, now: float) -> bool:
        if not self._sends[-1].is_done:
            if now < self._step_ends:
                return False
            self._lost(now, "the records were not acknowledged in time")
            return True
        failed = next((send for send in self._sends if not send.is_done or send.failed()), None)
        if failed is not None:
            self._failed(now, failed.exception or "a record was not acknowledged")
            return True
        if self._sends[0].value.offset < self._begun_at:
            self._lost(now, "the records got a place that was read already: it is not the log that they were meant for")
            return True
        self._last_offset = self._sends[-1].value.offset
        assert self._producer is not None
        try:
            self._commit = begin_commit(self._producer, self._commit_answered)
        except KafkaError as error:
            self._lost(now, error)
            return True
        passed(Boundary.COMMIT_SENT)
        self.state = State.COMMITTING
        self._step_ends = now + _COMMIT_SECONDS
        return True

    def _seen(self, now: float) -> bool:
        if self._batch and self._view.next_offset(self._partition) > self._last_offset:
            places = [self._view.seen(item.proposal.event_id) for item in self._batch if item.proposal is not None]
            if None in places:
                self._lost(now, "the tail passed the events without showing them")
                return True
            passed(Boundary.TAIL_SEEN)
            for item, place in zip(self._batch, places, strict=True):
                assert place is not None
                assert item.proposal is not None
                item.answer(_receipt(item.proposal, *place))
            passed(Boundary.ANSWERED)
            self._batch = []
            self.transactions += 1
            self._step_ends = min(self._step_ends, now + _ANSWER_SECONDS)
        if not self._batch and self._commit.succeeded:
            self.state = State.READY  # not before: the client begins no transaction while one is open
            return True
        if self._commit.failed or now > self._step_ends:
            self._lost(now, self._commit.exception or "the commit was not confirmed in time")
            return True
        return False

    def _commit_answered(self, error: Exception | None) -> None:
        """In the client's thread. The tail usually comes later, and wakes the dispatcher then."""
        if error is not None or not self._batch:
            self._wake()

    # -- taking over ----------------------------------------------------------------------------------------------

    def _taken(self, now: float) -> bool:
        """Once the partition is owned, what was in flight is settled: it is queued first, and validated against the true heads."""
        assert self._taking is not None
        if not self._taking.done():
            return False
        taking, self._taking = self._taking, None
        try:
            self._producer = taking.result()
        except CheckpointError as error:
            self._trouble = str(error)
            self.state = State.IDLE
            if isinstance(error, REFUSED):
                self.abandon(error)  # whoever comes next asks again
            self._not_before = now + _RETRY_SECONDS
            return True
        # An item whose caller has been told that its outcome is unknown is not sent again: resolve() must be able to settle it.
        self.queue.extendleft(reversed([item for item in self._batch if not item.answered]))
        self._batch = []
        for item in self._settling:
            item.answer(None)
        self._settling = []
        self.state = State.READY
        return True

    def _give_up(self) -> None:
        if self._producer is not None:
            self._pool.submit(discard, self._producer)
            self._producer = None
        self.state = State.IDLE

    def _failed(self, now: float, reason: str | BaseException) -> None:
        """Before the commit was asked for. A refusal is told, and is definite: what nobody has asked to commit can only be undone."""
        refused = self._ownership.refusal(reason, self._partition) if isinstance(reason, KafkaError) else None
        if refused is None:
            self._lost(now, reason)
            return
        self._give_up()
        self._sends, self._commit = [], None
        for item in self._batch:
            item.answer(refused)
        self._batch, self._not_before = [], now + _RETRY_SECONDS

    def _lost(self, now: float, reason: str | BaseException) -> None:
        self._trouble = str(reason) or type(reason).__name__
        tell(Notice.PARTITION_LOST, store="kafka", topic=self._topic, partition=self._partition, reason=reason)
        self._give_up()
        self._sends, self._commit = [], None
        self.lost, self._not_before = True, self._hold.after_loss(now)

    # -- validation -----------------------------------------------------------------------------------------------

    def _take(self, now: float) -> list[Item]:
        taken: list[Item] = []
        size = 0
        while self.queue and len(taken) < MOST_IN_A_TRANSACTION and size < _MOST_BYTES:
            item = self.queue.popleft()
            if item.answered:
                continue
            if item.proposal is None:
                self.queue.appendleft(item)  # see `_begin`
                break
            if now > item.deadline:
                item.expire("its time was up before it could be sent")
            else:
                size += item.proposal.draft.size
                taken.append(item)
        return taken

    def _validate(self, item: Item, heads: dict[str, Head]) -> bytes | None:
        """The event to send; None when the item has been answered, or will be by the pool."""
        proposal = item.proposal
        assert proposal is not None
        if item.sent and (place := self._view.seen(proposal.event_id)) is not None:
            item.answer(_receipt(proposal, *place))
            return None
        head = heads.get(proposal.checkpoint_id)
        blocked = self._view.blocked(proposal.checkpoint_id)
        verdict = decide(head, proposal)
        if blocked is not None and verdict is not Verdict.COMPARE:
            last = None if head is None else head.revision
            item.answer(Quarantined(proposal.checkpoint_id, last_good_revision=last, reason=blocked))
        elif verdict is not Verdict.ACCEPT and head is not None and head.offset == _IN_THIS_BATCH:
            self._deferred.append(item)  # nobody is refused for the sake of an event that is not in the log yet
        elif not item.caught_up and (verdict is Verdict.COMPARE or isinstance(verdict, Conflict | NotFound)):
            self._doubts.add(item)
        elif isinstance(verdict, CheckpointError):
            item.answer(verdict)
        elif verdict is Verdict.COMPARE:
            assert head is not None
            there = self._view.seen_at(proposal.checkpoint_id, proposal.revision)
            if there is not None and there != proposal.event_id != head.event_id:
                item.answer(rejection(head, proposal))  # a loser by a few revisions: the usual one, and nothing needs to be looked up
            else:
                self._pool.submit(compare, self._view, item, head)
        elif self._view.seen(proposal.event_id) is not None:
            item.answer(retry.reused(proposal))  # of another checkpoint, or of an earlier revision
        elif proposal.only_if is not None and (changed := unmet(proposal, named := heads.get(proposal.only_if.checkpoint_id))) is not None:
            if named is not None and named.offset == _IN_THIS_BATCH:
                self._deferred.append(item)
            else:
                item.answer(changed)
        else:
            event, digest = codec.finish(proposal.draft, GENESIS if head is None else head.hash)
            heads[proposal.checkpoint_id] = proposal.head(digest, self._partition, _IN_THIS_BATCH, 0)
            return event
        return None

    def _catch_up(self) -> Future[None]:
        asked = self._pool.submit(self._ownership.catch_up, self._partition)
        asked.add_done_callback(lambda _: self._wake())
        return asked


def _receipt(proposal: Proposal, partition: int, offset: int, recorded_at: int) -> Receipt:
    place = Position.after(partition, offset)
    return Receipt(EventId.trusted(proposal.event_id), proposal.revision, place, from_millis(recorded_at))
