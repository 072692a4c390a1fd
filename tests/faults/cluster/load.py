"""Writers that never stop, and the history of what each was told."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from eventlog import Checkpoint, CheckpointError, CheckpointId, Conflict, OutcomeUnknown, RunId, open_store
from eventlog.testing import Journal, MemoryJournal, Operation, Recorder, Summary, check, log_of
from tests.waiting import eventually

TIMEOUT = 10.0  # seconds that a writer waits for an answer
ANSWER_SECONDS = TIMEOUT + 5  # within which every writer has to have one, on a machine that does much else
READ_SECONDS = 45.0  # the same for readers: a barrier is given up after 30 s, and the last attempt of it may take a little longer
WRITERS = 4
SHARED = 2


class Load:
    """Threads that commit to checkpoints of their own and to shared ones by turns, through one store. Ended by `end()`.

    Arguments:
        address: of the store, its state directory included.
        shared: ids of checkpoints that another load has made; made here when None.
        journal: where the history goes; in memory when None.
    """

    def __init__(
        self, address: str, *, shared: Sequence[str] | None = None, journal: Journal | None = None, writers: int = WRITERS
    ) -> None:
        self._journal = MemoryJournal()
        self.slowest_write = 0.0  # seconds
        self.slowest_read = 0.0
        self.unexpected: list[BaseException] = []
        self._stop = threading.Event()
        self._committed: list[list[float]] = [[] for _ in range(writers)]
        self._store = Recorder(open_store(address, timeout=TIMEOUT), journal or self._journal)
        self.shared = [CheckpointId(each) for each in shared] if shared is not None else [self._made() for _ in range(SHARED)]
        self.threads = [threading.Thread(target=self._run, args=(number,), name=f"load-{number}") for number in range(writers)]
        for thread in self.threads:
            thread.start()

    @property
    def operations(self) -> Iterable[Operation]:
        """The history, if it was kept in memory."""
        return self._journal

    @property
    def commits(self) -> int:
        return sum(map(len, self._committed))

    def go_on(self, least: int = 20) -> None:
        """Returns when every writer has committed again, and all together `least` times."""
        moment, done = time.monotonic(), self.commits
        self.resumed(moment)
        eventually(lambda: self.commits >= done + least or self.unexpected)
        assert self.unexpected == []

    def resumed(self, since: float, *, seconds: float = 60.0) -> tuple[float, float]:
        """Waits until every writer has committed after a moment; seconds from it to the first commit of anybody, and of the last."""

        def firsts() -> list[float]:
            return [next((each for each in reversed(times) if each > since), 0.0) for times in self._committed]

        eventually(lambda: all(firsts()) or self.unexpected, seconds=seconds)
        assert self.unexpected == []
        first = [min(each for each in times if each > since) for times in self._committed]
        return min(first) - since, max(first) - since

    def check_answers(self) -> None:
        """Raises `AssertionError` when somebody was left waiting."""
        sys.stdout.write(f"slowest write {self.slowest_write:.1f} s, slowest read {self.slowest_read:.1f} s\n")
        assert self.slowest_write < ANSWER_SECONDS
        assert self.slowest_read < READ_SECONDS

    def end(self) -> None:
        """Stops the writers once each has its answer, and closes the store."""
        self._stop.set()
        for thread in self.threads:
            thread.join()
        self._store.close()

    def _made(self) -> CheckpointId:
        first = Checkpoint.initial(CheckpointId.new(), RunId.new(), "test.load", 1, {})
        self._store.compare_and_swap(first, None)
        return first.id

    # -- a writer -------------------------------------------------------------------------------------------------

    def _run(self, number: int) -> None:
        own = Checkpoint.initial(CheckpointId.new(), RunId.new(), "test.load", 1, {"writer": number})
        try:
            while not self._stop.is_set():
                own = self._advance(number, own)
                shared = self._load(self.shared[number % len(self.shared)])
                if shared is not None:
                    self._commit(number, shared.next({"writer": number}), shared.revision)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            self.unexpected.append(error)

    def _advance(self, number: int, own: Checkpoint) -> Checkpoint:
        """Commits the next revision of a checkpoint that nobody else writes to; `own` is what is to be committed."""
        self._commit(number, own, own.revision - 1 if own.revision else None)
        current = self._load(own.id)
        return own if current is None else current.next({"writer": number})

    def _commit(self, number: int, checkpoint: Checkpoint, expected: int | None) -> None:
        started = time.monotonic()
        try:
            self._store.compare_and_swap(checkpoint, expected)
            self._committed[number].append(time.monotonic())
        except Conflict:
            return
        except OutcomeUnknown:
            self._resolve(checkpoint)
        except CheckpointError as error:
            if error.retry != "backoff":
                raise
        finally:
            self.slowest_write = max(self.slowest_write, time.monotonic() - started)

    def _resolve(self, checkpoint: Checkpoint) -> None:
        try:
            self._store.resolve(checkpoint)
        except CheckpointError as error:
            if error.retry not in ("backoff", "resolve"):
                raise

    def _load(self, checkpoint_id: CheckpointId) -> Checkpoint | None:
        started = time.monotonic()
        try:
            loaded: Checkpoint = self._store.load(checkpoint_id)
            return loaded
        except CheckpointError as error:
            if error.retry != "backoff" and error.kind != "NOT_FOUND":  # its first revision may not be committed yet
                raise
            return None
        finally:
            self.slowest_read = max(self.slowest_read, time.monotonic() - started)


def judge(operations: Iterable[Operation], address: str, state: Path) -> Summary:
    """Holds a history against the log, as a store that is opened afresh reads it. Raises `AssertionError` with every violation."""
    ids = {each.checkpoint_id for each in operations if each.checkpoint_id is not None}
    with open_store(f"{address}?state={state}") as store:
        verdict = check(operations, log_of(store, ids))
    verdict.require_none()
    return verdict.summary
