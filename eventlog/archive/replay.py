"""An archive and its log as one: what a projection is rebuilt from.

Up to where the archive reaches, its events stand in the places that they had, and beside them what the log still holds there: of an
event in both the bytes must be the same; a record that is in the log alone was quarantined, and is judged again as it was then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Protocol

from eventlog import codec
from eventlog.archive.checking import checked_rows
from eventlog.archive.directory import Archive
from eventlog.errors import Corrupted
from eventlog.log import LogIdentity, Record
from eventlog.position import Position
from projections.rows import RevisionRow

_ROWS, _BYTES = 500, 16 << 20  # of a batch


class Source(Protocol):
    """The part of a log that is replayed beside its archive."""

    @property
    def identity(self) -> LogIdentity: ...

    def read(self, after: Position) -> Iterable[tuple[Sequence[Record], Position]]: ...


class ArchiveAndLog:
    """The archived stretch of a log, for `projector.follow`. What lies behind it is read from the log itself, by a second call."""

    def __init__(self, archive: Archive, log: Source) -> None:
        """Raises `ConfigurationError` when the archive is another log's, `Corrupted` when segments are missing or out of order."""
        archive.require_of(log.identity)
        self.identity = log.identity
        self.end = archive.end()
        self._log = log
        self._archive = archive

    def known_gaps(self) -> frozenset[tuple[int, int]]:
        """Partition and offset of the events before which revisions were gone already when they were archived."""
        return frozenset(
            (number, gap.offset)
            for number, _ in self.end.offsets
            for segment in self._archive.segments(number)
            for gap in segment.manifest.gaps
        )

    def read(self, after: Position) -> Iterator[tuple[Sequence[Record], Position]]:
        """See `Log.read`. Every segment is verified while it is read.

        Raises `Corrupted` naming the segment, or the event of the log, that does not fit; nothing is bridged.
        """
        merges = {number: _Merge(self._archive, number, after.next_offset(number), end) for number, end in self.end.offsets}
        reached = {number: after.next_offset(number) for number in range(self.identity.partitions)}
        with contextlib.closing(_generated(self._log.read(after))) as batches:
            for records, position in batches:
                for number, merge in merges.items():
                    here = [record for record in records if record.partition == number and record.offset < merge.end]
                    for batch, offset in merge.up_to(min(position.next_offset(number), merge.end), here):
                        reached[number] = offset
                        yield batch, Position.of(reached)
                if all(reached[number] >= merge.end for number, merge in merges.items()):
                    break
        for number, merge in merges.items():
            if reached[number] < merge.end:
                problem = f"ends at {number}:{reached[number]}, the archive {self._archive.directory} at {number}:{merge.end}"
                raise Corrupted("log", problem, hint="The log is an older copy, or another one than the archive's.")


def _generated(batches: Iterable[tuple[Sequence[Record], Position]]) -> Generator[tuple[Sequence[Record], Position], None, None]:
    """The same, to be closed by whoever has read enough: a reader of a topic holds a connection."""
    yield from batches


class _Merge:
    """One partition."""

    def __init__(self, archive: Archive, partition: int, start: int, end: int) -> None:
        self.end = end
        self._reached = start
        self._rows = self._archived(archive, partition, start)
        self._next = next(self._rows, None)

    def up_to(self, offset: int, records: Sequence[Record]) -> Iterator[tuple[list[Record], int]]:
        """Batches of what lies below an offset, given the log's records there; each with the offset that it reaches."""
        batch: list[Record] = []
        size = 0
        waiting = iter(records)
        logged = next(waiting, None)
        while (row := self._next_below(offset)) is not None or logged is not None:
            if row is None or (logged is not None and logged.offset < row.offset):
                assert logged is not None
                record, logged = logged, next(waiting, None)
            elif logged is not None and logged.offset == row.offset:
                record, logged = _same(row, logged), next(waiting, None)
                self._next = next(self._rows, None)
            else:
                record = Record(row.partition, row.offset, row.recorded_at, None, row.event)
                self._next = next(self._rows, None)
            batch.append(record)
            size += len(record.value or b"")
            if len(batch) >= _ROWS or size >= _BYTES:
                yield batch, record.offset + 1
                batch, size = [], 0
        if offset > self._reached:
            self._reached = offset
            yield batch, offset

    def _next_below(self, offset: int) -> RevisionRow | None:
        return self._next if self._next is not None and self._next.offset < offset else None

    def _archived(self, archive: Archive, partition: int, start: int) -> Iterator[RevisionRow]:
        for segment in archive.segments(partition):
            if segment.manifest.last_offset >= start:
                yield from (row for row in checked_rows(segment) if row.offset >= start)


def _same(row: RevisionRow, logged: Record) -> Record:
    """The event that archive and log both hold, without its body where the log's was erased. Raises `Corrupted` where they differ."""
    assert row.event is not None
    if logged.moved is None and logged.value == (bare := codec.without_body(row.event)) and logged.recorded_at == row.recorded_at:
        return logged._replace(key=None, value=bare)  # erased: an older copy of the archive brings nothing back
    value = row.event if logged.moved is None else codec.without_body(row.event)
    if logged.damage is not None or (value, row.recorded_at) != (logged.value, logged.recorded_at):
        problem = logged.damage or f"is another event than the archived revision {row.revision} of {row.checkpoint_id}"
        raise Corrupted(f"log at {row.partition}:{row.offset}", problem, hint="`eventlog verify` shows which of the two fits the chain.")
    return Record(row.partition, row.offset, row.recorded_at, logged.key, row.event)


def archived_records(archive: Archive, partition: int | None = None) -> Iterator[list[Record]]:
    """An archive by itself, or one partition of it, in batches of one partition each, as the records of a log.

    Every segment is verified while it is read. Raises `Corrupted`, naming the one that does not fit.
    """
    for number in archive.partitions() if partition is None else [partition]:
        batch: list[Record] = []
        size = 0
        for segment in archive.segments(number):
            for row in checked_rows(segment):
                assert row.event is not None
                batch.append(Record(number, row.offset, row.recorded_at, row.checkpoint_id.encode(), row.event))
                size += len(row.event)
                if len(batch) >= _ROWS or size >= _BYTES:
                    yield batch
                    batch, size = [], 0
        if batch:
            yield batch
