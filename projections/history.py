"""The past: every revision of a checkpoint, what it was at a position, and which position a time means.

`revisions` has no index. A question about one checkpoint or event scans a 16-byte column (about 2 ms a million rows, measured), and
that of the superseded events for their bytes; one about a position is narrowed by zone maps.
"""

from __future__ import annotations

from collections.abc import Mapping

from projections import events
from projections.engine import Projection
from projections.errors import InvalidQuery, PastGone
from projections.question import limited, require_position, require_uuid
from projections.rows import GapRow, RevisionRow
from projections.statements import named

_HISTORY = named("history.sql")


def history(
    projection: Projection, checkpoint_id: str, *, after_revision: int = -1, limit: int = 100, at: Mapping[int, int] | None = None
) -> list[RevisionRow]:
    """Return one page of a checkpoint's revisions, oldest first. Removed ones are absent: `gaps` says which.

    Args:
        checkpoint_id: UUID as lower-case text.
        after_revision: the last revision of the previous page.
        limit: rows at most, 1 to 1000.
        at: a position of the past, the next offset of every partition; what came later is left out.

    Raises:
        InvalidQuery: an argument is ill-typed, or the position incomplete or not reached yet.
    """
    bounds: Mapping[str, object] = require_position(projection, at) if at is not None else {"partitions": None, "offsets": None}
    page = {
        "checkpoint_id": require_uuid("checkpoint_id", checkpoint_id),
        "after_revision": _whole("after_revision", after_revision),
        "limit": limited(limit),
    }
    return _rows(projection, "history", {**page, **bounds})


def revision(projection: Projection, checkpoint_id: str, number: int) -> RevisionRow | None:
    """Return one revision, or None if it was never seen. Raises `PastGone` if the log had removed it, `InvalidQuery`."""
    for row in history(projection, checkpoint_id, after_revision=_whole("number", number) - 1, limit=1):
        if row.revision == number:
            return row
    for gap in gaps(projection, checkpoint_id):
        if gap.first_revision <= number <= gap.last_revision:
            raise PastGone(checkpoint_id, gap.first_revision, gap.last_revision, gap.reason)
    return None


def as_of(projection: Projection, checkpoint_id: str, partition: int, offset: int) -> RevisionRow | None:
    """Return a checkpoint's latest revision below a position, or None if it did not exist there.

    Args:
        checkpoint_id: UUID as lower-case text.
        partition: the checkpoint's partition.
        offset: the position, as a next offset: records below it count.

    Raises:
        PastGone: the position falls into a gap, so which revision was the latest cannot be known.
        InvalidQuery: an argument is ill-typed.
    """
    place = {
        "checkpoint_id": require_uuid("checkpoint_id", checkpoint_id),
        "partition": _whole("partition", partition),
        "offset": _whole("offset", offset),
    }
    for gap in projection.query(_HISTORY["gap_across"], place):
        raise PastGone(*gap)
    return next(iter(_rows(projection, "as_of", place)), None)


def by_event_id(projection: Projection, event_id: str) -> RevisionRow | None:
    """Return the revision that an event committed, or None. Raises `InvalidQuery` if the id is no UUID as lower-case text."""
    return next(iter(_rows(projection, "by_event_id", {"event_id": require_uuid("event_id", event_id)})), None)


def by_position(projection: Projection, partition: int, offset: int) -> RevisionRow | None:
    """Return the revision recorded at a position of the log, or None. Raises `InvalidQuery`."""
    place = {"partition": _whole("partition", partition), "offset": _whole("offset", offset)}
    return next(iter(_rows(projection, "by_position", place)), None)


def position_at(projection: Projection, time: int) -> dict[int, int]:
    """Return the position that a time means: the next offset of every partition, by the log's own clock.

    The log's clock is the running maximum of `recorded_at` within a partition, so that a broker's clock that went back does not
    reorder the past. Records at exactly `time` lie below the position.

    Args:
        time: milliseconds since 1970 UTC.

    Raises:
        InvalidQuery: `time` is no whole number.
    """
    return dict(sorted(projection.query(_HISTORY["position_at"], {"time": _whole("time", time)})))


def gaps(projection: Projection, checkpoint_id: str) -> list[GapRow]:
    """Return the runs of revisions that the log no longer held. Raises `InvalidQuery` if the id is no UUID as lower-case text."""
    found = projection.query(_HISTORY["gaps"], {"checkpoint_id": require_uuid("checkpoint_id", checkpoint_id)})
    return [GapRow._make(row) for row in found]


def any_gap(projection: Projection) -> bool:
    """Return whether the log no longer held something, of whatever checkpoint."""
    return bool(projection.query(_HISTORY["any_gap"]))


def _rows(projection: Projection, name: str, parameters: Mapping[str, object]) -> list[RevisionRow]:
    """The rows of one checkpoint in the order of its revisions, with their events."""
    rows = [RevisionRow._make((*row, None)) for row in projection.query(_HISTORY[name], parameters)]
    if not rows:
        return rows
    places = {(row.partition, row.offset) for row in rows}
    found = events.of_checkpoint(projection, rows[0].checkpoint_id, rows[0].revision, rows[-1].revision, places)
    return [row._replace(event=found.get((row.partition, row.offset))) for row in rows] if found else rows


def _whole(name: str, value: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidQuery(f"{name} must be a whole number, not {value!r}")
    return value
