"""What a check of `doctor` says."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(NamedTuple):
    """One thing looked at; `advice` is empty when there is nothing to do."""

    check: str
    state: State
    detail: str
    advice: str = ""


def lasting(seconds: float) -> str:
    """A length of time, in the unit that people would use."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
