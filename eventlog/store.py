"""The checkpoint store: the same promises over every log."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import NamedTuple, Self
from uuid import UUID

from eventlog.catalog import Catalog, Page
from eventlog.checkpoint import LAST_REVISION, MAX_TENANT, Checkpoint, Receipt, check_name, check_text, to_millis
from eventlog.codec import decode, decode_header
from eventlog.errors import CheckpointError, Deleted, HistoryRemoved, InvalidRequest, NotFound, OutcomeUnknown
from eventlog.event import EventHeader, EventType, to_checkpoint
from eventlog.head_cache import LeastRecentlyUsed
from eventlog.ids import CheckpointId, EventId
from eventlog.log import Log, Outcome, Record
from eventlog.position import Position
from eventlog.proposing import propose
from eventlog.retry import receipt
from eventlog.revision import Gap, Revision, read_revision
from eventlog.rules import Proposal

DEFAULT_TIMEOUT = 30.0  # seconds
MAX_ACTOR = 200
_HOT_BYTES = 64 << 20
_HOT_ENTRIES = 10_000
_HISTORY_ROWS = 200  # revisions of one query; 200 of 200 KB are about 6 MB as stored
_SUBSCRIBE_SECONDS = 1.0  # how long one wait for news lasts before it is asked again whether the store is still open

_NOTHING = Position()


class _Hot(NamedTuple):
    """What a load needs of a revision, decoded but for the payload's JSON: every caller gets a payload of its own."""

    offset: int
    header: EventHeader
    text: bytes


