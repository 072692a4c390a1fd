"""A segment read so that nothing in it can be something else than what was archived."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from eventlog import codec
from eventlog.archive.directory import Archive, Segment
from eventlog.archive.manifest import places_digest
from eventlog.errors import CheckpointError, Corrupted
from eventlog.interpreting import row_of
from eventlog.log import Record
from eventlog.merkle import Tree, leaf_hash
from eventlog.projection_errors import translated
from projections.archive import read_segment
from projections.rows import RevisionRow

_HINT = "Put the original file back from a copy of the archive."


def checked_rows(segment: Segment) -> Iterator[RevisionRow]:
    """A segment's rows in order. The file is held against its manifest before the first, the tree behind the last.

    Each event must decode, match its digest, and say what its columns say. Raises `Corrupted`, naming the file, `SchemaMismatch` or
    `StorageError`.
    """
    segment.check_file()
    manifest = segment.manifest
    places: list[tuple[int, int, bytes]] = []
    with translated(segment.path):
        for row in read_segment(segment.path):
            _check_row(segment, row, places[-1][0] if places else manifest.first_offset - 1)
            places.append((row.offset, row.recorded_at, row.event_hash))
            yield row
    alone = Tree()
    for _, _, event_hash in places:
        alone.append(leaf_hash(event_hash))
    found = (len(places), alone.root.hex(), places_digest(places), places[-1][0] if places else None)
    if found != (manifest.rows, manifest.segment_root, manifest.places, manifest.last_offset):
        raise Corrupted(str(segment.path), "does not hold the events that its manifest was made of", hint=_HINT)


def _check_row(segment: Segment, row: RevisionRow, before: int) -> None:
    at = f"{segment.path} at {row.partition}:{row.offset}"
    if row.partition != segment.manifest.partition or row.offset <= before or row.event is None:
        raise Corrupted(at, "stands out of order", hint=_HINT)
    try:
        event = codec.decode(row.event)
    except CheckpointError as error:
        raise Corrupted(at, str(error), hint=_HINT) from error
    record = Record(row.partition, row.offset, row.recorded_at, None, row.event)
    if row_of(record, event.header, event.hash, keep_events=True) != row:
        raise Corrupted(at, "its columns say something else than its event", hint=_HINT)


@dataclass
class ArchiveCheck:
    """What a check of an archive found. Nothing wrong: otherwise it raises."""

    segments: int = 0
    events: int = 0
    file_bytes: int = 0
    signed: int = 0  # segments with a valid signature; whose is for the reader to say, by a trusted key
    erased: int = 0  # events without their body; everything else about them was checked
    gaps: int = 0  # runs of revisions that compaction had removed before they were archived
    signers: set[bytes] = field(default_factory=set)


def check_archive(archive: Archive) -> ArchiveCheck:
    """Checks every segment of an archive by itself and against the one before it. Raises `NotAStore`, `Corrupted` naming the first that
    does not fit, `SchemaMismatch` or `StorageError`.
    """
    archive.require()
    found = ArchiveCheck()
    for partition in archive.partitions():
        tree = Tree()
        for segment in archive.segments(partition):
            for row in checked_rows(segment):
                tree.append(leaf_hash(row.event_hash))
                found.erased += row.event is not None and codec.without_body(row.event) == row.event
            if tree.root.hex() != segment.manifest.root or tree.size != segment.manifest.tree_size:
                raise Corrupted(str(segment.path), "does not continue the tree of the segments before it", hint=_HINT)
            found.segments += 1
            found.events += segment.manifest.rows
            found.file_bytes += segment.sealed.file_bytes
            found.gaps += len(segment.manifest.gaps)
            if segment.sealed.signed_by is not None:
                found.signed += 1
                found.signers.add(segment.sealed.signed_by)
    return found
