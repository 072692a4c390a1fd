"""`runifold.workflow` 4 and `eventlog.workflow` 1, each made of the other. Pure; docs/migrations.md has the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eventlog.recovery import workflow_layout
from eventlog.recovery.fields import a_count, a_list, a_text, an_object, anything, others
from eventlog.recovery.migrations import CannotCarry, Envelope, Payload
from eventlog.recovery.runifold_fields import BAG, METERS, came_from_runifold, or_cannot, other_usage, usage_of
from eventlog.recovery.workflow_layout import Layout, Node, Race, Step, WaitForSignal, WaitForTimer

_FIELDS = frozenset({"workflow", "workflow_version", "layout", "next_index", "value", "outputs", "usage", "phase"})
_OURS = frozenset({"workflow", "version", "layout", "effect_store", "value", "outputs", "fencing_token", "owner", "phase", BAG})
_PHASES = ("ready", "step_in_flight", "waiting", "parallel_in_flight", "race_in_flight", "completed")
_ATTEMPT = frozenset({"attempt", "since_ms", "effects"})


@dataclass(frozen=True, slots=True)
class WorkflowStep:
    """The step, for workflows whose layouts are known, by name and version."""

    layouts: Mapping[tuple[str, int], Layout]

    def up(self, payload: Payload, envelope: Envelope) -> Payload:
        """A run of this library. Raises `CannotCarry`."""
        return or_cannot(lambda: self._up(payload, envelope))

    def down(self, payload: Payload, envelope: Envelope) -> Payload:
        """Runifold's checkpoint, of a run that came from there. Raises `CannotCarry`."""
        return or_cannot(lambda: _down(payload, envelope))

    def _up(self, payload: Payload, envelope: Envelope) -> Payload:
        check(payload)
        layout = self._layout(payload)
        done = payload["next_index"]
        for node in layout[:done]:
            if not isinstance(node, Step):
                raise CannotCarry(
                    f"{node.name} is done, and its output does not say how it ended, as that of a {node.type} does here; "
                    f"name it as a plain step in the layout"
                )
        return {
            "workflow": payload["workflow"],
            "version": payload["workflow_version"],
            "layout": workflow_layout.written(layout),
            "effect_store": None,
            "value": payload["value"] if done == 0 else None,
            "outputs": payload["outputs"],
            "fencing_token": 0,
            "owner": None,
            "phase": _phase_up(payload, layout, envelope.updated_at_ms),
            BAG: {
                "next_index": done,
                "value": payload["value"],
                "other_usage": other_usage(payload),
                "other": others(payload, _FIELDS),
            },
        }

    def _layout(self, payload: Payload) -> Layout:
        name, version = payload["workflow"], payload["workflow_version"]
        if (name, version) not in self.layouts:
            raise CannotCarry(
                f"the layout of {name} {version} is not given: Runifold's checkpoints do not say what a step is; "
                f'pass it as runifold_migrations(layouts={{("{name}", {version}): [...]}})'
            )
        layout = self.layouts[name, version]
        named = [node.name for node in layout]
        if named != payload["layout"]:
            raise CannotCarry(f"its layout is {payload['layout']}, and the one that is given {named}")
        return layout


def check(payload: Payload) -> None:
    """Raises `InvalidPayload` for what is no workflow's payload of Runifold's, `CannotCarry` for a phase that it does not have."""
    a_text(payload, "workflow", "$")
    a_count(payload, "workflow_version", "$")
    layout = a_list(payload, "layout", "$")
    done = a_count(payload, "next_index", "$")
    anything(payload, "value", "$")
    outputs = an_object(anything(payload, "outputs", "$"), "$.outputs")
    if not all(isinstance(name, str) for name in layout) or done > len(layout) or set(outputs) != set(layout[:done]):
        raise CannotCarry(f"its outputs are of {sorted(outputs)}, where {done} steps of {layout} are done")
    usage_of(payload)
    phase = an_object(anything(payload, "phase", "$"), "$.phase")
    state = a_text(phase, "state", "$.phase")
    if state not in _PHASES:
        raise CannotCarry(f"unknown phase {state!r:.60} of a workflow of Runifold's; known are {', '.join(_PHASES)}")
    if state == "completed":
        anything(an_object(anything(phase, "outcome", "$.phase"), "$.phase.outcome"), "output", "$.phase.outcome")
    elif state != "ready":
        a_text(phase, "step", "$.phase")


# -- phases -----------------------------------------------------------------------------------------------------------


