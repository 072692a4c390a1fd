"""Runs of a workflow `order`, of whatever layout a test asks for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from eventlog import CheckpointStore
from eventlog.recovery import AlreadyOwned, Claim, Claims, EffectStore, WorkflowRun
from tests.waiting import eventually

PAST = datetime(2020, 1, 1, tzinfo=UTC)


def begun(store: CheckpointStore, *layout: Any, effects: EffectStore | None = None, **fields: Any) -> WorkflowRun:
    """A run that was accepted just now."""
    return WorkflowRun.start(store, workflow="order", version=2, layout=layout, value={"order": 7}, effects=effects, **fields)


def again(store: CheckpointStore, flow: WorkflowRun, *layout: Any, **fields: Any) -> WorkflowRun:
    """The same run, resumed."""
    return WorkflowRun.resume(store, flow.checkpoint_id, **{"workflow": "order", "version": 2, "layout": layout, **fields})


def claimed(claims: Claims, checkpoint_id: str) -> Claim | None:
    """A claim, if the run is not another's."""
    try:
        return claims.claim(checkpoint_id)
    except AlreadyOwned:
        return None


def once(take: Callable[[], Claim | None]) -> Claim:
    """A claim, as soon as the lease of a millisecond has ended."""
    taken: list[Claim] = []

    def tried() -> bool:
        taken.extend(each for each in [take()] if each is not None)
        return bool(taken)

    eventually(tried)
    return taken[0]
