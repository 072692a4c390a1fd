"""A store as one principal has it: the same interface, their tenant, their roles, and every access on record."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from eventlog.catalog import Page
from eventlog.checkpoint import MAX_REASON, Checkpoint, Receipt, check_text
from eventlog.errors import CheckpointError, InvalidRequest
from eventlog.ids import CheckpointId, EventId
from eventlog.log import Log
from eventlog.position import Position
from eventlog.privacy.access_event import AccessOutcome
from eventlog.privacy.catalog import GuardedCatalog
from eventlog.privacy.data_keys import DataKeys
from eventlog.privacy.guard import Access, AccessGuard, known_id
from eventlog.privacy.principals import Grant, Operation, Principal, grant
from eventlog.revision import Gap, Revision
from eventlog.store import CheckpointStore

if TYPE_CHECKING:
    from eventlog.catalog import Catalog

Item = TypeVar("Item", Revision, Revision | Gap)

# What is recorded, and then handed out, at a time: of a history or a subscription.
_MOST_AT_ONCE, _MOST_BYTES_AT_ONCE = 100, 8 << 20


class PrincipalStore(CheckpointStore):
    """Made by `CheckpointStore.for_principal`, and by `open_store` for a principal or for a store that records accesses.

    Arguments:
        whole: the store without any limit.
        tenant: what a local user wants to see, who may see everything.
        owns: whether closing this one closes the store.
    """

    def __init__(
        self, whole: CheckpointStore, principal: Principal, *, reason: str | None = None, tenant: str | None = None, owns: bool = False
    ) -> None:
        check_principal(principal)
        if reason is not None:
            check_text("reason", reason, MAX_REASON)
        limit = principal.within(tenant).tenant
        catalog = whole._catalog.limited(limit)
        super().__init__(
            log=whole._log,
            catalog=catalog,
            tenant=limit,
            actor=principal.subject,
            timeout=whole.timeout,
            keys=whole._keys,
            bodies=whole._bodies,
            recorder=whole.recorder,
            shares=True,
            erased=whole._erased,
        )
        self.principal = principal
        self.guard = AccessGuard(principal=principal, recorder=whole.recorder, reason=reason)
        self._withholds = grant(Operation.LOAD_REVISION, principal.roles) is Grant.METADATA
        self._reader = whole._reader.limited(limit, withholds=self._withholds)
        self._guarded_catalog = GuardedCatalog(catalog, self.guard, self._reader)
        self._whole = whole
        self._owns = owns

    def for_principal(self, principal: Principal, *, reason: str | None = None) -> PrincipalStore:
        """See `CheckpointStore.for_principal`; only an admin may act for others."""
        self.guard.grant(Access(Operation.ACT_FOR))
        check_principal(principal)
        return PrincipalStore(self._whole, principal.within(self.tenant), reason=reason)

    # -- writing --------------------------------------------------------------------------------------------------

    def compare_and_swap(self, checkpoint: Checkpoint, expected: int | None, *, timeout: float | None = None) -> Receipt:
        """See `CheckpointStore.compare_and_swap`."""
        with self.guard.writing(proposed(Operation.COMPARE_AND_SWAP, checkpoint)):
            return super().compare_and_swap(checkpoint, expected, timeout=timeout)

    def compare_and_swap_many(
        self, revisions: Iterable[tuple[Checkpoint, int | None]], *, timeout: float | None = None
    ) -> list[Receipt | CheckpointError]:
        """See `CheckpointStore.compare_and_swap_many`. Each revision is an access of its own."""
        given = list(revisions)
        accesses = [proposed(Operation.COMPARE_AND_SWAP, checkpoint) for checkpoint, _ in given]
        self.guard.grant(accesses[0] if accesses else Access(Operation.COMPARE_AND_SWAP))
        self.guard.record([self.guard.event(access) for access in accesses])
        outcomes = super().compare_and_swap_many(given, timeout=timeout)
        failed = [
            self.guard.failure(access, outcome)
            for access, outcome in zip(accesses, outcomes, strict=True)
            if isinstance(outcome, CheckpointError)
        ]
        with contextlib.suppress(CheckpointError):  # as for one: that they were tried is on record
            self.guard.record(failed)
        return outcomes

    def delete(
        self,
        checkpoint_id: CheckpointId | UUID | str,
        expected: int,
        *,
        event_id: EventId | UUID | str | None = None,
        timeout: float | None = None,
    ) -> Receipt:
        """See `CheckpointStore.delete`."""
        identity = CheckpointId(checkpoint_id)
        revision = expected + 1 if type(expected) is int else None
        with self.guard.writing(Access(Operation.DELETE, identity, revision, event_id=known_id(event_id))):
            return super().delete(identity, expected, event_id=event_id, timeout=timeout)

    def import_revision(self, checkpoint: Checkpoint, *, timeout: float | None = None) -> Receipt:
        """See `CheckpointStore.import_revision`."""
        with self.guard.writing(proposed(Operation.IMPORT, checkpoint)):
            return super().import_revision(checkpoint, timeout=timeout)

    def migrate_revision(self, checkpoint: Checkpoint, expected: int, *, timeout: float | None = None) -> Receipt:
        """See `CheckpointStore.migrate_revision`."""
        with self.guard.writing(proposed(Operation.MIGRATE, checkpoint)):
            return super().migrate_revision(checkpoint, expected, timeout=timeout)

    def resolve(self, event: EventId | UUID | str | Checkpoint, *, timeout: float | None = None) -> Receipt | None:
        """See `CheckpointStore.resolve`."""
        asked = proposed(Operation.RESOLVE, event) if isinstance(event, Checkpoint) else Access(Operation.RESOLVE, event_id=known_id(event))
        with self.guard.reading(asked) as access:
            receipt = super().resolve(event, timeout=timeout)
            if receipt is None:
                access.outcome = AccessOutcome.ABSENT
            else:
                access.revision, access.position = receipt.revision, str(receipt.position)
        return receipt

    # -- reading --------------------------------------------------------------------------------------------------

    def load(
        self,
        checkpoint_id: CheckpointId | UUID | str,
        *,
        revision: int | None = None,
        at: Position | datetime | None = None,
        at_least: Position | None = None,
    ) -> Checkpoint:
        """See `CheckpointStore.load`."""
        identity = CheckpointId(checkpoint_id)
        with self.guard.reading(Access(Operation.LOAD, identity, revision)) as access:
            found = super().load(identity, revision=revision, at=at, at_least=at_least)
            access.revision, access.tenant = found.revision, found.tenant
        return found

    def unrecorded_load(
        self, identity: CheckpointId, *, revision: int | None, at: Position | datetime | None, at_least: Position | None
    ) -> Checkpoint:
        """For the asyncio store, which decides and records by itself, without holding its loop."""
        return super().load(identity, revision=revision, at=at, at_least=at_least)

    def load_revision(
        self, checkpoint_id: CheckpointId | UUID | str, *, revision: int | None = None, at: Position | datetime | None = None
    ) -> Revision:
        """See `CheckpointStore.load_revision`."""
        identity = CheckpointId(checkpoint_id)
        with self.guard.reading(Access(Operation.LOAD_REVISION, identity, revision)) as access:
            found = super().load_revision(identity, revision=revision, at=at)
            access.revision, access.tenant = found.checkpoint.revision, found.checkpoint.tenant
            access.position = None if found.as_of is None else str(found.as_of)
        return found

    def history(
        self, checkpoint_id: CheckpointId | UUID | str, *, after: int = -1, at: Position | datetime | None = None, limit: int | None = None
    ) -> Iterator[Revision | Gap]:
        """See `CheckpointStore.history`. Recorded when it is asked for, and then with every stretch that is handed out."""
        identity = CheckpointId(checkpoint_id)
        with self.guard.reading(Access(Operation.HISTORY, identity)):
            found = super().history(identity, after=after, at=at, limit=limit)
        return self._recorded_history(identity, found)

    def list(
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
        with self.guard.reading(Access(Operation.LIST, tenant=self.tenant if tenant is None else tenant)) as access:
            page = super().list(
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
            access.items, access.position = len(page.items), str(page.position)
        return page

    def position(self) -> Position:
        """See `CheckpointStore.position`. Not recorded: it tells nothing of any checkpoint."""
        self.guard.grant(Access(Operation.POSITION))
        return super().position()

    def position_at(self, moment: datetime) -> Position:
        """See `CheckpointStore.position_at`. Not recorded, as `position`."""
        self.guard.grant(Access(Operation.POSITION))
        return super().position_at(moment)

    # -- the whole store ------------------------------------------------------------------------------------------

    @property
    def log(self) -> Log:
        """See `CheckpointStore.log`. For whoever may have the internals; what is done with them is recorded by `entrusted`."""
        self.guard.grant(Access(Operation.INTERNALS))
        return self._log

    @property
    def catalog(self) -> Catalog:
        """See `CheckpointStore.catalog`: as far as the roles go, and recorded."""
        return self._guarded_catalog

    @property
    def keys(self) -> DataKeys | None:
        """See `CheckpointStore.keys`. For whoever may have the keys, each time on record; what others do with them goes by `entrusted`."""
        with self.guard.reading(Access(Operation.KEYS)):
            return self._keys

    def require_payloads(self) -> None:
        """See `CheckpointStore.require_payloads`."""
        if self._withholds:
            self.guard.grant(Access(Operation.LOAD))

    @contextlib.contextmanager
    def entrusted(self, operation: Operation, access: Access | None = None, *, limited: bool = False) -> Iterator[CheckpointStore]:
        """See `CheckpointStore.entrusted`."""
        with self.guard.writing(Access(operation) if access is None else access):
            lent = CheckpointStore(
                log=self._log,
                catalog=self._whole._catalog.limited(self.tenant) if limited else self._whole._catalog,
                tenant=self.tenant if limited else None,
                actor=self.principal.subject,
                timeout=self.timeout,
                keys=self._keys,
                bodies=self._bodies,
                recorder=self.recorder,
                shares=True,
                erased=self._erased,
            )
            lent._reader = self._whole._reader.limited(lent.tenant, withholds=False)  # with the same memory, which an erasure clears
            yield lent

    def forget(self, *checkpoint_ids: str) -> None:
        """See `CheckpointStore.forget`. It takes nothing from anybody, and shows nothing."""
        super().forget(*checkpoint_ids)

    def announce(self, access: Access) -> None:
        """See `CheckpointStore.announce`."""
        self.guard.grant(access)
        self.guard.record([self.guard.event(access)])

    def close(self) -> None:
        """See `CheckpointStore.close`. One of several principals' stores only makes sure that what was recorded is durable."""
        if self._owns:
            self._whole.close()
        elif self.recorder is not None:
            self.recorder.flush()

    # -- inside ---------------------------------------------------------------------------------------------------

    def _subscribe(self, after: Position, idle_timeout: float | None, stop: threading.Event) -> Iterator[Revision]:
        self.guard.grant(Access(Operation.SUBSCRIBE))
        return self._recorded_news(after, idle_timeout, stop)

    def _recorded_history(self, identity: str, found: Iterator[Revision | Gap]) -> Iterator[Revision | Gap]:
        for some in _stretches(found):
            numbers = [each.checkpoint.revision for each in some if isinstance(each, Revision)]
            if numbers:
                revision = next(each for each in some if isinstance(each, Revision))
                access = Access(Operation.HISTORY, identity, numbers[0], numbers[-1], tenant=revision.checkpoint.tenant, items=len(numbers))
                self.guard.record([self.guard.event(access)])
            yield from some

    def _recorded_news(self, after: Position, idle_timeout: float | None, stop: threading.Event) -> Iterator[Revision]:
        """A record for each revision, so that it is known who got which; made durable together."""
        for batch in self._reader.news(after, idle_timeout, stop):
            for some in _stretches(batch):
                self.guard.record([self.guard.event(_handed_out(each)) for each in some])
                yield from some


