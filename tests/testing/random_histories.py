"""Small histories of one checkpoint: what a store can have answered, mostly, and then something in it changed."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from eventlog.testing import Action, LogEntry, Mode, Operation, Outcome
from tests.testing.search import WRITES, State, step

CHECKPOINT = "c"
EVENTS = ["e0", "e1", "e2", "e3", "e4"]
SESSIONS = ["s", "t"]
MOMENTS = 14


@st.composite
def histories(draw: st.DrawFn, *, changed: bool = True) -> tuple[list[Operation], list[LogEntry]]:
    """Operations and a final log. Each operation takes effect at a moment of its own within its time, or, unclear, later or never."""
    count = draw(st.integers(1, 7))
    moments = sorted(draw(st.lists(st.integers(0, MOMENTS), min_size=count, max_size=count)))
    state: State = ()
    proposed: dict[str, Operation] = {}
    operations = []
    for moment in moments:
        operation, state = _operation(draw, moment, state, proposed)
        operations.append(operation)
    log = list(state)
    for _ in range(draw(st.integers(0, 2)) if changed else 0):
        operations, log = _change(draw, operations, log)
    return draw(st.permutations(operations)), log


def _operation(draw: st.DrawFn, moment: int, state: State, proposed: dict[str, Operation]) -> tuple[Operation, State]:
    invoked = moment - draw(st.integers(0, 3))
    returned = moment + draw(st.integers(0, 3))
    action = draw(
        st.sampled_from([Action.COMMIT] * 5 + [Action.DELETE, Action.IMPORT, Action.RESOLVE, Action.LOAD, Action.LOAD, Action.HISTORY])
    )
    blank = Operation(draw(st.sampled_from(SESSIONS)), "", action, invoked, returned, Outcome.REFUSED, CHECKPOINT)
    if action in WRITES:
        return _write(draw, blank, state, proposed)
    if action is Action.RESOLVE:
        event_id = draw(st.sampled_from(EVENTS))
        there = next((entry for entry in state if entry.event_id == event_id), None)
        answer = {"outcome": Outcome.ABSENT} if there is None else {"outcome": Outcome.COMMITTED, "revision": there.revision}
        return blank._replace(event_id=event_id, **answer), state
    return _read(draw, blank, state), state


def _write(draw: st.DrawFn, blank: Operation, state: State, proposed: dict[str, Operation]) -> tuple[Operation, State]:
    event_id = draw(st.sampled_from(EVENTS))
    earlier = proposed.get(event_id)
    if earlier is not None:
        asked = blank._replace(action=earlier.action, event_id=event_id, expected=earlier.expected, proposed=earlier.proposed)
    else:
        current = state[-1].revision if state else None
        expected = draw(st.sampled_from([current, current, current, None, 0, 1]))
        revision = 0 if expected is None else expected + 1
        if blank.action is Action.DELETE and expected is None:
            expected, revision = 0, 1
        if blank.action is Action.IMPORT:
            expected, revision = None, draw(st.integers(0, 2))
        elif blank.action is Action.COMMIT:
            revision += draw(st.sampled_from([0, 0, 0, 0, 0, 1]))
        asked = blank._replace(event_id=event_id, expected=expected, proposed=revision)
    proposed[event_id] = asked
    if draw(st.integers(0, 3)) == 0:
        unclear = asked._replace(outcome=draw(st.sampled_from([Outcome.UNKNOWN, Outcome.PENDING])))
        unclear = unclear._replace(returned=None) if draw(st.booleans()) else unclear
        after = step(state, unclear) if draw(st.booleans()) else None
        return (unclear, state) if after is None else (unclear, after)
    for answer in _answers(asked, state):
        after = step(state, answer)
        if after is not None:
            return answer, after
    return asked, state


def _answers(asked: Operation, state: State) -> list[Operation]:
    last = state[-1].revision if state else None
    there = any(entry.event_id == asked.event_id for entry in state)
    return [
        asked._replace(outcome=Outcome.COMMITTED, revision=asked.proposed, duplicate=there),
        asked._replace(outcome=Outcome.DELETED, revision=last),
        *([asked._replace(outcome=Outcome.NOT_FOUND)] if asked.expected is not None else []),
        asked._replace(outcome=Outcome.CONFLICT, actual=last),
    ]


def _read(draw: st.DrawFn, blank: Operation, state: State) -> Operation:
    last = state[-1] if state else None
    if blank.action is Action.HISTORY:
        after = draw(st.sampled_from([None, None, 0]))
        pairs = tuple((entry.revision, entry.event_id) for entry in state if after is None or entry.revision > after)
        whole = draw(st.booleans())
        if not state and after is None:
            return blank._replace(mode=Mode.LATEST, outcome=Outcome.NOT_FOUND)
        return blank._replace(
            mode=Mode.LATEST, outcome=Outcome.READ, after=after, complete=whole, seen=pairs if whole else pairs[: draw(st.integers(0, 2))]
        )
    mode = draw(st.sampled_from([Mode.LATEST, Mode.LATEST, Mode.LOCAL, Mode.REVISION, Mode.PAST]))
    asked = blank._replace(mode=mode)
    if mode is Mode.REVISION:
        number = draw(st.integers(0, 2))
        found = next((entry for entry in state if entry.revision == number), None)
        asked = asked._replace(proposed=number)
    elif mode is Mode.LATEST:
        if last is not None and last.type == "DELETED" and draw(st.booleans()):
            return asked._replace(outcome=Outcome.DELETED, revision=last.revision)
        found = last
    else:
        found = draw(st.sampled_from([*state[-2:], None, last]))
    if found is None:
        return asked._replace(outcome=Outcome.NOT_FOUND)
    return asked._replace(outcome=Outcome.READ, revision=found.revision, observed=found.event_id)


def _change(draw: st.DrawFn, operations: list[Operation], log: list[LogEntry]) -> tuple[list[Operation], list[LogEntry]]:
    """Something that a broken store might have said or done."""
    what = draw(st.sampled_from(["time", "time", "time", "outcome", "revision", "seen", "gone", "lost", "extra", "swap", "duplicate"]))
    number = draw(st.integers(0, len(operations) - 1))
    operation = operations[number]
    change: dict[str, Any] = {}
    if what == "duplicate":
        change = {"duplicate": not operation.duplicate}
    elif what == "time":
        invoked = draw(st.integers(-3, MOMENTS))
        change = {"invoked": invoked, "returned": None if operation.returned is None else invoked + draw(st.integers(0, 4))}
    elif what == "outcome" and operation.action in WRITES:
        outcome = draw(
            st.sampled_from([Outcome.COMMITTED, Outcome.CONFLICT, Outcome.NOT_FOUND, Outcome.DELETED, Outcome.UNKNOWN, Outcome.REFUSED])
        )
        change = {"outcome": outcome, "revision": None, "actual": None, "duplicate": None}
        if outcome is Outcome.COMMITTED:
            change["revision"] = operation.proposed
        elif outcome is Outcome.CONFLICT:
            change["actual"] = draw(st.sampled_from([None, 0, 1, 2]))
        elif outcome is Outcome.DELETED:
            change["revision"] = draw(st.integers(0, 2))
        if outcome is not Outcome.UNKNOWN and operation.returned is None:
            change["returned"] = operation.invoked + 2
    elif what == "outcome" and operation.action is Action.RESOLVE:
        change = {"outcome": Outcome.ABSENT, "revision": None}
    elif what == "outcome" and operation.action is Action.LOAD:
        change = {"outcome": Outcome.NOT_FOUND, "revision": None, "observed": None}
    elif what == "revision" and operation.outcome is Outcome.CONFLICT:
        change = {"actual": draw(st.sampled_from([None, 0, 1, 2]))}
    elif what == "revision" and operation.revision is not None:
        change = {"revision": draw(st.integers(0, 3))}
    elif what == "seen" and operation.outcome is Outcome.READ and operation.action is Action.LOAD and log:
        entry = draw(st.sampled_from(log))
        change = {"revision": entry.revision, "observed": entry.event_id}
    elif what == "seen" and operation.seen:
        change = {"seen": operation.seen[:-1]}
    elif what == "gone" and len(operations) > 1:
        return operations[:number] + operations[number + 1 :], log
    elif what == "lost" and log:
        return operations, log[:-1]
    elif what == "extra":
        revision = log[-1].revision + 1 if log else 0
        return operations, [*log, LogEntry(revision, draw(st.sampled_from(EVENTS)), draw(st.sampled_from(["REVISION", "DELETED"])))]
    elif what == "swap" and len(log) > 1:
        one, other = log[-2], log[-1]
        return operations, [*log[:-2], one._replace(event_id=other.event_id), other._replace(event_id=one.event_id)]
    return [*operations[:number], operation._replace(**change), *operations[number + 1 :]], log
