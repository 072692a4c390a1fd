"""The checkpoint store: the same promises over every log."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Self
from uuid import UUID

from eventlog.archive.bodies import ArchivedBodies
from eventlog.catalog import Catalog, Page
from eventlog.checkpoint import LAST_REVISION, Checkpoint, Receipt, check_identity, to_millis
from eventlog.erasure.again import refuse_erased
from eventlog.erasure.register import Erased
from eventlog.errors import CheckpointError, InvalidRequest, SchemaMismatch
from eventlog.event import EventType
from eventlog.holds.deleting import Deleter, Deletion
from eventlog.holds.reserved import TENANT as RESERVED_TENANT
from eventlog.holds.reserved import ReservedStreams
from eventlog.ids import CheckpointId, EventId
from eventlog.log import Log, Outcome
from eventlog.metrics.collected import metrics_of
from eventlog.metrics.open_store import OpenStore
from eventlog.payload import COMPRESS_FROM
from eventlog.position import Position
from eventlog.privacy.data_keys import DataKeys, json_text_by
from eventlog.privacy.guard import Access
from eventlog.privacy.principals import Operation, Principal
from eventlog.privacy.recorder import AccessRecorder
from eventlog.proposing import propose
from eventlog.reading import RevisionReader
from eventlog.resolving import resolved
from eventlog.revision import Gap, Revision
from eventlog.rules import Proposal

if TYPE_CHECKING:
    from eventlog.privacy.store import PrincipalStore

DEFAULT_TIMEOUT = 30.0  # seconds


class CheckpointStore:
    """Commits, loads and lists checkpoints. Made by `open_store`; safe to share between threads, not across a fork.

    `tenant` limits everything to one tenant: ids of others do not exist. None sees all tenants.
    """

    def __init__(
        self,
        *,
        log: Log,
        catalog: Catalog,
        tenant: str | None,
        actor: str | None,
        timeout: float = DEFAULT_TIMEOUT,
        keys: DataKeys | None = None,
        bodies: ArchivedBodies | None = None,
        recorder: AccessRecorder | None = None,
        shares: bool = False,
        erased: Mapping[str, Erased] | None = None,
    ) -> None:
        check_identity(tenant, actor)
        self.tenant = tenant
        self.actor = actor
        self.timeout = timeout
        self.recorder = recorder  # of accesses; None: nothing is recorded
        self._log = log
        self._catalog = catalog
        self._keys = keys
        self._bodies = bodies
        self._erased = erased or {}  # ids that must not begin again even where a restored log does not know them
        self._compress_from = log.compress_from if keys is None else COMPRESS_FROM  # nothing can be compressed once it is sealed
        self._reader = RevisionReader(log=log, catalog=catalog, tenant=tenant, json_text=json_text_by(keys), bodies=bodies)
        self._deleter = Deleter(
            streams=ReservedStreams(log=log, keys=keys, actor=actor, timeout=timeout),
            tenant=tenant,
            propose=partial(self._propose, event_type=EventType.DELETED),
            append=self._append,
        )
        self.metrics = metrics_of(log.kind)
        self._watched = OpenStore(log, catalog)
        if not shares:  # otherwise its parts are another store's, which reports them
            self._watched.opened()

    def for_principal(self, principal: Principal, *, reason: str | None = None) -> PrincipalStore:
        """The same store as a principal has it: limited to their tenant and roles, every access on record. The actor is the subject.

        It shares files, connections and memory with this one, which has to stay open, and closing it closes nothing. What the roles do not
        allow is refused with `AccessDenied`; for whoever may see metadata only, `load_revision`, `history` and `subscribe` give
        `PAYLOAD_WITHHELD` in the place of payloads. docs/privacy.md has the table of roles. `reason`, up to 1,000 characters, says why in
        every record. Raises `InvalidRequest` (another tenant than this store's), and `AccessDenied` where this store is that of a principal
        who is no admin.
        """
        from eventlog.privacy.store import PrincipalStore, check_principal  # it is one of these itself

        check_principal(principal)
        return PrincipalStore(self, principal.within(self.tenant), reason=reason)

    # -- writing --------------------------------------------------------------------------------------------------

    def compare_and_swap(self, checkpoint: Checkpoint, expected: int | None, *, timeout: float | None = None) -> Receipt:
        """Commits a revision if `expected` is the current one (None: if the checkpoint does not exist yet).

        Arguments:
            checkpoint: revision 0 where `expected` is None, otherwise `expected + 1`, as `next()` builds it.
            expected: the revision that it follows.
            timeout: seconds to wait for the outcome; the store's default when None.

        Returns a `Receipt` once the revision is durable; the original one, with `duplicate`, when this event was committed before.
        Raises `Conflict` (another writer won; `actual` says where the checkpoint is), `NotFound`, `Deleted`, `OutcomeUnknown`,
        `InvalidRequest`, `InvalidPayload`, `TooLarge`, `EventIdReused`, `Quarantined`, `Overloaded`, `Unavailable` or `StorageError`.
        """
        return self._commit(self._propose(checkpoint, expected), timeout)

    def compare_and_swap_many(
        self, revisions: Iterable[tuple[Checkpoint, int | None]], *, timeout: float | None = None
    ) -> list[Receipt | CheckpointError]:
        """Commits independent revisions in as few durable writes as possible: one outcome each, in order, none raised.

        They are not a transaction: each stands for itself. One that is malformed is an outcome too; the others are written.
        Raises `InvalidRequest` for an empty list.
        """
        outcomes: list[Outcome | None] = []
        proposals: list[Proposal] = []
        for checkpoint, expected in revisions:
            try:
                proposals.append(self._propose(checkpoint, expected))
                outcomes.append(None)
            except CheckpointError as error:
                outcomes.append(error)
        if not outcomes:
            raise InvalidRequest("revisions", "is empty")
        committed = iter(self._append(proposals, self._timeout(timeout)) if proposals else ())
        return [next(committed) if outcome is None else outcome for outcome in outcomes]

    def delete(
        self,
        checkpoint_id: CheckpointId | UUID | str,
        expected: int,
        *,
        event_id: EventId | UUID | str | None = None,
        timeout: float | None = None,
    ) -> Receipt:
        """Ends a checkpoint by a DELETED event behind revision `expected`. Its id never starts again; its history stays readable.

        Pass the `event_id` of an earlier attempt to make a retry safe. Raises `HeldByLegalHold` (that it was wanted is remembered, and
        nothing else was written), and as `compare_and_swap` does.
        """
        if type(expected) is not int or not 0 <= expected < LAST_REVISION:
            raise InvalidRequest("expected", f"{expected!r} is not a revision that another can follow (0 to 2^63-2)")
        wanted = Deletion(CheckpointId(checkpoint_id), expected, None if event_id is None else EventId(event_id))
        outcome = self._deleter.delete([wanted], timeout=self._timeout(timeout))[0]
        if isinstance(outcome, CheckpointError):
            raise outcome
        return outcome

    def import_revision(self, checkpoint: Checkpoint, *, timeout: float | None = None) -> Receipt:
        """Starts a checkpoint at another store's latest revision, whatever its number. Idempotent by event id.

        Raises `Conflict` when the checkpoint exists, and as `compare_and_swap` does.
        """
        return self._commit(self._propose(checkpoint, None, EventType.IMPORTED), timeout)

    def migrate_revision(self, checkpoint: Checkpoint, expected: int, *, timeout: float | None = None) -> Receipt:
        """Commits a successor that may change kind and schema version, as a MIGRATED event. In all else it is `compare_and_swap`.

        Arguments:
            checkpoint: `loaded.next(payload).model_copy(update={"kind": ..., "schema_version": ...})`, in short. Nothing looks at whether
                the payload is what these demand: `eventlog.recovery.Migrations` does.
            expected: the revision that it follows; a checkpoint does not begin with a migration.

        Raises as `compare_and_swap` does.
        """
        return self._commit(self._propose(checkpoint, expected, EventType.MIGRATED), timeout)

    def resolve(self, event: EventId | UUID | str | Checkpoint, *, timeout: float | None = None) -> Receipt | None:
        """What became of an event whose outcome was unclear: its receipt, or None when it is not in the log and never will be.

        Answers from the log, never from a guess; raises `OutcomeUnknown` while the log cannot be asked. A `Checkpoint` is found
        by its place; an event id alone has to be searched for, newest first. Of what compaction has removed nothing is known any more:
        that is `OutcomeUnknown` too.
        """
        self._log.settle(event.id if isinstance(event, Checkpoint) else None, self._timeout(timeout))
        return resolved(event, log=self._log, catalog=self._catalog, reader=self._reader)

    # -- reading --------------------------------------------------------------------------------------------------

    def load(
        self,
        checkpoint_id: CheckpointId | UUID | str,
        *,
        revision: int | None = None,
        at: Position | datetime | None = None,
        at_least: Position | None = None,
    ) -> Checkpoint:
        """A checkpoint: its latest revision, a certain one, or the one that was current at a position or time.

        Arguments:
            revision: its number.
            at: a `Position`, or a time (with time zone) of the log's clock; `load_revision` tells the position it was resolved to.
            at_least: instead of a barrier, be content with what this process has seen once it has seen this position
                (`Position()`: whatever it has seen, its own writes included).

        Raises `NotFound` (also for another tenant's id), `Deleted`, `HistoryRemoved`, `InvalidRequest`.
        """
        try:
            return self._reader.load(CheckpointId(checkpoint_id), revision=revision, at=at, at_least=at_least)
        except SchemaMismatch:
            self.metrics.mismatched("event")
            raise

    def load_revision(
        self, checkpoint_id: CheckpointId | UUID | str, *, revision: int | None = None, at: Position | datetime | None = None
    ) -> Revision:
        """As `load`, with how the revision came into the log: type, actor, time, position, hash. A deletion is a revision too."""
        try:
            return self._reader.load_revision(CheckpointId(checkpoint_id), revision=revision, at=at)
        except SchemaMismatch:
            self.metrics.mismatched("event")
            raise

    def history(
        self, checkpoint_id: CheckpointId | UUID | str, *, after: int = -1, at: Position | datetime | None = None, limit: int | None = None
    ) -> Iterator[Revision | Gap]:
        """Every revision of a checkpoint behind revision `after`, oldest first, as of now or of a past position or time.

        Revisions that the log no longer holds come as a `Gap` in their place. Raises `NotFound`, also for another tenant's id.
        """
        return self._reader.history(CheckpointId(checkpoint_id), after=after, at=at, limit=limit)

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
        """A page of checkpoints without their payloads, in the order of their ids. All filters given must match.

        Arguments:
            older_than, newer_than: of the latest revision, by the log's clock.
            at: list the past; pass the page's `position` to have all pages of one moment.
            after: the `next` of the page before.
            limit: 1 to 1000.
        """
        if self.tenant is not None:
            if tenant is not None and tenant != self.tenant:
                return Page((), None, self.position() if at is None else self._reader.position(at))
            tenant = self.tenant
        return self._catalog.list(
            tenant=tenant,
            kind=kind,
            phase=phase,
            labels=labels,
            run_id=run_id,
            older_than=None if older_than is None else to_millis(older_than, "older_than"),
            newer_than=None if newer_than is None else to_millis(newer_than, "newer_than"),
            include_deleted=include_deleted,
            at=None if at is None else self._reader.position(at),
            after=after,
            limit=limit,
        )

    def subscribe(self, after: Position, *, idle_timeout: float | None = None) -> Iterator[Revision]:
        """Every revision behind a position as it is committed, in the log's order (per partition), for ever.

        `Position()` starts at the beginning, `store.position()` now. `idle_timeout` ends it after so many seconds without news.
        """
        return self._subscribe(after, idle_timeout, threading.Event())

    def _subscribe(self, after: Position, idle_timeout: float | None, stop: threading.Event) -> Iterator[Revision]:
        return self._reader.subscribe(after, idle_timeout, stop)

    def position(self) -> Position:
        """The log's end: everything acknowledged before this call lies before it."""
        return self._log.end()

    def position_at(self, moment: datetime) -> Position:
        """Just behind the last event that was recorded up to a time, by the log's own clock."""
        return self._log.position_at(to_millis(moment))

    @property
    def log(self) -> Log:
        """The log itself: for verification, operations and tests. Appending to it past the store forgoes the store's checks."""
        return self._log

    @property
    def catalog(self) -> Catalog:
        """Reports, SQL, verification and rebuild: what is answered by the projection."""
        return self._catalog

    def require_payloads(self) -> None:
        """Raises `AccessDenied` where this store withholds payloads: for whoever has nothing to show without one."""

    @contextlib.contextmanager
    def entrusted(self, operation: Operation, access: Access | None = None, *, limited: bool = False) -> Iterator[CheckpointStore]:  # noqa: ARG002
        """Lends the store without any limit for an operation on the whole of it, if the principal may do that; it is on record by then.

        For this package. `access` says more about it, for the record. `limited`: to the tenant that this store is opened for, so that
        whoever looks after one tenant may do it too. Raises `AccessDenied` or `AuditUnavailable`.
        """
        yield self

    def announce(self, access: Access) -> None:
        """For migrations and recovery: puts on record, if the principal may do it, what consists of several calls, each recorded by itself.
        Raises `AccessDenied` or `AuditUnavailable`.
        """

    @property
    def keys(self) -> DataKeys | None:
        """The data keys of an encrypted store; None where payloads are in clear text."""
        return self._keys

    def forget(self, *checkpoint_ids: str) -> None:
        """Lets go of payloads and data keys that this store keeps in memory: after an erasure."""
        for checkpoint_id in checkpoint_ids:
            self._reader.forget(checkpoint_id)
            if self._keys is not None:
                self._keys.cache.forget(checkpoint_id)

    # -- life -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Waits for what is under way, then lets go of every file, connection, thread and key. Closing twice is harmless."""
        with self._watched.closing(), contextlib.ExitStack() as parts:  # each, whatever becomes of the others; the last one first
            if self._keys is not None:
                parts.callback(self._keys.close)
            if self.recorder is not None:
                parts.callback(self.recorder.close)
            parts.callback(self._log.close)
            parts.callback(self._catalog.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # -- inside ---------------------------------------------------------------------------------------------------

    def _propose(self, checkpoint: Checkpoint, expected: int | None, event_type: EventType = EventType.REVISION) -> Proposal:
        if event_type is EventType.MIGRATED and type(expected) is not int:
            raise InvalidRequest("expected", f"{expected!r} is not a revision: only what exists is migrated")
        if self.tenant is not None and isinstance(checkpoint, Checkpoint) and checkpoint.tenant != self.tenant:
            raise InvalidRequest("tenant", f"is {checkpoint.tenant} where this store is opened for {self.tenant}")
        if event_type is not EventType.DELETED and isinstance(checkpoint, Checkpoint) and checkpoint.tenant == RESERVED_TENANT:
            raise InvalidRequest("tenant", f"{RESERVED_TENANT} is the store's own, for legal holds", hint="Use another tenant.")
        refuse_erased(self._log, self._erased, checkpoint, expected)
        return propose(
            checkpoint,
            expected,
            actor=self.actor,
            max_event_bytes=self._log.max_event_bytes,
            compress_from=self._compress_from,
            event_type=event_type,
            keys=self._keys,
        )

    def _proposes_at_once(self, checkpoint: Checkpoint) -> bool:
        """Whether `_propose` waits for nothing: not for a key to be made, found or unwrapped."""
        return self._keys is None or not isinstance(checkpoint, Checkpoint) or self._keys.is_at_hand(checkpoint.id)

    def _append(self, proposals: Sequence[Proposal], timeout: float) -> Sequence[Outcome]:
        begun = perf_counter()
        answers = self._log.append(proposals, timeout=timeout)
        seconds = perf_counter() - begun
        for proposal, answer in zip(proposals, answers, strict=True):
            self.metrics.answered(answer, proposal.draft, seconds)
        return answers

    def _commit(self, proposal: Proposal, timeout: float | None) -> Receipt:
        outcome = self._append((proposal,), self._timeout(timeout))[0]
        if isinstance(outcome, CheckpointError):
            raise outcome
        return outcome

    def _timeout(self, timeout: float | None) -> float:
        return self.timeout if timeout is None else timeout
