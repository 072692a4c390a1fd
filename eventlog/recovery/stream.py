"""The checkpoint of a run, as its one writer sees it: the last revision known to be durable, and the write whose outcome is not known."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from eventlog.checkpoint import Checkpoint, Receipt
from eventlog.errors import CheckpointError, ErrorKind
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.fields import own_copy
from eventlog.recovery.log_clock import LogClock
from eventlog.recovery.steps import Commit, Steps, Store, is_async
from eventlog.recovery.usage import DURATION, at_least, raised, spent


class Record(Protocol):
    """What a run's payload means: identity, state and phase. Frozen; pure."""

    def payload(self) -> dict[str, Any]: ...


R = TypeVar("R", bound=Record)


class _Write(NamedTuple, Generic[R]):
    checkpoint: Checkpoint
    record: R
    expected: int | None
    boundary: Boundary
    clock: int


class RunStream(Generic[R]):
    """Writes the revisions of one run, one after the other.

    A write whose outcome is unknown (the log did not answer, the caller was cancelled or interrupted meanwhile) is sent again before
    anything else is: the same event gets its first receipt, is committed now, or is a `Conflict`. Until then the run does not go on. A
    run that another process has written meanwhile ends in `Conflict` at every further write: its revisions are not reloaded.

    Arguments:
        floor: what was used at least, as far as the caller knows better than the checkpoint.
    """

    def __init__(self, *, store: Store, checkpoint: Checkpoint, record: R, floor: Mapping[str, int] | None = None) -> None:
        self.store = store
        self.checkpoint = checkpoint
        self.record = record
        self._shown: Checkpoint | None = None
        self.lock: Any = asyncio.Lock() if is_async(store) else threading.Lock()
        self._floor = floor or {}
        self._unclear: _Write[R] | None = None
        self._workers: set[object] = set()
        self._counted: int | None = None  # up to here, in nanoseconds, duration is on record; None: nobody is at work
        self.clock = LogClock()

    @property
    def shown(self) -> Checkpoint:
        """The checkpoint as a caller may have it, and change its payload: a copy, made once a revision."""
        kept, shown = self.checkpoint, self._shown
        if shown is None or shown.event_id != kept.event_id:
            self._shown = shown = kept.model_copy(update={"payload": own_copy(dict(kept.payload))})
        return shown

    @property
    def usage(self) -> dict[str, int]:
        """What the run has used so far."""
        return raised(self.checkpoint.usage, self._floor)

    def at_work(self, worker: object, working: bool) -> None:
        """Who uses time of the run from here on; what several use at the same time counts once."""
        (self._workers.add if working else self._workers.discard)(worker)
        if not self._workers:
            self._counted = None
        elif self._counted is None:
            self._counted = time.monotonic_ns()

    @property
    def unclear(self) -> bool:
        """Whether it is not known what became of the last write."""
        return self._unclear is not None

    def settle(self) -> Steps[None]:
        """Sends the write again whose outcome is unknown, if there is one."""
        if self._unclear is not None:
            yield from self._write(self._unclear)

    def advance(
        self, change: Callable[[R], R], boundary: Boundary, more: Mapping[str, int] = {}, reading: Mapping[str, int] = {}
    ) -> Steps[None]:
        """Commits the next revision. Nothing is changed here unless that is durable."""
        yield from self.settle()
        record = change(self.record)
        now = time.monotonic_ns()
        usage = at_least(spent(self.usage, more), reading)
        if self._counted is not None:
            usage = spent(usage, {DURATION: (now - self._counted) // 1000})
        checkpoint = self.checkpoint.next(record.payload(), usage=usage)
        yield from self._write(_Write(checkpoint, record, self.checkpoint.revision, boundary, now))

    def _write(self, write: _Write[R]) -> Steps[None]:
        self._unclear = write
        try:
            receipt: Receipt = yield Commit(self.store, write.checkpoint, write.expected, write.boundary)
        except CheckpointError as error:
            if error.kind is not ErrorKind.OUTCOME_UNKNOWN:
                self._unclear = None  # every other error of a write means that nothing was written
            raise
        self._unclear = None
        self.checkpoint, self.record = write.checkpoint, write.record
        self.clock.seen(receipt.recorded_at)
        if self._counted is not None:
            self._counted = write.clock
