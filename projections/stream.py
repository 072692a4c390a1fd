"""Revisions in the order of the log, for whoever follows it."""

from __future__ import annotations

from typing import NamedTuple

from projections.engine import Projection
from projections.question import limited
from projections.statements import named

_STREAM = named("stream.sql")


class StreamRow(NamedTuple):
    """A revision's place, the log's clock (milliseconds since 1970 UTC) and its exact event."""

    partition: int
    offset: int
    recorded_at: int
    event: bytes | None


def since(projection: Projection, partition: int, start: int, end: int, limit: int) -> list[StreamRow]:
    """Return up to `limit` (1 to 1000) revisions of a partition from offset `start` on, below `end`."""
    parameters = {"partition": partition, "start": start, "end": end, "limit": limited(limit)}
    return [StreamRow._make(row) for row in projection.query(_STREAM["since"], parameters)]
