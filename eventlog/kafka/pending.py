"""Judged records on their way to the projection: visible already, not written yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from eventlog.errors import Corrupted
from eventlog.interpreting import Interpreted
from eventlog.log import Record
from projections.rows import Batch, GapRow, QuarantineRow, RevisionRow

BATCH_ROWS = 2_000
MOST_ROWS = 20_000  # the tail waits beyond this, or beyond the next
MOST_BYTES = 128 << 20


class Run:
    """What one poll of the tail brought, and how far it reaches."""

    __slots__ = ("bytes", "found", "positions")

    def __init__(self, found: Interpreted, positions: Mapping[int, int]) -> None:
        self.found = found
        self.positions = dict(positions)
        self.bytes = sum(row.stored_size for row in found.rows)


class Pending:
    """Runs in the order of the log. Not safe by itself: its owner holds a lock."""

    def __init__(self) -> None:
        self._runs: deque[Run] = deque()
        self._newest: dict[str, RevisionRow] = {}
        self._rows = 0
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._runs)

    @property
    def is_full(self) -> bool:
        return self._rows > MOST_ROWS or self._bytes > MOST_BYTES

    @property
    def fills_a_batch(self) -> bool:
        return self._rows >= BATCH_ROWS

    def newest(self, checkpoint_id: str) -> RevisionRow | None:
        """The newest row of a checkpoint, if it is pending."""
        return self._newest.get(checkpoint_id)

    def add(self, found: Interpreted, positions: Mapping[int, int]) -> None:
        run = Run(found, positions)
        self._runs.append(run)
        self._rows += len(found.rows) + 1
        self._bytes += run.bytes
        for row in found.rows:
            self._newest[row.checkpoint_id] = row

    def next_batch(self) -> tuple[list[Run], Batch]:
        """The oldest runs as one batch; they stay here until `written`."""
        taken: list[Run] = []
        rows: list[RevisionRow] = []
        gaps: list[GapRow] = []
        quarantined: list[QuarantineRow] = []
        for run in self._runs:
            if taken and len(rows) + len(run.found.rows) > 2 * BATCH_ROWS:
                break
            taken.append(run)
            rows.extend(run.found.rows)
            gaps.extend(run.found.gaps)
            quarantined.extend(run.found.quarantined)
        return taken, Batch(taken[-1].positions if taken else {}, rows, gaps, quarantined)

    def written(self, taken: Sequence[Run]) -> None:
        """The projection has these runs now."""
        for run in taken:
            self._runs.popleft()
            self._rows -= len(run.found.rows) + 1
            self._bytes -= run.bytes
            for row in run.found.rows:
                if self._newest.get(row.checkpoint_id) is row:
                    del self._newest[row.checkpoint_id]


def record_of(row: RevisionRow) -> Record:
    """The record that a row was made of, without its key."""
    if row.event is None:
        raise Corrupted("projection", f"it does not hold the event of checkpoint {row.checkpoint_id} revision {row.revision}")
    return Record(row.partition, row.offset, row.recorded_at, None, row.event)
