"""Who asks, and what the record says of it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from eventlog import CheckpointStore, Principal, Role


def somebody(role: Role | str | Sequence[Role | str], tenant: str | None = None) -> Principal:
    """A principal that no other test has."""
    return Principal(f"subject-{uuid.uuid4().hex[:12]}", tenant, [role] if isinstance(role, str) else role)


def trail(store: CheckpointStore, **parameters: Any) -> list[dict[str, Any]]:
    """The rows of the access report, by column."""
    table = store.catalog.report("access", parameters)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def outcomes(store: CheckpointStore, **parameters: Any) -> list[tuple[str, str]]:
    """Action and outcome of each access, in order."""
    return [(row["action"], row["outcome"]) for row in trail(store, **parameters)]
