"""Histories that no honest store can have given, one or more for each rule: what was said, when, and what the log holds in the end.

`at=(0, 1)` is invoked at 0 and returned at 1; None: it never returned. Of times that touch neither came first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from eventlog.testing import Action, LogEntry, Mode, Operation, Outcome, Rule

CHECKPOINT = "c"
At = tuple[int, int | None]


class Bad(NamedTuple):
    rule: Rule
    why: str
    operations: list[Operation]
    log: list[LogEntry]


def said(action: Action, at: At, outcome: Outcome, **fields: Any) -> Operation:
    return Operation(fields.pop("session", "s"), "t", action, at[0], at[1], outcome, CHECKPOINT, **fields)


def commit(event: str, expected: int | None, at: At, outcome: Outcome = Outcome.COMMITTED, **fields: Any) -> Operation:
    proposed = fields.pop("proposed", 0 if expected is None else expected + 1)
    if outcome is Outcome.COMMITTED:
        fields.setdefault("revision", proposed)
    return said(Action.COMMIT, at, outcome, event_id=event, expected=expected, proposed=proposed, **fields)


def conflict(event: str, expected: int | None, actual: int | None, at: At, **fields: Any) -> Operation:
    return commit(event, expected, at, Outcome.CONFLICT, actual=actual, **fields)


def delete(event: str, expected: int, at: At) -> Operation:
    return said(Action.DELETE, at, Outcome.COMMITTED, event_id=event, expected=expected, proposed=expected + 1, revision=expected + 1)


def load(event: str | None, revision: int | None, at: At, *, mode: Mode = Mode.LATEST, **fields: Any) -> Operation:
    outcome = Outcome.NOT_FOUND if event is None else Outcome.READ
    return said(Action.LOAD, at, outcome, mode=mode, revision=revision, observed=event, **fields)


def gone(revision: int, at: At) -> Operation:
    """A load that says that the checkpoint is deleted."""
    return said(Action.LOAD, at, Outcome.DELETED, mode=Mode.LATEST, revision=revision)


def history(at: At, *events: str, complete: bool = True, revisions: list[int] | None = None) -> Operation:
    numbers = range(len(events)) if revisions is None else revisions
    return said(Action.HISTORY, at, Outcome.READ, mode=Mode.LATEST, seen=tuple(zip(numbers, events, strict=True)), complete=complete)


def resolve(event: str, revision: int | None, at: At) -> Operation:
    outcome = Outcome.ABSENT if revision is None else Outcome.COMMITTED
    return said(Action.RESOLVE, at, outcome, event_id=event, revision=revision)


def log(*events: str, deleted: bool = False) -> list[LogEntry]:
    last = len(events) - 1
    return [LogEntry(number, event, "DELETED" if deleted and number == last else "REVISION") for number, event in enumerate(events)]


A, B, C = commit("a", None, (0, 1)), commit("b", 0, (2, 3)), commit("c", 1, (4, 5))
UNKNOWN, PENDING, REFUSED = Outcome.UNKNOWN, Outcome.PENDING, Outcome.REFUSED

BAD = [
    Bad(Rule.NOT_SEQUENTIAL, "a revision is missing", [A, commit("c", 1, (4, 5))], [*log("a"), LogEntry(2, "c")]),
    Bad(Rule.NOT_SEQUENTIAL, "the log begins in the middle", [commit("c", 1, (4, 5))], [LogEntry(2, "c")]),
    Bad(
        Rule.AFTER_DELETION,
        "somebody goes on",
        [A, delete("d", 0, (2, 3)), commit("c", 1, (4, 5))],
        [*log("a", "d", deleted=True), LogEntry(2, "c")],
    ),
    Bad(
        Rule.TWICE_IN_LOG,
        "a retry was written again",
        [A, commit("b", 0, (2, 3), UNKNOWN), commit("b", 1, (4, 5), UNKNOWN)],
        log("a", "b", "b"),
    ),
    Bad(Rule.NOBODY_PROPOSED, "an event out of nowhere", [A], log("a", "x")),
    Bad(Rule.NOBODY_PROPOSED, "an unknown one, but elsewhere", [A, B, commit("x", 0, (4, 5), UNKNOWN)], log("a", "b", "x")),
    Bad(Rule.NOBODY_PROPOSED, "a retry of what was never sent", [A, commit("b", 0, (2, 3), duplicate=True)], log("a", "b")),
    Bad(Rule.LOST, "acknowledged, then overwritten by another", [A, B, commit("x", 0, (2, 4))], log("a", "x")),
    Bad(Rule.LOST, "acknowledged, gone after a restart", [A, B, C], log("a", "b")),
    Bad(Rule.MISPLACED, "appended wherever there was room", [A, B, commit("x", 0, (4, 5))], log("a", "b", "x")),
    Bad(Rule.MISPLACED, "a receipt for another revision", [A, commit("b", 0, (2, 3), revision=2)], log("a", "b")),
    Bad(Rule.MISPLACED, "what followed nothing was taken", [A, commit("x", 0, (2, 3), proposed=5)], [*log("a"), LogEntry(1, "x")]),
    Bad(Rule.CONFLICT_IN_LOG, "told that it lost, and it won", [A, conflict("b", 0, 0, (2, 3))._replace(actual=1), C], log("a", "b", "c")),
    Bad(Rule.CONFLICT_IN_LOG, "the retry of a commit is a conflict", [A, B, conflict("b", 0, 1, (4, 5))], log("a", "b")),
    Bad(
        Rule.CONFLICT_IN_LOG,
        "an unclear one, refused later, is there",
        [A, commit("b", 0, (2, 3), UNKNOWN), conflict("b", 0, 1, (4, 5))],
        log("a", "b"),
    ),
    Bad(
        Rule.CONFLICT_IN_LOG,
        "refused as deleted, and there",
        [A, commit("b", 0, (2, 3), Outcome.DELETED, revision=2), delete("d", 1, (2, 3))],
        log("a", "b", "d", deleted=True),
    ),
    Bad(
        Rule.CONFLICT_IN_LOG,
        "refused because of the deletion behind it",
        [A, commit("b", 0, (2, 9), UNKNOWN), commit("b", 0, (3, 8), Outcome.DELETED, revision=2), delete("d", 1, (2, 9))],
        log("a", "b", "d", deleted=True),
    ),
    Bad(
        Rule.CONFLICT_IN_LOG,
        "refused because of itself",
        [A, commit("b", 0, (2, 9), UNKNOWN), conflict("b", 0, 1, (2, 9))],
        log("a", "b"),
    ),
    Bad(Rule.REFUSAL_IN_LOG, "the log was out of reach, it said", [A, commit("b", 0, (2, 3), REFUSED, error="Unavailable")], log("a", "b")),
    Bad(Rule.FALSE_CONFLICT, "an exact successor refused", [A, conflict("x", 0, 0, (2, 3))], log("a")),
    Bad(Rule.FALSE_CONFLICT, "a creation refused where nothing is", [conflict("x", None, None, (2, 3))], []),
    Bad(Rule.ACTUAL_NEVER_CURRENT, "a head that was over before", [A, B, C, conflict("x", 0, 1, (6, 7))], log("a", "b", "c")),
    Bad(Rule.ACTUAL_NEVER_CURRENT, "a head of the future", [A, conflict("x", None, 1, (2, 3)), commit("b", 0, (4, 5))], log("a", "b")),
    Bad(Rule.ACTUAL_NEVER_CURRENT, "a head that never was", [A, conflict("x", None, 7, (2, 3))], log("a")),
    Bad(
        Rule.WRITE_ORDER,
        "acknowledged before its predecessor was proposed",
        [A, commit("c", 1, (2, 3)), commit("b", 0, (4, 5))],
        log("a", "b", "c"),
    ),
    Bad(Rule.FALSE_RESOLVE, "found where it is not", [A, commit("b", 0, (2, 3), UNKNOWN), resolve("b", 1, (4, 5))], log("a")),
    Bad(Rule.FALSE_RESOLVE, "found at another revision", [A, B, resolve("b", 2, (4, 5))], log("a", "b")),
    Bad(Rule.FALSE_RESOLVE, "not found though acknowledged", [A, B, resolve("b", None, (4, 5))], log("a", "b")),
    Bad(
        Rule.FALSE_RESOLVE,
        "not found though it had been read, while its writer waits",
        [A, commit("b", 0, (2, 9), UNKNOWN), load("b", 1, (3, 4)), resolve("b", None, (5, 6))],
        log("a", "b"),
    ),
    Bad(
        Rule.FALSE_RESOLVE,
        "it never will be, and then it is",
        [A, commit("b", 0, (2, 3), UNKNOWN), resolve("b", None, (4, 5))],
        log("a", "b"),
    ),
    Bad(
        Rule.FALSE_RESOLVE,
        "it never will be, and sent again it had been there before",
        [A, commit("b", 0, (2, 3), UNKNOWN), resolve("b", None, (4, 5)), commit("b", 0, (6, 7), duplicate=True)],
        log("a", "b"),
    ),
    Bad(
        Rule.FALSE_RESOLVE,
        "the same of a process that had died before",
        [A, commit("b", 0, (2, 3), PENDING), resolve("b", None, (4, 5))],
        log("a", "b"),
    ),
    Bad(Rule.NOT_A_STATE, "read what was never committed", [A, load("x", 1, (2, 3))], log("a")),
    Bad(Rule.NOT_A_STATE, "a history with a loser in it", [A, B, history((4, 5), "a", "x")], log("a", "b")),
    Bad(Rule.NOT_A_STATE, "a history in another order", [A, B, history((4, 5), "b", "a", revisions=[1, 0])], log("a", "b")),
    Bad(Rule.READ_TOO_EARLY, "read before it was written", [A, load("b", 1, (2, 3)), commit("b", 0, (4, 5))], log("a", "b")),
    Bad(Rule.STALE_READ, "a load behind an acknowledged write", [A, B, load("a", 0, (4, 5))], log("a", "b")),
    Bad(Rule.STALE_READ, "a history that ends too early", [A, B, history((4, 5), "a")], log("a", "b")),
    Bad(
        Rule.READ_WENT_BACK,
        "a load behind another load",
        [A, commit("b", 0, (2, 9)), load("b", 1, (3, 4)), load("a", 0, (5, 6))],
        log("a", "b"),
    ),
    Bad(Rule.RESURRECTED, "loaded after its deletion", [A, delete("d", 0, (2, 3)), load("a", 0, (4, 5))], log("a", "d", deleted=True)),
    Bad(Rule.FALSE_NOT_FOUND, "not found though acknowledged", [A, load(None, None, (2, 3))], log("a")),
    Bad(Rule.FALSE_NOT_FOUND, "a write finds nothing to follow", [A, commit("x", 0, (2, 3), Outcome.NOT_FOUND)], log("a")),
    Bad(Rule.FALSE_NOT_FOUND, "a revision", [A, B, load(None, None, (4, 5), mode=Mode.REVISION, proposed=1)], log("a", "b")),
    Bad(Rule.FALSE_DELETED, "nobody deleted it", [A, gone(1, (2, 3))], log("a")),
    Bad(Rule.FALSE_DELETED, "not at that revision", [A, delete("d", 0, (2, 3)), gone(2, (4, 5))], log("a", "d", deleted=True)),
    Bad(Rule.FALSE_DELETED, "not yet", [A, gone(1, (2, 3)), delete("d", 0, (4, 5))], log("a", "d", deleted=True)),
    Bad(Rule.INCOMPLETE_HISTORY, "a hole", [A, B, C, history((6, 7), "a", "c", revisions=[0, 2])], log("a", "b", "c")),
    Bad(Rule.STALE_SESSION, "its own write is not seen", [A, B, load("a", 0, (4, 5), mode=Mode.LOCAL)], log("a", "b")),
    Bad(
        Rule.STALE_SESSION,
        "it has seen more",
        [A, B._replace(session="z"), load("b", 1, (4, 5)), load("a", 0, (6, 7), mode=Mode.LOCAL)],
        log("a", "b"),
    ),
]

# What looks odd and is not: each is explained by some order.
GOOD: dict[str, tuple[list[Operation], list[LogEntry]]] = {
    "an unclear one is there": ([A, commit("b", 0, (2, 3), UNKNOWN)], log("a", "b")),
    "an unclear one is not": ([A, commit("b", 0, (2, 3), UNKNOWN)], log("a")),
    "an unclear one comes later": ([A, commit("b", 0, (2, 3), UNKNOWN), load("a", 0, (5, 6)), load("b", 1, (8, 9))], log("a", "b")),
    "a killed one comes later": ([A, commit("b", 0, (2, None), PENDING), load("a", 0, (5, 6)), load("b", 1, (8, 9))], log("a", "b")),
    "read before it was acknowledged": ([A, commit("b", 0, (2, 9)), load("b", 1, (3, 4))], log("a", "b")),
    "an old state beside a write": ([A, commit("b", 0, (2, 9)), load("a", 0, (7, 8))], log("a", "b")),
    "a loser is told of the winner while that waits": ([A, commit("b", 0, (2, 9)), conflict("x", 0, 1, (3, 4))], log("a", "b")),
    "what was refused is sent again in its time": ([A, conflict("c", 1, 0, (2, 3)), B, commit("c", 1, (4, 5))], log("a", "b", "c")),
    "resolved as absent, then sent again": (
        [A, commit("b", 0, (2, 3), UNKNOWN), resolve("b", None, (4, 5)), commit("b", 0, (6, 7))],
        log("a", "b"),
    ),
    "resolved as absent while it was under way": ([A, commit("b", 0, (2, 5), UNKNOWN), resolve("b", None, (4, 5))], log("a", "b")),
    "resolved as absent while its process may have been alive": (
        [A, commit("b", 0, (2, None), PENDING), resolve("b", None, (4, 5))],
        log("a", "b"),
    ),
    "a past": ([A, B, load("a", 0, (4, 5), mode=Mode.PAST)], log("a", "b")),
    "a local read of another session": ([A, B, load("a", 0, (4, 5), mode=Mode.LOCAL, session="z")], log("a", "b")),
    "touching": ([A, commit("b", 0, (1, 2)), load("a", 0, (2, 3))], log("a", "b")),
}
