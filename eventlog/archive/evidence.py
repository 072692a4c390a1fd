"""All of a log's history, compaction or not, held against its archive, an anchor, and on Kafka against itself.

What compaction took from a topic is only in the projection; so there every event of the projection is checked as well: that it is what
its row says, and that it continues its checkpoint's chain up to what the topic still has.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from eventlog import codec
from eventlog.archive.anchors import Anchor, TreeHead
from eventlog.archive.checking import checked_rows
from eventlog.archive.directory import Archive
from eventlog.errors import CheckpointError
from eventlog.event import GENESIS, CheckpointEvent, EventType
from eventlog.findings import Fault, FaultKind, Verification
from eventlog.interpreting import row_of
from eventlog.log import Record
from eventlog.merkle import Tree, leaf_hash
from eventlog.position import Position
from eventlog.projection_check import compare_rows
from eventlog.projection_errors import translated
from eventlog.store import CheckpointStore
from projections.rows import RevisionRow


def check_history(store: CheckpointStore, found: Verification, *, archive: Archive | None, anchor: Anchor | None) -> None:
    """Adds to what a verification found: see `verification.verify`."""
    kept_by_projection = store.catalog.keeps_gaps
    if archive is None and anchor is None and not kept_by_projection:
        return
    heads = {} if anchor is None else {head.partition: head for head in anchor.heads}
    checks = {number: _PartitionCheck(number, found, archive, heads.get(number)) for number in range(store.log.identity.partitions)}
    chains = _Chains(store, found)
    for records, _ in store.log.revisions(Position()):
        rows = []
        for record in records:
            event = _decoded(record, found)
            if event is None:
                checks[record.partition].stop()
                continue
            checks[record.partition].event(record, event)
            if kept_by_projection:
                chains.event(record, event)
                rows.append(row_of(record, event.header, event.hash, keep_events=False))
        if kept_by_projection:
            with translated():
                projection = store.catalog.projection()
                compare_rows(projection, rows, records, projection.positions(), found)
    for check in checks.values():
        check.finish()


def _decoded(record: Record, found: Verification) -> CheckpointEvent | None:
    """None for what the check of the log has found already, or for an event of the projection that is none."""
    if record.damage is not None or record.value is None:
        return None
    try:
        return codec.decode(record.value)
    except CheckpointError as error:
        if record.key is None:  # from the projection
            found.add(Fault(f"{record.partition}:{record.offset}", None, FaultKind.PROJECTION, str(error)))
        return None


class _Chains:
    """The hash chain of every checkpoint, as the projection keeps it."""

    def __init__(self, store: CheckpointStore, found: Verification) -> None:
        self._store = store
        self._found = found
        self._last: dict[bytes, tuple[int, bytes]] = {}

    def event(self, record: Record, event: CheckpointEvent) -> None:
        header = event.header
        key = UUID(header.checkpoint_id).bytes
        before, digest = self._last.get(key, (-1, GENESIS))
        self._last[key] = (header.revision, event.hash)
        problem = self._problem(event, before, digest)
        if problem is not None:
            self._found.add(Fault(f"{record.partition}:{record.offset}", header.checkpoint_id, FaultKind.PROJECTION, problem))

    def _problem(self, event: CheckpointEvent, before: int, digest: bytes) -> str | None:
        header = event.header
        if header.revision == before + 1:
            return None if header.previous_hash == digest else f"its revision {header.revision} does not continue the hash chain"
        if before == -1 and header.type == EventType.IMPORTED:
            return None
        gaps = [(gap.first_revision, gap.last_revision) for gap in self._store.catalog.gaps(header.checkpoint_id)]
        if (before + 1, header.revision - 1) in gaps:
            return None
        return f"has revision {header.revision} after revision {before}, and knows of no gap"


class _PartitionCheck:
    """One partition's tree, archive and anchored head, event by event."""

    def __init__(self, partition: int, found: Verification, archive: Archive | None, head: TreeHead | None) -> None:
        self._partition = partition
        self._found = found
        self._head = head
        self._tree = Tree()
        self._archived = None if archive is None else self._rows(archive)
        self._stopped = False
        self._check_head()

    def stop(self) -> None:
        """An event that cannot be read, which is a fault already: nothing can be said about what follows."""
        self._stopped = True

    def event(self, record: Record, event: CheckpointEvent) -> None:
        if self._stopped:
            return
        if self._archived is not None:
            self._compare(record, event)
        self._tree.append(leaf_hash(event.hash))
        self._check_head()

    def finish(self) -> None:
        """What the log should hold, and does not."""
        if self._stopped:
            return
        row = None if self._archived is None else self._next()
        if row is not None:
            self._fault(FaultKind.ARCHIVE, f"revision {row.revision} is archived, but the log ends before it", row)
        if self._head is not None:
            size, at = self._head.size, self._head.last_offset
            problem = f"{size} events were anchored, the last at {self._partition}:{at}; the log has {self._tree.size}"
            self._fault(FaultKind.ANCHOR, problem)

    def _check_head(self) -> None:
        head = self._head
        if head is None or head.size != self._tree.size:
            return
        if head.root == self._tree.root.hex():
            self._found.anchored += head.size
        else:
            self._fault(FaultKind.ANCHOR, f"its first {head.size} events are not those that were anchored")
        self._head = None

    def _compare(self, record: Record, event: CheckpointEvent) -> None:
        row = self._next()
        if row is None:
            return
        if (row.offset, row.recorded_at, row.event_hash) == (record.offset, record.recorded_at, event.hash) and (
            record.moved is not None or row.event == record.value
        ):
            self._found.archived += 1
            return
        where = f"{record.partition}:{record.offset}"
        if row.offset == record.offset:
            problem = "is another event than the archived one"
        elif row.offset < record.offset:
            problem = f"follows where the archive has revision {row.revision} of {row.checkpoint_id} at {row.partition}:{row.offset}"
        else:
            problem = "is not in the archive, which goes on behind it"
        self._found.add(Fault(where, event.header.checkpoint_id, FaultKind.ARCHIVE, problem))
        self._archived = None  # the first that does not fit; what follows is displaced

    def _next(self) -> RevisionRow | None:
        """The next archived row; a segment that is wrong is a fault, and ends the comparison."""
        assert self._archived is not None
        try:
            row = next(self._archived, None)
        except CheckpointError as error:
            self._fault(FaultKind.ARCHIVE, str(error))
            row = None
        if row is None:
            self._archived = None
        return row

    def _rows(self, archive: Archive) -> Iterator[RevisionRow]:
        if self._partition not in archive.partitions():
            return
        for segment in archive.segments(self._partition):
            yield from checked_rows(segment)

    def _fault(self, kind: FaultKind, problem: str, row: RevisionRow | None = None) -> None:
        at = None if row is None else f"{row.partition}:{row.offset}"
        self._found.add(Fault(at, None if row is None else row.checkpoint_id, kind, problem))
