"""Revisions in the order of the log, for whoever follows it."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from projections import events
from projections.engine import Projection
from projections.question import limited
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
