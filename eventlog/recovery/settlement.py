"""How somebody says for certain what became of an effect: its handler by raising, a reconciler or a person by an answer. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


class CertainFailure(Exception):
    """Raise it in a handler when the other side has refused for certain (a declined card, a 4xx): the effect is recorded as failed.

    Its text is on record. Every other exception but `NotExecuted` leaves the effect started: a time-out does not say that nothing happened.
    """


class NotExecuted(Exception):
    """Raise it in a handler when for certain nothing has reached the other side (no connection): the effect may be started again."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """What is known about an effect that was started and did not answer."""

    outcome: Literal["completed", "failed", "not_executed", "unknown"]
    output: Any = None
    message: str = ""

    @classmethod
    def completed(cls, output: Any) -> Settlement:
        """It has happened; `output` (JSON) is what the handler would have returned."""
        return cls("completed", output)

    @classmethod
    def failed(cls, message: str) -> Settlement:
        """The other side has refused it for certain."""
        return cls("failed", message=message)

    @classmethod
    def not_executed(cls) -> Settlement:
        """It has not happened and will not: whatever its class, it may be started again."""
        return cls("not_executed")

    @classmethod
    def unknown(cls) -> Settlement:
        """The other side cannot tell."""
        return cls("unknown")
