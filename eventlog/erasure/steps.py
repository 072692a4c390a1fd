"""The points that an erasure passes, in order: what a process can die between.

By default nobody listens. A test does, to kill a real process at exactly that point and to start the erasure again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from enum import Enum


class Step(Enum):
    """Where an erasure is, and what holds there."""

    CHECKED = "nothing is held; nothing was done"
    DELETED = "every checkpoint has its DELETED event; no payload was touched"
    REGISTERED = "the register names them: from here on there is no way back"
    KEYS_DESTROYED = "their data keys are gone"
    LOG_EMPTIED = "embedded: their bodies are out of the log's table, but not out of its files"
    LOG_REWRITTEN = "embedded: no file of the log has a body of theirs"
    PROJECTION_EMPTIED = "their bodies are out of the projection's tables, but not out of its file"
    PROJECTION_REWRITTEN = "no file of the projection has a body of theirs"
    MANIFEST_PREPARED = "a segment's manifest accepts the file with the bodies and the one without"
    SEGMENT_EXCHANGED = "the segment has the file without; its manifest still accepts both"
    ARCHIVE_REWRITTEN = "no segment has a body of theirs"
    CERTIFIED = "the certificate is written; the register does not name it"


_listener: Callable[[Step], None] | None = None


def passed(step: Step) -> None:
    """Says that an erasure is at a step."""
    if _listener is not None:
        _listener(step)


@contextlib.contextmanager
def listening(listener: Callable[[Step], None]) -> Iterator[None]:
    """Calls `listener` at every step that this process passes. For tests; one at a time."""
    global _listener
    if _listener is not None:
        raise RuntimeError("somebody else listens already")
    _listener = listener
    try:
        yield
    finally:
        _listener = None
