"""Callers that wait for the log: their proposals, what became of each, and a bound on how many there may be."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from eventlog.errors import CheckpointError, OutcomeUnknown, Overloaded, Unavailable
from eventlog.log import Outcome
from eventlog.rules import Proposal

MOST_WAITING = 10_000  # proposals of all callers together
MOST_WAITING_BYTES = 256 << 20


class Item:
    """One proposal on its way.

    `sent`: bytes of it may have reached the log. `caught_up`: the tail has seen everything that was acknowledged before it was proposed.
    """

    __slots__ = ("answered", "call", "caught_up", "deadline", "index", "proposal", "sent")

    def __init__(self, call: Call, index: int, proposal: Proposal | None, deadline: float) -> None:
        self.call = call
        self.index = index
        self.proposal = proposal  # None: nothing to write, answered once its partition was taken over after it had asked
        self.deadline = deadline
        self.sent = False
        self.caught_up = False
        self.answered = False

    def answer(self, outcome: Outcome | None) -> None:
        self.call.answer(self, outcome)

    def expire(self, reason: str) -> None:
        """Its time is up, or the log is gone."""
        self.answer(self.unanswered(Unavailable("kafka", f"{reason}; nothing was written")))

    def unanswered(self, if_unsent: CheckpointError) -> CheckpointError:
        """The honest outcome of an item that nothing more will be learnt about for now."""
        if not self.sent or self.proposal is None:
            return if_unsent
        return OutcomeUnknown(
            self.proposal.checkpoint_id, event_id=self.proposal.event_id, reason=str(if_unsent).removesuffix("; nothing was written")
        )


def named_by(items: Sequence[Item]) -> set[str]:
    """The checkpoints whose heads decide about some items."""
    proposals = [item.proposal for item in items if item.proposal is not None]
    named = {each.checkpoint_id for each in proposals}
    named.update(each.only_if.checkpoint_id for each in proposals if each.only_if is not None)
    return named


class Call:
    """The proposals of one caller. `done` is called once, when the last of them has its outcome."""

    def __init__(self, proposals: Sequence[Proposal | None], *, timeout: float, done: Callable[[Sequence[Outcome | None]], None]) -> None:
        deadline = time.monotonic() + timeout
        self.partitions: Sequence[int] = ()  # of each item, set when it is queued
        self.items = [Item(self, index, proposal, deadline) for index, proposal in enumerate(proposals)]
        self.bytes = sum(proposal.draft.size for proposal in proposals if proposal is not None)
        self._outcomes: list[Outcome | None] = [None] * len(proposals)
        self._left = len(proposals)
        self._lock = threading.Lock()
        self._done = done

    def answer(self, item: Item, outcome: Outcome | None) -> None:
        with self._lock:
            if item.answered:
                return
            item.answered = True
            self._outcomes[item.index] = outcome
            self._left -= 1
            if self._left:
                return
        self._done(self._outcomes)


class Admission:
    """A bounded number of proposals may wait. One call may exceed the bound by itself, so that no size of call is impossible."""

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._waiting = 0
        self._bytes = 0

    def enter(self, count: int, size: int, timeout: float) -> None:
        """Waits for room. Raises `Overloaded` after `timeout` seconds (0: at once)."""
        with self._free:
            if not self._free.wait_for(self._has_room, timeout):
                raise Overloaded(waiting=self._waiting, limit=MOST_WAITING)
            self._waiting += count
            self._bytes += size

    def leave(self, count: int, size: int) -> None:
        with self._free:
            self._waiting -= count
            self._bytes -= size
            self._free.notify_all()

    def _has_room(self) -> bool:
        return self._waiting < MOST_WAITING and self._bytes < MOST_WAITING_BYTES
