"""What the processes do that are killed, or whose disk fails: always the same, so that the Nth call is the same call.

Each takes a directory, notes every attempt and answer, and goes on after an error of the store's own, as a caller would. Anything else that
is raised ends the process, which fails the test.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eventlog import Checkpoint, CheckpointError, CheckpointStore, OutcomeUnknown, Receipt, create_store, open_store
from eventlog.embedded import EmbeddedLog
from tests.faults.embedded.notes import DONE, Notes
from tests.read_side.samples import identifier

_WHEN = datetime(2026, 1, 1, tzinfo=UTC)
_JOURNAL_PAGES = 8  # SQLite's own 1000 would have the journal moved into the database once in 4 MB


def payload(name: str, size: int) -> dict[str, str]:
    """What no compression makes much smaller than half."""
    return {"phase": "working", "blob": random.Random(name).randbytes(size // 2).hex()}


def first(name: str, size: int = 200) -> Checkpoint:
    made = payload(f"{name}/0", size)
    return Checkpoint.initial(
        identifier(name), identifier("run", name), "acme.order", 1, made, event_id=identifier(name, 0), updated_at=_WHEN
    )


def following(checkpoint: Checkpoint, name: str, size: int = 200, *, event: str = "") -> Checkpoint:
    revision = checkpoint.revision + 1
    made = payload(f"{name}/{revision}", size)
    return checkpoint.next(made, event_id=identifier(name, revision, event), updated_at=_WHEN)


class Caller:
    """One store, used as an application would, with everything noted."""

    def __init__(self, directory: Path, notes: Notes, *, asks: bool = True) -> None:
        self.directory = directory
        self.notes = notes
        self.asks = asks  # about an unknown outcome, at once
        self.unknown = 0  # outcomes so far
        self.store: CheckpointStore | None = None

    def step(self, name: str, call: Callable[[], Any]) -> bool:
        """Any call but a commit; whether it succeeded."""
        self.notes.step(name)
        try:
            call()
        except CheckpointError as error:
            self.notes.step(name, type(error).__name__)
            return False
        self.notes.step(name, DONE)
        return True

    @contextmanager
    def opened(self, *, journal_pages: int = _JOURNAL_PAGES) -> Iterator[None]:
        """The store, open. Closing is a step of its own, since it writes."""

        def open_it() -> None:
            self.store = open_store(self.directory, actor="somebody")
            assert isinstance(self.store.log, EmbeddedLog)
            connection = self.store.log._writer.connection
            assert connection is not None
            connection.execute(f"PRAGMA wal_autocheckpoint = {journal_pages}")

        self.store = None
        self.step("open", open_it)
        yield
        self.ask("close", lambda store: store.close())

    def commit(self, checkpoint: Checkpoint, expected: int | None) -> bool:
        """Whether it was committed."""
        if self.store is None:
            return False
        number = self.notes.attempt(checkpoint)
        try:
            outcome: Receipt | CheckpointError = self.store.compare_and_swap(checkpoint, expected)
        except CheckpointError as error:
            outcome = error
        return self._answered(number, checkpoint, outcome)

    def commit_many(self, revisions: list[tuple[Checkpoint, int | None]]) -> None:
        if self.store is None:
            return
        numbers = [self.notes.attempt(checkpoint) for checkpoint, _ in revisions]
        outcomes = self.store.compare_and_swap_many(revisions)
        for number, (checkpoint, _), outcome in zip(numbers, revisions, outcomes, strict=True):
            self._answered(number, checkpoint, outcome)

    def delete(self, checkpoint: Checkpoint) -> None:
        """Ends a checkpoint behind the revision given."""
        if self.store is None:
            return
        tombstone = checkpoint.next(None, event_id=identifier("end of", checkpoint.id))
        number = self.notes.attempt(tombstone)
        try:
            outcome: Receipt | CheckpointError = self.store.delete(checkpoint.id, checkpoint.revision, event_id=tombstone.event_id)
        except CheckpointError as error:
            outcome = error
        self._answered(number, tombstone, outcome)

    def ask(self, name: str, call: Callable[[CheckpointStore], Any]) -> None:
        """A step with the open store."""
        store = self.store
        if store is not None:
            self.step(name, lambda: call(store))

    def _answered(self, number: str, checkpoint: Checkpoint, outcome: Receipt | CheckpointError) -> bool:
        assert self.store is not None
        self.notes.answer(number, outcome)
        self.unknown += isinstance(outcome, OutcomeUnknown)
        if isinstance(outcome, OutcomeUnknown) and self.asks:
            try:
                found = self.store.resolve(checkpoint) is not None
            except CheckpointError:
                return False  # still unknown: the disk does not answer
            self.notes.resolved(number, found)
            return found
        return isinstance(outcome, Receipt)


def life(notes: Notes, directory: str) -> None:
    """A store's whole life: made, written to in every way, listed, closed, opened again."""
    place = Path(directory) / "store"
    caller = Caller(place, notes)
    caller.step("create", lambda: create_store(place))
    with caller.opened():
        order, note = first("order"), first("note", 3_000)
        caller.commit(order, None)
        caller.commit(note, None)
        for size in (200, 3_000, 200):
            following_order = following(order, "order", size)
            if caller.commit(following_order, order.revision):
                order = following_order
        caller.commit(following(order, "order", event="too late"), order.revision - 1)  # a conflict
        caller.commit(order, order.revision - 1 if order.revision else None)  # a retry
        large = first("large", 60_000)
        caller.commit(large, None)
        caller.commit_many([(first(f"one of many {number}", 1_000), None) for number in range(5)])
        caller.ask("list", lambda store: store.list())
        following_note = following(note, "note")
        if caller.commit(following_note, note.revision):
            note = following_note
        caller.delete(note)
        caller.ask("list", lambda store: store.list(include_deleted=True))
    with caller.opened():
        caller.commit(first("second life"), None)
        caller.ask("list", lambda store: store.list())


