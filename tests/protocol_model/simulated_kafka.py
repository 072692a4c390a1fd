"""One partition of a topic and its transaction coordinator, in memory: what a broker decides, and nothing about how requests travel.

The semantics are those of Apache Kafka 4.4 with a client of transaction version 1. There is one replica, so that the high watermark is the
log's end. Two liberties, both to the writer's disadvantage: the last stable offset that readers are given may lag behind the true one, and
the coordinator may be told not to wait for its markers before it answers a new owner.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from kafka.errors import InvalidProducerEpochError, InvalidTxnStateError, ProducerFencedError

TRANSACTION_TIMEOUT = 15.0  # seconds; `eventlog.kafka.client.TRANSACTION_TIMEOUT_MS`


class Busy(Exception):
    """CONCURRENT_TRANSACTIONS: the client asks again by itself."""


class Phase(Enum):
    EMPTY = "empty"
    ONGOING = "ongoing"
    PREPARE_COMMIT = "prepare commit"  # decided; the marker is not written yet
    PREPARE_ABORT = "prepare abort"
    COMPLETE_COMMIT = "complete commit"
    COMPLETE_ABORT = "complete abort"


@dataclass(slots=True)
class Slot:
    """What stands at an offset. A marker takes one, as a record does."""

    offset: int
    at: float
    producer: int
    key: bytes | None = None
    value: bytes | None = None
    marker: bool = False
    committed: bool | None = None  # None: its transaction is open


@dataclass(slots=True)
class ProducerState:
    """What a partition remembers of a producer id."""

    epoch: int = -1
    batches: dict[tuple[int, int], int] = field(default_factory=dict)  # (epoch, sequence) -> base offset: a batch sent twice is one batch


@dataclass(slots=True)
class Transactions:
    """What the coordinator knows of a transactional id."""

    producer: int
    epoch: int = -1
    phase: Phase = Phase.EMPTY
    began: float = 0.0

    @property
    def decided(self) -> bool:
        return self.phase in (Phase.PREPARE_COMMIT, Phase.PREPARE_ABORT)


class SimulatedKafka:
    """Arguments:
    verification: the broker verifies that a transaction is open before it accepts a record for it (KIP-890, part 1).
    init_waits: a new owner is answered only when the markers of the transaction before are written.
    hold: seconds for which compaction leaves a record alone.
    """

    def __init__(self, *, verification: bool = True, init_waits: bool = True, hold: float = 60.0) -> None:
        self.now = 1_000.0
        self.verification = verification
        self.init_waits = init_waits
        self.hold = hold
        self.slots: list[Slot] = []  # what the partition holds; compaction takes from it
        self.decided: list[Slot] = []  # every record that was ever committed, in the order of the decisions
        self.end = 0
        self.stable = 0  # the last stable offset as readers get it
        self.happened: Counter[str] = Counter()
        self._producers: dict[int, ProducerState] = {}
        self._transactions: dict[str, Transactions] = {}

    # -- the coordinator ------------------------------------------------------------------------------------------

    def init(self, transactional_id: str) -> tuple[int, int]:
        """InitProducerId: fences whoever used the id before. Raises `Busy` while a transaction of the id is being ended."""
        state = self.transactions(transactional_id)
        if state.phase is Phase.ONGOING:
            self.happened["fenced in a transaction"] += 1
            state.epoch += 1
            state.phase = Phase.PREPARE_ABORT
        if state.decided and self.init_waits:
            raise Busy
        state.epoch += 1
        return state.producer, state.epoch

    def transactions(self, transactional_id: str) -> Transactions:
        return self._transactions.setdefault(transactional_id, Transactions(len(self._transactions)))

    def add_partition(self, transactional_id: str, epoch: int) -> None:
        state = self._checked(transactional_id, epoch)
        if state.phase is not Phase.ONGOING:
            state.phase = Phase.ONGOING
            state.began = self.now

    def end_transaction(self, transactional_id: str, epoch: int) -> None:
        """EndTxn with COMMIT. Answered as soon as it is decided, before the marker is written."""
        state = self._checked(transactional_id, epoch)
        if state.phase is Phase.ONGOING:
            state.phase = Phase.PREPARE_COMMIT
        elif state.phase is not Phase.COMPLETE_COMMIT:
            raise InvalidTxnStateError

    def _checked(self, transactional_id: str, epoch: int) -> Transactions:
        state = self.transactions(transactional_id)
        if epoch != state.epoch:
            self.happened["fenced"] += 1
            raise ProducerFencedError
        if state.decided:
            raise Busy
        return state

    def expire_transactions(self) -> None:
        """Aborts what has been open for too long, and fences its producer."""
        for state in self._transactions.values():
            if state.phase is Phase.ONGOING and self.now - state.began > TRANSACTION_TIMEOUT:
                self.happened["timed out"] += 1
                state.epoch += 1
                state.phase = Phase.PREPARE_ABORT

    def write_markers(self) -> bool:
        """Ends, in the partition, what the coordinator has decided; whether there was anything."""
        pending = [state for state in self._transactions.values() if state.decided]
        for state in pending:
            commit = state.phase is Phase.PREPARE_COMMIT
            state.phase = Phase.COMPLETE_COMMIT if commit else Phase.COMPLETE_ABORT
            self._mark(state.producer, state.epoch, commit)
        return bool(pending)

    # -- the partition --------------------------------------------------------------------------------------------

    def produce(self, transactional_id: str, epoch: int, sequence: int, records: list[tuple[bytes, bytes]]) -> int:
        """Appends a batch and returns its first offset."""
        transactions = self.transactions(transactional_id)
        state = self._producers.setdefault(transactions.producer, ProducerState())
        if epoch < state.epoch:
            self.happened["fenced"] += 1
            raise InvalidProducerEpochError
        known = state.batches.get((epoch, sequence))
        if known is not None:
            return known
        if self.verification and (transactions.phase is not Phase.ONGOING or transactions.epoch != epoch):
            self.happened["not verified"] += 1
            raise InvalidTxnStateError
        state.epoch = epoch
        base = state.batches[epoch, sequence] = self.end
        for key, value in records:
            self._append(Slot(self.end, self.now, transactions.producer, key, value))
        return base

    def _append(self, slot: Slot) -> None:
        self.slots.append(slot)
        self.end += 1

    def _mark(self, producer: int, epoch: int, commit: bool) -> None:
        """A marker decides everything of its producer id that is still open, whatever the epoch it was written with."""
        for slot in self.slots:
            if slot.producer == producer and slot.committed is None:
                slot.committed = commit
                if commit:
                    self.decided.append(slot)
                else:
                    self.happened["aborted records"] += 1
        state = self._producers.setdefault(producer, ProducerState())
        state.epoch = max(state.epoch, epoch)
        self._append(Slot(self.end, self.now, producer, marker=True, committed=commit))

    @property
    def true_stable(self) -> int:
        return next((slot.offset for slot in self.slots if slot.committed is None), self.end)

    def advance_stable(self) -> bool:
        """Lets readers have what is decided; whether there was anything new."""
        moved, self.stable = self.stable != self.true_stable, self.true_stable
        return moved

    def fetch(self, position: int, most: int, *, committed_only: bool = True) -> tuple[list[Slot], int]:
        """Up to `most` offsets of what a consumer is shown from a position on, and the position behind it."""
        reached = min(position + most, self.stable if committed_only else self.end)
        shown = [
            slot for slot in self.slots if position <= slot.offset < reached and not slot.marker and (slot.committed or not committed_only)
        ]
        return shown, max(position, reached)

    def compact(self) -> None:
        """One round of the cleaner: the last committed record of a key stays, of what is decided and older than the hold."""
        bound = self.true_stable
        young = next((slot.offset for slot in self.slots if slot.at >= self.now - self.hold), self.end)
        bound = min(bound, young, self.end - 1)  # never the active segment
        last = {slot.key: slot.offset for slot in self.slots if slot.offset < bound and slot.committed and not slot.marker}
        kept = [
            slot for slot in self.slots if slot.offset >= bound or (not slot.marker and slot.committed and last[slot.key] == slot.offset)
        ]
        self.happened["compacted records"] += len(self.slots) - len(kept)
        self.slots = kept
