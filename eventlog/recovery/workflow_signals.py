"""How a run that waits for a signal is woken: once, by whoever is the first."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from eventlog.checkpoint import Checkpoint
from eventlog.errors import Conflict, InvalidRequest
from eventlog.ids import CheckpointId
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.errors import NotWaiting
from eventlog.recovery.fields import json_copy
from eventlog.recovery.steps import Advance, Load, Steps, Store
from eventlog.recovery.stream import RunStream
from eventlog.recovery.workflow_layout import WaitForSignal
from eventlog.recovery.workflow_phases import Waiting
from eventlog.recovery.workflow_record import WorkflowRecord


def wake_steps(stream: RunStream[WorkflowRecord], name: str, value: Any, signal_id: str | None) -> Steps[None]:
    """Wakes a run that waits for this signal, once. The signal that has woken it may come again."""
    woken = {"by": "signal", "value": json_copy(value), "signal_id": signal_id}
    if signal_id is not None and (not isinstance(signal_id, str) or not signal_id):
        raise InvalidRequest("signal_id", "must be a text that is not empty, or None")
    record, phase = stream.record, stream.record.phase
    if not any(isinstance(node, WaitForSignal) and node.name == name for node in record.identity.layout):
        raise InvalidRequest("signal", f"{name!r:.60} is no signal in the layout")
    if name in record.outputs:
        if signal_id is not None and record.outputs[name] == woken:
            return
        raise NotWaiting(stream.checkpoint.id, signal=name, found="it was woken before")
    if not isinstance(phase, Waiting) or phase.step != name:
        raise NotWaiting(stream.checkpoint.id, signal=name, found=_where(record))
    yield Advance(stream, lambda record: record.wake(name, woken), Boundary.WORKFLOW_WOKEN)


def send_signal_steps(store: Store, checkpoint_id: CheckpointId | UUID | str, name: str, value: Any, signal_id: str | None) -> Steps[None]:
    """The same for somebody who knows nothing but the run's id."""
    while True:
        checkpoint: Checkpoint = yield Load(store, CheckpointId(checkpoint_id))
        stream = RunStream(store=store, checkpoint=checkpoint, record=WorkflowRecord.of(checkpoint))
        try:
            yield from wake_steps(stream, name, value, signal_id)
        except Conflict:
            continue  # somebody was faster; the next look says what that means for this signal
        return


def _where(record: WorkflowRecord) -> str:
    node, phase = record.next, record.phase
    if node is None:
        return f"it is {phase.name}"
    return f"it is {phase.name}, and {node.name} is next"
