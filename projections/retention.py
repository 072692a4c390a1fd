"""What retention asks: everything that could go, with its age and size, and what a legal hold lies on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from projections.engine import Projection
from projections.question import require_uuid
from projections.statements import named

_RETENTION = named("retention.sql")


class CandidateRow(NamedTuple):
    """A checkpoint that is not deleted. `recorded_at` is of its latest revision, `stored_bytes` of all of them together."""

    checkpoint_id: str
    partition: int
    offset: int
    recorded_at: int
    revision: int
    run_id: str
    tenant: str
    kind: str
    phase: str | None
    labels: str  # JSON text
    revisions: int
    stored_bytes: int


def candidates(projection: Projection, *, without: str, tenant: str | None = None) -> list[CandidateRow]:
    """Return every checkpoint that is not deleted, in the log's order within a partition; none of the tenant `without`."""
    return [CandidateRow._make(row) for row in projection.query(_RETENTION["candidates"], {"tenant": tenant, "without": without})]


def borne(projection: Projection, key: str, value: str) -> set[str]:
    """Return the checkpoints that bear a label, or have borne it in any revision."""
    return {row[0] for row in projection.query(_RETENTION["borne"], {"key": key, "value": value})}


def kinds(projection: Projection, checkpoint_ids: Sequence[str], *, tenant: str | None = None) -> list[tuple[str, str, int]]:
    """Return, of these checkpoints, how many there are by tenant and kind."""
    rows = projection.query(_RETENTION["kinds"], {"ids": list(checkpoint_ids), "tenant": tenant})
    return [(row[0], row[1], row[2]) for row in rows]


def covered(
    projection: Projection,
    *,
    without: str,
    tenant: str | None = None,
    checkpoint_id: str | None = None,
    run_id: str | None = None,
    label: tuple[str, str] | None = None,
) -> list[tuple[str, bool]]:
    """Return each checkpoint for which all that is given holds (a label: in any revision), and whether it is deleted; none of the tenant
    `without`.
    """
    key, value = (None, None) if label is None else label
    parameters = {
        "tenant": tenant,
        "without": without,
        "checkpoint_id": require_uuid("checkpoint_id", checkpoint_id),
        "run_id": require_uuid("run_id", run_id),
        "key": key,
        "value": value,
    }
    return [(row[0], row[1]) for row in projection.query(_RETENTION["covered"], parameters)]
