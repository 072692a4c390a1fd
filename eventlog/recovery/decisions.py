"""What a person may decide about a run that was left in flight, and how that stands in its phase. Pure: no I/O, no clock.

What each decision makes of a run: `decided_runs.py`. How it is committed: `deciding.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from eventlog.checkpoint import MAX_ACTOR, MAX_REASON, check_text
from eventlog.errors import InvalidPayload, InvalidRequest, SchemaMismatch
from eventlog.recovery.fields import a_count, a_text, an_object, others

_FIELDS = frozenset({"choice", "actor", "reason", "revision", "what"})


class Decision(StrEnum):
    """What becomes of a run that is in flight."""

    RETRY = "retry"  # what is in flight may be repeated once, whatever the policy of whoever resumes it
    ROLL_BACK = "roll_back"  # the last stable revision's state is committed again; what was in flight is no longer
    MARK_FAILED = "mark_failed"  # it has ended, and is never gone on with


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision on record: who has decided what, and why, about `what` as it stood in `revision`."""

    choice: Decision
    actor: str
    reason: str
    revision: int
    what: str
    rest: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_text("actor", self.actor, MAX_ACTOR)
        check_text("reason", self.reason, MAX_REASON)
        for name, text in (("actor", self.actor), ("reason", self.reason)):
            if not text.strip():
                raise InvalidRequest(name, "must say something")

    def entry(self) -> dict[str, Any]:
        """As it stands in a phase."""
        return {
            **self.rest,
            "choice": self.choice.value,
            "actor": self.actor,
            "reason": self.reason,
            "revision": self.revision,
            "what": self.what,
        }


def written(decided: Decided | None) -> dict[str, Any]:
    """The part of a phase that says what was decided, where something was."""
    return {} if decided is None else {"decision": decided.entry()}


def read_decision(phase: Mapping[str, Any], fits: Decision, path: str) -> Decided | None:
    """The decision in a phase in which only one kind of decision can be.

    Raises `SchemaMismatch` for one that this version does not know, `InvalidPayload` for one that does not fit.
    """
    if "decision" not in phase:
        return None
    where = f"{path}.decision"
    fields = an_object(phase["decision"], where)
    choice = a_text(fields, "choice", where)
    if choice not in set(Decision):
        raise SchemaMismatch(f"unknown decision {choice!r:.60} about a run; this version knows {', '.join(Decision)}")
    if choice != fits:
        raise InvalidPayload(f"{where}.choice", f"is {choice}, in a phase where only {fits} can be")
    try:
        return Decided(
            fits,
            a_text(fields, "actor", where),
            a_text(fields, "reason", where),
            a_count(fields, "revision", where),
            a_text(fields, "what", where),
            others(fields, _FIELDS),
        )
    except InvalidRequest as error:
        raise InvalidPayload(f"{where}.{error.field}", error.problem) from error