def prepared(notes: Notes, directory: str) -> None:
    """A store with some history, for the workloads that begin with one."""
    place = Path(directory) / "store"
    caller = Caller(place, notes)
    caller.step("create", lambda: create_store(place))
    with caller.opened():
        for name in ("a", "b", "c"):
            checkpoint = first(name)
            caller.commit(checkpoint, None)
            for _ in range(4):
                checkpoint = following(checkpoint, name)
                caller.commit(checkpoint, checkpoint.revision - 1)
        caller.ask("list", lambda store: store.list())


def together(notes: Notes, directory: str) -> None:
    """Four threads whose commits go into the log in groups. strace counts the calls of each thread by itself."""
    caller = Caller(Path(directory) / "store", notes)
    ready = threading.Barrier(4)

    def write(name: str) -> None:
        ready.wait()
        checkpoint = first(name)
        caller.commit(checkpoint, None)
        for _ in range(4):
            successor = following(checkpoint, name, 1_500)
            if caller.commit(successor, checkpoint.revision):
                checkpoint = successor

    with caller.opened(), ThreadPoolExecutor(4) as threads:
        for ended in [threads.submit(write, f"thread {number}") for number in range(4)]:
            ended.result()


def rebuilding(notes: Notes, directory: str) -> None:
    """The projection made anew beside the old one and put in its place, with a commit before and behind."""
    caller = Caller(Path(directory) / "store", notes)
    with caller.opened():
        caller.commit(first("before"), None)
        caller.ask("rebuild", lambda store: store.catalog.rebuild())
        caller.commit(first("behind"), None)
        caller.ask("list", lambda store: store.list())


def long_journal(notes: Notes, directory: str) -> None:
    """A journal that outgrows the first part of its index (4,062 frames of 4 KB): SQLite extends -shm behind the flush of a commit.

    Dies at the first commit that fails, before anything else is written.
    """
    caller = Caller(Path(directory) / "store", notes, asks=False)
    with caller.opened(journal_pages=0):
        for number in range(6):
            if not caller.commit(first(f"huge {number}", 7_000_000), None):
                os.kill(os.getpid(), signal.SIGKILL)


def asking(notes: Notes, directory: str) -> None:
    """Commits until one has an unknown outcome, asks what became of it, and dies before anything else is written."""
    caller = Caller(Path(directory) / "store", notes)
    with caller.opened():
        for number in range(6):
            caller.commit(first(f"asking {number}"), None)
            if caller.unknown:
                os.kill(os.getpid(), signal.SIGKILL)