def _phase_up(payload: Payload, layout: Layout, written_ms: int) -> Payload:
    phase: Payload = payload["phase"]
    state = phase["state"]
    node = layout[payload["next_index"]] if payload["next_index"] < len(layout) else None
    if state == "step_in_flight":
        return {**phase, **_begun(written_ms)}
    if state in ("parallel_in_flight", "race_in_flight"):
        branches = {name: _branch_up(name, each, written_ms) for name, each in _branches(phase).items()}
        states = {each["state"] for each in branches.values()}
        if isinstance(node, Race) and {"completed", "in_flight"} <= states:
            raise CannotCarry(f"the race {phase['step']} is won, and what its other branches have come to is not known")
        return {**phase, "branches": branches}
    if state == "waiting":
        return {**phase, "until_ms": _until(phase, node, written_ms)}
    if state == "completed":
        outcome = phase["outcome"]
        if outcome.get("steps") != payload["outputs"] or outcome.get("usage") != payload["usage"] or len(outcome) != 3:
            raise CannotCarry("phase.outcome: its steps and usage are not those of the checkpoint")
        return {**others(phase, frozenset({"outcome"})), "response": outcome["output"]}
    return phase


def _branches(phase: Payload) -> dict[str, Any]:
    branches = an_object(anything(phase, "branches", "$.phase"), "$.phase.branches")
    for name, each in branches.items():
        an_object(each, f"$.phase.branches.{name}")
    return branches


def _branch_up(name: str, branch: Payload, written_ms: int) -> Payload:
    """Runifold begins all branches at once, so that one which has not ended is in flight."""
    state = a_text(branch, "state", f"$.phase.branches.{name}")
    if state not in ("in_flight", "completed", "failed", "cancelled"):
        raise CannotCarry(f"unknown state {state!r:.60} of the branch {name}")
    return {**branch, **_begun(written_ms)}


def _begun(written_ms: int) -> Payload:
    """Runifold counts no attempts, and its effects are not in the checkpoint."""
    return {"attempt": 1, "since_ms": written_ms, "effects": []}


def _until(phase: Payload, node: Node | None, written_ms: int) -> int | None:
    """Runifold's waits count from when they begin, which is when the phase was written."""
    wait = an_object(anything(phase, "wait", "$.phase"), "$.phase.wait")
    kind = a_text(wait, "kind", "$.phase.wait")
    wanted = {"timer": WaitForTimer, "signal": WaitForSignal, "signal_or_timeout": WaitForSignal}.get(kind)
    if wanted is None:
        raise CannotCarry(f"it waits for {kind!r:.60}, which has no counterpart here")
    if not isinstance(node, wanted):
        raise CannotCarry(f"it waits for a {kind} in {phase['step']}, which the given layout does not have as a {wanted.type}")
    if kind == "signal":
        return None
    return written_ms + a_count(wait, "delay_ms" if kind == "timer" else "timeout_ms", "$.phase.wait")


def _down(payload: Payload, envelope: Envelope) -> Payload:
    kept = came_from_runifold(payload)
    unknown = sorted(name for name in payload if name not in _OURS)
    if unknown:
        raise CannotCarry(f"Runifold has no field for {', '.join(unknown)}")
    if len(payload["outputs"]) != kept["next_index"]:
        raise CannotCarry("steps were done since, and what Runifold would hand to the next one is not known")
    if envelope.moved_on and payload["phase"]["state"].endswith("_in_flight"):
        raise CannotCarry("a step was begun since, and Runifold has no field for when, how often and with which effects")
    usage = {**kept["other_usage"], **{name: envelope.usage.get(name, 0) for name in METERS}}
    return {
        **kept["other"],
        "workflow": payload["workflow"],
        "workflow_version": payload["version"],
        "layout": [each["name"] for each in payload["layout"]],
        "next_index": kept["next_index"],
        "value": kept["value"],
        "outputs": payload["outputs"],
        "usage": usage,
        "phase": _phase_down(payload, usage),
    }


def _phase_down(payload: Payload, usage: Mapping[str, int]) -> Payload:
    phase: Payload = payload["phase"]
    if phase["state"] == "completed":
        outcome = {"output": phase["response"], "steps": payload["outputs"], "usage": dict(usage)}
        return {**others(phase, frozenset({"response"})), "outcome": outcome}
    if phase["state"] == "waiting":
        return others(phase, frozenset({"until_ms"}))
    if "branches" in phase:
        return {**phase, "branches": {name: others(each, _ATTEMPT) for name, each in phase["branches"].items()}}
    return others(phase, _ATTEMPT)
