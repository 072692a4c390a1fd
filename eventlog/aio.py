"""The same store for asyncio: the same names, the same promises.

Callers on one event loop are batched on the loop: what is proposed in one iteration is committed together, without a hand-over to
a thread unless the log would make the loop wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from time import perf_counter
from types import TracebackType
from typing import NamedTuple, Self, TypeVar
from uuid import UUID

from eventlog.catalog import Catalog, Page
from eventlog.checkpoint import Checkpoint, Receipt
from eventlog.errors import CheckpointError, InvalidRequest
from eventlog.event import EventType
from eventlog.ids import CheckpointId, EventId
from eventlog.log import Log, Outcome
from eventlog.position import Position
from eventlog.privacy.data_keys import DataKeys
from eventlog.privacy.guard import Access
from eventlog.privacy.principals import Principal
from eventlog.revision import Gap, Revision
from eventlog.rules import Proposal
from eventlog.store import CheckpointStore

Item = TypeVar("Item")
_PAGE = 200


class AsyncCheckpointStore:
    """A `CheckpointStore` for one event loop. Made by `open_async_store`; see `CheckpointStore` for what each call does."""

    def __init__(self, store: CheckpointStore) -> None:
        self.tenant = store.tenant
        self.actor = store.actor
        self.metrics = store.metrics
        self._store = store
        self._log = store._log
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[_Waiting] = []
        self._flushing = False

    def for_principal(self, principal: Principal, *, reason: str | None = None) -> AsyncCheckpointStore:
        """See `CheckpointStore.for_principal`."""
        from eventlog.privacy.store_aio import AsyncPrincipalStore  # it is one of these itself

        return AsyncPrincipalStore(self._store.for_principal(principal, reason=reason))

    # -- writing --------------------------------------------------------------------------------------------------

    async def compare_and_swap(self, checkpoint: Checkpoint, expected: int | None, *, timeout: float | None = None) -> Receipt:
        """See `CheckpointStore.compare_and_swap`."""
        return _receipt(await self._append(await self._propose(checkpoint, expected), timeout))

    async def compare_and_swap_many(
        self, revisions: Iterable[tuple[Checkpoint, int | None]], *, timeout: float | None = None
    ) -> list[Receipt | CheckpointError]:
        """See `CheckpointStore.compare_and_swap_many`."""
        proposed: list[Proposal | CheckpointError] = []
        for checkpoint, expected in revisions:
            try:
                proposed.append(await self._propose(checkpoint, expected))
            except CheckpointError as error:
                proposed.append(error)
        if not proposed:
            raise InvalidRequest("revisions", "is empty")
        pending = [each if isinstance(each, CheckpointError) else self._append(each, timeout) for each in proposed]
        return [each if isinstance(each, CheckpointError) else await each for each in pending]

    async def delete(
        self,
        checkpoint_id: CheckpointId | UUID | str,
        expected: int,
        *,
        event_id: EventId | UUID | str | None = None,
        timeout: float | None = None,
    ) -> Receipt:
        """See `CheckpointStore.delete`."""
        return await asyncio.to_thread(self._store.delete, checkpoint_id, expected, event_id=event_id, timeout=timeout)

    async def import_revision(self, checkpoint: Checkpoint, *, timeout: float | None = None) -> Receipt:
        """See `CheckpointStore.import_revision`."""
        return _receipt(await self._append(await self._propose(checkpoint, None, EventType.IMPORTED), timeout))

    async def migrate_revision(self, checkpoint: Checkpoint, expected: int, *, timeout: float | None = None) -> Receipt:
        """See `CheckpointStore.migrate_revision`."""
        return _receipt(await self._append(await self._propose(checkpoint, expected, EventType.MIGRATED), timeout))

    async def resolve(self, event: EventId | UUID | str | Checkpoint, *, timeout: float | None = None) -> Receipt | None:
        """See `CheckpointStore.resolve`."""
        return await asyncio.to_thread(self._store.resolve, event, timeout=timeout)

    # -- reading --------------------------------------------------------------------------------------------------

    async def load(
        self,
        checkpoint_id: CheckpointId | UUID | str,
        *,
        revision: int | None = None,
        at: Position | datetime | None = None,
        at_least: Position | None = None,
    ) -> Checkpoint:
        """See `CheckpointStore.load`."""
        if self._log.reads_wait:
            return await asyncio.to_thread(self._store.load, checkpoint_id, revision=revision, at=at, at_least=at_least)
        return self._store.load(checkpoint_id, revision=revision, at=at, at_least=at_least)

    async def load_revision(
        self, checkpoint_id: CheckpointId | UUID | str, *, revision: int | None = None, at: Position | datetime | None = None
    ) -> Revision:
        """See `CheckpointStore.load_revision`."""
        return await asyncio.to_thread(self._store.load_revision, checkpoint_id, revision=revision, at=at)

    async def history(
        self, checkpoint_id: CheckpointId | UUID | str, *, after: int = -1, at: Position | datetime | None = None, limit: int | None = None
    ) -> AsyncIterator[Revision | Gap]:
        """See `CheckpointStore.history`."""
        iterator = await asyncio.to_thread(self._store.history, checkpoint_id, after=after, at=at, limit=limit)
        while items := await asyncio.to_thread(_take, iterator, _PAGE):
            for item in items:
                yield item

    async def list(
        self,
        *,
        tenant: str | None = None,
        kind: str | None = None,
        phase: str | None = None,
        labels: Mapping[str, str] | None = None,
        run_id: UUID | str | None = None,
        older_than: datetime | None = None,
        newer_than: datetime | None = None,
        include_deleted: bool = False,
        at: Position | datetime | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page:
        """See `CheckpointStore.list`."""
        return await asyncio.to_thread(
            self._store.list,
            tenant=tenant,
            kind=kind,
            phase=phase,
            labels=labels,
            run_id=run_id,
            older_than=older_than,
            newer_than=newer_than,
            include_deleted=include_deleted,
            at=at,
            after=after,
            limit=limit,
        )

    async def subscribe(self, after: Position, *, idle_timeout: float | None = None) -> AsyncIterator[Revision]:
        """See `CheckpointStore.subscribe`."""
        stop = threading.Event()
        iterator = await asyncio.to_thread(self._store._subscribe, after, idle_timeout, stop)
        try:
            while item := await asyncio.to_thread(next, iterator, None):
                yield item
        finally:
            stop.set()  # the thread that still waits ends within a second

    async def position(self) -> Position:
        """See `CheckpointStore.position`."""
        return await asyncio.to_thread(self._store.position)

    async def position_at(self, moment: datetime) -> Position:
        """See `CheckpointStore.position_at`."""
        return await asyncio.to_thread(self._store.position_at, moment)

    @property
    def log(self) -> Log:
        """See `CheckpointStore.log`."""
        return self._store.log

    @property
    def catalog(self) -> Catalog:
        """See `CheckpointStore.catalog`; its calls wait, so use `asyncio.to_thread`."""
        return self._store.catalog

    @property
    def keys(self) -> DataKeys | None:
        """See `CheckpointStore.keys`."""
        return self._store.keys

    async def announce(self, access: Access) -> None:
        """See `CheckpointStore.announce`."""

    # -- life -----------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """See `CheckpointStore.close`."""
        await asyncio.to_thread(self._store.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    # -- inside ---------------------------------------------------------------------------------------------------

    async def _propose(self, checkpoint: Checkpoint, expected: int | None, event_type: EventType = EventType.REVISION) -> Proposal:
        if self._store._proposes_at_once(checkpoint):
            return self._store._propose(checkpoint, expected, event_type)
        return await asyncio.to_thread(self._store._propose, checkpoint, expected, event_type)

    def _append(self, proposal: Proposal, timeout: float | None) -> asyncio.Future[Outcome]:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # another loop than before: what that one left behind will not be answered
            self._loop, self._flushing, self._waiting = loop, False, []
        waiting = _Waiting(proposal, self._store.timeout if timeout is None else timeout, loop.create_future(), perf_counter())
        self._waiting.append(waiting)
        self._flush_soon()
        return waiting.future

    def _flush_soon(self) -> None:
        if self._waiting and not self._flushing and self._loop is not None:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Hands over what has been proposed since the last time; while the log keeps a thread waiting, more may gather."""
        timeout = self._waiting[0].timeout
        waiting = [each for each in self._waiting if each.timeout == timeout]
        self._waiting = [each for each in self._waiting if each.timeout != timeout]
        proposals = [each.proposal for each in waiting]
        loop = self._loop
        assert loop is not None

        def answered(outcomes: Sequence[Outcome]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile: nobody waits
                loop.call_soon_threadsafe(self._answer, waiting, outcomes)

        try:
            at_once = self._log.append_at_once(proposals)
            if at_once is not None:
                self._answer(waiting, at_once)
            elif not self._log.append_later(proposals, timeout=timeout, done=answered):
                in_thread = loop.create_task(asyncio.to_thread(self._log.append, proposals, timeout=timeout))
                in_thread.add_done_callback(lambda task: self._flushed(waiting, task))
                return
        except CheckpointError as error:
            self._answer(waiting, [error] * len(waiting))
        except BaseException as error:
            _fail(waiting, error)
            self._flushed_once()
            raise
        self._flushed_once()

    def _flushed(self, waiting: Sequence[_Waiting], task: asyncio.Task[Sequence[Outcome]]) -> None:
        if task.cancelled():
            _fail(waiting, asyncio.CancelledError())
        elif (failure := task.exception()) is not None:
            _fail(waiting, failure)
        else:
            self._answer(waiting, task.result())
        self._flushed_once()

    def _answer(self, waiting: Sequence[_Waiting], outcomes: Sequence[Outcome]) -> None:
        now = perf_counter()
        for each, outcome in zip(waiting, outcomes, strict=True):
            self.metrics.answered(outcome, each.proposal.draft, now - each.since)
            if not each.future.done():  # its caller may have been cancelled
                each.future.set_result(outcome)

    def _flushed_once(self) -> None:
        self._flushing = False
        self._flush_soon()


class _Waiting(NamedTuple):
    """One caller of this loop."""

    proposal: Proposal
    timeout: float
    future: asyncio.Future[Outcome]
    since: float  # by the performance counter


def _fail(waiting: Sequence[_Waiting], failure: BaseException) -> None:
    for each in waiting:
        if each.future.done():
            continue
        if isinstance(failure, asyncio.CancelledError):
            each.future.cancel()
        else:
            each.future.set_exception(failure)


def _receipt(outcome: Outcome) -> Receipt:
    if isinstance(outcome, CheckpointError):
        raise outcome
    return outcome


def _take(iterator: Iterator[Item], count: int) -> list[Item]:
    return [item for _, item in zip(range(count), iterator, strict=False)]
