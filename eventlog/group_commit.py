"""Many callers, one durable write.

The first caller in line writes for all who wait; there is no extra thread, and a lone caller hands nothing over. A caller whose
items another one has taken sleeps until their outcome is known: it neither spins nor competes for the lock again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# After this many rounds the leader hands over, so that its own caller gets its answer. Handing over after every round costs a
# thread switch a round: 16 threads made 0.7 of the commits that they make with 8 rounds.
_ROUNDS = 8


class _Waiting(Generic[Item, Result]):
    __slots__ = ("failure", "gone", "items", "lead", "results", "wake")

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.results: Sequence[Result] | None = None
        self.failure: BaseException | None = None
        self.lead = False  # the lead was handed to this caller
        self.gone = False  # this caller was interrupted and will not take the lead
        self.wake = threading.Lock()
        self.wake.acquire()


class GroupCommit(Generic[Item, Result]):
    """Collects the items of concurrent callers and gives them to `write` together, at most `most` at a time (a lone caller's
    items are never split). `write` returns one result an item, in order; what it raises reaches every caller of its round.
    """

    def __init__(self, write: Callable[[Sequence[Item]], Sequence[Result]], *, most: int = 1000) -> None:
        self._write = write
        self._most = most
        self._lock = threading.Lock()
        self._queue: deque[_Waiting[Item, Result]] = deque()
        self._led = False

    @property
    def idle(self) -> bool:
        """Whether nobody is writing at this moment (a hint: it may change at once)."""
        return not self._led

    def submit(self, items: Sequence[Item]) -> Sequence[Result]:
        """The results of `items`, once they are written."""
        with self._lock:
            leads = not self._led
            if leads:
                self._led = True
            else:
                mine = _Waiting[Item, Result](items)
                self._queue.append(mine)
        if leads:
            try:
                return self._write(items)
            finally:
                self._lead_others()
        try:
            mine.wake.acquire()
        except BaseException:  # an interrupted caller: its items stay in line, and nobody may wait for it to lead
            with self._lock:
                mine.gone = True
                lead = mine.lead
            if lead:
                self._lead_others()
            raise
        if mine.lead:
            self._lead_others(mine)
        if mine.failure is not None:
            raise mine.failure
        assert mine.results is not None
        return mine.results

    def try_submit(self, items: Sequence[Item], attempt: Callable[[Sequence[Item]], Sequence[Result] | None]) -> Sequence[Result] | None:
        """What `attempt` makes of the items; None, and nothing is done, when somebody is writing already."""
        with self._lock:
            if self._led:
                return None
            self._led = True
        try:
            return attempt(items)
        finally:
            self._lead_others()

    def _lead_others(self, mine: _Waiting[Item, Result] | None = None) -> None:
        """Writes what has queued up, for a bounded number of rounds, then hands the lead to the first who waits."""
        rounds = 0
        while True:
            with self._lock:
                if not self._queue:
                    self._led = False
                    return
                if rounds >= _ROUNDS:
                    successor = next((waiting for waiting in self._queue if not waiting.gone), None)
                    if successor is not None:
                        successor.lead = True
                        successor.wake.release()
                        return
                taken = [self._queue.popleft()]
                count = len(taken[0].items)
                while self._queue and count + len(self._queue[0].items) <= self._most:
                    count += len(self._queue[0].items)
                    taken.append(self._queue.popleft())
            self._write_for(taken)
            for waiting in taken:
                if waiting is not mine:
                    waiting.wake.release()
            rounds += 1

    def _write_for(self, taken: Sequence[_Waiting[Item, Result]]) -> None:
        try:
            results = self._write([item for waiting in taken for item in waiting.items])
        except BaseException as error:  # noqa: BLE001 - it belongs to the callers, who raise it
            for waiting in taken:
                waiting.failure = error
            return
        start = 0
        for waiting in taken:
            waiting.results = results[start : start + len(waiting.items)]
            start += len(waiting.items)
