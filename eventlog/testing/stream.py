"""One checkpoint before the checker: what its log holds, and what operations tell about when each revision was committed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from eventlog.testing.history import Action, LogEntry, Mode, Operation, Outcome, Removed
from eventlog.testing.verdict import Rule

DELETED = "DELETED"
IMPORTED = "IMPORTED"


class Stream:
    """A checkpoint's log is a sequence of commits, each at some moment. Every operation says of two revisions at most

    - `shown`: this one had been committed before I returned;
    - `denied`: this one, and so every later one, had not been committed at some moment within me, so not before I was invoked.

    With the first proposal of each event, before which it cannot have been committed either, these are all the bounds there are: the
    moments can be chosen if and only if no revision is shown before one below it (or itself) was proposed or denied.
    """

    def __init__(self, checkpoint_id: str, log: Sequence[LogEntry | Removed] = ()) -> None:
        self.checkpoint_id = checkpoint_id
        self.log = log
        self.entries = {each.revision: each for each in log if isinstance(each, LogEntry)}
        self.removed = [each for each in log if isinstance(each, Removed)]
        self.deletion = next((each.revision for each in self.entries.values() if each.type == DELETED), None)
        self.proposals: dict[int, list[Operation]] = {}  # of the event that is in the log, where it is
        self.strays: dict[int, list[Operation]] = {}  # that name the event, but cannot have put it there
        self.refusals: dict[int, Operation] = {}  # of the event in the log: the latest that says it is not, and never will be
        self.errors: dict[int, Operation] = {}  # of the event in the log: nothing was written by this call
        self._shown: dict[int, Operation] = {}
        self._shown_at: list[int] = []
        self._shown_from: list[Operation] = []
        self._begun_at: list[int] = []
        self._begun_to: list[Operation] = []

    # -- the log --------------------------------------------------------------------------------------------------

    def faults(self) -> Iterator[tuple[Rule, int, str]]:
        """What is wrong with the log in itself."""
        first = next(iter(self.log), None)
        if isinstance(first, LogEntry) and first.revision != 0 and first.type != IMPORTED:
            yield Rule.NOT_SEQUENTIAL, first.revision, "it begins there"
        for before, after in pairwise(self.log):
            end = before.last if isinstance(before, Removed) else before.revision
            start = after.first if isinstance(after, Removed) else after.revision
            if isinstance(before, LogEntry) and before.type == DELETED:
                yield Rule.AFTER_DELETION, start, f"deleted at revision {end}"
            elif start != end + 1:
                yield Rule.NOT_SEQUENTIAL, start, f"after revision {end}"
            elif isinstance(before, LogEntry) and isinstance(after, LogEntry) and after.type == IMPORTED:
                yield Rule.NOT_SEQUENTIAL, start, "an import behind other revisions"

    def special(self, revision: int) -> str | None:
        """The type of an entry that is no plain revision."""
        kind = self.entries[revision].type
        return kind if kind in (DELETED, IMPORTED) else None

    def is_removed(self, revision: int | None) -> bool:
        """Whether the log no longer holds a revision."""
        return revision is not None and any(each.first <= revision <= each.last for each in self.removed)

    def holds(self, revision: int | None, event_id: str | None) -> bool:
        """Whether this was a state of the log, as far as can be said."""
        entry = self.entries.get(-1 if revision is None else revision)
        return self.is_removed(revision) if entry is None else entry.event_id == event_id

    # -- what operations say --------------------------------------------------------------------------------------

    def shown(self, operation: Operation) -> int | None:
        """The revision that an operation shows to be there, if the log agrees that it ever was."""
        outcome = operation.outcome
        revision: int | None
        if outcome is Outcome.READ:
            if operation.action is Action.HISTORY:
                revision, observed = operation.seen[-1] if operation.seen else (None, None)
            else:
                revision, observed = operation.revision, operation.observed
            return revision if self.holds(revision, observed) else None
        if outcome is Outcome.COMMITTED:
            revision = operation.revision if operation.action is Action.RESOLVE else wanted(operation)
            return revision if self.holds(revision, operation.event_id) else None
        if outcome is Outcome.CONFLICT:
            revision = operation.actual
            return revision if revision in self.entries or self.is_removed(revision) else None
        return self.deletion if outcome is Outcome.DELETED else None

    def denied(self, operation: Operation, place: int | None) -> int | None:
        """The revision that an operation says is not there. `place`: where its event is in this log."""
        outcome = operation.outcome
        if outcome is Outcome.READ:
            if operation.mode is not Mode.LATEST:
                return None
            if operation.action is not Action.HISTORY:
                return None if operation.revision is None else operation.revision + 1
            return history_end(operation) + 1 if operation.complete else None
        if outcome is Outcome.CONFLICT:
            return 0 if operation.actual is None else operation.actual + 1
        if outcome is Outcome.NOT_FOUND:
            if operation.mode is Mode.REVISION:  # what was before an import, or is removed, is not there for ever
                return operation.proposed if operation.proposed in self.entries else None
            return None if operation.mode in (Mode.LOCAL, Mode.PAST) else 0
        return place if outcome is Outcome.ABSENT else None

    # -- when -----------------------------------------------------------------------------------------------------

    def note_shown(self, revision: int, operation: Operation) -> None:
        """Keeps the earliest return."""
        known = self._shown.get(revision)
        if operation.returned is not None and (known is None or known.returned is None or operation.returned < known.returned):
            self._shown[revision] = operation

    def note_refusal(self, revision: int, operation: Operation) -> None:
        """Keeps the latest invocation."""
        known = self.refusals.get(revision)
        if known is None or operation.invoked > known.invoked:
            self.refusals[revision] = operation

    def capable(self, revision: int) -> list[Operation]:
        """The proposals that can have put a revision into the log.

        That is none that was told that it was a retry, and none that was over before somebody was told that it never will be.
        """
        refusal = self.refusals.get(revision)
        told = self.proposals.get(revision, ())
        proposals = [each for each in told if not (each.duplicate and each.outcome is Outcome.COMMITTED)]
        if refusal is None:
            return proposals
        return [each for each in proposals if each.returned is None or each.returned >= refusal.invoked]

    def settle(self) -> None:
        """Once every operation has been noted, and before anything is asked."""
        self._shown_at = sorted(self._shown)
        earliest = accumulate((self._shown[revision] for revision in reversed(self._shown_at)), _earlier)
        self._shown_from = list(earliest)[::-1]
        firsts = {revision: min(able, key=lambda each: each.invoked) for revision in self.entries if (able := self.capable(revision))}
        self._begun_at = sorted(firsts)
        self._begun_to = list(accumulate((firsts[revision] for revision in self._begun_at), _later))

    def shown_from(self, revision: int) -> Operation | None:
        """The operation that was the first to return of those that show this revision or a later one."""
        index = bisect_left(self._shown_at, revision)
        return self._shown_from[index] if index < len(self._shown_from) else None

    def begun_to(self, revision: int) -> Operation | None:
        """The proposal that was the last to be invoked of the first ones of this revision and of each earlier one."""
        index = bisect_right(self._begun_at, revision)
        return self._begun_to[index - 1] if index else None


def wanted(operation: Operation) -> int | None:
    """Where a write belongs in the log; None if it can be nobody's successor."""
    expected, proposed = operation.expected, operation.proposed
    if operation.action is Action.IMPORT:
        return proposed
    return proposed if proposed == (0 if expected is None else expected + 1) else None


def history_end(operation: Operation) -> int:
    """The last revision that a history came to."""
    start = -1 if operation.after is None else operation.after
    return max(operation.seen[-1][0], start) if operation.seen else start


def _earlier(one: Operation, other: Operation) -> Operation:
    return other if other.returned is not None and one.returned is not None and other.returned < one.returned else one


def _later(one: Operation, other: Operation) -> Operation:
    return other if other.invoked > one.invoked else one
