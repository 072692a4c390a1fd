"""What a run has used: whole numbers by name, which only grow. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from eventlog.errors import InvalidRequest

TURNS = "turns"  # begun, repetitions included: each of them calls a model
STEPS = "steps"  # steps and branches begun, repetitions included
TOOL_CALLS = "tool_calls"  # handlers that were about to run
DURATION = "duration_micros"  # between the writes of a turn or step, by the monotonic clock of its process


def spent(usage: Mapping[str, int], amounts: Mapping[str, int]) -> dict[str, int]:
    """Usage with more spent. Raises `InvalidRequest` for an amount that is no whole number from 0 on."""
    grown = dict(usage)
    for name, amount in amounts.items():
        if type(amount) is not int or amount < 0:
            raise InvalidRequest(f"usage.{name}", f"{amount!r} is not a whole number from 0 on", hint="Usage never decreases.")
        grown[name] = grown.get(name, 0) + amount
    return grown


def at_least(usage: Mapping[str, int], reading: Mapping[str, int]) -> dict[str, int]:
    """Usage as the caller's own meter reads it. Raises `InvalidRequest` for a number below what is on record."""
    for name, value in reading.items():
        if type(value) is not int or value < usage.get(name, 0):
            raise InvalidRequest(
                f"usage.{name}", f"is {value!r} where {usage.get(name, 0)} were already spent", hint="Usage never decreases."
            )
    return {**usage, **reading}


def raised(usage: Mapping[str, int], floor: Mapping[str, int]) -> dict[str, int]:
    """The higher of two readings, name by name."""
    return {**floor, **{name: max(value, floor.get(name, 0)) for name, value in usage.items()}}
