"""What this process has seen of the topic: the newest revisions in memory, all others in its projection.

The tail pushes; each record is judged, becomes visible at once, and is written to the projection a little later by a thread of its own,
so that no caller waits for DuckDB. Until then it is kept here: whatever is asked is answered from both.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from eventlog.diagnostics import told_rebuild
from eventlog.errors import CheckpointError, HistoryRemoved, StorageError, StoreClosed, Unavailable
from eventlog.head_cache import LeastRecentlyUsed
from eventlog.interpreting import QUARANTINED_BEFORE, head_of_row, interpret
from eventlog.kafka.boundaries import Boundary, passed
from eventlog.kafka.clock import LogClock
from eventlog.kafka.pending import Pending, record_of
from eventlog.kafka.source import TopicSource
from eventlog.kafka.topic import partition_of
from eventlog.log import LogIdentity, Record
from eventlog.position import Position
from eventlog.projection_errors import translated
from eventlog.projection_files import PROJECTION_FILE, discard_file, rewritten
from eventlog.projector import Archived, tell_quarantined
from eventlog.rules import Head
from projections import history
from projections.engine import Projection
from projections.settling import settle
from projections.space import tidy

_LINGER_SECONDS = 0.2  # how long a row waits for others before DuckDB is asked to take it
_SETTLE_SECONDS = 1.0  # without news, after which superseded events are settled
_MOST_UNSETTLED = 128 << 20  # bytes, beyond which it is done without waiting for quiet: reading a topic from its start comes first
_CLOSING_SECONDS = 2.0  # how long closing goes on with it; the rest is done next time
_RECENT_EVENTS = 20_000
_HEADS = 50_000


class View:
    """Heads, revisions and positions as this process has seen them. Safe to share between threads."""

    def __init__(self, *, identity: LogIdentity, directory: Path, hold_ms: int) -> None:
        self._identity = identity
        self._directory = directory
        self.clock = LogClock(hold_ms=hold_ms)
        self._projection: Projection | None = None
        self._changed = threading.Condition()  # guards everything below
        self._positions: dict[int, int] = {}
        self._applied: dict[int, int] = {}
        self._pending = Pending()
        self._recent: OrderedDict[str, tuple[int, int, int]] = OrderedDict()  # event id -> partition, offset, recorded_at
        self._recent_ids: OrderedDict[tuple[str, int], str] = OrderedDict()  # the same events, by revision
        self._blocked: dict[str, str] = {}
        self._generation = 0  # counts ingests, so that a head read from the projection is not cached after a newer one came
        self._heads = LeastRecentlyUsed[Head](entries=_HEADS, weight=_HEADS)
        self._flush_wanted = False
        self._failure: Exception | None = None
        self._refusal: CheckpointError | None = None
        self._closed = False
        self._listeners: list[Callable[[], None]] = []
        self._applier = threading.Thread(target=self._apply_for_ever, name="eventlog-projection", daemon=True)
        self._applying = threading.Lock()  # held while the projection changes
        self._rebuilding = threading.Lock()
        self.read_from_log: Callable[[Position], Iterable[tuple[Sequence[Record], Position]]] = _no_log
        self.without_erased: Callable[[Sequence[Record]], Sequence[Record]] = lambda records: records

    # -- life -----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Opens the projection and starts its thread. Raises `Busy` when another process has it."""
        with translated(self._directory):
            self._projection = self._make(self._directory / PROJECTION_FILE).open()
            self._applied = {**dict.fromkeys(range(self._identity.partitions), 0), **self._projection.positions()}
            self._positions = dict(self._applied)
            self._blocked = dict.fromkeys(self._projection.quarantined_ids(), QUARANTINED_BEFORE)
        self._applier.start()

    def close(self) -> None:
        """Writes what is pending, then closes the projection."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._applier.ident is not None:
            self._applier.join()
        projection, self._projection = self._projection, None
        if projection is not None:
            try:
                if self._failure is None:
                    tidy(projection, seconds=_CLOSING_SECONDS)
            finally:
                projection.close()

    def fail(self, error: Exception) -> None:
        """A part that this view depends on has stopped: from now on every call says so."""
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def refuse(self, error: CheckpointError | None) -> None:
        """The log may not be read: until it may (None), whoever waits for news of it is told so. What was seen stays readable."""
        with self._changed:
            self._refusal = error
            self._changed.notify_all()

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls `listener` after every ingest, from the tail's thread."""
        self._listeners.append(listener)

    def require(self, *, news: bool = False) -> None:
        """Raises when nothing new can be seen any more; with `news`, also when it cannot for now."""
        if self._failure is not None:
            if isinstance(self._failure, CheckpointError) and not isinstance(self._failure, Unavailable):
                raise self._failure
            raise StoreClosed(f"the store has stopped following the log: {self._failure!r}") from self._failure
        if self._closed:
            raise StoreClosed("the store was closed")
        if news and self._refusal is not None:
            raise self._refusal

    # -- the tail's side ------------------------------------------------------------------------------------------

    def ingest(self, records: Sequence[Record], positions: Mapping[int, int]) -> None:
        """Makes records visible. Called by the tail alone."""
        self.clock.heard(max((record.recorded_at for record in records), default=0))
        found = interpret(
            records,
            heads_of=self.heads,
            blocked=self._blocked,
            keep_events=True,
            compacted_before=self.clock.compacted_before(),
            partition_of=self._partition_of,
            encrypted=self._identity.encrypted,
        )
        with self._changed:
            while self._pending.is_full and not (self._closed or self._failure):
                self._changed.wait(1.0)
            self._generation += 1
            self._pending.add(found, positions)
            for row in found.rows:
                self._recent[row.event_id] = (row.partition, row.offset, row.recorded_at)
                self._recent_ids[row.checkpoint_id, row.revision] = row.event_id
            for checkpoint_id, head in found.heads.items():
                self._heads.put(checkpoint_id, head)
            for quarantined in found.quarantined:
                if quarantined.checkpoint_id is not None:
                    self._blocked.setdefault(quarantined.checkpoint_id, quarantined.reason)
            while len(self._recent) > _RECENT_EVENTS:
                self._recent.popitem(last=False)
                self._recent_ids.popitem(last=False)
            self._positions.update(positions)
            self._changed.notify_all()
        tell_quarantined("kafka", found.quarantined)
        for listener in self._listeners:
            listener()

    # -- what was seen --------------------------------------------------------------------------------------------

    @property
    def positions(self) -> dict[int, int]:
        with self._changed:
            return dict(self._positions)

    @property
    def applied(self) -> dict[int, int]:
        """As far as the projection has come; `positions` is ahead of it."""
        with self._changed:
            return dict(self._applied)

    def next_offset(self, partition: int) -> int:
        return self._positions[partition]

    def await_position(self, wanted: Mapping[int, int], timeout: float) -> None:
        """Waits until everything before a cut has been seen. Raises `Unavailable` after `timeout` seconds without any progress (an empty
        projection may have a million events to read first), or what `refuse` was given."""
        deadline = time.monotonic() + timeout
        reached: dict[int, int] = {}
        with self._changed:
            while any(self._positions.get(number, 0) < offset for number, offset in wanted.items()):
                self.require(news=True)
                if reached != (reached := {number: self._positions.get(number, 0) for number in wanted}):
                    deadline = time.monotonic() + timeout
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    raise Unavailable("kafka", f"the log was read up to {Position.of(self._positions)} only, within {timeout:.0f} s")
            self.require()

    def await_news(self, after: Position, timeout: float) -> bool:
        """Waits for a good revision behind a position; whether there is one."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while not any(offset > after.next_offset(number) for number, offset in self._positions.items()):
                self.require(news=True)
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return False
        return True

    def seen(self, event_id: str) -> tuple[int, int, int] | None:
        """Partition, offset and time of an event that was seen lately."""
        return self._recent.get(event_id)

    def seen_at(self, checkpoint_id: str, revision: int) -> str | None:
        """The event id of a revision that was seen lately."""
        return self._recent_ids.get((checkpoint_id, revision))

    def blocked(self, checkpoint_id: str) -> str | None:
        """Why a checkpoint is read-only; None when it is not."""
        return self._blocked.get(checkpoint_id)

    def quarantined(self) -> dict[str, str]:
        with self._changed:
            return dict(self._blocked)

    def head(self, checkpoint_id: str) -> Head | None:
        return self.heads([checkpoint_id]).get(checkpoint_id)

    def heads(self, checkpoint_ids: Sequence[str]) -> dict[str, Head]:
        """The last good event of each checkpoint that has one."""
        found: dict[str, Head] = {}
        cold: list[str] = []
        for checkpoint_id in checkpoint_ids:
            head = self._heads.get(checkpoint_id)
            if head is None:
                cold.append(checkpoint_id)
            else:
                found[checkpoint_id] = head
        if cold:
            found.update(self._cold_heads(cold))
        return found

    def _cold_heads(self, checkpoint_ids: list[str]) -> dict[str, Head]:
        with self._changed:
            generation = self._generation
            pending = {each: row for each in checkpoint_ids if (row := self._pending.newest(each)) is not None}
        rows = self._reading().heads([each for each in checkpoint_ids if each not in pending], events=False)
        heads = {checkpoint_id: head_of_row(row) for checkpoint_id, row in rows.items()}
        heads.update({checkpoint_id: head_of_row(row) for checkpoint_id, row in pending.items()})
        with self._changed:
            if generation == self._generation:  # otherwise a newer head may have come and gone meanwhile
                for checkpoint_id, head in heads.items():
                    self._heads.put(checkpoint_id, head)
        return heads

    def latest(self, checkpoint_id: str) -> Record | None:
        """The last good revision, with its event."""
        with self._changed:
            row = self._pending.newest(checkpoint_id)
        if row is not None:
            return record_of(row)
        with translated(self._directory):
            head = self._reading().heads([checkpoint_id]).get(checkpoint_id)
        return None if head is None else Record(head.partition, head.offset, head.recorded_at, None, head.event)

    def revision(self, checkpoint_id: str, revision: int) -> Record | None:
        with self._changed:
            row = self._pending.newest(checkpoint_id)
        if row is not None and row.revision == revision:
            return record_of(row)
        with translated(self._directory):
            found = history.revision(self.flushed(), checkpoint_id, revision)
        return None if found is None else record_of(found)

    # -- the projection -------------------------------------------------------------------------------------------

    def flushed(self) -> Projection:
        """The projection, once it holds everything that this process has seen."""
        with self._changed:
            wanted = dict(self._positions)
            while any(self._applied.get(number, 0) < offset for number, offset in wanted.items()):
                self.require()
                self._flush_wanted = True
                self._changed.notify_all()
                self._changed.wait(1.0)
        return self._reading()

    def rebuild(
        self, progress: Callable[[int], None] | None = None, archived: Archived | None = None, *, accept_loss: bool = False
    ) -> None:
        """Builds the projection anew from the topic beside the old one and puts it in its place; loads go on meanwhile.

        What compaction has taken from the topic is in the old projection, and in the archive if there is one: unless `accept_loss`,
        it is not given up.
        """
        with self._rebuilding, told_rebuild("kafka"), translated(self._directory):
            draft = self._directory / f"rebuild-{PROJECTION_FILE}"
            discard_file(draft)
            new = self._make(draft).open()
            try:
                source = TopicSource(self._identity, self.read_from_log, self.clock, self.without_erased)
                source.follow(new, progress, archived)
                with self._applying:  # the tail goes on, into memory
                    source.follow(new)
                    old = self._reading()
                    lost = _count(old) - _count(new)
                    if lost > 0 and not accept_loss:
                        what = f"{lost} revisions that only this projection holds would be lost: history"
                        raise HistoryRemoved(what, reason="compaction has taken it from the topic")
                    old.replace_with(new)
                    with self._changed:
                        self._applied.update(old.positions())
                        self._changed.notify_all()
            except BaseException:
                new.close()
                discard_file(draft)
                raise

    def rewrite(self, work: Callable[[Projection], None]) -> Sequence[Path]:
        """See `Catalog.rewrite`. The tail goes on, into memory."""
        self.flushed()
        with self._rebuilding, self._applying, translated(self._directory):
            return rewritten(self._reading(), self._directory, work)

    def _partition_of(self, checkpoint_id: str) -> int:
        return partition_of(checkpoint_id, self._identity.partitions)

    def _make(self, path: Path) -> Projection:
        return Projection(path=path, store_id=self._identity.pinned, partitions=self._identity.partitions, keep_events=True)

    def _reading(self) -> Projection:
        if self._projection is None:
            raise StoreClosed("the store was closed")
        return self._projection

    def _apply_for_ever(self) -> None:
        try:
            while True:
                with self._changed:
                    self._await_work()
                    if not self._pending and self._closed:
                        return
                    quiet = not self._pending
                if quiet:
                    self._settle()
                    continue
                self._apply_next()
                while self._reading().unsettled_bytes > _MOST_UNSETTLED:
                    self._settle()
        except Exception as error:  # noqa: BLE001 - nobody else would see it
            self.fail(error if isinstance(error, CheckpointError) else StorageError("projection", repr(error)))

    def _apply_next(self) -> None:
        """Writes the oldest runs that are pending, if any."""
        with self._applying:
            with self._changed:
                taken, batch = self._pending.next_batch()
                self._flush_wanted = False  # whoever waits asks again
            if not taken:
                return
            passed(Boundary.PROJECTING)
            with translated(self._directory):
                self._reading().apply(batch)
            passed(Boundary.PROJECTED)
            with self._changed:
                self._pending.written(taken)
                for number, offset in batch.next_offsets.items():
                    self._applied[number] = max(offset, self._applied.get(number, 0))
                self._changed.notify_all()

    def _settle(self) -> None:
        with self._applying, translated(self._directory):
            settle(self._reading())

    def _await_work(self) -> None:
        """Until enough is pending, has waited long enough, is asked for, there is something to settle, or the view is closing.

        Every ingest notifies, so the time is kept here: a batch for every commit or two cost each 3.5 ms of processor time (measured).
        """
        due: float | None = None
        while not self._closed:
            if not self._pending:
                due = None
                unsettled = self._reading().unsettled_bytes > 0
                if not self._changed.wait(_SETTLE_SECONDS if unsettled else None) and unsettled and not self._closed:
                    return
                continue
            if self._flush_wanted or self._pending.fills_a_batch:
                return
            now = time.monotonic()
            due = now + _LINGER_SECONDS if due is None else due
            if now >= due:
                return
            self._changed.wait(due - now)


def _no_log(after: Position) -> Iterable[tuple[Sequence[Record], Position]]:  # noqa: ARG001
    raise StoreClosed("the store is not open")


def _count(projection: Projection) -> int:
    return int(projection.sql("SELECT count(*) FROM checkpoint_history").rows[0][0])
