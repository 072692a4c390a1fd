"""How a store stands to a policy: what is due, overdue, held and otherwise kept, deleted or erased, by tenant, kind and rule."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from eventlog.checkpoint import from_millis
from eventlog.erasure.register import register_of
from eventlog.privacy.principals import Operation
from eventlog.projection_errors import translated
from eventlog.retention.applied import applications
from eventlog.retention.evaluation import Kept
from eventlog.retention.plan import Plan
from projections.retention import kinds

if TYPE_CHECKING:
    from eventlog.store import CheckpointStore


class Standing(NamedTuple):
    """One line. `due` goes when the next plan is applied; `overdue`, a part of it, has been due for longer than the policy's grace.

    `held`, `in_flight` and `kept_otherwise` are due too, and stay. `deleted` are those that applied plans have deleted so far, with the
    bytes of all their revisions. `erased` are those of which the erasure register has it, begun erasures included; nobody's rule says that
    they go, so `rule` is None there.
    """

    tenant: str
    kind: str
    rule: str | None
    due: int
    overdue: int
    due_bytes: int
    due_since: datetime | None
    held: int
    in_flight: int
    kept_otherwise: int
    deleted: int
    deleted_bytes: int
    erased: int


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
    erased: int = 0


def retention_report(store: CheckpointStore, plan: Plan) -> list[Standing]:
    """From a plan that was just made, every plan that was applied, and the register of erasures."""
    found: defaultdict[tuple[str, str, str | None], _Counts] = defaultdict(_Counts)
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
    with store.entrusted(Operation.RETENTION_LOG, limited=True) as lent:
        for application in applications(lent):
            for (tenant, kind, rule), (checkpoints, stored_bytes) in application.deleted.items():
                found[tenant, kind, rule].deleted += checkpoints
                found[tenant, kind, rule].deleted_bytes += stored_bytes
        for tenant, kind, checkpoints in _erased(lent):
            found[tenant, kind, None].erased = checkpoints
    lines = []
    for key, counts in sorted(found.items(), key=lambda each: (each[0][:2], each[0][2] or "")):
        since = None if counts.due_since is None else from_millis(counts.due_since)
        lines.append(Standing(*key, **{**asdict(counts), "due_since": since}))
    return lines


def _erased(store: CheckpointStore) -> list[tuple[str, str, int]]:
    register = register_of(store.log.directory, store.log.identity.store_id)
    with translated():
        return kinds(store.catalog.projection(), sorted(register.erased()), tenant=store.tenant)