class CheckpointStore:
    """Commits, loads and lists checkpoints. Made by `open_store`; safe to share between threads, not across a fork.

    `tenant` limits everything to one tenant: ids of others do not exist. None sees all tenants.
    """

    def __init__(self, *, log: Log, catalog: Catalog, tenant: str | None, actor: str | None, timeout: float = DEFAULT_TIMEOUT) -> None:
        check_identity(tenant, actor)
        self.tenant = tenant
        self.actor = actor
        self.timeout = timeout
        self._log = log
        self._catalog = catalog
        self._hot = LeastRecentlyUsed[_Hot](entries=_HOT_ENTRIES, weight=_HOT_BYTES)

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
        committed = iter(self._log.append(proposals, timeout=self._timeout(timeout)) if proposals else ())
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

        Pass the `event_id` of an earlier attempt to make a retry safe. Raises as `compare_and_swap` does.
        """
        if type(expected) is not int or not 0 <= expected < LAST_REVISION:
            raise InvalidRequest("expected", f"{expected!r} is not a revision that another can follow (0 to 2^63-2)")
        current = self._latest(CheckpointId(checkpoint_id))
        if current is None:
            raise NotFound(CheckpointId(checkpoint_id))
        header, _ = decode_header(_event(current))
        last = to_checkpoint(header, b"null")
        tombstone = last.model_copy(update={"revision": expected}).next(None, phase=last.phase, event_id=event_id)
        return self._commit(self._propose(tombstone, expected, EventType.DELETED), timeout)

    def import_revision(self, checkpoint: Checkpoint, *, timeout: float | None = None) -> Receipt:
        """Starts a checkpoint at another store's latest revision, whatever its number. Idempotent by event id.

        Raises `Conflict` when the checkpoint exists, and as `compare_and_swap` does.
        """
        return self._commit(self._propose(checkpoint, None, EventType.IMPORTED), timeout)

    def resolve(self, event: EventId | UUID | str | Checkpoint, *, timeout: float | None = None) -> Receipt | None:
        """What became of an event whose outcome was unclear: its receipt, or None when it is not in the log and never will be.

        Answers from the log, never from a guess; raises `OutcomeUnknown` while the log cannot be asked. A `Checkpoint` is found
        by its place; an event id alone has to be searched for, newest first.
        """
        self._log.settle(event.id if isinstance(event, Checkpoint) else None, self._timeout(timeout))
        if isinstance(event, Checkpoint):
            event_id: str = event.event_id
            if self._latest(event.id) is None:
                return None
            record = self._log.revision(event.id, event.revision)
            if record is None and self._gap(event.id, event.revision) is not None:
                raise OutcomeUnknown(event.id, event_id=event_id, reason=f"revision {event.revision} was removed from the log")
        else:
            event_id = EventId(event)
            record = self._log.by_event_id(event_id)
        if record is None:
            return None
        header, _ = decode_header(_event(record))
        if header.event_id != event_id or not self._visible(header.tenant):
            return None
        return receipt(header, record)

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
        identity = CheckpointId(checkpoint_id)
        if revision is not None or at is not None:
            return self._refuse_deleted(self.load_revision(identity, revision=revision, at=at)).checkpoint
        place = self._log.place(identity, at_least=at_least)
        if place is None:
            raise NotFound(identity)
        hot = self._hot.get(identity)
        if hot is None or hot.offset != place[1]:
            hot = self._warm(identity)
        header = hot.header
        if self.tenant is not None and header.tenant != self.tenant:
            raise NotFound(identity)
        if header.type == EventType.DELETED:
            raise Deleted(identity, last_revision=header.revision)
        return to_checkpoint(header, hot.text)

    def load_revision(
        self, checkpoint_id: CheckpointId | UUID | str, *, revision: int | None = None, at: Position | datetime | None = None
    ) -> Revision:
        """As `load`, with how the revision came into the log: type, actor, time, position, hash. A deletion is a revision too."""
        identity = CheckpointId(checkpoint_id)
        if revision is not None and at is not None:
            raise InvalidRequest("revision", "cannot be given together with at")
        if revision is not None and (type(revision) is not int or not 0 <= revision < 2**63):
            raise InvalidRequest("revision", f"{revision!r} is not within 0 to 2^63-1")
        as_of = None if at is None else self._position(at)
        if self._log.place(identity, at_least=None) is None:
            raise NotFound(identity, revision=revision)
        if as_of is not None:
            record = self._log.as_of(identity, as_of)
        elif revision is not None:
            record = self._log.revision(identity, revision)
        else:
            record = self._log.latest(identity)
        if record is None:
            if self.tenant is not None and self._latest(identity) is None:
                raise NotFound(identity, revision=revision)  # of another tenant: nothing more is told
            gap = None if revision is None else self._gap(identity, revision) or self._before_import(identity, revision)
            if gap is not None:
                raise HistoryRemoved(f"revision {revision} of checkpoint {identity}", reason=gap.reason)
            raise NotFound(identity, revision=revision, detail=None if as_of is None else f"it did not exist at {as_of}")
        if self.tenant is not None and decode_header(_event(record))[0].tenant != self.tenant:
            raise NotFound(identity, revision=revision)
        return read_revision(record, as_of)

    def history(
        self, checkpoint_id: CheckpointId | UUID | str, *, after: int = -1, at: Position | datetime | None = None, limit: int | None = None
    ) -> Iterator[Revision | Gap]:
        """Every revision of a checkpoint behind revision `after`, oldest first, as of now or of a past position or time.

        Revisions that the log no longer holds come as a `Gap` in their place. Raises `NotFound`, also for another tenant's id.
        """
        identity = CheckpointId(checkpoint_id)
        if type(after) is not int or not -1 <= after <= LAST_REVISION:
            raise InvalidRequest("after", f"{after!r} is not a revision, nor -1 for the beginning")
        if limit is not None and (type(limit) is not int or limit < 0):
            raise InvalidRequest("limit", f"{limit!r} is not a number of revisions")
        if self._latest(identity) is None:
            raise NotFound(identity)
        return self._history(identity, after, None if at is None else self._position(at), limit)

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
                return Page((), None, self.position() if at is None else self._position(at))
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
            at=None if at is None else self._position(at),
            after=after,
            limit=limit,
        )

    def subscribe(self, after: Position, *, idle_timeout: float | None = None) -> Iterator[Revision]:
        """Every revision behind a position as it is committed, in the log's order (per partition), for ever.

        `Position()` starts at the beginning, `store.position()` now. `idle_timeout` ends it after so many seconds without news.
        """
        return self._subscribe(after, idle_timeout, threading.Event())

    def _subscribe(self, after: Position, idle_timeout: float | None, stop: threading.Event) -> Iterator[Revision]:
        position = after
        while not stop.is_set():
            for records, reached in self._log.revisions(position):
                position = reached
                for record in records:
                    if record.value is not None and self._visible(decode_header(record.value)[0].tenant):
                        yield read_revision(record)
            if not self._await_news(position, idle_timeout, stop):
                return

    def position(self) -> Position:
        """The log's end: everything acknowledged before this call lies before it."""
        return self._log.end()

    def position_at(self, moment: datetime) -> Position:
        """Just behind the last event that was recorded up to a time, by the log's own clock."""
        return self._log.position_at(to_millis(moment))

    # -- reports --------------------------------------------------------------------------------------------------

    @property
    def log(self) -> Log:
        """The log itself: for verification, operations and tests. Appending to it past the store forgoes the store's checks."""
        return self._log

    @property
    def catalog(self) -> Catalog:
        """Reports, SQL, verification and rebuild: what is answered by the projection."""
        return self._catalog

    # -- life -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Waits for what is under way, then lets go of every file, connection and thread. Closing twice is harmless."""
        try:
            self._catalog.close()
        finally:
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # -- inside ---------------------------------------------------------------------------------------------------

    def _propose(self, checkpoint: Checkpoint, expected: int | None, event_type: EventType = EventType.REVISION) -> Proposal:
        proposal = propose(checkpoint, expected, actor=self.actor, max_event_bytes=self._log.max_event_bytes, event_type=event_type)
        if self.tenant is not None and proposal.tenant != self.tenant:
            raise InvalidRequest("tenant", f"is {proposal.tenant} where this store is opened for {self.tenant}")
        return proposal

    def _commit(self, proposal: Proposal, timeout: float | None) -> Receipt:
        outcome = self._log.append((proposal,), timeout=self._timeout(timeout))[0]
        if isinstance(outcome, CheckpointError):
            raise outcome
        return outcome

    def _timeout(self, timeout: float | None) -> float:
        return self.timeout if timeout is None else timeout

    def _visible(self, tenant: str) -> bool:
        return self.tenant is None or tenant == self.tenant

    def _latest(self, identity: CheckpointId) -> Record | None:
        """The latest revision, as of now, when this tenant may see it. It is not decoded unless that has to be found out."""
        if self._log.place(identity, at_least=None) is None:
            return None
        record = self._log.latest(identity)
        if record is None or self.tenant is None:
            return record
        return record if decode_header(_event(record))[0].tenant == self.tenant else None

    def _warm(self, identity: CheckpointId) -> _Hot:
        record = self._log.latest(identity)
        if record is None:
            raise NotFound(identity)
        event = decode(_event(record))
        text = b"null" if event.header.type == EventType.DELETED else event.json_text()
        hot = _Hot(record.offset, event.header, text)
        self._hot.put(identity, hot, len(text) + 2000)
        return hot

    def _position(self, at: Position | datetime) -> Position:
        """The cut that a caller asks for. One that lies behind the log's end is refused: nothing can be said about it yet."""
        if not isinstance(at, Position):
            return self._log.position_at(to_millis(at, "at"))
        end = self._log.end()
        if not end.covers(at):
            raise InvalidRequest("at", f"{at} lies behind the log's end, {end}")
        return at

    def _refuse_deleted(self, revision: Revision) -> Revision:
        if revision.type is EventType.DELETED:
            raise Deleted(revision.checkpoint.id, last_revision=revision.checkpoint.revision)
        return revision

    def _gap(self, identity: CheckpointId, revision: int) -> Gap | None:
        """The gap that a revision lies in."""
        gaps = self._catalog.gaps(identity) if self._catalog.keeps_gaps else ()
        return next((gap for gap in gaps if gap.first_revision <= revision <= gap.last_revision), None)

    def _before_import(self, identity: CheckpointId, revision: int) -> Gap | None:
        """What came before an import, which is in another store, if a revision belongs to it."""
        first = self._log.history(identity, after=-1, position=None, limit=1)
        header = decode_header(_event(first[0]))[0] if first else None
        if header is None or header.type != EventType.IMPORTED or revision >= header.revision:
            return None
        return Gap(identity, 0, header.revision - 1, "import")

    def _history(self, identity: CheckpointId, after: int, position: Position | None, limit: int | None) -> Iterator[Revision | Gap]:
        left = limit
        gaps = sorted(self._catalog.gaps(identity), key=lambda gap: gap.first_revision) if self._catalog.keeps_gaps else []
        gaps = [gap for gap in gaps if gap.last_revision > after]
        while left is None or left > 0:
            wanted = _HISTORY_ROWS if left is None else min(left, _HISTORY_ROWS)
            records = self._log.history(identity, after=after, position=position, limit=wanted)
            for record in records:
                revision = read_revision(record, position)
                while gaps and gaps[0].last_revision < revision.checkpoint.revision:
                    yield gaps.pop(0)
                if revision.type is EventType.IMPORTED and revision.checkpoint.revision > 0:
                    yield Gap(identity, 0, revision.checkpoint.revision - 1, "import")
                yield revision
            if len(records) < wanted:
                return
            after = decode_header(_event(records[-1]))[0].revision
            left = None if left is None else left - len(records)

    def _await_news(self, position: Position, idle_timeout: float | None, stop: threading.Event) -> bool:
        """In slices: whoever has lost interest is noticed, also in a thread that nobody can interrupt."""
        ends = None if idle_timeout is None else time.monotonic() + idle_timeout
        while not stop.is_set():
            left = _SUBSCRIBE_SECONDS if ends is None else ends - time.monotonic()
            if self._log.wait(position, max(0.0, min(left, _SUBSCRIBE_SECONDS))):
                return True
            if left <= 0:
                return False
        return False


def check_identity(tenant: str | None, actor: str | None) -> None:
    """Raises `InvalidRequest` for a malformed tenant or actor."""
    if tenant is not None:
        check_name("tenant", tenant, MAX_TENANT)
    if actor is not None:
        check_text("actor", actor, MAX_ACTOR)


def _event(record: Record) -> bytes:
    assert record.value is not None
    return record.value
