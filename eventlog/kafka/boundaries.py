"""The points that a writer passes on its way, in the order of the protocol: what a process can die or be stopped between.

The code says at each of them that it is there; by default nobody listens, which costs a call (0.1 us, measured). A test listens, to stop or
kill a real process at exactly that point (tests/faults/kafka), and holds this list against the code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from enum import Enum


class Boundary(Enum):
    """Where a writer is, and what holds there. The first four are a take-over's, the others a transaction's."""

    FENCING = "a new producer is made; an earlier owner can still commit"
    FENCED = "init is answered: earlier owners are fenced, and what they had open is decided"
    BARRIER_SET = "the high watermark is known; this process may not have seen all that lies before it"
    CAUGHT_UP = "the own tail has come that far: the heads in memory are the true ones"
    VALIDATING = "proposals are taken from the queue"
    VALIDATED = "losers are answered; nothing of the others has left the process"
    BEGUN = "the client has begun a transaction, of which the broker knows nothing"
    SENT = "one record is handed to the client, which sends it when it can"
    ACKNOWLEDGED = "the broker has one record, which nobody can see (in the client's thread)"
    COMMIT_SENT = "every record is acknowledged, and the client has been asked to commit"
    COMMIT_ANSWERED = "the coordinator has answered, which nothing relies on (in the client's thread)"
    TAIL_READ = "the tail has read records; this process does not show them yet (in the tail's thread)"
    TAIL_SEEN = "the tail has shown every event of the transaction; no caller has been told"
    ANSWERED = "the callers have been told"
    PROJECTING = "rows are about to be written to the projection (in its thread)"
    PROJECTED = "the projection has committed them together with their positions"


_listener: Callable[[Boundary], None] | None = None


def passed(boundary: Boundary) -> None:
    """Says that the calling thread is at a boundary."""
    if _listener is not None:
        _listener(boundary)


def is_heard() -> bool:
    """Whether anybody listens: for what costs more than a call to say."""
    return _listener is not None


@contextlib.contextmanager
def listening(listener: Callable[[Boundary], None]) -> Iterator[None]:
    """Calls `listener` at every boundary that this process passes, in the thread that passes it, which waits meanwhile. For tests.

    One listener at a time; it must not raise. No setting, address or environment variable leads here.
    """
    global _listener
    if _listener is not None:
        raise RuntimeError("somebody else listens already")
    _listener = listener
    try:
        yield
    finally:
        _listener = None
