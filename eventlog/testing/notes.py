"""What is taken down of a call: how it was made, and what it said. For the recorders."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

from eventlog.checkpoint import Checkpoint
from eventlog.errors import CheckpointError, Conflict, Deleted, NotFound, OutcomeUnknown
from eventlog.ids import CheckpointId, EventId
from eventlog.testing.history import WRITES, Action, LogEntry, Mode, Outcome, Removed
from eventlog.testing.journal import Journal

Answer = TypeVar("Answer")


class Call:
    """One call, as a context manager around it. Leaving it by an error takes down what that error says.

    Of a write the call is taken down before it is made, so that a process that is killed in it leaves it behind as pending.
    """

    __slots__ = ("_answer", "_facts", "_journal", "_number", "_write")

    def __init__(self, journal: Journal, thread: str, action: Action, facts: dict[str, Any]) -> None:
        self._journal = journal
        self._write = action in WRITES
        self._facts: dict[str, Any] = {"thread": thread, "action": action.value, **facts}
        self._answer: dict[str, Any] | None = None
        self._number = -1

    def __enter__(self) -> Self:
        if "invoked" not in self._facts:  # an iterator goes on where it was made
            self._facts["invoked"] = time.monotonic_ns()
        if self._write:
            self._number = self._journal.invoked(self._facts)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        returned = time.monotonic_ns()
        if error is not None and not (isinstance(error, GeneratorExit) and self._answer is not None):  # an iterator may be left
            self._answer = refusal(error, write=self._write)
        if self._answer is None:
            return  # an iterator: its answer comes as it is read
        answer = {"returned": returned, **self._answer}
        if self._write:
            self._journal.returned(self._number, answer)
        else:
            self._journal.happened({**self._facts, **answer})

    def committed(self, receipt: Answer) -> Answer:
        """It gave a receipt."""
        self._answer = acknowledgement(receipt)
        return receipt

    def refused(self, error: BaseException) -> None:
        """It gave an error as its answer, without raising it."""
        self._answer = refusal(error, write=self._write)

    def resolved(self, receipt: Answer) -> Answer:
        """It answered a question about an event."""
        self._answer = {"outcome": Outcome.ABSENT.value} if receipt is None else acknowledgement(receipt)
        return receipt

    def read(self, revision: Answer) -> Answer:
        """It gave a revision: a checkpoint, or something that has one."""
        entry = entry_of(revision)
        assert isinstance(entry, LogEntry)
        self._answer = {"outcome": Outcome.READ.value, "revision": entry.revision, "observed": entry.event_id}
        return revision

    def went_through(self, seen: list[LogEntry], *, complete: bool) -> None:
        """It gave these revisions, one after the other."""
        pairs = [(entry.revision, entry.event_id) for entry in seen]
        self._answer = {"outcome": Outcome.READ.value, "seen": pairs, "complete": complete}


def proposal(checkpoint: Any, expected: int | None) -> dict[str, Any]:
    """The facts of a revision that is proposed."""
    facts = {"checkpoint_id": checkpoint.id, "event_id": checkpoint.event_id, "proposed": checkpoint.revision}
    return facts if expected is None else {**facts, "expected": expected}


def deletion(checkpoint_id: CheckpointId | UUID | str, expected: int, event_id: EventId) -> dict[str, Any]:
    """The facts of a deletion that is proposed."""
    return {"checkpoint_id": CheckpointId(checkpoint_id), "event_id": event_id, "expected": expected, "proposed": expected + 1}


def enquiry(event: EventId | UUID | str | Checkpoint) -> dict[str, Any]:
    """The facts of a question about an event."""
    if isinstance(event, Checkpoint):
        return {"checkpoint_id": event.id, "event_id": event.event_id, "proposed": event.revision}
    return {"event_id": EventId(event)}


def question(checkpoint_id: CheckpointId | UUID | str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a read of one checkpoint."""
    facts = {"checkpoint_id": CheckpointId(checkpoint_id), "mode": mode_of(options).value}
    for option, field in (("revision", "proposed"), ("after", "after")):
        if options.get(option) is not None:
            facts[field] = options[option]
    return facts


def mode_of(options: Mapping[str, Any]) -> Mode:
    """How fresh a read has to be, by the options of the store that it was called with."""
    if options.get("at") is not None:
        return Mode.PAST
    if options.get("revision") is not None:
        return Mode.REVISION
    return Mode.LATEST if options.get("at_least") is None else Mode.LOCAL


def is_whole(options: Mapping[str, Any]) -> bool:
    """Whether a history, once read to its end, has everything up to now."""
    return options.get("at") is None and options.get("limit") is None


def acknowledgement(receipt: Any) -> dict[str, Any]:
    """The facts of a receipt. One of another store may lack all but the revision."""
    facts: dict[str, Any] = {"outcome": Outcome.COMMITTED.value, "revision": receipt.revision}
    if (position := getattr(receipt, "position", None)) is not None:
        facts["position"] = str(position)
    if getattr(receipt, "duplicate", False):
        facts["duplicate"] = True
    return facts


def refusal(error: BaseException, *, write: bool) -> dict[str, Any]:
    """The facts of an error. Of a write that failed with an error that the store does not define, nothing is known."""
    if isinstance(error, Conflict):
        return {"outcome": Outcome.CONFLICT.value} if error.actual is None else {"outcome": Outcome.CONFLICT.value, "actual": error.actual}
    if isinstance(error, Deleted):
        return {"outcome": Outcome.DELETED.value, "revision": error.last_revision}
    if isinstance(error, NotFound):
        return {"outcome": Outcome.NOT_FOUND.value}
    known = isinstance(error, CheckpointError)
    unknown = isinstance(error, OutcomeUnknown) or (write and not known)
    name = f"{type(error).__name__} {error.kind.value}" if isinstance(error, CheckpointError) else type(error).__name__
    return {"outcome": (Outcome.UNKNOWN if unknown else Outcome.REFUSED).value, "error": name}


def sightings(thread: str, action: Action, mode: Mode, invoked: int, items: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The facts of revisions that came together: one read each."""
    returned = time.monotonic_ns()
    for item in items:
        checkpoint = getattr(item, "checkpoint", item)  # a list's summary is flat
        yield {
            "thread": thread,
            "action": action.value,
            "invoked": invoked,
            "returned": returned,
            "outcome": Outcome.READ.value,
            "checkpoint_id": checkpoint.id,
            "mode": mode.value,
            "revision": checkpoint.revision,
            "observed": checkpoint.event_id,
        }


def answer_each(calls: Sequence[Call], outcomes: Sequence[Any]) -> None:
    """Several calls that were answered together, by receipts and errors."""
    for call, outcome in zip(calls, outcomes, strict=True):
        if isinstance(outcome, BaseException):
            call.refused(outcome)
        else:
            call.committed(outcome)


def entry_of(item: Any) -> LogEntry | Removed:
    """A revision of a history as the log's entry: something with a `checkpoint` and a `type`, a bare checkpoint, or a gap."""
    if isinstance(item, Checkpoint):
        return LogEntry(item.revision, item.event_id)
    if hasattr(item, "first_revision"):
        return Removed(item.first_revision, item.last_revision)
    return LogEntry(item.checkpoint.revision, item.checkpoint.event_id, str(item.type))
