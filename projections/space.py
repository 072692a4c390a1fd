"""The space that a projection takes: less of it when it is closed, if that takes little time."""

from __future__ import annotations

import time

from projections.engine import Projection
from projections.settling import settle
from projections.statements import named

_SPACE = named("space.sql")

_LARGEST = 128 << 20  # bytes of a file that is written anew for its size: about 3 s
_SMALLEST = 2 << 20  # below, DuckDB's own blocks are most of it
_ROW_BYTES = 300  # a revision without its event, and its part of the index and of the blocks


def tidy(projection: Projection, *, seconds: float) -> None:
    """Settle what is not settled, as far as it takes no longer than `seconds`; give back the space of a small file that is mostly empty.

    For whoever is about to close a projection. Raises `ProjectionError` or `OSError`; the projection stays as it was.
    """
    until = time.monotonic() + seconds
    while projection.unsettled_bytes and time.monotonic() < until:
        settle(projection)
    if is_wasteful(projection):
        projection.compact()


def is_wasteful(projection: Projection) -> bool:
    """Return whether less than half of the file holds something, and writing it anew takes little time. Checkpoints the file.

    DuckDB uses the space of deleted rows again only when a whole row group is gone, and never gives a file's middle back. Larger files
    are left alone: what they have deleted stays below what they hold, because new rows use it.
    """
    if projection.path is None:
        return False
    projection.checkpoint()
    ((size,),) = projection.query(_SPACE["file"])
    if not _SMALLEST < size < _LARGEST:
        return False
    ((events, revisions),) = projection.query(_SPACE["used"])
    return bool(size > 2 * (events + revisions * _ROW_BYTES) + _SMALLEST)