def check_principal(given: object) -> None:
    """Raises `InvalidRequest` for anything else than a principal."""
    if not isinstance(given, Principal):
        raise InvalidRequest("principal", f"must be a Principal, not {type(given).__name__}")


def proposed(operation: Operation, checkpoint: Any) -> Access:
    """A write, as far as its argument is what it should be."""
    if not isinstance(checkpoint, Checkpoint):
        return Access(operation)
    return Access(
        operation,
        checkpoint.id,
        checkpoint.revision,
        event_id=checkpoint.event_id,
        tenant=checkpoint.tenant,
    )


def _handed_out(each: Revision) -> Access:
    one = each.checkpoint
    return Access(Operation.SUBSCRIBE, one.id, one.revision, event_id=one.event_id, tenant=one.tenant, items=1, position=str(each.position))


def _stretches(found: Iterator[Item]) -> Iterator[list[Item]]:
    """What is there, in stretches of bounded number and size."""
    some: list[Item] = []
    size = 0
    failure: CheckpointError | None = None
    while True:
        try:
            each = next(found)
        except StopIteration:
            break
        except CheckpointError as error:  # what comes before it is handed out first
            failure = error
            break
        some.append(each)
        size += each.payload_size if isinstance(each, Revision) else 0
        if len(some) >= _MOST_AT_ONCE or size >= _MOST_BYTES_AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some
    if failure is not None:
        raise failure
