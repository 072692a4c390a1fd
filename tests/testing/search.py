"""The definition itself: a sequential store, and a search through every order that real time allows. Exponential; for small histories."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.testing import Action, LogEntry, Mode, Operation, Outcome

State = tuple[LogEntry, ...]

WRITES = {Action.COMMIT: "REVISION", Action.DELETE: "DELETED", Action.IMPORT: "IMPORTED"}
OPTIONAL = {Outcome.UNKNOWN, Outcome.PENDING}
NEVER = {Outcome.CONFLICT, Outcome.NOT_FOUND, Outcome.DELETED, Outcome.ABSENT}


def linearizable(operations: Sequence[Operation], log: Sequence[LogEntry]) -> bool:
    """Whether one store, doing one thing after the other, can have given these answers to one checkpoint's callers and end at `log`."""
    return sessions_hold(operations) and _search(list(operations), frozenset(), (), tuple(log), set())


def _search(operations: list[Operation], done: frozenset[int], state: State, log: State, failed: set[tuple[frozenset[int], State]]) -> bool:
    if (done, state) in failed:
        return False
    left = [number for number in range(len(operations)) if number not in done]
    must = [number for number in left if operations[number].outcome not in OPTIONAL]
    if not must and state == log:
        return True
    for number in left:
        operation = operations[number]
        if any(_returned(operations[other]) < operation.invoked for other in must if other != number):
            continue
        if operation.outcome in OPTIONAL and any(
            refused.event_id == operation.event_id and refused.outcome in NEVER and _over(operation) < refused.invoked
            for refused in (operations[other] for other in done)
        ):
            continue  # somebody has been told that it will never be there
        after = step(state, operation)
        if after is not None and _search(operations, done | {number}, after, log, failed):
            return True
    failed.add((done, state))
    return False


def step(state: State, operation: Operation) -> State | None:
    """The store after an operation that was answered like this; None if this store would not have answered so."""
    if operation.action in WRITES:
        return _write(state, operation)
    if operation.action is Action.RESOLVE:
        return state if _resolved(state, operation) else None
    return state if _read(state, operation) else None


def _write(state: State, operation: Operation) -> State | None:
    last = state[-1] if state else None
    mine = LogEntry(-1 if operation.proposed is None else operation.proposed, operation.event_id or "", WRITES[operation.action])
    there = next((entry for entry in state if entry.event_id == operation.event_id), None)
    if last is None:
        fits = operation.expected is None and (operation.proposed == 0 or operation.action is Action.IMPORT)
    else:
        fits = operation.action is not Action.IMPORT and operation.expected == last.revision and mine.revision == last.revision + 1
        fits = fits and last.type != "DELETED"
    match operation.outcome:
        case Outcome.COMMITTED if there is not None:
            return state if there == mine and operation.revision == there.revision and _consistent(operation) else None
        case Outcome.COMMITTED:
            return (*state, mine) if fits and not operation.duplicate and operation.revision == operation.proposed else None
        case Outcome.UNKNOWN | Outcome.PENDING:
            return (*state, mine) if fits and there is None else None
        case Outcome.CONFLICT:
            living = last is None or last.type != "DELETED"
            actual = None if last is None else last.revision
            return state if living and there is None and not fits and operation.actual == actual else None
        case Outcome.NOT_FOUND:
            return state if last is None else None
        case Outcome.DELETED:
            deleted = last is not None and last.type == "DELETED" and last.revision == operation.revision
            return state if deleted and there is None else None
        case _:
            return state


def _consistent(operation: Operation) -> bool:
    """A retry is the same proposal."""
    if operation.action is Action.IMPORT:
        return operation.expected is None
    return operation.proposed == (0 if operation.expected is None else operation.expected + 1)


def _resolved(state: State, operation: Operation) -> bool:
    there = next((entry for entry in state if entry.event_id == operation.event_id), None)
    if operation.outcome is Outcome.COMMITTED:
        return there is not None and there.revision == operation.revision
    return operation.outcome is not Outcome.ABSENT or there is None


def _read(state: State, operation: Operation) -> bool:
    last = state[-1] if state else None
    deleted = last is not None and last.type == "DELETED" and last.revision == operation.revision
    pairs = {(entry.revision, entry.event_id) for entry in state}
    observed = (operation.revision, operation.observed)
    match operation.outcome, operation.mode:
        case Outcome.DELETED, _:
            return deleted
        case Outcome.NOT_FOUND, Mode.LATEST:
            return not state
        case Outcome.NOT_FOUND, Mode.REVISION:
            return operation.proposed not in {entry.revision for entry in state}
        case Outcome.READ, _ if operation.action is Action.HISTORY:
            start = -1 if operation.after is None else operation.after
            wanted = tuple((entry.revision, entry.event_id) for entry in state if entry.revision > start)
            seen = operation.seen or ()
            return seen == wanted if operation.complete and operation.mode is Mode.LATEST else seen == wanted[: len(seen)]
        case Outcome.READ, Mode.LATEST:
            return last is not None and (last.revision, last.event_id) == observed
        case Outcome.READ, _:
            return observed in pairs
        case _:
            return True


def sessions_hold(operations: Sequence[Operation]) -> bool:
    """A local read is not behind what its session has seen before. This does not depend on any order but real time's."""
    return all(
        _seen(read) >= _seen(other)
        for read in operations
        if read.mode is Mode.LOCAL and read.outcome in {Outcome.READ, Outcome.NOT_FOUND, Outcome.DELETED}
        for other in operations
        if other.session == read.session and _returned(other) < read.invoked
    )


def _seen(operation: Operation) -> int:
    match operation.outcome:
        case Outcome.CONFLICT:
            found = operation.actual
        case Outcome.COMMITTED | Outcome.DELETED | Outcome.READ if operation.action is not Action.HISTORY:
            found = operation.revision
        case Outcome.READ:
            found = operation.seen[-1][0] if operation.seen else None
        case _:
            found = None
    return -1 if found is None else found


def _returned(operation: Operation) -> float:
    return float("inf") if operation.returned is None else operation.returned


def _over(operation: Operation) -> float:
    return _returned(operation)
