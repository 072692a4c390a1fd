"""What happened to a store: one record an operation, and what the log holds in the end.

Times are nanoseconds of `time.monotonic_ns()`, on Linux CLOCK_MONOTONIC: one clock for all processes of one machine since it was
started, which nobody can set. An operation came before another one only if it returned before the other was invoked; whatever
overlaps, or touches, is concurrent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple


class _Word(StrEnum):
    """Hashed for every operation of a history: by the text's own hash, since Enum's is written in Python."""

    __hash__ = str.__hash__


class Action(_Word):
    """What was called. `compare_and_swap_many` is one COMMIT for each of its revisions, a list one LIST for each of its items."""

    COMMIT = "commit"
    DELETE = "delete"
    IMPORT = "import"
    RESOLVE = "resolve"
    LOAD = "load"
    HISTORY = "history"
    LIST = "list"
    SUBSCRIBE = "subscribe"


WRITES = frozenset({Action.COMMIT, Action.DELETE, Action.IMPORT})


class Mode(_Word):
    """How fresh a read has to be."""

    LATEST = "latest"  # behind a barrier: as of some moment within the call
    LOCAL = "local"  # what this session has seen, its own writes included
    REVISION = "revision"  # one revision, by its number
    PAST = "past"  # as of a position or a time, or whatever a subscription comes to


class Outcome(_Word):
    """What the caller was told."""

    COMMITTED = "committed"  # a receipt
    CONFLICT = "conflict"
    NOT_FOUND = "not_found"
    DELETED = "deleted"
    UNKNOWN = "unknown"  # the store says so, or it failed with an error of which nothing is known, or the caller was cancelled
    REFUSED = "refused"  # an error that means of a write: nothing was written; of a read: no answer
    READ = "read"
    ABSENT = "absent"  # of a resolve: not in the log, and never will be
    PENDING = "pending"  # it never returned: its process died


class Operation(NamedTuple):
    """One call, from its invocation to its return. Which fields are set depends on the action and on the outcome."""

    session: str  # the recorder, so the store object, that it went through
    thread: str
    action: Action
    invoked: int
    returned: int | None  # None: never, as far as is known
    outcome: Outcome
    checkpoint_id: str | None = None  # None: a resolve by event id alone
    event_id: str | None = None  # proposed, or asked about
    expected: int | None = None
    proposed: int | None = None  # the revision proposed; of a load by revision, the one asked for
    mode: Mode | None = None
    revision: int | None = None  # committed, read, or the last one of a deleted checkpoint
    actual: int | None = None  # of a conflict
    observed: str | None = None  # the event id of the revision that was read
    position: str | None = None
    duplicate: bool | None = None
    error: str | None = None  # the error's class and kind
    after: int | None = None  # of a history: behind which revision it starts
    seen: tuple[tuple[int, str], ...] | None = None  # of a history: revisions and event ids, in their order
    complete: bool | None = None  # of a history: read to its end, without a limit

    def __str__(self) -> str:
        asked = {"event": self.event_id, "expected": self.expected, "proposed": self.proposed, "mode": self.mode}
        told = {
            "revision": self.revision,
            "actual": self.actual,
            "observed": self.observed,
            "duplicate": self.duplicate or None,
            "error": self.error,
        }
        shown = [f"{name} {value}" for name, value in asked.items() if value is not None]
        answer = [f"{name} {value}" for name, value in told.items() if value is not None]
        if self.action in WRITES and self.expected is None:
            shown.insert(1, "expected absent")
        if self.seen is not None:
            answer.append(f"revisions {[revision for revision, _ in self.seen[-10:]]}")
        return (
            f"[{self.invoked} .. {'never' if self.returned is None else self.returned}] {self.session}/{self.thread}: "
            f"{self.action} {self.checkpoint_id or ''} ({', '.join(shown)}) -> {self.outcome}"
            + (f" ({', '.join(answer)})" if answer else "")
        )


Facts = Mapping[str, Any]  # the fields of an operation by name; those that are None are left out

_ACTIONS = {each.value: each for each in Action}
_MODES = {each.value: each for each in Mode}
_OUTCOMES = {each.value: each for each in Outcome}


def operation(session: str, facts: Facts) -> Operation:
    """The operation that facts state, as they were recorded or read back from JSON. Raises `ValueError` for what it does not know."""
    try:
        fields = dict(facts)
        fields["action"] = _ACTIONS[fields["action"]]
        fields["outcome"] = _OUTCOMES[fields.get("outcome", "pending")]
        if "mode" in fields:
            fields["mode"] = _MODES[fields["mode"]]
        if "seen" in fields:
            fields["seen"] = tuple((revision, event_id) for revision, event_id in fields["seen"])
        fields.setdefault("returned", None)
        return Operation(session, **fields)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not an operation of a history: {dict(facts)}") from error


class LogEntry(NamedTuple):
    """A revision that the log holds in the end."""

    revision: int
    event_id: str
    type: str = "REVISION"  # REVISION | IMPORTED | MIGRATED | DELETED


class Removed(NamedTuple):
    """Revisions that the log no longer holds, as compaction, retention or an import leaves them: nothing can be said about them."""

    first: int
    last: int


FinalLog = Mapping[str, Sequence[LogEntry | Removed]]  # checkpoint id -> what the log holds of it, in the log's order
