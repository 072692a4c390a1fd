"""Lists of checkpoints: the latest revision of each, now or at a position of the past."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict, Unpack

from projections.engine import Projection
from projections.errors import InvalidQuery, PastGone
from projections.question import limited, require_position, require_uuid
from projections.statements import named

_HEADS = named("heads.sql")


class HeadSummary(NamedTuple):
    """One checkpoint of a list: its latest revision, without the payload. Units as in `RevisionRow`."""

    checkpoint_id: str
    partition: int
    offset: int
    recorded_at: int
    revision: int
    event_id: str
    run_id: str
    type: str
    tenant: str
    kind: str
    schema_version: int
    phase: str | None
    updated_at: int
    actor: str | None
    labels: dict[str, str]
    usage: dict[str, int]
    payload_size: int
    stored_size: int
    deleted: bool
    quarantined: bool


class HeadFilters(TypedDict, total=False):
    """What `list_heads` can filter by. A filter that is absent or None does not filter."""

    tenant: str | None
    kind: str | None
    phase: str | None
    labels: Mapping[str, str] | None  # all must be there, with these values
    run_id: str | None
    older_than: int | None  # recorded before, milliseconds since 1970 UTC
    newer_than: int | None  # recorded after
    include_deleted: bool


_TYPES: dict[str, type] = {
    "tenant": str,
    "kind": str,
    "phase": str,
    "labels": Mapping,
    "run_id": str,
    "older_than": int,
    "newer_than": int,
    "include_deleted": bool,
}


def list_heads(
    projection: Projection,
    *,
    at: Mapping[int, int] | None = None,
    after: str | None = None,
    limit: int = 100,
    **filters: Unpack[HeadFilters],
) -> list[HeadSummary]:
    """Return one page of checkpoints in the order of their ids.

    A checkpoint that is there throughout appears exactly once over all pages, whatever is applied meanwhile: ids do not move.

    Args:
        at: a position of the past, the next offset of every partition; the list is then what it was there. `quarantined` is as of now.
        after: the last id of the previous page.
        limit: rows at most, 1 to 1000.
        filters: see `HeadFilters`; the deleted are left out unless `include_deleted`.

    Raises:
        InvalidQuery: a filter is unknown or ill-typed, an id no UUID, the position incomplete or not reached yet.
        PastGone: `at` falls into a gap of some checkpoint (of this tenant and run, where given), so the list cannot be known.
    """
    parameters = _parameters(filters)
    parameters["after"] = require_uuid("after", after)
    parameters["limit"] = limited(limit)
    if at is None:
        rows = projection.query(_HEADS["list"], parameters)
    else:
        bounds = require_position(projection, at)
        gap = projection.query(_HEADS["gaps_across"], {**bounds, "tenant": parameters["tenant"], "run_id": parameters["run_id"]})
        if gap:
            raise PastGone(*gap[0])
        rows = projection.query(_HEADS["list_at"], {**parameters, **bounds})
    quarantined = projection.quarantined_ids()
    return [HeadSummary._make((*row, row[0] in quarantined)) for row in rows]


def _parameters(filters: HeadFilters) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(_TYPES)
    for name, value in filters.items():
        if name not in _TYPES:
            raise InvalidQuery(f"unknown filter {name!r}: known are {', '.join(_TYPES)}")
        if value is not None and (not isinstance(value, _TYPES[name]) or (_TYPES[name] is int and isinstance(value, bool))):
            raise InvalidQuery(f"filter {name} must be {_TYPES[name].__name__}, not {type(value).__name__}")
        values[name] = value
    labels = values.pop("labels") or {}
    if not all(isinstance(text, str) for pair in labels.items() for text in pair):
        raise InvalidQuery("filter labels must map text to text")
    values["label_keys"], values["label_values"] = (list(labels), list(labels.values())) if labels else (None, None)
    values["run_id"] = require_uuid("run_id", values["run_id"])
    values["include_deleted"] = bool(values["include_deleted"])
    return values
