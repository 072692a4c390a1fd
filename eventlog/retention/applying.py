"""Does what a plan says, and no more: each item by compare-and-swap against the revision that was planned.

It may be killed at any point and started again with the same plan: the event that deletes an item follows from the plan, so what was
deleted before is found as done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from eventlog.checkpoint import MAX_REASON, Receipt, check_text, to_millis
from eventlog.errors import CheckpointError, Conflict, Deleted, HeldByLegalHold, InvalidRequest, NotFound, Quarantined
from eventlog.holds.deleting import Deletion
from eventlog.holds.reserved import ReservedStreams
from eventlog.ids import CheckpointId
from eventlog.log import Outcome
from eventlog.privacy.principals import Operation
from eventlog.recovery.effect_phases import EFFECT_KIND
from eventlog.retention.applied import Skipped, application_id, begin, end
from eventlog.retention.evaluation import RUN_KINDS, Item, Kept
from eventlog.retention.plan import Plan, Summary, summary

if TYPE_CHECKING:
    from eventlog.store import CheckpointStore

_BATCH = 500
_CLOCK_TOLERANCE_MS = 60_000  # between this machine's clock and the log's, of a plan that is applied as soon as it is made


class Applied(NamedTuple):
    """What came of a plan: everything that it named was deleted, now or by an earlier application of it, or is skipped by name."""

    record: CheckpointId
    deleted: Summary
    skipped: tuple[Skipped, ...]


def apply_plan(store: CheckpointStore, plan: Plan, *, reason: str, progress: Callable[[int], None] | None = None) -> Applied:
    """Deletes what the plan names, as the store's actor.

    Arguments:
        reason: why, 1 to 1,000 characters on one line; on record beside the plan's digest, the policy's and the actor.
        progress: gets the number of items that are done.

    Skipped, and named, is what has moved on since, what a hold was placed on, what is quarantined, what somebody else has deleted, and an
    effect whose run was skipped. Raises `InvalidRequest` for another store's plan and for one whose clock was ahead of the log's, and as
    `CheckpointStore.delete` does when the log cannot be reached: then the same plan can be applied again.
    """
    check_text("reason", reason, MAX_REASON)
    with store.entrusted(Operation.RETENTION_APPLY, limited=True) as lent:
        return _applied(lent, plan, reason, progress)


def _applied(store: CheckpointStore, plan: Plan, reason: str, progress: Callable[[int], None] | None) -> Applied:
    _check_fits(store, plan)
    streams = ReservedStreams.of(store)
    begun = begin(streams, plan, reason)
    ahead = plan.made_at - to_millis(begun.recorded_at)
    if ahead > _CLOCK_TOLERANCE_MS:
        problem = f"was made by a clock that was {ahead / 1000:.0f} s ahead of the log's: what it calls old may not be"
        raise InvalidRequest("plan", problem, hint="Set the clock of the machine that plans, and make another plan.")
    deleted: list[Item] = []
    skipped: list[Skipped] = []
    runs_kept: set[str] = set()
    for some in _batches(plan.items):
        needed = [each for each in some if each.kind == EFFECT_KIND and each.run_id in runs_kept]
        skipped += [Skipped(each.checkpoint_id, each.rule, Kept.RUN_KEPT.value, "") for each in needed]
        ready = [each for each in some if each.kind != EFFECT_KIND or each.run_id not in runs_kept]
        wanted = [Deletion(CheckpointId(each.checkpoint_id), each.revision, plan.event_id(each)) for each in ready]
        outcomes = store._deleter.delete(wanted, timeout=store.timeout, reason=reason) if wanted else []
        for item, outcome in zip(ready, outcomes, strict=True):
            if isinstance(outcome, Receipt):
                deleted.append(item)
                continue
            skipped.append(_skipped(item, outcome))
            if item.kind in RUN_KINDS and not isinstance(outcome, NotFound):
                runs_kept.add(item.run_id)
        if progress is not None:
            progress(len(deleted) + len(skipped))
    end(streams, plan, deleted, skipped)
    return Applied(application_id(plan.digest), summary(deleted), tuple(skipped))


def _check_fits(store: CheckpointStore, plan: Plan) -> None:
    if plan.store_id != store.log.identity.store_id:
        raise InvalidRequest("plan", f"is of store {plan.store_id}, and this is {store.log.identity.store_id}")
    if store.tenant is not None and plan.tenant != store.tenant:
        whose = "all tenants" if plan.tenant is None else f"tenant {plan.tenant}"
        raise InvalidRequest("plan", f"is of {whose} where this store is opened for {store.tenant}")


def _batches(items: Sequence[Item]) -> list[list[Item]]:
    """Effects last: whether their runs go is known by then."""
    found: list[list[Item]] = []
    for part in ([each for each in items if each.kind != EFFECT_KIND], [each for each in items if each.kind == EFFECT_KIND]):
        found += [part[start : start + _BATCH] for start in range(0, len(part), _BATCH)]
    return found


def _skipped(item: Item, outcome: Outcome) -> Skipped:
    """Why an item was not deleted. Raises what says nothing about the item, but about the log."""
    assert isinstance(outcome, CheckpointError)
    if isinstance(outcome, HeldByLegalHold):
        why = "held"
    elif isinstance(outcome, Deleted):
        why = "deleted by somebody else"
    elif isinstance(outcome, NotFound):
        why = "not found"
    elif isinstance(outcome, Quarantined):
        why = "quarantined"
    elif isinstance(outcome, Conflict) and outcome.checkpoint_id == item.checkpoint_id:
        why = "moved on"
    else:
        raise outcome
    return Skipped(item.checkpoint_id, item.rule, why, str(outcome))
