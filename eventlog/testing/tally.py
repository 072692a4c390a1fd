"""Counting what happened."""

from __future__ import annotations

from array import array
from collections import Counter

from eventlog.testing.history import WRITES, Action, FinalLog, LogEntry, Operation, Outcome
from eventlog.testing.verdict import Summary


class Tally:
    """Counts operations; needs sixteen bytes for each, to find how many were under way at once."""

    def __init__(self) -> None:
        self.removed = 0
        self._counts: Counter[tuple[Action, Outcome]] = Counter()
        self._duplicates = 0
        self._sessions: set[str] = set()
        self._invoked = array("q")
        self._returned = array("q")

    def count(self, operation: Operation) -> None:
        """One more."""
        self._counts[operation.action, operation.outcome] += 1
        self._sessions.add(operation.session)
        self._duplicates += operation.duplicate is True and operation.action in WRITES
        self._invoked.append(operation.invoked)
        if operation.returned is not None:
            self._returned.append(operation.returned)

    def summary(self, log: FinalLog) -> Summary:
        """What there is to say of all of them."""
        reads = [Outcome.READ, Outcome.NOT_FOUND, Outcome.DELETED]
        questions = set(Action) - WRITES - {Action.RESOLVE}
        return Summary(
            operations=len(self._invoked),
            committed=self._of(WRITES, Outcome.COMMITTED),
            duplicates=self._duplicates,
            conflicts=self._of(WRITES, Outcome.CONFLICT),
            unknown=self._of(WRITES, Outcome.UNKNOWN),
            pending=self._of(WRITES, Outcome.PENDING),
            settled=self._of({Action.RESOLVE}, Outcome.COMMITTED, Outcome.ABSENT),
            refused=self._of(WRITES, Outcome.REFUSED),
            reads=self._of(questions, *reads),
            not_found=self._of(set(Action), Outcome.NOT_FOUND),
            deleted=self._of(set(Action), Outcome.DELETED),
            checkpoints=sum(1 for entries in log.values() if entries),
            revisions=sum(isinstance(entry, LogEntry) for entries in log.values() for entry in entries),
            removed=self.removed,
            sessions=len(self._sessions),
            concurrency=self._concurrency(),
            seconds=(max(self._returned) - min(self._invoked)) / 1e9 if self._returned else 0.0,
        )

    def _of(self, actions: set[Action] | frozenset[Action], *outcomes: Outcome) -> int:
        return sum(self._counts[action, outcome] for action in actions for outcome in outcomes)

    def _concurrency(self) -> int:
        """Calls that never returned count until the end."""
        invoked, returned = sorted(self._invoked), sorted(self._returned)
        most = ended = 0
        for begun, moment in enumerate(invoked, start=1):
            while ended < len(returned) and returned[ended] < moment:
                ended += 1
            most = max(most, begun - ended)
        return most
