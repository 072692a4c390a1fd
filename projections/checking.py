"""What a projection holds, for whoever holds it against its log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from projections.engine import Projection
from projections.rows import RevisionRow
from projections.statements import named

_CHECKING = named("checking.sql")
_PAGE = 2_000


class HeadPlace(NamedTuple):
    """Which revision is a checkpoint's latest, where it stands, and its hash."""

    checkpoint_id: str
    partition: int
    offset: int
    revision: int
    event_hash: bytes


def rows_between(projection: Projection, partition: int, first: int, last: int) -> list[RevisionRow]:
    """Return the revisions at offsets `first` to `last` of a partition, without their events."""
    found = projection.query(_CHECKING["rows"], {"partition": partition, "first": first, "last": last})
    return [RevisionRow._make((*row, None)) for row in found]


def head_places(projection: Projection) -> Iterator[HeadPlace]:
    """Yield every head, by checkpoint id."""
    after: str | None = None
    while rows := projection.query(_CHECKING["heads"], {"after": after, "limit": _PAGE}):
        yield from map(HeadPlace._make, rows)
        after = rows[-1][0]


def quarantined_places(projection: Projection) -> frozenset[tuple[int, int]]:
    """Return partition and offset of every quarantined record."""
    return frozenset((row[0], row[1]) for row in projection.query(_CHECKING["quarantined_places"]))


def heads_unlike_revisions(projection: Projection, limit: int) -> list[tuple[str, int, int]]:
    """Return checkpoint id, partition and offset of heads that differ from the revision that they are."""
    return [(row[0], row[1], row[2]) for row in projection.query(_CHECKING["unlike_revisions"], {"limit": limit})]
