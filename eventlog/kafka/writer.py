"""The dispatcher: one thread that drives the writers of all partitions and overlaps their transactions.

facts: a thread pair a partition starves (3.0k commits a second over 4 partitions), one dispatcher does not (4.7k).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from eventlog.errors import CheckpointError, StoreClosed
from eventlog.kafka.ownership import Hold, Ownership
from eventlog.kafka.partition import PartitionWriter
from eventlog.kafka.topic import partition_of
from eventlog.kafka.view import View
from eventlog.kafka.waiting import Admission, Call
from eventlog.log import Outcome
from eventlog.rules import Proposal

_TICK_SECONDS = 0.02  # while something is in flight: commit results have no callback, time-outs must be noticed
_DRAIN_SECONDS = 15.0  # for what is in flight when the store closes: one commit or one take-over
_POOL_THREADS = 4  # take-overs and discards block; more at once would only queue at the broker


class Writer:
    """Commits proposals on every partition. `start()` before use; `close()` leaves no thread."""

    def __init__(self, *, topic: str, partitions: int, view: View, ownership: Ownership) -> None:
        self._topic = topic
        self._partitions = partitions
        self._view = view
        self._pool = ThreadPoolExecutor(_POOL_THREADS, thread_name_prefix=f"eventlog-takeover-{topic}")
        self._admission = Admission()
        self._wanted = threading.Condition()
        self._woken = False
        self._closing = False
        self._arrived: list[Call] = []
        self._failure: CheckpointError | None = None
        self._hold = Hold()
        self.writers = [
            PartitionWriter(
                topic=topic, partition=number, view=view, ownership=ownership, hold=self._hold, pool=self._pool, wake=self._wake
            )
            for number in range(partitions)
        ]
        self._thread = threading.Thread(target=self._run, name=f"eventlog-writer-{topic}", daemon=True)

    def start(self) -> None:
        self._view.listen(self._wake)
        self._thread.start()

    def close(self) -> None:
        """Lets what is in flight end, refuses what only waits, and gives up every partition."""
        with self._wanted:
            self._closing = True
        self._wake()
        if self._thread.ident is not None:
            self._thread.join()
        self._pool.shutdown(wait=True)
        for writer in self.writers:
            writer.release()

    def append(self, proposals: Sequence[Proposal], *, timeout: float) -> Sequence[Outcome]:
        """See `Log.append`."""
        answered = threading.Event()
        outcomes: list[Sequence[Outcome | None]] = []

        def done(found: Sequence[Outcome | None]) -> None:
            outcomes.append(found)
            answered.set()

        self._submit(proposals, timeout, done, wait=timeout)
        answered.wait()
        return [outcome for outcome in outcomes[0] if outcome is not None]

    def append_later(self, proposals: Sequence[Proposal], *, timeout: float, done: Callable[[Sequence[Outcome]], None]) -> None:
        """See `Log.append_later`. Raises `Overloaded` at once when too many wait."""
        self._submit(proposals, timeout, lambda found: done([outcome for outcome in found if outcome is not None]), wait=0)

    def settle(self, partitions: Sequence[int], *, timeout: float) -> None:
        """Owns the partitions, so that nothing sent before by anybody can still be committed. Raises `Unavailable`."""
        answered = threading.Event()
        outcomes: list[Sequence[Outcome | None]] = []

        def done(found: Sequence[Outcome | None]) -> None:
            outcomes.append(found)
            answered.set()

        call = Call([None] * len(partitions), timeout=timeout, done=done)
        self._enqueue(call, partitions)
        answered.wait()
        for outcome in outcomes[0]:
            if isinstance(outcome, CheckpointError):
                raise outcome

    def _submit(
        self, proposals: Sequence[Proposal], timeout: float, done: Callable[[Sequence[Outcome | None]], None], *, wait: float
    ) -> None:
        count = len(proposals)

        def leave_and_answer(found: Sequence[Outcome | None]) -> None:
            self._admission.leave(count, call.bytes)
            done(found)

        call = Call(proposals, timeout=timeout, done=leave_and_answer)
        self._admission.enter(count, call.bytes, wait)
        try:
            self._enqueue(call, [partition_of(proposal.checkpoint_id, self._partitions) for proposal in proposals])
        except CheckpointError:
            self._admission.leave(count, call.bytes)
            raise

    def _enqueue(self, call: Call, partitions: Sequence[int]) -> None:
        with self._wanted:
            self._view.require()
            if self._failure is not None:
                raise self._failure
            if self._closing:
                raise StoreClosed("the store was closed")
            call.partitions = partitions
            self._arrived.append(call)
            self._woken = True
            self._wanted.notify()

    def _wake(self) -> None:
        with self._wanted:
            self._woken = True
            self._wanted.notify()

    # -- the dispatcher's thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            drained_by = 0.0
            while True:
                self._wait()
                now = time.monotonic()
                try:
                    self._view.require()
                except CheckpointError as error:
                    self._end(error)
                    return
                until = self._hold.until(now)
                if until is not None:
                    for writer in self.writers:
                        writer.step_back(until)
                while sum(writer.advance(now) for writer in self._active()):
                    now = time.monotonic()  # every writer takes its step, so that their transactions overlap
                for writer in self.writers:
                    writer.expire(now)
                if self._closing:
                    drained_by = drained_by or now + _DRAIN_SECONDS
                    for writer in self.writers:
                        writer.refuse_queued(StoreClosed("the store was closed; nothing was written"))
                    if not any(writer.has_work for writer in self.writers) or now > drained_by:
                        self._end(StoreClosed("the store was closed"))
                        return
        except Exception as error:
            self._end(StoreClosed(f"the writer has stopped: {error!r}"))
            raise

    def _active(self) -> list[PartitionWriter]:
        """Who has a step to take. A process that writes takes back all that it lost: its callers use several partitions, and would
        otherwise all end up waiting for one that is not owned (two processes: 0.2 of the commits of one)."""
        writes = any(writer.has_work for writer in self.writers)
        return [writer for writer in self.writers if writer.has_work or writer.busy or (writes and writer.lost)]

    def _wait(self) -> None:
        with self._wanted:
            if not self._woken:
                busy = self._closing or any(writer.has_work or writer.busy for writer in self.writers)
                self._wanted.wait(_TICK_SECONDS if busy else None)
            self._woken = False
            arrived, self._arrived = self._arrived, []
        for call in arrived:
            for item, partition in zip(call.items, call.partitions, strict=True):
                self.writers[partition].queue.append(item)

    def _end(self, error: CheckpointError) -> None:
        with self._wanted:
            self._failure = error
            arrived, self._arrived = self._arrived, []
        for call in arrived:
            for item in call.items:
                item.answer(error)
        for writer in self.writers:
            writer.abandon(error)
