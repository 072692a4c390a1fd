"""What the errors of the store say to programs."""

from __future__ import annotations

from enum import StrEnum


class ErrorKind(StrEnum):
    """What went wrong, for programs. The values are stable; the command line's exit codes derive from them."""

    NOT_FOUND = "NOT_FOUND"
    CONFLICT = "CONFLICT"
    INVALID_PAYLOAD = "INVALID_PAYLOAD"
    INVALID_REQUEST = "INVALID_REQUEST"
    TOO_LARGE = "TOO_LARGE"
    SCHEMA_MISMATCH = "SCHEMA_MISMATCH"
    QUARANTINED = "QUARANTINED"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    OVERLOADED = "OVERLOADED"
    HISTORY_REMOVED = "HISTORY_REMOVED"
    STORAGE = "STORAGE"
    UNAVAILABLE = "UNAVAILABLE"
    CONFIGURATION = "CONFIGURATION"
    CLOSED = "CLOSED"
    AMBIGUOUS = "AMBIGUOUS"
    EFFECT_FAILED = "EFFECT_FAILED"
    RUN_FAILED = "RUN_FAILED"
    KEYS_UNAVAILABLE = "KEYS_UNAVAILABLE"
    DENIED = "DENIED"
    HELD = "HELD"


class Retry(StrEnum):
    """What a program may do about an error."""

    NEVER = "never"  # the same call fails again
    RELOAD = "reload"  # load the current revision and decide anew
    RESOLVE = "resolve"  # ask resolve() what became of the event before anything else
    BACKOFF = "backoff"  # the same call may work later
