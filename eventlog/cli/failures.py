"""How a command ends: one exit code a kind of failure, and what is said about it on stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

from eventlog.errors import CheckpointError, ErrorKind

OK = 0
FINDINGS = 1  # the command did its work and found something wrong
USAGE = 2  # the command line itself
INTERRUPTED = 130  # Ctrl-C: 128 + SIGINT
READER_GONE = 141  # whoever read our output has closed it: 128 + SIGPIPE

# Never renumber: scripts test for these. A new kind takes the next free number.
EXIT_CODES: dict[ErrorKind, int] = {
    ErrorKind.NOT_FOUND: 3,
    ErrorKind.CONFLICT: 4,
    ErrorKind.INVALID_PAYLOAD: 5,
    ErrorKind.INVALID_REQUEST: 6,
    ErrorKind.TOO_LARGE: 7,
    ErrorKind.SCHEMA_MISMATCH: 8,
    ErrorKind.QUARANTINED: 9,
    ErrorKind.OUTCOME_UNKNOWN: 10,
    ErrorKind.OVERLOADED: 11,
    ErrorKind.HISTORY_REMOVED: 12,
    ErrorKind.STORAGE: 13,
    ErrorKind.UNAVAILABLE: 14,
    ErrorKind.CONFIGURATION: 15,
    ErrorKind.CLOSED: 16,
    ErrorKind.AMBIGUOUS: 17,
    ErrorKind.EFFECT_FAILED: 18,
    ErrorKind.RUN_FAILED: 19,
    ErrorKind.KEYS_UNAVAILABLE: 20,
    ErrorKind.DENIED: 21,
    ErrorKind.HELD: 22,
}

_MEANINGS = {
    OK: "done",
    FINDINGS: "done, and what is wrong was said: by verify, doctor, ingest, import, migrate, backup drill",
    USAGE: "the command line is wrong",
    **{code: kind.value for kind, code in EXIT_CODES.items()},
    INTERRUPTED: "interrupted (Ctrl-C)",
    READER_GONE: "the reader of the output has gone",
}


def exit_code(error: CheckpointError) -> int:
    """The exit code of an error."""
    return EXIT_CODES[error.kind]


def exit_code_table() -> str:
    """For the help: every exit code and what it means."""
    return "\n".join(f"  {code:>3}  {meaning}" for code, meaning in _MEANINGS.items())


def report(error: CheckpointError, *, as_json: bool) -> None:
    """Writes an error to stderr: `error:` and `hint:` lines for people, one JSON object on one line for programs."""
    if as_json:
        text = json.dumps({"error": _fields(error)}, default=str)
    else:
        text = f"error: {error}\nhint: {error.hint}"
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")


def _fields(error: CheckpointError) -> dict[str, Any]:
    fixed = {"kind": error.kind.value, "message": str(error), "hint": error.hint, "retry": error.retry.value, "exit_code": exit_code(error)}
    own = {name: value for name, value in vars(error).items() if not name.startswith("_") and name not in fixed}
    return {**fixed, **own}
