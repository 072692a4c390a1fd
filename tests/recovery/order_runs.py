"""Runs of a workflow `order`, of whatever layout a test asks for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from eventlog import CheckpointStore
from eventlog.recovery import EffectStore, WorkflowRun

PAST = datetime(2020, 1, 1, tzinfo=UTC)


def begun(store: CheckpointStore, *layout: Any, effects: EffectStore | None = None, **fields: Any) -> WorkflowRun:
    """A run that was accepted just now."""
    return WorkflowRun.start(store, workflow="order", version=2, layout=layout, value={"order": 7}, effects=effects, **fields)


def again(store: CheckpointStore, flow: WorkflowRun, *layout: Any, **fields: Any) -> WorkflowRun:
    """The same run, resumed."""
    return WorkflowRun.resume(store, flow.checkpoint_id, **{"workflow": "order", "version": 2, "layout": layout, **fields})
