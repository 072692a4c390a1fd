"""Whether a history kept the promises. Pure: no I/O, no clock.

The check is of linearizability (Herlihy and Wing, 1990): each operation must seem to happen at one moment between its invocation and its
return. In general that takes a search. Here it does not, since each event id is used once and the log gives the order in which writes took
effect: what is left are bounds in time, so the work grows with the number of operations (and n log n of those of one checkpoint).
`tests/testing/test_against_search.py` holds it against the search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from eventlog.testing.history import WRITES, Action, FinalLog, LogEntry, Operation, Outcome
from eventlog.testing.sessions import Sessions
from eventlog.testing.stream import DELETED, IMPORTED, Stream, history_end, wanted
from eventlog.testing.tally import Tally
from eventlog.testing.verdict import Rule, Verdict, Violation

NEVER = frozenset({Outcome.CONFLICT, Outcome.NOT_FOUND, Outcome.DELETED, Outcome.ABSENT})  # not in the log, and never will be
OPEN = frozenset({Outcome.UNKNOWN, Outcome.PENDING})
TYPES = {Action.DELETE: DELETED, Action.IMPORT: IMPORTED}


def check(operations: Iterable[Operation], log: FinalLog, *, limit: int = 100) -> Verdict:
    """Every violation in a history, given what the log holds in the end.

    Arguments:
        operations: everything that was done to these checkpoints, in any order, by everybody who wrote to them. It is gone through
            twice: a list, a journal or a `RecordedHistory`, not an iterator.
        log: for each checkpoint that anything was written to, what the log holds once nobody writes any more (`log_of`).
        limit: how many violations are listed; all are counted.

    Raises `TypeError` for an iterator.
    """
    if iter(operations) is operations:
        raise TypeError("the operations are gone through twice: give a list, a journal or a RecordedHistory, not an iterator")
    checker = _Checker(log)
    for operation in operations:
        checker.learn(operation)
    found: Counter[Rule] = Counter()
    listed: list[Violation] = []
    for violation in checker.violations(operations):
        found[violation.rule] += 1
        if len(listed) < limit:
            listed.append(violation)
    return Verdict(listed, found.total(), checker.tally.summary(log))


class _Checker:
    def __init__(self, log: FinalLog) -> None:
        self.streams = {checkpoint_id: Stream(checkpoint_id, entries) for checkpoint_id, entries in log.items()}
        self.tally = Tally()
        self.sessions = Sessions()
        self.places: dict[str, tuple[Stream, int]] = {}
        self.twice: list[tuple[Stream, LogEntry]] = []
        for stream in self.streams.values():
            for entry in stream.log:
                if isinstance(entry, LogEntry) and self.places.setdefault(entry.event_id, (stream, entry.revision)) != (
                    stream,
                    entry.revision,
                ):
                    self.twice.append((stream, entry))

    # -- first time through: bounds --------------------------------------------------------------------------------

    def learn(self, operation: Operation) -> None:
        """Notes what an operation tells about when revisions were committed."""
        self.tally.count(operation)
        self.sessions.learn(operation)
        stream = self.stream(operation)
        if stream is None:
            return
        shown = stream.shown(operation)
        if shown is not None and self.is_right(operation, stream):
            stream.note_shown(shown, operation)
        place = self.place(operation, stream)
        if place is None:
            return
        if operation.outcome in NEVER:
            stream.note_refusal(place, operation)
        elif operation.action in WRITES:
            if operation.outcome is Outcome.REFUSED:
                stream.errors[place] = operation
            elif self.is_right(operation, stream):
                stream.proposals.setdefault(place, []).append(operation)
            else:
                stream.strays.setdefault(place, []).append(operation)

    def stream(self, operation: Operation) -> Stream | None:
        """The checkpoint that an operation is about; None: a question about an event that is nowhere."""
        checkpoint_id = operation.checkpoint_id
        if checkpoint_id is None:
            there = self.places.get(operation.event_id or "")
            return None if there is None else there[0]
        stream = self.streams.get(checkpoint_id)
        if stream is None:
            stream = self.streams[checkpoint_id] = Stream(checkpoint_id)
        return stream

    def place(self, operation: Operation, stream: Stream) -> int | None:
        """Where the operation's event is in this checkpoint's log."""
        there = self.places.get(operation.event_id) if operation.event_id is not None else None
        return None if there is None or there[0] is not stream else there[1]

    def is_right(self, operation: Operation, stream: Stream) -> bool:
        """Whether the log has a write where it belongs and as what it is, or no longer says."""
        if operation.action not in WRITES or operation.outcome not in (Outcome.COMMITTED, *OPEN):
            return True
        revision = wanted(operation)
        place = self.place(operation, stream)
        if place is None:
            return operation.event_id not in self.places and stream.is_removed(revision)
        return place == revision and TYPES.get(operation.action) == stream.special(place)

    # -- second time through: judgement ----------------------------------------------------------------------------

    def violations(self, operations: Iterable[Operation]) -> Iterator[Violation]:
        """All there are."""
        for stream in self.streams.values():
            stream.settle()
        yield from self.judge_log()
        for operation in operations:
            about = self.stream(operation)
            if about is None:
                if operation.outcome is Outcome.COMMITTED:
                    yield Violation(Rule.FALSE_RESOLVE, None, operation.revision, (operation,), "the log does not have it")
                continue
            yield from self.judge(operation, about)
            self.sessions.note(operation, about)
        yield from self.sessions.violations()

    def judge_log(self) -> Iterator[Violation]:
        """The log in itself, and where its events come from."""
        for stream, entry in self.twice:
            first, revision = self.places[entry.event_id]
            detail = f"event {entry.event_id}, also at revision {revision} of {first.checkpoint_id}"
            yield Violation(Rule.TWICE_IN_LOG, stream.checkpoint_id, entry.revision, (), detail)
        for stream in self.streams.values():
            for rule, revision, detail in stream.faults():
                yield Violation(rule, stream.checkpoint_id, revision, (), detail)
            for revision, entry in stream.entries.items():
                if self.places[entry.event_id] == (stream, revision) and not stream.capable(revision):
                    yield from self.without_origin(stream, entry)

    def without_origin(self, stream: Stream, entry: LogEntry) -> Iterator[Violation]:
        """Of an event that no proposal can have put into the log."""
        revision, strays = entry.revision, tuple(stream.strays.get(entry.revision, ()))
        proposals = tuple(stream.proposals.get(revision, ()))
        refusal, error = stream.refusals.get(revision), stream.errors.get(revision)
        named = f"event {entry.event_id}"
        if refusal is not None:
            rule = Rule.FALSE_RESOLVE if refusal.action is Action.RESOLVE else Rule.CONFLICT_IN_LOG
            yield Violation(rule, stream.checkpoint_id, revision, (refusal, *proposals), named)
        elif error is not None:
            yield Violation(Rule.REFUSAL_IN_LOG, stream.checkpoint_id, revision, (error,), named)
        elif not any(each.outcome is Outcome.COMMITTED for each in strays):  # that one is misplaced, and says so itself
            yield Violation(Rule.NOBODY_PROPOSED, stream.checkpoint_id, revision, strays, named)

    def judge(self, operation: Operation, stream: Stream) -> Iterator[Violation]:
        """One operation: what it says of the log, and of real time."""
        if operation.outcome in OPEN or operation.outcome is Outcome.REFUSED:
            return
        about = stream.checkpoint_id
        contradicted = self.contradicted(operation, stream)
        if contradicted is not None:
            rule, detail = contradicted
            yield Violation(rule, about, operation.revision, (operation,), detail)
            return
        shown = stream.shown(operation)
        if shown is not None:
            begun = stream.begun_to(shown)
            if begun is not None and operation.returned is not None and operation.returned < begun.invoked:
                yield Violation(_early(operation), about, shown, (operation, begun), f"revision {shown} had not been proposed")
        place = self.place(operation, stream)
        denied = stream.denied(operation, place)
        if denied is not None and (known := stream.shown_from(denied)) is not None and _before(known, operation):
            if operation.outcome is not Outcome.ABSENT or stream.capable(denied):
                yield self.outdated(operation, stream, denied, known)
        elif place is not None and operation.outcome in NEVER and stream.capable(place):
            yield from self.refused(operation, stream, place)

    def contradicted(self, operation: Operation, stream: Stream) -> tuple[Rule, str] | None:
        """What an operation says that the log never says, whenever."""
        outcome, action = operation.outcome, operation.action
        if outcome is Outcome.COMMITTED:
            return self.false_receipt(operation, stream)
        if outcome is Outcome.CONFLICT:
            entry = stream.entries.get(-1 if operation.actual is None else operation.actual)
            if operation.actual is not None and (entry is None or entry.type == DELETED) and not stream.is_removed(operation.actual):
                return Rule.ACTUAL_NEVER_CURRENT, f"the log never had revision {operation.actual} to follow"
            if operation.actual == operation.expected and wanted(operation) is not None:
                return Rule.FALSE_CONFLICT, "it was the successor of the very revision that is named"
        if outcome is Outcome.DELETED and (stream.deletion is None or operation.revision not in (None, stream.deletion)):
            return Rule.FALSE_DELETED, "the log has no deletion" if stream.deletion is None else f"the log has it at {stream.deletion}"
        if outcome is Outcome.READ:
            if action is Action.HISTORY:
                return _wrong_history(operation, stream)
            if not stream.holds(operation.revision, operation.observed):
                return Rule.NOT_A_STATE, f"revision {operation.revision} as event {operation.observed}"
        return None

    def false_receipt(self, operation: Operation, stream: Stream) -> tuple[Rule, str] | None:
        """A receipt, given to a write or as the answer of a resolve, that the log does not bear out."""
        there = self.places.get(operation.event_id or "")
        if operation.action is Action.RESOLVE:
            if there is None:
                return None if stream.is_removed(operation.revision) else (Rule.FALSE_RESOLVE, "the log does not have it")
            if there != (stream, operation.revision):
                return Rule.FALSE_RESOLVE, f"it is revision {there[1]} of {there[0].checkpoint_id}"
            return None
        revision = wanted(operation)
        if revision is None:
            return Rule.MISPLACED, "it follows nothing"
        if operation.revision != revision:
            return Rule.MISPLACED, f"the receipt is for revision {operation.revision}"
        if self.is_right(operation, stream):
            if there is None:
                self.tally.removed += 1
            return None
        if there is None:
            return Rule.LOST, f"event {operation.event_id}"
        return Rule.MISPLACED, f"it is revision {there[1]} of {there[0].checkpoint_id}, {there[0].entries[there[1]].type}"

    def refused(self, operation: Operation, stream: Stream, place: int) -> Iterator[Violation]:
        """An answer that an event is not in the log, which it is, put there by somebody else's attempt: that must have been later."""
        if operation.outcome is Outcome.DELETED or (operation.actual is not None and operation.actual >= place):
            detail = f"event {operation.event_id} is in the log, before what refused it"
            yield Violation(Rule.CONFLICT_IN_LOG, stream.checkpoint_id, place, (operation, *stream.capable(place)), detail)
        elif (known := stream.shown_from(place)) is not None and _before(known, operation):
            detail = f"event {operation.event_id} was known to be in the log"
            yield Violation(Rule.CONFLICT_IN_LOG, stream.checkpoint_id, place, (operation, known), detail)

    def outdated(self, operation: Operation, stream: Stream, denied: int, known: Operation) -> Violation:
        """An operation that says that a revision was not there, after somebody else knew that it was."""
        if operation.outcome is Outcome.READ:
            end = None if stream.deletion is None else stream.shown_from(stream.deletion)
            if end is not None and _before(end, operation):
                return Violation(Rule.RESURRECTED, stream.checkpoint_id, operation.revision, (operation, end), "after its deletion")
            rule = Rule.READ_WENT_BACK if known.outcome is Outcome.READ else Rule.STALE_READ
        else:
            rule = {
                Outcome.CONFLICT: Rule.ACTUAL_NEVER_CURRENT,
                Outcome.NOT_FOUND: Rule.FALSE_NOT_FOUND,
                Outcome.ABSENT: Rule.FALSE_RESOLVE,
            }[operation.outcome]
        return Violation(rule, stream.checkpoint_id, denied, (operation, known), f"revision {denied} or a later one was known before")


def _before(one: Operation, other: Operation) -> bool:
    return one.returned is not None and one.returned < other.invoked


def _early(operation: Operation) -> Rule:
    if operation.action is Action.RESOLVE:
        return Rule.FALSE_RESOLVE
    return {
        Outcome.COMMITTED: Rule.WRITE_ORDER,
        Outcome.CONFLICT: Rule.ACTUAL_NEVER_CURRENT,
        Outcome.DELETED: Rule.FALSE_DELETED,
        Outcome.READ: Rule.READ_TOO_EARLY,
    }[operation.outcome]


def _wrong_history(operation: Operation, stream: Stream) -> tuple[Rule, str] | None:
    seen = operation.seen or ()
    previous = -1 if operation.after is None else operation.after
    for revision, event_id in seen:
        if revision <= previous or not stream.holds(revision, event_id):
            return Rule.NOT_A_STATE, f"revision {revision} as event {event_id}"
        previous = revision
    start, end = -1 if operation.after is None else operation.after, history_end(operation)
    numbers = {revision for revision, _ in seen}
    missing = [revision for revision in stream.entries if start < revision <= end and revision not in numbers]
    return (Rule.INCOMPLETE_HISTORY, f"without {missing[:10]}") if missing else None
