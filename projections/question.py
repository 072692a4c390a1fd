"""Checks on what is asked, the same for every question: refused by name, never silently corrected."""

from __future__ import annotations

import re
from collections.abc import Mapping

from projections.engine import Projection
from projections.errors import InvalidQuery

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
MAX_PAGE = 1001  # rows: a page of 1000, and the one that tells that there are more


def limited(limit: int) -> int:
    """Return `limit` if it is a page size, 1 to 1001."""
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_PAGE:
        raise InvalidQuery(f"limit must be a whole number from 1 to {MAX_PAGE}, not {limit!r}")
    return limit


def require_uuid(name: str, value: str | None) -> str | None:
    """Return `value` if it is None or a UUID as lower-case text, which is how every id here is written."""
    if value is not None and not (isinstance(value, str) and _UUID.fullmatch(value)):
        raise InvalidQuery(f"{name} must be a UUID as lower-case text, not {value!r}")
    return value


def require_position(projection: Projection, at: Mapping[int, int]) -> dict[str, list[int]]:
    """Return `at` as SQL parameters, if it names every partition and lies within what has been applied."""
    reached = projection.positions()
    if set(at) != set(reached):
        raise InvalidQuery(f"at must name every partition, 0 to {len(reached) - 1}")
    for partition, offset in at.items():
        if not isinstance(offset, int) or isinstance(offset, bool) or not 0 <= offset <= reached[partition]:
            raise InvalidQuery(
                f"at: offset {offset!r} of partition {partition} is not within 0 to {reached[partition]}, what has been applied"
            )
    return {"partitions": list(at), "offsets": list(at.values())}
