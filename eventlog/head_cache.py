"""Bounded memories of what was used last: heads, and event ids."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

from eventlog.rules import Head, Proposal

Value = TypeVar("Value")


class LeastRecentlyUsed(Generic[Value]):
    """Keeps at most `entries` values of at most `weight` together, forgetting what was not used for longest."""

    def __init__(self, *, entries: int, weight: int) -> None:
        self._entries = entries
        self._weight = weight
        self._held: OrderedDict[str, tuple[Value, int]] = OrderedDict()
        self._total = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> Value | None:
        with self._lock:
            held = self._held.get(key)
            if held is None:
                return None
            self._held.move_to_end(key)
            return held[0]

    def put(self, key: str, value: Value, weight: int = 1) -> None:
        with self._lock:
            before = self._held.pop(key, None)
            if before is not None:
                self._total -= before[1]
            if weight > self._weight:
                return
            self._held[key] = (value, weight)
            self._total += weight
            while len(self._held) > self._entries or self._total > self._weight:
                _, (_, gone) = self._held.popitem(last=False)
                self._total -= gone

    def forget(self, key: str) -> None:
        """Lets go of a value at once."""
        with self._lock:
            held = self._held.pop(key, None)
            if held is not None:
                self._total -= held[1]


class RecentHeads:
    """The heads of the checkpoints that were written last. Not safe by itself: only whoever commits for all uses it."""

    def __init__(self, *, entries: int) -> None:
        self._entries = entries
        self._held: OrderedDict[str, Head] = OrderedDict()

    def get(self, checkpoint_id: str) -> Head | None:
        return self._held.get(checkpoint_id)

    def put(self, head: Head) -> None:
        self._held[head.checkpoint_id] = head
        self._held.move_to_end(head.checkpoint_id)
        if len(self._held) > self._entries:
            self._held.popitem(last=False)

    def clear(self) -> None:
        self._held.clear()


class RecentEvents:
    """The event ids that were committed lately, to notice one that is used for a second revision.

    A safeguard against a mistake, not a promise: older ids are found only where their own revision is written again (`retry.py`).
    Not safe by itself; its owner holds a lock.
    """

    def __init__(self, *, entries: int = 20_000) -> None:
        self._entries = entries
        self._held: OrderedDict[str, tuple[str, int]] = OrderedDict()

    def add(self, proposal: Proposal) -> None:
        self._held[proposal.event_id] = (proposal.checkpoint_id, proposal.revision)
        if len(self._held) > self._entries:
            self._held.popitem(last=False)

    def reused(self, proposal: Proposal) -> bool:
        """Whether the proposal's event id names another revision."""
        held = self._held.get(proposal.event_id)
        return held is not None and held != (proposal.checkpoint_id, proposal.revision)

    def clear(self) -> None:
        self._held.clear()
