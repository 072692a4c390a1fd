"""A bounded cache of the heads that were used last, shared by the threads of a process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

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

    def discard(self, key: str) -> None:
        with self._lock:
            before = self._held.pop(key, None)
            if before is not None:
                self._total -= before[1]

    def clear(self) -> None:
        with self._lock:
            self._held.clear()
            self._total = 0
