"""A store that takes down what everybody was told: the same methods, so that a workload cannot forget to record."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import datetime
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from eventlog.checkpoint import Checkpoint
from eventlog.errors import NotFound
from eventlog.ids import CheckpointId, EventId
from eventlog.testing.history import Action, LogEntry, Mode, Removed
from eventlog.testing.journal import Journal
from eventlog.testing.notes import Call, answer_each, deletion, enquiry, entry_of, is_whole, mode_of, proposal, question, sightings


class Recorder:
    """Wraps a store, ours or another's, and takes down each operation in a journal. Safe to share between threads if the store is.

    Arguments:
        store: whatever has the methods that are called. It gives receipts with a `revision`, and the errors of `eventlog`.
        journal: where to: a `MemoryJournal`, or a `FileJournal`. One recorder has one, and is one session.

    Every method passes its arguments on as they are and gives back, or raises, what the store does. Only `delete` chooses the event id
    if the caller did not: without one, what became of a deletion whose caller was killed could not be said.
    """

    def __init__(self, store: Any, journal: Journal) -> None:
        self.store = store
        self.journal = journal

    # -- writing --------------------------------------------------------------------------------------------------

    def compare_and_swap(self, checkpoint: Checkpoint, expected: int | None, **options: Any) -> Any:
        """Records a COMMIT."""
        with self._call(Action.COMMIT, proposal(checkpoint, expected)) as call:
            return call.committed(self.store.compare_and_swap(checkpoint, expected, **options))

    def compare_and_swap_many(self, revisions: Iterable[tuple[Checkpoint, int | None]], **options: Any) -> Any:
        """Records a COMMIT for each revision, all of them as long as the call."""
        pairs = list(revisions)
        with ExitStack() as stack:
            calls = [stack.enter_context(self._call(Action.COMMIT, proposal(*pair))) for pair in pairs]
            outcomes = self.store.compare_and_swap_many(pairs, **options)
            answer_each(calls, outcomes)
            return outcomes

    def delete(
        self, checkpoint_id: CheckpointId | UUID | str, expected: int, *, event_id: EventId | UUID | str | None = None, **options: Any
    ) -> Any:
        """Records a DELETE."""
        event = EventId.new() if event_id is None else EventId(event_id)
        with self._call(Action.DELETE, deletion(checkpoint_id, expected, event)) as call:
            return call.committed(self.store.delete(checkpoint_id, expected, event_id=event, **options))

    def import_revision(self, checkpoint: Checkpoint, **options: Any) -> Any:
        """Records an IMPORT."""
        with self._call(Action.IMPORT, proposal(checkpoint, None)) as call:
            return call.committed(self.store.import_revision(checkpoint, **options))

    def migrate_revision(self, checkpoint: Checkpoint, expected: int, **options: Any) -> Any:
        """Records a COMMIT: to the history it is one more revision."""
        with self._call(Action.COMMIT, proposal(checkpoint, expected)) as call:
            return call.committed(self.store.migrate_revision(checkpoint, expected, **options))

    def resolve(self, event: EventId | UUID | str | Checkpoint, **options: Any) -> Any:
        """Records a RESOLVE."""
        with self._call(Action.RESOLVE, enquiry(event)) as call:
            return call.resolved(self.store.resolve(event, **options))

    # -- reading --------------------------------------------------------------------------------------------------

    def load(self, checkpoint_id: CheckpointId | UUID | str, **options: Any) -> Any:
        """Records a LOAD."""
        with self._call(Action.LOAD, question(checkpoint_id, options)) as call:
            return call.read(self.store.load(checkpoint_id, **options))

    def load_revision(self, checkpoint_id: CheckpointId | UUID | str, **options: Any) -> Any:
        """Records a LOAD."""
        with self._call(Action.LOAD, question(checkpoint_id, options)) as call:
            return call.read(self.store.load_revision(checkpoint_id, **options))

    def history(self, checkpoint_id: CheckpointId | UUID | str, **options: Any) -> Iterator[Any]:
        """Records a HISTORY, once it has been read to its end or left."""
        with self._call(Action.HISTORY, question(checkpoint_id, options)) as call:
            revisions = self.store.history(checkpoint_id, **options)
        return _going_through(call, revisions, whole=is_whole(options))

    def list(self, **options: Any) -> Any:
        """Records a LIST for each item of the page."""
        invoked = time.monotonic_ns()
        page = self.store.list(**options)
        for facts in sightings(_thread(), Action.LIST, mode_of(options), invoked, page.items):
            self.journal.happened(facts)
        return page

    def subscribe(self, after: Any, **options: Any) -> Iterator[Any]:
        """Records a SUBSCRIBE for each revision."""
        revisions = iter(self.store.subscribe(after, **options))
        while True:
            invoked = time.monotonic_ns()
            revision = next(revisions, None)
            if revision is None:
                return
            for facts in sightings(_thread(), Action.SUBSCRIBE, Mode.PAST, invoked, (revision,)):
                self.journal.happened(facts)
            yield revision

    # -- what leaves no trace -------------------------------------------------------------------------------------

    def position(self) -> Any:
        """Not recorded: it says nothing about a checkpoint."""
        return self.store.position()

    def position_at(self, moment: datetime) -> Any:
        """Not recorded."""
        return self.store.position_at(moment)

    def close(self) -> None:
        """Closes the store. The journal is its owner's to close."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _call(self, action: Action, facts: dict[str, Any]) -> Call:
        return Call(self.journal, _thread(), action, facts)


def log_of(store: Any, checkpoint_ids: Iterable[str]) -> dict[str, list[LogEntry | Removed]]:
    """What a store, or a recorder, holds of these checkpoints in the end: the final log for the checker.

    Read it through a store that was opened afresh, when nothing writes any more, and behind no recorder: it is the yardstick, not a part
    of the history. A checkpoint that is not there has an empty log.
    """
    return {checkpoint_id: _log(store, checkpoint_id) for checkpoint_id in checkpoint_ids}


def _log(store: Any, checkpoint_id: str) -> list[LogEntry | Removed]:
    try:
        return [entry_of(each) for each in store.history(checkpoint_id)]
    except NotFound:
        return []


def _going_through(call: Call, revisions: Iterable[Any], *, whole: bool) -> Iterator[Any]:
    seen: list[LogEntry] = []
    ended = False
    with call:
        try:
            for each in revisions:
                entry = entry_of(each)
                if isinstance(entry, LogEntry):
                    seen.append(entry)
                yield each
            ended = True
        finally:
            call.went_through(seen, complete=ended and whole)


def _thread() -> str:
    return threading.current_thread().name
