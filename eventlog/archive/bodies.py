"""The bodies that a compact has moved to the archive, for whoever reads the past."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Sequence
from pathlib import Path

from eventlog import codec
from eventlog.archive.directory import Archive, Segment
from eventlog.archive.remembered import remembered
from eventlog.errors import Corrupted
from eventlog.log import Record
from eventlog.projection_errors import translated
from projections.archive import pick

IN_ARCHIVE = "archived"  # the reason of a gap that an archive would fill


class ArchivedBodies:
    """Looks events up in the archive that a store remembers. Safe to share between threads."""

    def __init__(self, *, state: Path) -> None:
        self._state = state
        self._lock = threading.Lock()
        self._archive: Path | None = None
        self._segments: list[Segment] = []

    def restored(self, records: Sequence[Record]) -> list[Record]:
        """The records, those with a moved body as they were committed; unchanged where no archive is known, or where it is gone.

        Raises `Corrupted` when the archive is damaged, or holds another event than the log.
        """
        moved = [record for record in records if record.moved is not None]
        if not moved:
            return list(records)
        found: dict[int, Record] = {}
        for segment, wanted in self._placed(moved):
            with translated(segment.path):
                events = {each.offset: each for each in pick(segment.path, [record.offset for record in wanted])}
            for record in wanted:
                event = events.get(record.offset)
                if event is None or (codec.without_body(event.event), event.recorded_at) != (record.value, record.recorded_at):
                    problem = f"does not hold the event that the log has at {record.partition}:{record.offset}"
                    raise Corrupted(str(segment.path), problem, hint="Put the original file back from a copy of the archive.")
                found[record.offset] = record._replace(value=event.event, moved=None)
        return [found.get(record.offset, record) for record in records]

    def directory(self) -> Path | None:
        """The archive that is asked, if any."""
        return remembered(self._state)

    def _placed(self, records: Sequence[Record]) -> list[tuple[Segment, list[Record]]]:
        """The records by the segment that holds them. The segments are listed once, and again when one is looked for behind them."""
        with self._lock:
            directory = self.directory()
            if directory is None or not directory.is_dir():
                return []
            last = max(record.offset for record in records)
            if directory != self._archive or not self._segments or self._segments[-1].manifest.last_offset < last:
                self._archive, self._segments = directory, Archive(directory=directory).segments(0)
            segments = self._segments
        starts = [segment.manifest.first_offset for segment in segments]
        placed: dict[int, list[Record]] = {}
        for record in records:
            index = bisect.bisect_right(starts, record.offset) - 1
            if index >= 0 and record.offset <= segments[index].manifest.last_offset:
                placed.setdefault(index, []).append(record)
        return [(segments[index], wanted) for index, wanted in sorted(placed.items())]
