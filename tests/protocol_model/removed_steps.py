"""The protocol with one step left out: what is wrong with each, in code.

`STEPS` is the one list of the protocol's steps; `test_removed_steps.py` holds it against the numbered steps of the docstrings in
`eventlog/kafka/`, and each removal against the model. A step that is added there needs a removal here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventlog.errors import Unavailable
from eventlog.kafka import ownership
from eventlog.kafka.client import TransactionalProducer
from eventlog.kafka.ownership import Hold, Ownership
from eventlog.kafka.partition import PartitionWriter, State, _receipt
from eventlog.kafka.waiting import Item
from eventlog.rules import Head, Verdict, decide, rejection
from tests.protocol_model.simulated_process import SimulatedOffsets, SimulatedView, Variant


def connect(*arguments: Any, **named: Any) -> Any:
    """A client, where the model has put its own."""
    return vars(ownership)["producer"](*arguments, **named)


# -- taking over ----------------------------------------------------------------------------------------------------


class ReusesItsProducer(Ownership):
    """The producer goes on after an error. Its `init_transactions` does nothing the second time, so nothing is fenced or settled."""

    _kept: Any = None

    def take(self, partition: int) -> TransactionalProducer:
        if self._kept is None:
            self._kept = super().take(partition)
        else:
            self._kept.revive()
            self._view.await_position({partition: self._offsets.high_watermark(partition, timeout=1)}, 1)
        return self._kept  # type: ignore[no-any-return]


class DoesNotFence(Ownership):
    """No `init_transactions`: the earlier owner keeps its epoch, and its open transaction may still be committed."""

    def take(self, partition: int) -> TransactionalProducer:
        owner: Any = connect(self._address, transactional_id=self.transactional_id(partition), max_event_bytes=1)
        owner.join_without_fencing()
        self._view.await_position({partition: self._offsets.high_watermark(partition, timeout=1)}, 1)
        return owner  # type: ignore[no-any-return]


class IdOfItsOwn(Ownership):
    """Every process has a transactional id of its own: nobody fences anybody."""

    def transactional_id(self, partition: int) -> str:
        return f"{self._address.servers[0]}-writer-{partition}"


class TakesTheLastStableOffset(SimulatedOffsets):
    def high_watermark(self, partition: int, *, timeout: float) -> int:
        return self.last_stable(timeout=timeout)[partition]


class TakesTheHighWatermarkTooEarly(Ownership):
    """Before the fence: what the earlier owner commits in between is not covered."""

    def take(self, partition: int) -> TransactionalProducer:
        end = self._offsets.high_watermark(partition, timeout=1)
        owner: TransactionalProducer = connect(self._address, transactional_id=self.transactional_id(partition), max_event_bytes=1)
        owner.init_transactions()
        self._view.await_position({partition: end}, 1)
        return owner


class DoesNotWaitForItsTail(SimulatedView):
    def await_position(self, wanted: Mapping[int, int], timeout: float) -> None:
        pass


# -- the append -----------------------------------------------------------------------------------------------------


class ValidatesAgainstOldHeads(SimulatedView):
    """Heads are remembered when they are first asked for."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._remembered: dict[str, Head] = {}

    def heads(self, checkpoint_ids: Sequence[str]) -> dict[str, Head]:
        for checkpoint_id, head in super().heads(checkpoint_ids).items():
            self._remembered.setdefault(checkpoint_id, head)
        return {each: self._remembered[each] for each in checkpoint_ids if each in self._remembered}


class ForgetsItsOwnBatch(PartitionWriter):
    """Each proposal is validated against the tail's heads alone."""

    def _validate(self, item: Item, heads: dict[str, Head]) -> bytes | None:
        return super()._validate(item, dict(heads))


class RefusesForAProposedEvent(PartitionWriter):
    """A loser against an event of its own batch is told so at once, before that event is committed."""

    def _validate(self, item: Item, heads: dict[str, Head]) -> bytes | None:
        event = super()._validate(item, heads)
        if item in self._deferred:
            self._deferred.remove(item)
            assert item.proposal is not None
            item.answer(rejection(heads.get(item.proposal.checkpoint_id), item.proposal))
        return event


class RefusesWithoutCatchingUp(PartitionWriter):
    """A process that was fenced and does not know refuses by the heads it has."""

    def _validate(self, item: Item, heads: dict[str, Head]) -> bytes | None:
        item.caught_up = True
        return super()._validate(item, heads)


class DoubtsOnlyWhatIsAhead(PartitionWriter):
    """The same, but for a caller who has seen more than these heads."""

    def _validate(self, item: Item, heads: dict[str, Head]) -> bytes | None:
        assert item.proposal is not None
        head, expected = heads.get(item.proposal.checkpoint_id), item.proposal.expected
        if expected is None or (head is not None and expected <= head.revision):
            item.caught_up = True
        return super()._validate(item, heads)


class LooksAtTheLastAcknowledgementOnly(PartitionWriter):
    """Commits although a record of the transaction was given up."""

    def _acknowledged(self, now: float) -> bool:
        if self._sends[-1].is_done and not self._sends[-1].failed():
            self._sends = self._sends[-1:]
        return super()._acknowledged(now)


class TrustsTheCommit(PartitionWriter):
    """Answers when the client reports a commit, without looking at the tail."""

    def _seen(self, now: float) -> bool:
        if not self._commit.succeeded:
            return super()._seen(now)
        first = self._last_offset - len(self._batch) + 1
        for place, item in enumerate(self._batch):
            assert item.proposal is not None
            item.answer(_receipt(item.proposal, self._partition, first + place, int(now * 1000)))
        self._batch, self.state = [], State.READY
        return True


