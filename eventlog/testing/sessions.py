"""Local reads: no barrier, but never behind what their own session has seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from eventlog.testing.history import Mode, Operation, Outcome
from eventlog.testing.stream import Stream
from eventlog.testing.verdict import Rule, Violation


class Sighting(NamedTuple):
    """An operation, and the revision that it showed; -1: none."""

    revision: int
    operation: Operation


class Sessions:
    """Keeps what is needed to judge local reads, of those checkpoints alone that were read locally."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], list[Sighting]] = {}
        self._read: dict[tuple[str, str], list[Sighting]] = {}

    def learn(self, operation: Operation) -> None:
        """First time through: which checkpoints a session reads locally."""
        if operation.mode is Mode.LOCAL and operation.checkpoint_id is not None:
            self._seen.setdefault((operation.session, operation.checkpoint_id), [])
            self._read.setdefault((operation.session, operation.checkpoint_id), [])

    def note(self, operation: Operation, stream: Stream) -> None:
        """Second time through: what was seen."""
        if not self._seen:
            return
        key = operation.session, stream.checkpoint_id
        seen = self._seen.get(key)
        if seen is None or operation.returned is None:
            return
        shown = stream.shown(operation)
        if shown is not None:
            seen.append(Sighting(shown, operation))
        if operation.mode is Mode.LOCAL and (shown is not None or operation.outcome is Outcome.NOT_FOUND):
            self._read[key].append(Sighting(-1 if shown is None else shown, operation))

    def violations(self) -> Iterator[Violation]:
        """Each local read that is behind something that its session had seen before it was invoked."""
        for (session, checkpoint_id), reads in self._read.items():
            seen = sorted(self._seen[session, checkpoint_id], key=_returned)
            best: Sighting | None = None
            index = 0
            for read in sorted(reads, key=lambda each: each.operation.invoked):
                while index < len(seen) and _returned(seen[index]) < read.operation.invoked:
                    if best is None or seen[index].revision > best.revision:
                        best = seen[index]
                    index += 1
                if best is not None and read.revision < best.revision:
                    detail = f"it had seen revision {best.revision}"
                    yield Violation(Rule.STALE_SESSION, checkpoint_id, read.revision, (read.operation, best.operation), detail)


def _returned(sighting: Sighting) -> int:
    assert sighting.operation.returned is not None
    return sighting.operation.returned
