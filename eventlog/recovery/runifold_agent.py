"""`runifold.agent` 1 and `eventlog.agent` 1, each made of the other. Pure; docs/migrations.md has the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eventlog.recovery.fields import a_count, a_list, a_text, an_object, anything, others
from eventlog.recovery.migrations import CannotCarry, Envelope, Payload
from eventlog.recovery.runifold_fields import BAG, METERS, came_from_runifold, or_cannot, other_usage, usage_of

_FIELDS = frozenset(
    {"execution_id", "agent", "model", "transcript", "turns", "tool_calls", "delegations", "usage", "phase", "durable_conversation"}
)
_OURS = frozenset({"agent", "model", "definition_version", "effect_store", "turns", "state", "phase", BAG})
_COUNTED_APART = ("tool_calls", "delegations")  # besides in `usage`, which a shared budget may have moved further
_PHASES = ("ready_for_turn", "turn_in_flight", "completed")
_ATTEMPT = frozenset({"attempt", "since_ms", "effects"})


@dataclass(frozen=True, slots=True)
class AgentStep:
    """The step, for agents of a definition version."""

    definition_version: int

    def up(self, payload: Payload, envelope: Envelope) -> Payload:
        """A run of this library. Raises `CannotCarry`."""
        return or_cannot(lambda: self._up(payload, envelope))

    def down(self, payload: Payload, envelope: Envelope) -> Payload:
        """Runifold's checkpoint, of a run that came from there. Raises `CannotCarry`."""
        return or_cannot(lambda: self._down(payload, envelope))

    def _up(self, payload: Payload, envelope: Envelope) -> Payload:
        check(payload)
        phase = payload["phase"]
        if payload.get("durable_conversation") is not None and phase["state"] != "completed":
            raise CannotCarry("durable_conversation: the conversation is in Runifold's own store, and would miss what this run adds to it")
        if phase["state"] == "turn_in_flight":
            if phase["turn"] != payload["turns"] + 1:
                raise CannotCarry(f"turn {phase['turn']} is in flight where {payload['turns']} turns are completed")
            phase = {**phase, "attempt": 1, "since_ms": envelope.updated_at_ms, "effects": []}
        kept: dict[str, Any] = {
            "execution_id": payload["execution_id"],
            "counted_apart": {name: payload[name] - payload["usage"][name] for name in _COUNTED_APART},
            "other_usage": other_usage(payload),
            "other": others(payload, _FIELDS),
        }
        if "durable_conversation" in payload:
            kept["durable_conversation"] = payload["durable_conversation"]
        return {
            "agent": payload["agent"],
            "model": payload["model"],
            "definition_version": self.definition_version,
            "effect_store": None,
            "turns": payload["turns"],
            "state": {"transcript": payload["transcript"]},
            "phase": phase,
            BAG: kept,
        }

    def _down(self, payload: Payload, envelope: Envelope) -> Payload:
        kept = came_from_runifold(payload)
        state = an_object(payload["state"], "$.state")
        unknown = [*(f"state.{name}" for name in state if name != "transcript"), *(name for name in payload if name not in _OURS)]
        if unknown:
            raise CannotCarry(f"Runifold has no field for {', '.join(sorted(unknown))}")
        if envelope.moved_on and payload["phase"]["state"] == "turn_in_flight":
            raise CannotCarry("a turn was begun since, and Runifold has no field for when, how often and with which effects")
        usage = {name: envelope.usage.get(name, 0) for name in METERS}
        made = {
            **kept["other"],
            "execution_id": kept["execution_id"],
            "agent": payload["agent"],
            "model": payload["model"],
            "transcript": a_list(state, "transcript", "$.state"),
            "turns": payload["turns"],
            **{name: kept["counted_apart"][name] + usage[name] for name in _COUNTED_APART},
            "usage": {**kept["other_usage"], **usage},
            "phase": others(payload["phase"], _ATTEMPT),
        }
        if "durable_conversation" in kept:
            made["durable_conversation"] = kept["durable_conversation"]
        return made


def check(payload: Payload) -> None:
    """Raises `InvalidPayload` for what is no agent's payload of Runifold's, `CannotCarry` for a phase that it does not have."""
    a_text(payload, "execution_id", "$")
    a_text(payload, "agent", "$")
    model = an_object(anything(payload, "model", "$"), "$.model")
    a_text(model, "provider", "$.model")
    a_text(model, "name", "$.model")
    a_list(payload, "transcript", "$")
    for name in ("turns", *_COUNTED_APART):
        a_count(payload, name, "$")
    usage_of(payload)
    phase = an_object(anything(payload, "phase", "$"), "$.phase")
    state = a_text(phase, "state", "$.phase")
    if state not in _PHASES:
        raise CannotCarry(f"unknown phase {state!r:.60} of an agent of Runifold's; known are {', '.join(_PHASES)}")
    if state == "turn_in_flight":
        a_count(phase, "turn", "$.phase", 1)
    if state == "completed":
        anything(phase, "response", "$.phase")
