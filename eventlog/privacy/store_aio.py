"""`PrincipalStore` for asyncio: what waits for the access log does so in a thread, for all callers of the loop together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from eventlog.aio import AsyncCheckpointStore
from eventlog.checkpoint import Checkpoint, Receipt
from eventlog.errors import AccessDenied, AuditUnavailable, CheckpointError
from eventlog.ids import CheckpointId
from eventlog.position import Position
from eventlog.privacy.access_event import AccessEvent
from eventlog.privacy.access_log import AccessMode
from eventlog.privacy.guard import Access
from eventlog.privacy.principals import Operation, Principal, granted
from eventlog.privacy.store import PrincipalStore, proposed

Result = TypeVar("Result")


class AsyncPrincipalStore(AsyncCheckpointStore):
    """See `PrincipalStore`. Everything that is not here goes through it in a thread, and is guarded there."""

    def __init__(self, store: PrincipalStore) -> None:
        super().__init__(store)
        self.principal = store.principal
        self._guarded = store
        self._at_once = store.recorder is None or store.recorder.mode is AccessMode.BUFFERED
        self._unrecorded: list[tuple[Sequence[AccessEvent], asyncio.Future[None]]] = []
        self._recording: asyncio.Task[None] | None = None

    def for_principal(self, principal: Principal, *, reason: str | None = None) -> AsyncPrincipalStore:
        """See `CheckpointStore.for_principal`."""
        return AsyncPrincipalStore(self._guarded.for_principal(principal, reason=reason))

    async def compare_and_swap(self, checkpoint: Checkpoint, expected: int | None, *, timeout: float | None = None) -> Receipt:
        """See `CheckpointStore.compare_and_swap`."""
        access = proposed(Operation.COMPARE_AND_SWAP, checkpoint)
        return await self._writing(access, lambda: super(AsyncPrincipalStore, self).compare_and_swap(checkpoint, expected, timeout=timeout))

    async def import_revision(self, checkpoint: Checkpoint, *, timeout: float | None = None) -> Receipt:
        """See `CheckpointStore.import_revision`."""
        access = proposed(Operation.IMPORT, checkpoint)
        return await self._writing(access, lambda: super(AsyncPrincipalStore, self).import_revision(checkpoint, timeout=timeout))

    async def migrate_revision(self, checkpoint: Checkpoint, expected: int, *, timeout: float | None = None) -> Receipt:
        """See `CheckpointStore.migrate_revision`."""
        access = proposed(Operation.MIGRATE, checkpoint)
        return await self._writing(access, lambda: super(AsyncPrincipalStore, self).migrate_revision(checkpoint, expected, timeout=timeout))

    async def compare_and_swap_many(
        self, revisions: Iterable[tuple[Checkpoint, int | None]], *, timeout: float | None = None
    ) -> list[Receipt | CheckpointError]:
        """See `PrincipalStore.compare_and_swap_many`."""
        return await asyncio.to_thread(self._guarded.compare_and_swap_many, revisions, timeout=timeout)

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
            return await asyncio.to_thread(self._guarded.load, checkpoint_id, revision=revision, at=at, at_least=at_least)
        identity, guard = CheckpointId(checkpoint_id), self._guarded.guard
        access = Access(Operation.LOAD, identity, revision)
        await self._grant(access)
        try:
            found = self._guarded.unrecorded_load(identity, revision=revision, at=at, at_least=at_least)
        except CheckpointError as error:
            await self._record([guard.failure(access, error)])
            raise
        access.revision, access.tenant = found.revision, found.tenant
        await self._record([guard.event(access)])
        return found

    async def announce(self, access: Access) -> None:
        """See `CheckpointStore.announce`."""
        await self._grant(access)
        await self._record([self._guarded.guard.event(access)])

    async def _writing(self, access: Access, write: Callable[[], Awaitable[Result]]) -> Result:
        guard = self._guarded.guard
        await self._grant(access)
        await self._record([guard.event(access)])
        try:
            return await write()
        except BaseException as error:
            with contextlib.suppress(AuditUnavailable):  # as `AccessGuard.writing`
                await asyncio.shield(self._record([guard.failure(access, error)]))
            raise

    async def _grant(self, access: Access) -> None:
        guard = self._guarded.guard
        try:
            granted(access.operation, guard.principal)
        except AccessDenied as error:
            await self._record([guard.failure(access, error)])
            raise

    async def _record(self, events: Sequence[AccessEvent]) -> None:
        """What several callers record in one iteration of the loop, or while a record is being written, goes together."""
        if self._at_once:
            self._guarded.guard.record(events)
            return
        recorded = asyncio.get_running_loop().create_future()
        self._unrecorded.append((events, recorded))
        if self._recording is None or self._recording.done():
            self._recording = asyncio.get_running_loop().create_task(self._record_together())
        await recorded

    async def _record_together(self) -> None:
        while self._unrecorded:
            waiting, self._unrecorded = self._unrecorded, []
            try:
                await asyncio.to_thread(self._guarded.guard.record, [event for events, _ in waiting for event in events])
            except BaseException as error:
                for _, recorded in waiting:
                    if isinstance(error, asyncio.CancelledError):
                        recorded.cancel()
                    elif not recorded.done():
                        recorded.set_exception(error)
                if not isinstance(error, CheckpointError):
                    raise
            else:
                for _, recorded in waiting:
                    if not recorded.done():
                        recorded.set_result(None)
