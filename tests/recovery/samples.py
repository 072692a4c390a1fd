"""Runs to begin, handlers that count outside, and looking at what is on record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eventlog import Checkpoint, CheckpointId, CheckpointStore, RunId
from eventlog.recovery import AgentRun, EffectStore, Model, Policy
from tests.store.samples import revisions

AGENT = "order-desk"
MODEL = Model("openai", "gpt-4.1")
DEFINITION = 3


def begun(store: CheckpointStore, *, effects: EffectStore | None = None, state: Any = None, **fields: Any) -> AgentRun:
    """A run that was accepted just now."""
    start: dict[str, Any] = {"agent": AGENT, "model": MODEL, "definition_version": DEFINITION, "effects": effects, **fields}
    return AgentRun.start(store, state={"messages": []} if state is None else state, **start)


def resumed(store: CheckpointStore, checkpoint_id: str, policy: Policy | None = None, **fields: Any) -> AgentRun:
    """A run resumed as the one that `begun` made."""
    resume: dict[str, Any] = {"agent": AGENT, "model": MODEL, "definition_version": DEFINITION, **fields}
    return AgentRun.resume(store, checkpoint_id, policy=policy, **resume)


def phases(store: CheckpointStore, checkpoint_id: str) -> list[str | None]:
    """The clear-text phases of a run, oldest first."""
    return [each.checkpoint.phase for each in revisions(store, checkpoint_id)]


def as_checkpoint(payload: Any, *, kind: str = "eventlog.agent", schema_version: int = 1) -> Checkpoint:
    """A payload as revision 0 of a checkpoint that nothing has used."""
    return Checkpoint.initial(CheckpointId.new(), RunId.new(), kind, schema_version, payload)


class Outside:
    """The other side: a file to which each call adds a line, so that a killed process cannot take it back."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def call(self, name: str) -> int:
        """A call arrives; how many of this name have, so far."""
        with self.file.open("a", encoding="utf-8") as lines:
            lines.write(f"{name}\n")
        return self.calls().count(name)

    def calls(self) -> list[str]:
        """Every call that has arrived, in order."""
        return self.file.read_text(encoding="utf-8").split() if self.file.exists() else []


class Lost(Exception):
    """The answer of the other side did not arrive."""
