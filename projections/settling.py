"""Settling: the events of superseded revisions are moved, oldest first, to where each is kept against its successor.

Not when they are superseded, because nobody should wait for it: an event of 1 KB takes twice the time of applying it (165 and 80
microseconds on a busy machine; compressing is a fifth of it, finding the events the most), one of 200 KB 0.7 ms to compress (measured).
Killed at any instruction, an event is in one table or the other, never in both or none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import duckdb

from projections.engine import Projection, lookups
from projections.errors import ProjectionDamaged
from projections.forms import AGAINST_SUCCESSOR, against, opened, same_block
from projections.statements import named

_SETTLING = named("settling.sql")
_ROWS, _BYTES = 2_000, 16 << 20  # of one transaction: batches wait for it, 0.1 s


class _Due(NamedTuple):
    row: int
    checkpoint_id: str
    revision: int
    partition: int
    offset: int
    stored_size: int
    base_row: int | None
    base_partition: int | None
    base: int | None
    base_revision: int | None

    @property
    def has_base(self) -> bool:
        """Whether it may be kept against its successor."""
        return self.base_revision is not None and self.base_partition == self.partition and same_block(self.revision, self.base_revision)


def settle(projection: Projection) -> bool:
    """Settle the oldest events that are not settled yet, in one transaction of up to 2,000 of them or 16 MB. Return whether there were any.

    Raises:
        ProjectionDamaged: an event cannot be read. Nothing was changed.
        ProjectionError: it could not be written. Nothing was changed.
    """
    with projection.writing() as writer:
        due = _cut([_Due._make(row) for row in writer.execute(_SETTLING["due"], {"rows": _ROWS}).fetchall()])
        if due:
            try:
                settled = list(_settled(due, _Events(writer, due)))
            except ValueError as error:
                raise ProjectionDamaged(projection.path, str(error)) from error
            with writer.appender("superseded") as appender:
                appender.append_rows(settled)
            writer.execute(_SETTLING["forget"], {"first": due[0].row, "last": due[-1].row})
    projection.count_unsettled()
    return bool(due)


def _cut(due: list[_Due]) -> list[_Due]:
    size = 0
    for index, each in enumerate(due):
        size += each.stored_size
        if size > _BYTES and index:
            return due[:index]
    return due


class _Events:
    """The stored events of what is due and of what follows it, and those that have been opened."""

    def __init__(self, writer: duckdb.DuckDBPyConnection, due: Sequence[_Due]) -> None:
        rows = {each.row for each in due} | {each.base_row for each in due if each.has_base and each.base_row is not None}
        found = writer.execute(_SETTLING["unsettled_events"], {"rows": list(rows)}).fetchall()
        self._stored: dict[int | str, tuple[int, bytes]] = {row: (form, event) for row, event, form in found}
        heads = list(dict.fromkeys(each.checkpoint_id for each in due if each.has_base and each.base_row is None))
        for sql, ids in lookups(_SETTLING["head_events"], heads):
            self._stored.update({key: (form, event) for key, event, form in writer.execute(sql, ids).fetchall()})
        self._opened: dict[int | str, bytes] = {}

    def stored(self, row: int) -> tuple[int, bytes]:
        return self._stored[row]

    def opened(self, key: int | str) -> bytes:
        """The event of an unsettled row, or the head's of a checkpoint."""
        event = self._opened.get(key)
        if event is None:
            event = self._opened[key] = opened(*self._stored[key])
        return event


def _settled(due: Sequence[_Due], events: _Events) -> Iterator[tuple[Any, ...]]:
    for each in due:
        form, stored = events.stored(each.row)
        base = None
        if each.has_base:
            successor = events.opened(each.checkpoint_id if each.base_row is None else each.base_row)
            smaller = against(events.opened(each.row), successor, len(stored))
            if smaller is not None:
                base, form, stored = each.base, AGAINST_SUCCESSOR, smaller
        yield each.checkpoint_id, each.revision, each.partition, each.offset, base, stored, form
