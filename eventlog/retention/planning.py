"""From a store and a policy to a plan. Reads only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from eventlog.checkpoint import MAX_REASON, check_text
from eventlog.errors import ConfigurationError, HistoryRemoved, InvalidPayload, KeysUnavailable, NotFound, SchemaMismatch
from eventlog.holds.refusals import Wanted
from eventlog.holds.remembered import refusal_summaries
from eventlog.holds.reserved import TENANT
from eventlog.holds.targets import HoldIndex
from eventlog.position import Position
from eventlog.privacy.principals import Operation
from eventlog.projection_errors import translated
from eventlog.recovery.decided_runs import announced as announced_by
from eventlog.recovery.decided_runs import run_record
from eventlog.retention.evaluation import RUN_KINDS, Candidate, Surroundings, evaluate, is_in_flight
from eventlog.retention.plan import Override, Plan
from eventlog.retention.policy import Policy
from projections import retention
from projections.engine import Projection

if TYPE_CHECKING:
    from eventlog.store import CheckpointStore


def plan_retention(store: CheckpointStore, policy: Policy, *, override_floor: str | None = None, now: int | None = None) -> Plan:
    """What the policy makes of the store (of its tenant, where it is opened for one). Writes nothing.

    Arguments:
        override_floor: why the policy's floors do not count this time; it is on record in the plan and with its application.
        now: milliseconds since 1970 UTC to which ages are counted; this process's clock when None. What is applied is checked against
            the log's clock.

    Raises `ConfigurationError` for a policy that undercuts one of its floors, listing each rule, and as `CheckpointStore.list` does.
    """
    with store.entrusted(Operation.RETENTION_PLAN, limited=True) as lent:
        return _planned(lent, policy, override_floor, _now() if now is None else now)


def _planned(store: CheckpointStore, policy: Policy, override_floor: str | None, now: int) -> Plan:
    override = _override(store, policy, override_floor, now)
    with translated():
        projection = store.catalog.projection()
        position = Position.of(projection.positions())
        rows = retention.candidates(projection, without=TENANT, tenant=store.tenant)
        found = [Candidate._make(row) for row in rows]
        index = store._deleter.register.everywhere()
        around = Surroundings(
            holds_on=_holds_on(projection, index),
            quarantined=projection.quarantined_ids(),
            refused=dict(_refused(store)),
            announced=partial(announced, store, found),
            floor_overridden=override is not None,
        )
        items = evaluate(policy, found, now=now, around=around)
    return Plan.of(
        store_id=store.log.identity.store_id,
        tenant=store.tenant,
        position=str(position),
        made_at=now,
        made_by=store.actor,
        policy=policy.digest,
        grace=policy.grace,
        floor_override=override,
        looked_at=len(found),
        items=tuple(each for each in items if each.kept is None),
        kept=tuple(each for each in items if each.kept is not None),
    )


def announced(store: CheckpointStore, candidates: Iterable[Candidate]) -> frozenset[str] | None:
    """The effects that runs in flight have announced, whosever they are; None when one of these runs cannot be read."""
    found: set[str] = set()
    for each in candidates:
        if each.kind in RUN_KINDS and is_in_flight(each.kind, each.phase):
            try:
                record = run_record(store.load(each.checkpoint_id, at_least=Position()))
            except NotFound:
                continue  # gone since
            except (HistoryRemoved, InvalidPayload, KeysUnavailable, SchemaMismatch):
                return None
            found.update(effect.checkpoint_id for effect in announced_by(record))
    return frozenset(found)


def _override(store: CheckpointStore, policy: Policy, reason: str | None, now: int) -> Override | None:
    if reason is not None:
        check_text("override_floor", reason, MAX_REASON)
        return Override(actor=store.actor, at=now, reason=reason)
    undercuts = policy.undercuts()
    if undercuts:
        hint = "Raise the rule's age, or override the floor with a reason (--override-floor REASON), which is recorded."
        raise ConfigurationError("the policy undercuts its own floor", differences=undercuts, hint=hint)
    return None


def _holds_on(projection: Projection, index: HoldIndex) -> Callable[[Candidate], tuple[str, ...]]:
    borne = {label: retention.borne(projection, *label) for label in index.labels}

    def holds_on(each: Candidate) -> tuple[str, ...]:
        labels = [label for label, who in borne.items() if each.checkpoint_id in who]
        return index.on(checkpoint_id=each.checkpoint_id, run_id=each.run_id, tenant=each.tenant, labels=labels)

    return holds_on


def _refused(store: CheckpointStore) -> Iterable[tuple[str, tuple[int, Wanted]]]:
    for each in refusal_summaries(store):
        try:
            yield each.labels["checkpoint"], (int(each.labels["revision"]), Wanted(each.labels["wanted"]))
        except (KeyError, ValueError) as error:
            raise SchemaMismatch(f"checkpoint {each.id} revision {each.revision} is no refusal") from error


def _now() -> int:
    return time.time_ns() // 1_000_000
