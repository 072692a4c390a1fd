"""Reading revisions: the latest, a certain one, the past, all of them, and those to come."""

from __future__ import annotations

import marshal
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from eventlog.archive.bodies import IN_ARCHIVE, ArchivedBodies
from eventlog.catalog import Catalog
from eventlog.checkpoint import LAST_REVISION, Checkpoint, to_millis
from eventlog.codec import decode, decode_header
from eventlog.errors import Deleted, HistoryRemoved, InvalidRequest, NotFound
from eventlog.event import CheckpointEvent, EventHeader, EventType, checkpoint_of
from eventlog.head_cache import LeastRecentlyUsed
from eventlog.ids import CheckpointId
from eventlog.log import Log, Record
from eventlog.payload import load_json
from eventlog.position import Position
from eventlog.revision import Gap, JsonText, Revision, read_revision

_HOT_BYTES = 64 << 20
_HOT_ENTRIES = 10_000
_HISTORY_ROWS, _HISTORY_BYTES = 200, 32 << 20  # of one query
_SUBSCRIBE_SECONDS = 1.0  # how long one wait for news lasts before it is asked again whether the store is still open


class _Hot(NamedTuple):
    """What a load needs of a revision, decoded but for the payload: every caller gets a payload of its own.

    From the second load on the payload is kept as marshal writes it, which is read in two thirds of the time of JSON (measured). It
    never leaves the process.
    """

    offset: int
    header: EventHeader
    text: bytes
    marshalled: bool = False

    def value(self) -> Any:
        return marshal.loads(self.text) if self.marshalled else load_json(self.text)


