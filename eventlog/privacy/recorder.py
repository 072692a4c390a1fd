"""Writes accesses down in the mode of the store: before anything is handed out, or soon."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence

from eventlog.errors import AuditUnavailable, StoreClosed
from eventlog.position import Position
from eventlog.privacy.access_event import AccessEvent, hash_of
from eventlog.privacy.access_log import AccessLog, AccessMode

# What a buffered store may lose when its process is killed: so many events, none older than so many seconds.
MOST_BUFFERED = 256
BUFFERED_SECONDS = 1.0


class AccessRecorder:
    """The one way into a store's access log. Safe to share between threads, not across a fork.

    strict: `record` returns once the events are durable; concurrent callers share a flush.
    buffered: `record` returns at once unless `MOST_BUFFERED` events wait; then, every `BUFFERED_SECONDS`, and at `close` they are made
    durable. When that is impossible, events wait for the next attempt, and when there is no room left `record` raises: the bound holds.
    """

    def __init__(self, *, log: AccessLog, mode: AccessMode) -> None:
        self.log = log
        self.mode = mode
        self._pid = os.getpid()
        self._waiting: list[AccessEvent] = []  # what is being written included, until it is durable
        self._guard = threading.Lock()  # of `_waiting`
        self._flushing = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self) -> AccessRecorder:
        """Starts what the mode needs."""
        if self.mode is AccessMode.BUFFERED:
            self._thread = threading.Thread(target=self._flush_for_ever, name="eventlog-access", daemon=True)
            self._thread.start()
        return self

    def record(self, events: Sequence[AccessEvent]) -> None:
        """Puts events on record. Raises `AuditUnavailable`: then nobody may be handed what they are about. Public within the package."""
        if self._closed.is_set() or self._pid != os.getpid():
            raise StoreClosed("the store is not open in this process", hint="Open the store in the process that uses it, after forking.")
        if self.mode is AccessMode.STRICT or len(events) > MOST_BUFFERED:
            self.flush()
            self.log.append(events)
            return
        while not self._buffered(events):
            self.flush()

    def flush(self) -> None:
        """Makes durable what waits. Raises `AuditUnavailable`; what waits goes on waiting then."""
        if not self._waiting:
            return
        with self._flushing:
            with self._guard:
                taken = list(self._waiting)
            if taken:
                self.log.append(taken)
                with self._guard:
                    del self._waiting[: len(taken)]

    def head(self) -> str | None:
        """The hash of the access log's newest record, hexadecimal; None when it is empty. What waits is made durable first.

        Raises `AuditUnavailable`, `StorageError` or `Unavailable`.
        """
        self.flush()
        before_the_newest = Position(((0, max(0, self.log.end().next_offset(0) - 1)),))
        newest = [records[-1] for records, _ in self.log.read(before_the_newest) if records]
        return hash_of(newest[-1].value).hex() if newest else None

    def close(self) -> None:
        """Makes durable what waits, then closes the log. Raises `AuditUnavailable` when that is impossible; it is closed all the same."""
        if self._pid != os.getpid():
            self.log.close()
            return
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self.flush()
        finally:
            self.log.close()

    def _buffered(self, events: Sequence[AccessEvent]) -> bool:
        with self._guard:
            if len(self._waiting) + len(events) > MOST_BUFFERED:
                return False
            self._waiting.extend(events)
            return True

    def _flush_for_ever(self) -> None:
        while not self._closed.wait(BUFFERED_SECONDS):
            with contextlib.suppress(AuditUnavailable):  # they go on waiting, and whoever finds no room is told
                self.flush()
