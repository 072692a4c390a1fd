"""Erasing: the events of some checkpoints lose their bodies, wherever a projection keeps them.

All of a checkpoint's events at once: a superseded one may be kept against its successor, and then holds what that says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from projections import events
from projections.engine import Projection
from projections.events import Place
from projections.forms import alone
from projections.statements import named

_ERASING = named("erasing.sql")


def selected(
    projection: Projection, *, run_id: str | None = None, tenant: str | None = None, label: tuple[str, str] | None = None
) -> list[str]:
    """Return the ids of the checkpoints of which some revision has all that is given, deleted ones too, in order."""
    key, value = label or (None, None)
    rows = projection.query(_ERASING["selected"], {"run_id": run_id, "tenant": tenant, "label": key, "value": value})
    return [row[0] for row in rows]


def kept(projection: Projection, checkpoint_id: str) -> dict[Place, bytes]:
    """Return the events of a checkpoint that the projection keeps, but for its deletion, by partition and offset."""
    rows = projection.query(_ERASING["places"], {"id": checkpoint_id})
    places = [(row[0], row[1]) for row in rows]
    return events.of_checkpoint(projection, checkpoint_id, rows[0][2], rows[-1][2], places) if rows else {}


def empty(projection: Projection, checkpoint_id: str, emptied: Mapping[Place, bytes]) -> int:
    """Put other events in the place of a checkpoint's, in one transaction; how many rows have changed. Its head must be its deletion.

    What was there stays in the file's free pages until `Projection.compact`.

    Args:
        emptied: all that is to be there but the deletion, by place. Where the projection keeps no events, only their sizes are noted.

    Raises:
        ProjectionError: it could not be written. Nothing was changed.
    """
    places = projection.query(_ERASING["places"], {"id": checkpoint_id})
    with projection.writing() as writer:
        changed = 0
        if projection.identity.keep_events and places:
            writer.execute(_ERASING["forget_unsettled"], {"id": checkpoint_id})
            writer.execute(_ERASING["forget_superseded"], {"id": checkpoint_id})
            _keep(writer, checkpoint_id, places, emptied)
        if emptied:
            sizes = {
                "id": checkpoint_id,
                "partitions": [partition for partition, _ in emptied],
                "offsets": [offset for _, offset in emptied],
                "sizes": [len(event) for event in emptied.values()],
            }
            changed += int(writer.execute(_ERASING["resize"], sizes).fetchall()[0][0])
        changed += int(writer.execute(_ERASING["empty_quarantine"], {"id": checkpoint_id}).fetchall()[0][0])
    projection.count_unsettled()
    return changed


def _keep(
    writer: duckdb.DuckDBPyConnection, checkpoint_id: str, places: Sequence[tuple[int, int, int]], emptied: Mapping[Place, bytes]
) -> None:
    rows = []
    for partition, offset, revision in places:
        if (partition, offset) in emptied:
            form, stored = alone(emptied[partition, offset])
            rows.append((checkpoint_id, revision, partition, offset, None, stored, form))
    with writer.appender("superseded") as appender:
        appender.append_rows(rows)
