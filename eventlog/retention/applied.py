"""The record of applied plans: a stream for each plan, which says who applied it and why, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from eventlog.checkpoint import Checkpoint, Receipt
from eventlog.errors import Conflict, SchemaMismatch
from eventlog.holds.reserved import APPLIED_KIND, TENANT, ReservedStreams, first
from eventlog.ids import CheckpointId, content_id
from eventlog.position import Position
from eventlog.privacy.principals import Operation
from eventlog.retention.evaluation import Item
from eventlog.retention.plan import Plan, summary

if TYPE_CHECKING:
    from eventlog.store import CheckpointStore

_PAGE = 1_000
_MOST_STARTS = 100  # of a plan that is applied again and again: the latest
_MOST_SKIPPED = 1_000  # that are named in the record; the rest are counted


class Skipped(NamedTuple):
    """An item that was planned and not deleted."""

    checkpoint_id: str
    rule: str
    why: str
    detail: str


class Start(NamedTuple):
    """That somebody began to apply a plan, or went on with it."""

    actor: str | None
    reason: str


class Application(NamedTuple):
    """An applied plan, as it is on record. `deleted`: (tenant, kind, rule) -> checkpoints and bytes of all their revisions."""

    id: CheckpointId
    plan: str
    policy: str
    tenant: str | None
    ended: bool
    planned: int
    deleted: dict[tuple[str, str, str], tuple[int, int]]
    skipped: int
    starts: tuple[Start, ...]
    floor_override: Mapping[str, Any] | None
    recorded_at: datetime


def application_id(plan: str) -> CheckpointId:
    """Where the application of a plan is on record, by the plan's digest."""
    return CheckpointId(content_id(APPLIED_KIND, plan))


def begin(streams: ReservedStreams, plan: Plan, reason: str) -> Receipt:
    """Puts on record that a plan is applied from here on."""
    start = {"actor": streams.actor, "reason": reason}

    def begun(before: dict[str, Any] | None) -> dict[str, Any]:
        if before is not None:
            return {**before, "starts": [*before["starts"], start][-_MOST_STARTS:], "phase": {"state": "applying"}}
        return {
            "plan": plan.digest,
            "policy": plan.policy,
            "tenant": plan.tenant,
            "position": plan.position,
            "made_at_ms": plan.made_at,
            "made_by": plan.made_by,
            "floor_override": None if plan.floor_override is None else plan.floor_override.model_dump(),
            "planned": summary(plan.items)._asdict(),
            "starts": [start],
            "phase": {"state": "applying"},
        }

    return _write(streams, plan, begun, {})


def end(streams: ReservedStreams, plan: Plan, deleted: Iterable[Item], skipped: list[Skipped]) -> None:
    """Puts on record what came of it."""
    checkpoints: Counter[tuple[str, str, str]] = Counter()
    stored: Counter[tuple[str, str, str]] = Counter()
    for each in deleted:
        key = (each.tenant, each.kind, each.rule)
        checkpoints[key] += 1
        stored[key] += each.stored_bytes
    rows = [
        {"tenant": tenant, "kind": kind, "rule": rule, "checkpoints": number, "stored_bytes": stored[tenant, kind, rule]}
        for (tenant, kind, rule), number in sorted(checkpoints.items())
    ]

    def ended(before: dict[str, Any] | None) -> dict[str, Any]:
        assert before is not None
        named = [each._asdict() for each in skipped[:_MOST_SKIPPED]]
        return {**before, "deleted": rows, "skipped": named, "skipped_count": len(skipped), "phase": {"state": "applied"}}

    _write(streams, plan, ended, {"deleted": checkpoints.total(), "deleted_bytes": stored.total()})


def applications(store: CheckpointStore) -> Iterator[Application]:
    """Every plan that was applied, or began to be."""
    with store.entrusted(Operation.RETENTION_LOG, limited=True) as lent:
        yield from _applications(lent)


def _applications(store: CheckpointStore) -> Iterator[Application]:
    streams = ReservedStreams.of(store)
    after: str | None = None
    while True:
        page = store.catalog.list(tenant=TENANT, kind=APPLIED_KIND, after=after, limit=_PAGE, at=None, run_id=None)
        for each in page.items:
            found = streams.revision(each.id, APPLIED_KIND, at_least=Position())
            if found is not None:
                made = _read(found.checkpoint, found.recorded_at)
                if store.tenant is None or made.tenant == store.tenant:
                    yield made
        after = page.next
        if after is None:
            return


def _write(
    streams: ReservedStreams, plan: Plan, change: Callable[[dict[str, Any] | None], dict[str, Any]], usage: Mapping[str, int]
) -> Receipt:
    """The next revision, as often as another application of the same plan comes first."""
    where = application_id(plan.digest)
    while True:
        found = streams.load(where, APPLIED_KIND)
        payload = change(None if found is None else found.payload)
        try:
            if found is None:
                return streams.commit(first(where, APPLIED_KIND, payload, labels={"plan": plan.digest, "policy": plan.policy}), None)
            spent = {name: max(number, found.usage.get(name, 0)) for name, number in {**found.usage, **usage}.items()}
            return streams.commit(found.next(payload, usage=spent), found.revision)
        except Conflict:
            continue


def _read(checkpoint: Checkpoint, recorded_at: datetime) -> Application:
    try:
        fields = checkpoint.payload
        return Application(
            checkpoint.id,
            fields["plan"],
            fields["policy"],
            fields["tenant"],
            fields["phase"]["state"] == "applied",
            fields["planned"]["checkpoints"],
            {
                (each["tenant"], each["kind"], each["rule"]): (each["checkpoints"], each["stored_bytes"])
                for each in fields.get("deleted", ())
            },
            fields.get("skipped_count", 0),
            tuple(Start(each["actor"], each["reason"]) for each in fields["starts"]),
            fields["floor_override"],
            recorded_at,
        )
    except (KeyError, TypeError) as error:
        raise SchemaMismatch(f"checkpoint {checkpoint.id} revision {checkpoint.revision} is no record of an applied plan") from error
