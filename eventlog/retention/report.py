"""How a store stands to a policy: what is due, overdue, held and otherwise kept, and what was deleted, by tenant, kind and rule."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from eventlog.checkpoint import from_millis
from eventlog.retention.applied import applications
from eventlog.retention.evaluation import Kept
from eventlog.retention.plan import Plan

if TYPE_CHECKING:
    from eventlog.store import CheckpointStore


class Standing(NamedTuple):
    """One line. `due` goes when the next plan is applied; `overdue`, a part of it, has been due for longer than the policy's grace.

    `held`, `in_flight` and `kept_otherwise` are due too, and stay. `deleted` are those that applied plans have deleted so far, with the
    bytes of all their revisions.
    """

    tenant: str
    kind: str
    rule: str
    due: int
    overdue: int
    due_bytes: int
    due_since: datetime | None
    held: int
    in_flight: int
    kept_otherwise: int
    deleted: int
    deleted_bytes: int


@dataclass
class _Counts:
    due: int = 0
    overdue: int = 0
    due_bytes: int = 0
    due_since: int | None = None
    held: int = 0
    in_flight: int = 0
    kept_otherwise: int = 0
    deleted: int = 0
    deleted_bytes: int = 0


def retention_report(store: CheckpointStore, plan: Plan) -> list[Standing]:
    """From a plan that was just made, and every plan that was applied."""
    found: defaultdict[tuple[str, str, str], _Counts] = defaultdict(_Counts)
    for item in plan.items:
        counts = found[item.tenant, item.kind, item.rule]
        counts.due += 1
        counts.overdue += plan.made_at - item.due_since > plan.grace
        counts.due_bytes += item.stored_bytes
        counts.due_since = item.due_since if counts.due_since is None else min(counts.due_since, item.due_since)
    for item in plan.kept:
        counts = found[item.tenant, item.kind, item.rule]
        counts.held += item.kept is Kept.HELD
        counts.in_flight += item.kept is Kept.IN_FLIGHT
        counts.kept_otherwise += item.kept not in (Kept.HELD, Kept.IN_FLIGHT)
    for application in applications(store):
        for key, (checkpoints, stored_bytes) in application.deleted.items():
            found[key].deleted += checkpoints
            found[key].deleted_bytes += stored_bytes
    lines = []
    for key, counts in sorted(found.items()):
        since = None if counts.due_since is None else from_millis(counts.due_since)
        lines.append(Standing(*key, **{**asdict(counts), "due_since": since}))
    return lines