class TrustsAFailedCommit(PartitionWriter):
    """Tells the callers that nothing was written when the client reports a failure."""

    def _lost(self, now: float, reason: str | BaseException) -> None:
        if self.state is State.COMMITTING and self._commit.failed:
            for item in self._batch:
                item.answer(Unavailable("kafka", "the commit failed; nothing was written"))
            self._batch = []
        super()._lost(now, reason)


# -- settling -------------------------------------------------------------------------------------------------------


class TakesAbsenceForAbortion(PartitionWriter):
    """What the tail has not shown when the partition is lost is reported as not written, without taking over first."""

    def _lost(self, now: float, reason: str | BaseException) -> None:
        super()._lost(now, reason)
        for item in self._batch:
            assert item.proposal is not None
            if self._view.seen(item.proposal.event_id) is None:
                item.answer(Unavailable("kafka", "it was aborted; nothing was written"))


class SendsWithoutLooking(PartitionWriter):
    """After a take-over, what was in flight is sent again without asking whether the tail has shown it."""

    def _validate(self, item: Item, heads: dict[str, Head]) -> bytes | None:
        if item.sent and item.proposal is not None and decide(heads.get(item.proposal.checkpoint_id), item.proposal) is not Verdict.ACCEPT:
            item.answer(rejection(heads.get(item.proposal.checkpoint_id), item.proposal))
            return None
        return super()._validate(item, heads)


class SendsAgainWhatWasAnswered(PartitionWriter):
    """An item whose caller was told "unknown" is sent again all the same."""

    def _taken(self, now: float) -> bool:
        for item in self._batch:
            if item.answered:
                item.answered = False
                item.deadline = float("inf")
                item.call = _Nobody()  # type: ignore[assignment]
        return super()._taken(now)


class _Nobody:
    def answer(self, item: Item, _: object) -> None:
        item.answered = True


class SettlesByBelief(PartitionWriter):
    """A process that believes itself the owner settles without a fence."""

    def _take(self, now: float) -> list[Item]:
        for item in self.queue:
            if item.proposal is None:
                item.answer(None)
        return super()._take(now)


class NoHold(Hold):
    def after_loss(self, now: float) -> float:
        return now


@dataclass(frozen=True)
class Removal:
    """`faults` and `usual`: the moves that the scheduler is confined to, so that it finds soon what all of them would find later."""

    variant: Variant
    faults: Sequence[str] = ("single steps",)
    usual: Sequence[str] = ("propose", "compete", "small steps")


TAKE = "Ownership.take"
APPEND = "PartitionWriter._begin"

# (docstring, number of its step) -> what leaving that step out may look like
STEPS: dict[tuple[str, int], dict[str, Removal] | str] = {
    (TAKE, 1): {"the_old_producer_is_used_again": Removal(Variant(ownership=ReusesItsProducer), ("a batch expires", "a batch comes late"))},
    (TAKE, 2): {
        "the_earlier_owner_is_not_fenced": Removal(Variant(ownership=DoesNotFence)),
        "every_process_has_a_transactional_id_of_its_own": Removal(Variant(ownership=IdOfItsOwn)),
    },
    (TAKE, 3): "test_a_promise_breaks_when_the_high_watermark_is_taken_before_the_fence",
    (TAKE, 4): {
        "the_tail_is_not_waited_for": Removal(Variant(view=DoesNotWaitForItsTail)),
        "the_tail_reads_what_is_not_committed": Removal(Variant(committed_only=False)),
    },
    (APPEND, 1): {
        "proposals_are_validated_against_old_heads": Removal(Variant(view=ValidatesAgainstOldHeads)),
        "proposals_are_validated_without_their_own_batch": Removal(Variant(writer=ForgetsItsOwnBatch)),
        "a_conflict_is_answered_from_an_event_that_is_only_proposed": Removal(Variant(writer=RefusesForAProposedEvent)),
        "a_refusal_by_lagging_heads_is_not_doubted": Removal(Variant(writer=RefusesWithoutCatchingUp)),
        "a_loser_is_told_a_revision_by_lagging_heads": Removal(Variant(writer=DoubtsOnlyWhatIsAhead)),
    },
    (APPEND, 2): {
        "the_broker_does_not_verify_transactions": Removal(Variant(verification=False), ("a commit comes again in the next transaction",))
    },
    (APPEND, 3): {
        "the_commit_is_asked_for_before_every_record_is_acknowledged": Removal(
            Variant(writer=LooksAtTheLastAcknowledgementOnly), ("a batch expires",)
        )
    },
    (APPEND, 4): "test_a_commit_that_is_never_answered_is_given_up_in_time",  # the model would wait: the transaction's own time-out ends it
    (APPEND, 5): {
        "a_reported_commit_is_believed": Removal(Variant(writer=TrustsTheCommit)),
        "a_reported_failure_is_believed": Removal(Variant(writer=TrustsAFailedCommit), ("a commit is done and reported as failed",)),
    },
    (APPEND, 6): {
        "what_is_not_seen_counts_as_aborted_before_a_take_over": Removal(
            Variant(writer=TakesAbsenceForAbortion), ("a commit is done and reported as failed",)
        ),
        "what_was_sent_is_not_looked_for_after_a_take_over": Removal(
            Variant(writer=SendsWithoutLooking), ("a commit is done and reported as failed",)
        ),
        "what_was_answered_as_unknown_is_sent_again": Removal(
            Variant(writer=SendsAgainWhatWasAnswered), ("a batch comes late", "sleep", "resolve")
        ),
    },
    (APPEND, 7): {
        "resolve_looks_without_a_take_over": Removal(Variant(settles_by_itself=True), ("a commit comes late", "kill", "arrive", "resolve")),
    },
}
