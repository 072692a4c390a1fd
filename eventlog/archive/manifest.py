"""What a segment says of itself, and how one segment follows another."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from eventlog.archive.sealing import open_sealed
from eventlog.errors import Corrupted
from eventlog.merkle import EMPTY_ROOT, Tree

FORMAT_VERSION = 1
_PLACE = struct.Struct(">qq")
_HEX = re.compile(r"[0-9a-f]{64}").fullmatch


class ArchivedGap(NamedTuple):
    """Revisions that compaction had taken before the archive got to them, as noticed at an offset."""

    offset: int
    checkpoint_id: str
    first_revision: int
    last_revision: int
    reason: str


class Manifest(NamedTuple):
    """The sealed part of a segment's manifest. Offsets and times are of the segment's first and last event."""

    format_version: int
    store_id: str
    partitions: int  # of the log
    partition: int
    number: int  # of the segment in its partition, from 0
    first_offset: int
    last_offset: int
    first_recorded_at: int  # milliseconds since 1970 UTC, the log's clock
    last_recorded_at: int
    last_hash: str  # of the last event
    rows: int
    segment_root: str  # the Merkle root over this segment's events alone
    tree_size: int  # events of the partition up to here
    root: str  # the Merkle root over them
    peaks: tuple[str, ...]  # what the tree goes on from, see `merkle.Tree`
    places: str  # SHA-256 over offset, recorded_at and hash of each event
    previous_root: str
    previous_seal: str | None  # of the segment before; None: this is the first
    gaps: tuple[ArchivedGap, ...]
    sealed_at: int  # milliseconds since 1970 UTC, the archiver's clock

    @classmethod
    def parse(cls, content: dict[str, Any], place: str) -> Self:
        """From the sealed part of a document. Raises `Corrupted`."""
        try:
            gaps = tuple(ArchivedGap(**gap) for gap in content["gaps"])
            made = cls(**{**content, "peaks": tuple(content["peaks"]), "gaps": gaps})
            made.tree()
        except (TypeError, KeyError, ValueError) as error:
            raise Corrupted(place, f"is no manifest of a segment: {error}") from error
        numbers = (made.number, made.partition, made.first_offset, made.last_offset, made.rows, made.tree_size)
        if not all(type(each) is int and each >= 0 for each in numbers) or not _HEX(made.root):
            raise Corrupted(place, "is no manifest of a segment")
        return made

    def content(self) -> dict[str, Any]:
        """As it is sealed."""
        return {**self._asdict(), "peaks": list(self.peaks), "gaps": [gap._asdict() for gap in self.gaps]}

    def tree(self) -> Tree:
        """The tree behind this segment."""
        return Tree(size=self.tree_size, peaks=[bytes.fromhex(peak) for peak in self.peaks])


class Sealed(NamedTuple):
    """A manifest with its seal, and the file that it speaks of."""

    manifest: Manifest
    seal: bytes
    signed_by: bytes | None
    file: str
    file_bytes: int
    file_sha256: str
    before_sha256: str | None = None  # of the file before an erasure that is exchanging it, or was killed over that


def parse_manifest(text: bytes, place: str, *, trusted: bytes | None = None) -> Sealed:
    """The manifest in a document. Raises `Corrupted` or `SchemaMismatch`, naming the place."""
    document = open_sealed(text, place, format_version=FORMAT_VERSION, trusted=trusted)
    manifest = Manifest.parse(document.content, place)
    try:
        file = document.more["file"]
        return Sealed(
            manifest, document.seal, document.signed_by, str(file["name"]), int(file["bytes"]), str(file["sha256"]), file.get("before")
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Corrupted(place, f"names no file: {error!r}") from error


def follow_up_fault(before: Sealed | None, after: Sealed) -> str | None:
    """Why one segment cannot follow another (None: it is to be the first); None when it does."""
    this = after.manifest
    number, size, root, seal, offset = 0, 0, EMPTY_ROOT.hex(), None, -1
    if before is not None:
        that = before.manifest
        number, size, root, seal, offset = that.number + 1, that.tree_size, that.root, before.seal.hex(), that.last_offset
        if (this.store_id, this.partitions, this.partition) != (that.store_id, that.partitions, that.partition):
            return "is of another log than the segment before it"
    if this.number != number:
        return (
            f"is segment {this.number} where segment {number} is expected: {'one is missing' if this.number > number else 'out of order'}"
        )
    if this.first_offset <= offset or this.last_offset < this.first_offset:
        return f"begins at offset {this.first_offset}, and ends at {this.last_offset}, behind offset {offset}"
    if (this.tree_size - this.rows, this.previous_root, this.previous_seal) != (size, root, seal):
        return "does not continue the segment before it"
    return None


def places_digest(rows: Iterable[tuple[int, int, bytes]]) -> str:
    """SHA-256 over (offset, recorded_at, event hash) of rows, which no event's own hash covers."""
    digest = hashlib.sha256()
    for offset, recorded_at, event_hash in rows:
        digest.update(_PLACE.pack(offset, recorded_at) + event_hash)
    return digest.hexdigest()
