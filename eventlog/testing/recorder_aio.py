"""The recorder for asyncio: the same names, and a task where the other one has a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import ExitStack
from datetime import datetime
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from eventlog.checkpoint import Checkpoint
from eventlog.ids import CheckpointId, EventId
from eventlog.testing.history import Action, LogEntry, Mode
from eventlog.testing.journal import Journal
from eventlog.testing.notes import Call, answer_each, deletion, enquiry, entry_of, is_whole, mode_of, proposal, question, sightings


class AsyncRecorder:
    """As `Recorder`, for an asynchronous store. A call that is cancelled has an unknown outcome."""

    def __init__(self, store: Any, journal: Journal) -> None:
        self.store = store
        self.journal = journal

    # -- writing --------------------------------------------------------------------------------------------------

    async def compare_and_swap(self, checkpoint: Checkpoint, expected: int | None, **options: Any) -> Any:
        """Records a COMMIT."""
        with self._call(Action.COMMIT, proposal(checkpoint, expected)) as call:
            return call.committed(await self.store.compare_and_swap(checkpoint, expected, **options))

    async def compare_and_swap_many(self, revisions: Iterable[tuple[Checkpoint, int | None]], **options: Any) -> Any:
        """Records a COMMIT for each revision, all of them as long as the call."""
        pairs = list(revisions)
        with ExitStack() as stack:
            calls = [stack.enter_context(self._call(Action.COMMIT, proposal(*pair))) for pair in pairs]
            outcomes = await self.store.compare_and_swap_many(pairs, **options)
            answer_each(calls, outcomes)
            return outcomes

    async def delete(
        self, checkpoint_id: CheckpointId | UUID | str, expected: int, *, event_id: EventId | UUID | str | None = None, **options: Any
    ) -> Any:
        """Records a DELETE."""
        event = EventId.new() if event_id is None else EventId(event_id)
        with self._call(Action.DELETE, deletion(checkpoint_id, expected, event)) as call:
            return call.committed(await self.store.delete(checkpoint_id, expected, event_id=event, **options))

    async def import_revision(self, checkpoint: Checkpoint, **options: Any) -> Any:
        """Records an IMPORT."""
        with self._call(Action.IMPORT, proposal(checkpoint, None)) as call:
            return call.committed(await self.store.import_revision(checkpoint, **options))

    async def migrate_revision(self, checkpoint: Checkpoint, expected: int, **options: Any) -> Any:
        """Records a COMMIT: to the history it is one more revision."""
        with self._call(Action.COMMIT, proposal(checkpoint, expected)) as call:
            return call.committed(await self.store.migrate_revision(checkpoint, expected, **options))

    async def resolve(self, event: EventId | UUID | str | Checkpoint, **options: Any) -> Any:
        """Records a RESOLVE."""
        with self._call(Action.RESOLVE, enquiry(event)) as call:
            return call.resolved(await self.store.resolve(event, **options))

    # -- reading --------------------------------------------------------------------------------------------------

    async def load(self, checkpoint_id: CheckpointId | UUID | str, **options: Any) -> Any:
        """Records a LOAD."""
        with self._call(Action.LOAD, question(checkpoint_id, options)) as call:
            return call.read(await self.store.load(checkpoint_id, **options))

    async def load_revision(self, checkpoint_id: CheckpointId | UUID | str, **options: Any) -> Any:
        """Records a LOAD."""
        with self._call(Action.LOAD, question(checkpoint_id, options)) as call:
            return call.read(await self.store.load_revision(checkpoint_id, **options))

    async def history(self, checkpoint_id: CheckpointId | UUID | str, **options: Any) -> AsyncGenerator[Any, None]:
        """Records a HISTORY, once it has been read to its end or left."""
        seen: list[LogEntry] = []
        with self._call(Action.HISTORY, question(checkpoint_id, options)) as call:
            ended = False
            try:
                async for each in self.store.history(checkpoint_id, **options):
                    entry = entry_of(each)
                    if isinstance(entry, LogEntry):
                        seen.append(entry)
                    yield each
                ended = True
            finally:
                call.went_through(seen, complete=ended and is_whole(options))

    async def list(self, **options: Any) -> Any:
        """Records a LIST for each item of the page."""
        invoked = time.monotonic_ns()
        page = await self.store.list(**options)
        for facts in sightings(_task(), Action.LIST, mode_of(options), invoked, page.items):
            self.journal.happened(facts)
        return page

    async def subscribe(self, after: Any, **options: Any) -> AsyncIterator[Any]:
        """Records a SUBSCRIBE for each revision."""
        invoked = time.monotonic_ns()
        async for revision in self.store.subscribe(after, **options):
            for facts in sightings(_task(), Action.SUBSCRIBE, Mode.PAST, invoked, (revision,)):
                self.journal.happened(facts)
            yield revision
            invoked = time.monotonic_ns()

    # -- what leaves no trace -------------------------------------------------------------------------------------

    async def position(self) -> Any:
        """Not recorded: it says nothing about a checkpoint."""
        return await self.store.position()

    async def position_at(self, moment: datetime) -> Any:
        """Not recorded."""
        return await self.store.position_at(moment)

    async def close(self) -> None:
        """Closes the store. The journal is its owner's to close."""
        await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def _call(self, action: Action, facts: dict[str, Any]) -> Call:
        return Call(self.journal, _task(), action, facts)


def _task() -> str:
    task = asyncio.current_task()
    return "no task" if task is None else task.get_name()
