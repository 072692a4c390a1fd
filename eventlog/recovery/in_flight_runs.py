"""Which runs are in flight or waiting, oldest first: found in the projection's heads, with what only their payloads say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from eventlog.checkpoint import to_millis
from eventlog.errors import HistoryRemoved, InvalidPayload, InvalidRequest, NotFound, SchemaMismatch
from eventlog.ids import CheckpointId, RunId
from eventlog.no_payload import PAYLOAD_WITHHELD
from eventlog.recovery.decided_runs import decided, run_record, what
from eventlog.recovery.decisions import Decided
from eventlog.recovery.evidence import lease_of, owner_of, wake_of
from eventlog.recovery.stable_revision import revision_steps
from eventlog.recovery.steps import Call, Steps, Store

if TYPE_CHECKING:
    from projections.database import Table

DEFAULT_LIMIT = 100
MAX_LIMIT = 100_000


class RunInFlight(NamedTuple):
    """A run that is in flight or waits.

    `since` is when it came into that, by the log's clock, and `recorded_at` when its latest revision was written. `problem` says why its
    payload cannot be read, where what follows from that is None.
    """

    checkpoint_id: CheckpointId
    kind: str
    tenant: str
    phase: str
    what: str | None
    since: datetime
    recorded_at: datetime
    revision: int
    run_id: RunId
    actor: str | None
    owner: str | None
    lease_ends: datetime | None
    wakes_at: datetime | None
    decision: Decided | None
    problem: str | None


def in_flight_steps(
    store: Store, kind: str | None, tenant: str | None, older_than: datetime | None, limit: int
) -> Steps[tuple[list[RunInFlight], bool]]:
    """The oldest ones, and whether there are more. Payloads are read of these only."""
    if type(limit) is not int or not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequest("limit", f"{limit!r:.40} is not within 1 to {MAX_LIMIT}")
    filters: dict[str, Any] = {"kind": kind, "limit": limit + 1}
    if tenant is not None:
        filters["tenant"] = tenant
    if older_than is not None:
        filters["older_than"] = to_millis(older_than, "older_than")
    table: Table = yield Call(lambda _: store.catalog.report("recovery", filters), None)
    found: list[RunInFlight] = []
    for row in table.rows[:limit]:
        found.append((yield from _run_steps(store, dict(zip(table.columns, row, strict=True)))))
    return found, len(table.rows) > limit


def _run_steps(store: Store, row: Mapping[str, Any]) -> Steps[RunInFlight]:
    identity, recorded_at = CheckpointId(row["checkpoint_id"]), row["recorded_at"].astimezone(UTC)
    read: dict[str, Any] = dict.fromkeys(("what", "owner", "lease_ends", "wakes_at", "decision", "problem"))
    try:
        revision = yield from revision_steps(store, identity, row["revision"])
        if revision.checkpoint.payload is PAYLOAD_WITHHELD:
            raise InvalidPayload("$", "is withheld from this principal")
        record = run_record(revision.checkpoint)
    except (HistoryRemoved, InvalidPayload, NotFound, SchemaMismatch) as error:  # one that cannot be read hides no other
        read["problem"] = str(error)
    else:
        read |= {
            "what": what(record),
            "owner": owner_of(record),
            "lease_ends": lease_of(record, recorded_at),
            "wakes_at": wake_of(record),
            "decision": decided(record),
        }
    return RunInFlight(
        checkpoint_id=identity,
        kind=row["kind"],
        tenant=row["tenant"],
        phase=row["phase"],
        since=row["since"].astimezone(UTC),
        recorded_at=recorded_at,
        revision=row["revision"],
        run_id=RunId(row["run_id"]),
        actor=row["actor"],
        **read,
    )
