"""The body of an agent's turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eventlog import payload
from eventlog.errors import InvalidRequest
from eventlog.recovery.agent_phases import AgentRecord
from eventlog.recovery.body import BodyCore
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.effects import EffectLedger
from eventlog.recovery.fields import own_copy
from eventlog.recovery.steps import Steps
from eventlog.recovery.stream import RunStream


class TurnCore(BodyCore[AgentRecord]):
    """A turn in flight."""

    def __init__(self, stream: RunStream[AgentRecord], effects: EffectLedger | None) -> None:
        phase = stream.record.in_flight()
        super().__init__(
            stream,
            effects,
            what=f"turn {phase.turn}",
            place=f"{stream.checkpoint.id}/turn-{phase.turn}",
            announced=lambda record: record.in_flight().effects,
            announce=AgentRecord.announce,
        )
        self.number = phase.turn
        self.attempt = phase.attempt

    def commit_steps(self, state: Any, usage: Mapping[str, int] | None) -> Steps[None]:
        """Makes the stable phase durable."""
        kept = own_copy(state)
        text = payload.dump_json(kept)
        return self.end_steps(lambda record: record.stable(kept, text), Boundary.TURN_STABLE, usage)


def begun(turn: TurnCore | None) -> TurnCore:
    """A turn that was entered. Raises `InvalidRequest` for one that was not."""
    if turn is None:
        raise InvalidRequest("turn", "has not begun", hint="Use it as a context manager: with run.turn() as turn.")
    return turn