class RevisionReader:
    """The reads of a `CheckpointStore`, which says what each of them promises."""

    def __init__(
        self,
        *,
        log: Log,
        catalog: Catalog,
        tenant: str | None,
        json_text: JsonText | None = CheckpointEvent.json_text,
        bodies: ArchivedBodies | None = None,
    ) -> None:
        self._log = log
        self._json_text = json_text  # None: payloads are withheld
        self._bodies = bodies  # of an embedded log; on Kafka the projection has them
        self._catalog = catalog
        self._tenant = tenant
        self._hot = LeastRecentlyUsed[_Hot](entries=_HOT_ENTRIES, weight=_HOT_BYTES)
        self._tenants = LeastRecentlyUsed[str](entries=_HOT_ENTRIES, weight=_HOT_ENTRIES)

    def limited(self, tenant: str | None, *, withholds: bool) -> RevisionReader:
        """The same reader, with the same cache, for one tenant; `withholds`: with `PAYLOAD_WITHHELD` in the place of payloads."""
        json_text = None if withholds else self._json_text
        other = RevisionReader(log=self._log, catalog=self._catalog, tenant=tenant, json_text=json_text, bodies=self._bodies)
        other._hot, other._tenants = self._hot, self._tenants
        return other

    def load(
        self, identity: CheckpointId, *, revision: int | None, at: Position | datetime | None, at_least: Position | None
    ) -> Checkpoint:
        """See `CheckpointStore.load`."""
        if revision is not None or at is not None:
            return self._refuse_deleted(self.load_revision(identity, revision=revision, at=at)).checkpoint
        place = self._log.place(identity, at_least=at_least) if self._is_own(identity, at_least) else None
        if place is None:
            raise NotFound(identity)
        hot = self._hot.get(identity)
        again = hot is not None and hot.offset == place[1]
        if hot is None or not again:
            hot = self._warm(identity)
        header = hot.header
        if header.type == EventType.DELETED:
            raise Deleted(identity, last_revision=header.revision)
        value = hot.value()
        if again and not hot.marshalled:
            self._keep(identity, hot._replace(text=marshal.dumps(value), marshalled=True))
        return checkpoint_of(header, value)

    def load_revision(self, identity: CheckpointId, *, revision: int | None, at: Position | datetime | None) -> Revision:
        """See `CheckpointStore.load_revision`."""
        if revision is not None and at is not None:
            raise InvalidRequest("revision", "cannot be given together with at")
        if revision is not None and (type(revision) is not int or not 0 <= revision < 2**63):
            raise InvalidRequest("revision", f"{revision!r} is not within 0 to 2^63-1")
        as_of = None if at is None else self.position(at)
        if not self._is_own(identity) or self._log.place(identity, at_least=None) is None:
            raise NotFound(identity, revision=revision)
        if as_of is not None:
            record = self._log.as_of(identity, as_of)
        elif revision is not None:
            record = self._log.revision(identity, revision)
        else:
            record = self._log.latest(identity)
        if record is None:
            gap = None if revision is None else self.gap(identity, revision) or self._before_import(identity, revision)
            if gap is not None:
                raise HistoryRemoved(f"revision {revision} of checkpoint {identity}", reason=gap.reason)
            raise NotFound(identity, revision=revision, detail=None if as_of is None else f"it did not exist at {as_of}")
        return read_revision(self._whole(record), as_of, self._json_text)

    def history(self, identity: CheckpointId, *, after: int, at: Position | datetime | None, limit: int | None) -> Iterator[Revision | Gap]:
        """See `CheckpointStore.history`."""
        if type(after) is not int or not -1 <= after <= LAST_REVISION:
            raise InvalidRequest("after", f"{after!r} is not a revision, nor -1 for the beginning")
        if limit is not None and (type(limit) is not int or limit < 0):
            raise InvalidRequest("limit", f"{limit!r} is not a number of revisions")
        latest = self.latest(identity)
        if latest is None:
            raise NotFound(identity)
        page = max(1, min(_HISTORY_ROWS, _HISTORY_BYTES // len(_event(latest))))  # as if all were of the size of the latest
        return self._history(identity, after, None if at is None else self.position(at), limit, page)

    def subscribe(self, after: Position, idle_timeout: float | None, stop: threading.Event) -> Iterator[Revision]:
        """See `CheckpointStore.subscribe`; `stop` ends it from outside."""
        for batch in self.news(after, idle_timeout, stop):
            yield from batch

    def news(self, after: Position, idle_timeout: float | None, stop: threading.Event) -> Iterator[Iterator[Revision]]:
        """What `subscribe` gives, in batches of what was there at once. Each must be exhausted before the next one."""
        position = after
        while not stop.is_set():
            for records, reached in self._log.revisions(position):
                position = reached
                yield self._visible_of(records)
            if not self._await_news(position, idle_timeout, stop):
                return

    def forget(self, identity: str) -> None:
        """Lets go of a payload that is kept in memory."""
        self._hot.forget(identity)

    def latest(self, identity: CheckpointId) -> Record | None:
        """The latest revision, as of now, when this tenant may see it."""
        if not self._is_own(identity) or self._log.place(identity, at_least=None) is None:
            return None
        return self._log.latest(identity)

    def position(self, at: Position | datetime) -> Position:
        """The cut that a caller asks for. One that lies behind the log's end is refused: nothing can be said about it yet."""
        if not isinstance(at, Position):
            return self._log.position_at(to_millis(at, "at"))
        end = self._log.end()
        if not end.covers(at):
            raise InvalidRequest("at", f"{at} lies behind the log's end, {end}")
        return at

    def gap(self, identity: CheckpointId, revision: int) -> Gap | None:
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

    def _history(
        self, identity: CheckpointId, after: int, position: Position | None, limit: int | None, page: int
    ) -> Iterator[Revision | Gap]:
        left = limit
        gaps = sorted(self._catalog.gaps(identity), key=lambda gap: gap.first_revision) if self._catalog.keeps_gaps else []
        gaps = [gap for gap in gaps if gap.last_revision > after]
        missing: Gap | None = None  # what a compact has moved out of reach, as far as it goes
        while left is None or left > 0:
            wanted = page if left is None else min(left, page)
            records = self._log.history(identity, after=after, position=position, limit=wanted)
            for record in self._restored(records):
                if self._lacks_body(record):
                    number = decode_header(_event(record))[0].revision
                    missing = Gap(identity, number if missing is None else missing.first_revision, number, IN_ARCHIVE)
                    after = number
                    continue
                if missing is not None:
                    yield missing
                    missing = None
                revision = read_revision(record, position, self._json_text, trail=True)
                after = revision.checkpoint.revision
                while gaps and gaps[0].last_revision < revision.checkpoint.revision:
                    yield gaps.pop(0)
                if revision.type is EventType.IMPORTED and revision.checkpoint.revision > 0:
                    yield Gap(identity, 0, revision.checkpoint.revision - 1, "import")
                yield revision
            if len(records) < wanted:
                break
            left = None if left is None else left - len(records)
        if missing is not None:
            yield missing

    def _restored(self, records: Sequence[Record]) -> Sequence[Record]:
        """With the bodies that a compact has moved, where the archive is at hand; whoever may see metadata only needs none."""
        return self._bodies.restored(records) if self._bodies is not None and any(map(self._lacks_body, records)) else records

    def _lacks_body(self, record: Record) -> bool:
        return record.moved is not None and self._json_text is not None

    def _whole(self, record: Record) -> Record:
        """With its body. Raises `HistoryRemoved` when that is in an archive that is not at hand."""
        if not self._lacks_body(record):
            return record
        (record,) = self._restored((record,))
        if record.moved is not None:
            header, _ = decode_header(_event(record))
            known = None if self._bodies is None else self._bodies.directory()
            hint = "Say where the archive is: `eventlog archive run --to DIR`." if known is None else f"It is in the archive {known}."
            what = f"the payload of checkpoint {header.checkpoint_id} revision {header.revision}"
            raise HistoryRemoved(what, reason="it is in an archive that is not at hand", hint=hint)
        return record

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

    def _warm(self, identity: CheckpointId) -> _Hot:
        record = self._log.latest(identity)
        if record is None:
            raise NotFound(identity)
        event = decode(_event(record))
        assert self._json_text is not None, "whoever may see metadata only does not load"
        text = b"null" if event.header.type == EventType.DELETED else self._json_text(event)
        hot = _Hot(record.offset, event.header, text)
        self._keep(identity, hot)
        return hot

    def _keep(self, identity: CheckpointId, hot: _Hot) -> None:
        self._hot.put(identity, hot, len(hot.text) + 2000)

    def _refuse_deleted(self, revision: Revision) -> Revision:
        if revision.type is EventType.DELETED:
            raise Deleted(revision.checkpoint.id, last_revision=revision.checkpoint.revision)
        return revision

    def _visible_of(self, records: Sequence[Record]) -> Iterator[Revision]:
        for record in self._restored(records):
            if record.value is not None and self.visible(decode_header(record.value)[0].tenant):
                yield read_revision(self._whole(record), None, self._json_text, trail=True)

    def _is_own(self, identity: CheckpointId, at_least: Position | None = None) -> bool:
        """Whether this tenant may know of a checkpoint. Asked before anything else, so that another tenant's is as an absent one."""
        if self._tenant is None or self._tenants.get(identity) == self._tenant:
            return True
        if self._log.tenant_of(identity, at_least=at_least) != self._tenant:
            return False  # not remembered: the next time takes as long, as for an absent one
        self._tenants.put(identity, self._tenant)  # a checkpoint keeps its tenant for ever
        return True

    def visible(self, tenant: str) -> bool:
        """Whether a tenant's checkpoints exist for this one."""
        return self._tenant is None or tenant == self._tenant


def _event(record: Record) -> bytes:
    assert record.value is not None
    return record.value
