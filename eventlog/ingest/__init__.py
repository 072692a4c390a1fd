"""Real conversations as checkpoint streams, as an agent runtime would have written them.

One JSON object a line with `messages` in OpenAI form becomes one checkpoint: revision 0 holds the messages before the first assistant
turn; around each turn stand an in-flight revision (the transcript before it) and a stable one (with it); the last stable one is
`completed`. Each holds the whole transcript. Tool and user messages that follow a turn come with the next revision.

Every id and time follows from the content, so that an event sent again is the same event: a second run, or one that was killed
half-way, adds nothing twice. Two equal lines are two conversations, told apart by their count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from eventlog.checkpoint import DEFAULT_TENANT, MAX_KIND, Checkpoint, Receipt, check_name
from eventlog.errors import Busy, CheckpointError, Conflict, Deleted, NotFound, OutcomeUnknown, Overloaded, Unavailable
from eventlog.importing import REFUSALS
from eventlog.ingest.transcript import Conversation, Malformed, conversations
from eventlog.revision import Revision
from eventlog.store import CheckpointStore

__all__ = ["KIND", "IngestSummary", "Malformed", "ingest_chats"]

KIND = "chat.transcript"
WAVE = 50  # conversations that progress at once: one durable write for as many revisions
WAVE_BYTES = 32 << 20  # of their lines, so that memory stays bounded however long they are
PATIENCE = 60.0  # seconds without any progress while the log is overloaded or away
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds

_TRY_AGAIN = (OutcomeUnknown, Overloaded, Unavailable, Busy)


@dataclass
class IngestSummary:
    """What was done so far. `bytes` are of the transcripts' JSON as committed by this run, before compression."""

    conversations: int = 0
    committed: int = 0
    already_there: int = 0
    malformed: list[Malformed] = field(default_factory=list)
    bytes: int = 0
    read: int = 0  # bytes of the file
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Revisions committed a second."""
        return self.committed / self.seconds if self.seconds else 0.0


def ingest_chats(
    store: CheckpointStore,
    path: Path,
    *,
    kind: str = KIND,
    progress: Callable[[IngestSummary], None] | None = None,
    patience: float = PATIENCE,
) -> IngestSummary:
    """Commits every conversation of a file (JSON lines, plain or gzip) that is not there yet.

    Arguments:
        kind: of the checkpoints.
        progress: called with the running summary after each durable write.
        patience: seconds to keep trying while the log is overloaded or away.

    A malformed line, or a conversation that the store refuses, is listed in the summary and does not stop the rest. Raises
    `InvalidRequest` for a file that is not there, and what the store raises when nothing can be written.
    """
    check_name("kind", kind, MAX_KIND)
    started = time.monotonic()
    summary = IngestSummary()

    def reached(count: int) -> None:
        summary.read = count

    waiting = conversations(path, kind, store.tenant or DEFAULT_TENANT, complain=summary.malformed.append, read=reached)
    active: list[Conversation] = []
    more = True
    while active or more:
        while more and len(active) < WAVE and sum(each.size for each in active) < WAVE_BYTES:
            conversation = next(waiting, None)
            if conversation is None:
                more = False
                break
            summary.conversations += 1
            if _skip_committed(store, conversation, summary, patience):
                active.append(conversation)
        if active:
            refused = _commit_wave(store, active, summary, patience)
            active = [each for each in active if each.next < len(each.steps) and each.line not in refused]
        summary.seconds = time.monotonic() - started
        if progress is not None:
            progress(summary)
    summary.malformed.sort()
    return summary


def _skip_committed(store: CheckpointStore, conversation: Conversation, summary: IngestSummary, patience: float) -> bool:
    """Moves a conversation behind what an earlier run has committed; whether anything is left to send.

    The current revision alone tells: its event id follows from its content, and the store has accepted it only behind all before it.
    """
    try:
        current = _current(store, conversation, patience)
        if current is None:
            return True
        _require_ours(conversation, current)
    except CheckpointError as error:
        if error.kind not in REFUSALS:
            raise
        summary.malformed.append(Malformed(conversation.line, str(error)))
        return False
    conversation.next = current.checkpoint.revision + 1
    summary.already_there += conversation.next
    return conversation.next < len(conversation.steps)


def _current(store: CheckpointStore, conversation: Conversation, patience: float) -> Revision | None:
    waiting = _Patience(patience)
    while True:
        try:
            return store.load_revision(conversation.checkpoint_id)
        except NotFound:
            return None
        except _TRY_AGAIN as error:
            waiting.pause(error)


def _require_ours(conversation: Conversation, current: Revision) -> None:
    """Raises when the checkpoint is not where an earlier run has left it."""
    checkpoint_id, number = conversation.checkpoint_id, current.checkpoint.revision
    if current.type == "DELETED":
        raise Deleted(checkpoint_id, last_revision=number)
    if number >= len(conversation.steps) or current.checkpoint.event_id != conversation.event_id(number):
        raise Conflict(checkpoint_id, expected=None, actual=number, proposed=0, detail="somebody else has continued it")


def _commit_wave(store: CheckpointStore, active: list[Conversation], summary: IngestSummary, patience: float) -> set[int]:
    """Commits the next revision of each conversation; the lines of those that the store refused.

    What is unclear or was turned away for now is sent again, the very same event, until it is answered or patience ends.
    """
    refused: set[int] = set()
    left = active
    waiting = _Patience(patience)
    while left:
        again: list[Conversation] = []
        for conversation, outcome in zip(left, _send(store, left), strict=True):
            if isinstance(outcome, Receipt):
                _count(conversation, outcome, summary)
            elif isinstance(outcome, _TRY_AGAIN):
                again.append(conversation)
                failure = outcome
            elif outcome.kind in REFUSALS:
                refused.add(conversation.line)
                summary.malformed.append(Malformed(conversation.line, f"revision {conversation.next}: {outcome}"))
            else:
                raise outcome
        if again:
            if len(again) < len(left):
                waiting = _Patience(patience)
            waiting.pause(failure)
        left = again
    return refused


def _send(store: CheckpointStore, wave: list[Conversation]) -> list[Receipt | CheckpointError]:
    proposals: list[tuple[Checkpoint, int | None]] = [(each.revision(each.next), each.next - 1 if each.next else None) for each in wave]
    try:
        return store.compare_and_swap_many(proposals)
    except _TRY_AGAIN as error:
        return [error] * len(proposals)


def _count(conversation: Conversation, receipt: Receipt, summary: IngestSummary) -> None:
    if receipt.duplicate:
        summary.already_there += 1
    else:
        summary.committed += 1
        summary.bytes += conversation.steps[conversation.next].size
    conversation.next += 1


class _Patience:
    """Waits longer and longer, up to a limit, and then gives up with the error that it is told."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._pause = _FIRST_PAUSE

    def pause(self, error: CheckpointError) -> None:
        if time.monotonic() > self._deadline:
            raise error
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
