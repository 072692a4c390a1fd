"""Revisions in the order of the log, for whoever follows it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

from projections import events
from projections.engine import Projection
from projections.question import limited
from projections.rows import GapRow
from projections.statements import named

_STREAM = named("stream.sql")
_MOST_BYTES = 16 << 20


class StreamRow(NamedTuple):
    """A revision's place, the log's clock (milliseconds since 1970 UTC) and its exact event."""

    partition: int
    offset: int
    recorded_at: int
    event: bytes | None


def since(projection: Projection, partition: int, start: int, end: int, limit: int) -> list[StreamRow]:
    """Return revisions of a partition from offset `start` on, below `end`: none only where there are none.

    Args:
        limit: rows at most, 1 to 1000. Fewer come when their events reach 16 MB.
    """
    parameters = {"partition": partition, "start": start, "end": end, "limit": limited(limit)}
    rows = projection.query(_STREAM["since"], parameters)
    reached = itertools.accumulate(row[5] for row in rows)
    rows = [row for row, size in zip(rows, reached, strict=True) if size - row[5] < _MOST_BYTES]
    found = events.of_blocks(projection, [row[3:5] for row in rows], {row[:2] for row in rows})
    return [StreamRow._make((*row[:3], found.get(row[:2]))) for row in rows]


def gaps_within(projection: Projection, partition: int, first: int, last: int) -> list[GapRow]:
    """Return the gaps that were noticed at offsets `first` to `last` of a partition."""
    found = projection.query(_STREAM["gaps_within"], {"partition": partition, "first": first, "last": last})
    return [GapRow._make(row) for row in found]


def oldest_behind(projection: Projection, offsets: Mapping[int, int]) -> int | None:
    """Return when the oldest revision behind a position was recorded (milliseconds since 1970 UTC), or None if there is none.

    Args:
        offsets: next offset by partition; of one that is not named, every revision lies behind it.
    """
    found = projection.query(_STREAM["oldest_behind"], {"partitions": list(offsets), "offsets": list(offsets.values())})
    return None if found[0][0] is None else int(found[0][0])
