"""Archiving: a log's events, as far as they are not archived yet, become sealed segments."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from eventlog import codec
from eventlog.archive.directory import Archive, Segment
from eventlog.archive.manifest import FORMAT_VERSION, ArchivedGap, Manifest, places_digest
from eventlog.archive.remembered import remember
from eventlog.catalog import Catalog
from eventlog.errors import Corrupted, HistoryRemoved, InvalidRequest
from eventlog.interpreting import row_of
from eventlog.log import Log, LogIdentity, Record
from eventlog.merkle import EMPTY_ROOT, Tree, leaf_hash
from eventlog.position import Position
from eventlog.privacy.guard import Access
from eventlog.privacy.principals import Operation
from eventlog.projection_errors import translated
from eventlog.store import CheckpointStore
from projections import stream
from projections.archive import write_segment
from projections.rows import RevisionRow

SEGMENT_ROWS = 50_000
SEGMENT_BYTES = 32 << 20  # of events: writing a segment takes about three times as much memory


class Limits(NamedTuple):
    """When a segment is full, and how long a record may wait for one to fill."""

    rows: int = SEGMENT_ROWS
    event_bytes: int = SEGMENT_BYTES
    wait_ms: int = 0  # by the log's clock; 0: whatever is there is sealed


DEFAULT_LIMITS = Limits()


@dataclass
class ArchiveRun:
    """What a run did."""

    events: int = 0
    segments: list[Segment] = field(default_factory=list)
    end: Position = field(default_factory=Position)  # just behind what is archived now


def run_archive(
    store: CheckpointStore,
    archive: Archive,
    *,
    key: Ed25519PrivateKey | None = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int], None] | None = None,
) -> ArchiveRun:
    """Archives what was committed before the call and is not archived yet. It may be killed at any point and started again.

    Arguments:
        key: signs the segments.
        limits: of a segment.
        progress: called with the number of events read so far.

    The store remembers the archive. Raises `InvalidRequest` (the store is opened for one tenant; an archive has all), `Busy` (somebody else
    is writing to it), `ConfigurationError` (it is another store's),
    `Corrupted` (the archive is damaged, or the log does not continue it), `HistoryRemoved` (a body is in another archive only),
    `AccessDenied`, `AuditUnavailable` or `StorageError`.
    """
    with store.entrusted(Operation.ARCHIVE_RUN, Access(Operation.ARCHIVE_RUN, target=str(archive.directory))) as whole:
        require_all_tenants(store)
        with archive.locked():
            run = seal_unarchived(whole, archive, key=key, limits=limits, progress=progress)
            remember(whole.log.directory, archive.directory)
            return run


def require_all_tenants(store: CheckpointStore) -> None:
    """Raises `InvalidRequest` when a store is opened for one tenant."""
    if store.tenant is not None:
        raise InvalidRequest("tenant", f"is {store.tenant}; an archive holds all tenants", hint="Open the store without a tenant.")


def seal_unarchived(
    store: CheckpointStore,
    archive: Archive,
    *,
    key: Ed25519PrivateKey | None = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int], None] | None = None,
) -> ArchiveRun:
    """As `run_archive`, for whoever has the archive to himself; and the store does not remember it."""
    archive.require_of(store.log.identity)
    run = ArchiveRun()
    writers = {number: _Writer(archive, store.log.identity, number, store.catalog, key) for number in range(store.log.identity.partitions)}
    for read, record in enumerate(_unarchived(store.log, writers), 1):
        writer = writers[record.partition]
        writer.take(record)
        if writer.is_full(limits):
            run.segments.append(writer.seal())
            if progress is not None:
                progress(read)
    now = int(time.time() * 1000)
    run.segments += [writer.seal() for writer in writers.values() if writer.is_due(now - limits.wait_ms)]
    run.events = sum(segment.manifest.rows for segment in run.segments)
    run.end = archive.end()
    return run


def keep_archived(
    store: CheckpointStore,
    archive: Archive,
    *,
    every: float,
    stop: threading.Event,
    key: Ed25519PrivateKey | None = None,
    limits: Limits = DEFAULT_LIMITS,
    done: Callable[[ArchiveRun], None] | None = None,
) -> None:
    """Archives every so many seconds until `stop` is set: for a thread of its own, or a process. Raises as `run_archive`.

    With a `wait_ms` above 0 in the limits, segments are not as small as what comes between two runs; keep it well below a topic's hold.
    """
    while not stop.is_set():
        run = run_archive(store, archive, key=key, limits=limits)
        if done is not None:
            done(run)
        stop.wait(every)


def _unarchived(log: Log, writers: dict[int, _Writer]) -> Iterator[Record]:
    """The records behind what is archived. Reads from the last archived event on, to see that the log is still the archive's."""
    expected = {number: writer.last for number, writer in writers.items() if writer.last is not None}
    after = Position.of({number: last.last_offset for number, last in expected.items()})
    for records, _ in log.revisions(after):
        for record in records:
            last = expected.pop(record.partition, None)
            if last is None:
                yield record
            elif record.offset != last.last_offset or _hash(record).hex() != last.last_hash:
                raise _forked(record.partition, last)
    for partition, last in expected.items():
        raise _forked(partition, last)


def _forked(partition: int, last: Manifest) -> Corrupted:
    what = f"does not have the archive's last event at {partition}:{last.last_offset}: an older copy of the log, or a changed one"
    return Corrupted("log", what, hint="Find out which is right with `eventlog verify`. Archive another log into another directory.")


def _hash(record: Record) -> bytes:
    if record.damage is not None or record.value is None:
        raise Corrupted(f"log at {record.partition}:{record.offset}", record.damage or "there is no event")
    return codec.decode_header(record.value)[1]


class _Writer:
    """One partition's next segment."""

    def __init__(self, archive: Archive, identity: LogIdentity, partition: int, catalog: Catalog, key: Ed25519PrivateKey | None) -> None:
        before = archive.last(partition) if partition in archive.partitions() else None
        self.last = None if before is None else before.manifest
        self._previous_seal = None if before is None else before.sealed.seal.hex()
        self._archive = archive
        self._identity = identity
        self._partition = partition
        self._catalog = catalog
        self._key = key
        self._rows: list[RevisionRow] = []
        self._bytes = 0

    def take(self, record: Record) -> None:
        """One more event, as it is: encrypted ones and emptied ones too."""
        if record.moved is not None:
            what = f"the body of the event at {record.partition}:{record.offset}"
            hint = "It is in the archive that the store was compacted into: go on with that one, or copy it."
            raise HistoryRemoved(what, reason="a compact has moved it to another archive", hint=hint)
        if record.damage is not None or record.value is None:
            raise Corrupted(f"log at {record.partition}:{record.offset}", record.damage or "there is no event")
        event = codec.decode(record.value)
        self._rows.append(row_of(record, event.header, event.hash, keep_events=True))
        self._bytes += len(record.value)

    def is_full(self, limits: Limits) -> bool:
        return len(self._rows) >= limits.rows or self._bytes >= limits.event_bytes

    def is_due(self, before: int) -> bool:
        """Whether the oldest waiting event is of that time or earlier."""
        return bool(self._rows) and (self._rows[0].recorded_at <= before)

    def seal(self) -> Segment:
        """Makes the segment of what was taken."""
        manifest = self._manifest(self._rows)
        rows = self._rows
        with translated(self._archive.directory):
            segment = self._archive.add(manifest, lambda draft: write_segment(rows, draft), key=self._key)
        self.last, self._previous_seal = segment.manifest, segment.sealed.seal.hex()
        self._rows, self._bytes = [], 0
        return segment

    def _manifest(self, rows: list[RevisionRow]) -> Manifest:
        before = self.last
        tree = Tree() if before is None else before.tree()
        alone = Tree()
        for row in rows:
            leaf = leaf_hash(row.event_hash)
            tree.append(leaf)
            alone.append(leaf)
        return Manifest(
            format_version=FORMAT_VERSION,
            store_id=self._identity.store_id,
            partitions=self._identity.partitions,
            partition=self._partition,
            number=0 if before is None else before.number + 1,
            first_offset=rows[0].offset,
            last_offset=rows[-1].offset,
            first_recorded_at=rows[0].recorded_at,
            last_recorded_at=rows[-1].recorded_at,
            last_hash=rows[-1].event_hash.hex(),
            rows=len(rows),
            segment_root=alone.root.hex(),
            tree_size=tree.size,
            root=tree.root.hex(),
            peaks=tuple(peak.hex() for peak in tree.peaks),
            places=places_digest((row.offset, row.recorded_at, row.event_hash) for row in rows),
            previous_root=EMPTY_ROOT.hex() if before is None else before.root,
            previous_seal=self._previous_seal,
            gaps=self._gaps(rows[0].offset, rows[-1].offset),
            sealed_at=int(time.time() * 1000),
        )

    def _gaps(self, first: int, last: int) -> tuple[ArchivedGap, ...]:
        """What compaction had removed before: whoever rebuilds from the archive has to know that it is no foreign writer's work."""
        if not self._catalog.keeps_gaps:
            return ()
        with translated():
            rows = stream.gaps_within(self._catalog.projection(), self._partition, first, last)
        return tuple(ArchivedGap(row.offset, row.checkpoint_id, row.first_revision, row.last_revision, row.reason) for row in rows)
