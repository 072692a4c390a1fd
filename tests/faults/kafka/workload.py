"""The victim: a process that writes, and is killed or stopped at a boundary. What it was told is in its history, whatever happens to it."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

from eventlog import Checkpoint, CheckpointId, CheckpointStore, Conflict, EventId, NotFound, OutcomeUnknown, RunId, open_store
from eventlog.address import KafkaAddress, parse_address
from eventlog.kafka import client
from eventlog.kafka.boundaries import Boundary, listening
from eventlog.testing import FileJournal, Recorder
from tests.faults.kafka.points import BATCH_EVENTS, Phase, Point

_MOMENT_SECONDS = 0.002
_ATTEMPTS = 20  # at one commit, when others keep winning
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Errand:
    """What a victim is to do, and where it is ended by `signal`."""

    address: str
    history: Path
    ids: tuple[str, ...]
    point: Point
    signal: signal.Signals
    transaction_timeout_ms: int = client.TRANSACTION_TIMEOUT_MS


class Writing:
    """Commits through a recorder."""

    def __init__(self, store: CheckpointStore, journal: FileJournal) -> None:
        self.recorder = Recorder(store, journal)

    def following(self, checkpoint_id: str) -> tuple[Checkpoint, int | None]:
        """A proposal on what the store says is the current revision."""
        try:
            current = self.recorder.load(checkpoint_id)
        except NotFound:
            return Checkpoint.initial(CheckpointId(checkpoint_id), RunId.new(), "test.victim", 1, _payload()), None
        return current.next(_payload()), current.revision

    def commit(self, checkpoint_id: str) -> None:
        """One revision, on top of whoever is faster."""
        for _ in range(_ATTEMPTS):
            proposed, expected = self.following(checkpoint_id)
            try:
                self.recorder.compare_and_swap(proposed, expected)
                return
            except Conflict:
                continue
            except OutcomeUnknown:
                self.recorder.resolve(proposed)
                return

    def commit_many(self, checkpoint_ids: tuple[str, ...]) -> None:
        """One transaction; beside it a proposal that is late by one revision."""
        proposals = [self.following(each) for each in checkpoint_ids]
        first = proposals[0][0]
        late = first.model_copy(update={"revision": first.revision - 1, "event_id": EventId.new()})
        proposals.append((late, None if late.revision == 0 else late.revision - 1))
        outcomes = self.recorder.compare_and_swap_many(proposals)
        for (proposed, _), outcome in zip(proposals, outcomes, strict=True):
            if isinstance(outcome, OutcomeUnknown):
                self.recorder.resolve(proposed)


def _payload() -> dict[str, str]:
    return {"phase": "ready", "noise": os.urandom(400).hex()}


class _Listener:
    """Ends the process at its point, and has the partition fenced once in the middle of a transaction."""

    def __init__(self, errand: Errand) -> None:
        self._errand = errand
        self._lock = threading.Lock()
        self._phase: Phase | None = None
        self._passed: Counter[tuple[Phase | None, Boundary]] = Counter()
        self._fence: Callable[[], None] | None = None
        self._acknowledge_until_fenced = 0

    def enter(self, phase: Phase | None) -> None:
        with self._lock:
            self._phase = phase

    def fence_next_batch(self, fence: Callable[[], None]) -> None:
        """Has the next transaction fenced when all but its last record are acknowledged: that one cannot be sent any more."""
        with self._lock:
            self._fence = fence
            self._acknowledge_until_fenced = BATCH_EVENTS - 1

    def __call__(self, boundary: Boundary) -> None:
        with self._lock:
            self._passed[self._phase, boundary] += 1
            here = boundary, self._phase, self._passed[self._phase, boundary]
            fence = None
            if boundary is Boundary.ACKNOWLEDGED and self._acknowledge_until_fenced:
                self._acknowledge_until_fenced -= 1
                fence = None if self._acknowledge_until_fenced else self._fence
        if fence is not None:
            fence()
            self.enter(Phase.SETTLING)
        point = self._errand.point
        if here == (point.boundary, point.phase, point.nth):
            if point.lingers:
                time.sleep(_MOMENT_SECONDS)
            signal.pthread_kill(threading.get_ident(), self._errand.signal)  # to this thread, so that it goes not one step further


def run(errand: Errand) -> None:
    """The victim's main."""
    _die_with_the_tests()
    client._BATCH_BYTES = 1 << 10  # every record its own request, so that acknowledgements come one by one
    client.TRANSACTION_TIMEOUT_MS = errand.transaction_timeout_ms
    listener = _Listener(errand)
    with (
        FileJournal.open(errand.history, session="victim") as journal,
        listening(listener),
        open_store(errand.address, actor="victim", timeout=20) as store,
    ):
        _work(Writing(store, journal), store, errand, listener)


def _die_with_the_tests() -> None:
    """A stopped process would outlive an interrupted run. The server that forked it ends when nobody holds a certain pipe any more,
    of which each fork has a copy; this one dies with the server."""
    server: Any = forkserver._forkserver
    os.close(server._forkserver_alive_fd)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _work(writing: Writing, store: CheckpointStore, errand: Errand, listener: _Listener) -> None:
    batched = errand.ids[:BATCH_EVENTS]
    listener.enter(Phase.FIRST)
    for each in batched:
        writing.commit(each)
    _project(store)
    listener.enter(Phase.BATCH)
    writing.commit_many(batched)
    _project(store)
    listener.enter(None)
    callers = [threading.Thread(target=writing.commit, args=(each,)) for each in errand.ids * 2]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    address = parse_address(errand.address)
    assert isinstance(address, KafkaAddress)
    listener.fence_next_batch(lambda: _fence(address))
    writing.commit_many(batched)
    _project(store)
    listener.enter(None)
    for each in errand.ids:
        writing.commit(each)
    _project(store)


def _project(store: CheckpointStore) -> None:
    """Waits until the projection has everything."""
    store.catalog.sql("SELECT count(*) FROM checkpoint_history")


def _fence(address: KafkaAddress) -> None:
    """Takes partition 0 from its owner, as another process would, and does nothing with it."""
    rival = client.producer(address, transactional_id=f"{address.topic}-writer-0", max_event_bytes=1 << 20)
    rival.init_transactions()
    client.discard(rival)
