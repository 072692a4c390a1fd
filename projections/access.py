"""The access trail: rows of an access log, with progress of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from projections.engine import Projection
from projections.rows import AccessRow
from projections.statements import named

_SQL = named("access.sql")


@dataclass(frozen=True, slots=True)
class AccessBatch:
    """What one transaction applies. `next_offsets` names, per partition, the first offset that is not part of it."""

    log_id: str
    next_offsets: Mapping[int, int]
    rows: Sequence[AccessRow] = ()


class AccessProgress(NamedTuple):
    """Which access log was followed, and how far."""

    log_id: str
    next_offsets: dict[int, int]


def progress(projection: Projection) -> AccessProgress | None:
    """Return how far the access log was followed; None if no record of any was applied."""
    rows = projection.query(_SQL["progress"])
    return AccessProgress(rows[0][0], {partition: offset for _, partition, offset in rows}) if rows else None


def apply_accesses(projection: Projection, batch: AccessBatch) -> None:
    """Apply a batch and its progress, all or nothing. The same batch again changes nothing.

    Raises:
        InvalidBatch: a value does not fit its column. Nothing was applied.
        ProjectionError: it could not be written. Nothing was applied.
    """
    with projection.writing() as writer:
        stored = {partition: offset for _, partition, offset in writer.execute(_SQL["progress"]).fetchall()}
        rows = [tuple(row) for row in batch.rows if row.offset >= stored.get(row.partition, 0)]
        if rows:
            with writer.appender("access") as appender:
                appender.append_rows(rows)
        for partition, offset in batch.next_offsets.items():
            if offset > stored.get(partition, -1):
                writer.execute(_SQL["forget_progress"], {"partition": partition})
                writer.execute(_SQL["set_progress"], {"log_id": batch.log_id, "partition": partition, "offset": offset})


def retain(projection: Projection, starts: Mapping[int, int]) -> None:
    """Remove the rows that lie before the beginning of their partition of the access log."""
    for partition, start in starts.items():
        if projection.query(_SQL["any_before"], {"partition": partition, "start": start}):
            with projection.writing() as writer:
                writer.execute(_SQL["remove_before"], {"partition": partition, "start": start})


def hashes(projection: Projection, partition: int, first: int, last: int) -> dict[int, bytes]:
    """Return the hash of every access between two offsets, both included."""
    return dict(projection.query(_SQL["hashes"], {"partition": partition, "first": first, "last": last}))
