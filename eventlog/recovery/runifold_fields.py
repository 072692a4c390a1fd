"""What the payloads of Runifold's agents and workflows have in common, and where ours keep what they have no field for. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from eventlog.errors import CheckpointError
from eventlog.recovery.fields import a_count, an_object, anything, others
from eventlog.recovery.migrations import CannotCarry, Payload

BAG = "runifold"  # a field of ours beside the phase: what was Runifold's, kept for good
METERS = ("cost_microusd", "delegations", "duration_micros", "tokens", "tool_calls", "turns")
Result = TypeVar("Result")


def usage_of(payload: Payload) -> dict[str, int]:
    """What a payload says was used. Ours stands in the header of the revision. Raises `InvalidPayload`."""
    usage = an_object(anything(payload, "usage", "$"), "$.usage")
    return {name: a_count(usage, name, "$.usage") for name in METERS}


def other_usage(payload: Payload) -> dict[str, Any]:
    """Meters that this version does not know."""
    return others(payload["usage"], frozenset(METERS))


def came_from_runifold(payload: Payload) -> dict[str, Any]:
    """What a run of ours has kept of Runifold's checkpoint. Raises `CannotCarry` for one that has nothing of it."""
    kept = payload.get(BAG)
    if not isinstance(kept, dict):
        raise CannotCarry("it did not come from Runifold")
    return kept


def or_cannot(make: Callable[[], Result]) -> Result:
    """What cannot be read cannot be carried."""
    try:
        return make()
    except CheckpointError as error:
        raise CannotCarry(str(error)) from error
