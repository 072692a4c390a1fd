"""Bodies leave the segments of an archive. Seal, roots and signature stay: they are over the events' hashes, not over the file.

The manifest names the file's digest beside the seal. While a segment's file is exchanged it names two: that of the file with the bodies
(`before`) and that of the one without, so that it accepts whichever is there when the process is killed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eventlog import codec
from eventlog.archive.checking import checked_rows
from eventlog.archive.directory import Archive, Segment
from eventlog.erasure.steps import Step, passed
from eventlog.errors import Corrupted, StorageError
from eventlog.event import EventType
from eventlog.projection_errors import translated
from projections.archive import holds, read_segment, write_segment
from projections.durable import put_in_place
from projections.rows import RevisionRow


class ArchiveEmptied(NamedTuple):
    """What was done to an archive."""

    segments: int  # that were looked at
    rewritten: int
    events: int  # that lost their body


def empty_archive(archive: Archive, checkpoint_ids: Sequence[str]) -> ArchiveEmptied:
    """Empties the bodies of some checkpoints in every segment. May be killed at any point and started again.

    Nothing else may be left with a body: drafts of a killed process are removed, a file that never got its manifest is emptied too.
    Raises `Busy` (somebody writes to the archive), `Corrupted` (a segment is damaged: nothing in it is touched) or `StorageError`.
    """
    wanted = frozenset(checkpoint_ids)
    segments = rewritten = events = 0
    with archive.locked(), translated(archive.directory):
        for partition in archive.partitions():
            for segment in archive.segments(partition):
                segments += 1
                emptied = _rewrite(segment, wanted)
                rewritten += emptied > 0
                events += emptied
        for path in _leftovers(archive.directory):
            if path.suffix == ".parquet":
                events += _rewrite_unsealed(path, wanted)
            else:
                path.unlink(missing_ok=True)
    passed(Step.ARCHIVE_REWRITTEN)
    return ArchiveEmptied(segments, rewritten, events)


def _rewrite(segment: Segment, wanted: Collection[str]) -> int:
    segment.check_file()
    rows, emptied = _emptied(list(checked_rows(segment)), wanted) if holds(segment.path, list(wanted)) else ([], 0)
    if not emptied:
        if segment.sealed.before_sha256 is not None:  # the file was exchanged, the manifest not yet
            _write_manifest(segment, segment.path, before=None)
        return 0
    draft = Path(f"{segment.path}.new")
    write_segment(rows, draft)
    _write_manifest(segment, draft, before=_digest(segment.path)[1])
    passed(Step.MANIFEST_PREPARED)
    put_in_place(draft, segment.path)
    passed(Step.SEGMENT_EXCHANGED)
    _write_manifest(segment, segment.path, before=None)
    return emptied


def _emptied(rows: Sequence[RevisionRow], wanted: Collection[str]) -> tuple[list[RevisionRow], int]:
    emptied = 0
    made = []
    for row in rows:
        assert row.event is not None
        bare = codec.without_body(row.event) if row.checkpoint_id in wanted and row.type != EventType.DELETED else row.event
        emptied += bare != row.event
        made.append(row._replace(event=bare, stored_size=len(bare)))
    return made, emptied


def _write_manifest(segment: Segment, file: Path, *, before: str | None) -> None:
    """The same seal, with the digest of `file`; durable when it returns."""
    path = segment.path.with_suffix(".json")
    try:
        document: dict[str, Any] = json.loads(path.read_bytes())
        size, digest = _digest(file)
        about = {"name": segment.path.name, "bytes": size, "sha256": digest}
        document["file"] = about if before is None else {**about, "before": before}
        draft = Path(f"{path}.new")
        draft.write_text(json.dumps(document, indent=1))
        put_in_place(draft, path)
    except OSError as error:
        raise StorageError(str(path), f"cannot be written: {error.strerror}") from error


def _digest(file: Path) -> tuple[int, str]:
    data = file.read_bytes()
    return len(data), hashlib.sha256(data).hexdigest()


def _leftovers(directory: Path) -> list[Path]:
    """What no reader of an archive looks at, and what may hold payloads all the same."""
    drafts = [*directory.glob("*/*.new"), *directory.glob("*/*.new.*")]
    return drafts + [each for each in directory.glob("*/*.parquet") if not each.with_suffix(".json").exists()]


def _rewrite_unsealed(path: Path, wanted: Collection[str]) -> int:
    """A segment that never got its manifest: the next run makes it anew."""
    rows, emptied = _emptied(list(read_segment(path)), wanted)
    if emptied:
        draft = Path(f"{path}.new")
        write_segment(rows, draft)
        put_in_place(draft, path)
    return emptied


def require_archive(directory: Path) -> Archive:
    """The archive in a directory. Raises `Corrupted` when it is not there: what is in it cannot be erased."""
    if not directory.is_dir():
        raise Corrupted(str(directory), "is not there: the store remembers an archive in it", hint="Mount or restore it, then erase again.")
    return Archive(directory=directory)
