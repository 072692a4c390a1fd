"""The rules of compare-and-swap, pure: what the log may accept behind a head, whoever asks and whichever log it is.

`decide` judges a proposal before it is written; `judge` judges a record that already stands in a log that others could write to.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from eventlog.codec import Draft
from eventlog.errors import CheckpointError, Conflict, Deleted, EncryptionMismatch, EventIdReused, InvalidRequest, NotFound
from eventlog.event import GENESIS, IN_CLEAR, CheckpointEvent, EventHeader, EventType


class Head(NamedTuple):
    """The last good event of a checkpoint, and where it stands."""

    checkpoint_id: str
    event_id: str
    type: str
    tenant: str
    run_id: str
    revision: int
    kind: str
    schema_version: int
    usage: dict[str, int]
    hash: bytes
    partition: int
    offset: int
    recorded_at: int  # milliseconds, the log's clock

    @classmethod
    def of(cls, header: EventHeader, digest: bytes, partition: int, offset: int, recorded_at: int) -> Head:
        return cls(
            header.checkpoint_id,
            header.event_id,
            header.type,
            header.tenant,
            header.run_id,
            header.revision,
            header.kind,
            header.schema_version,
            header.usage,
            digest,
            partition,
            offset,
            recorded_at,
        )


class Condition(NamedTuple):
    """That another checkpoint of the same partition still stands where it did when a proposal was made; None: that it does not exist."""

    checkpoint_id: str
    revision: int | None


class Proposal(NamedTuple):
    """A revision that somebody wants to commit: what the rules look at, and the draft of its event."""

    checkpoint_id: str
    expected: int | None
    revision: int
    event_id: str
    type: str
    tenant: str
    run_id: str
    kind: str
    schema_version: int
    usage: dict[str, int]
    draft: Draft
    sealed: bool = False
    json_text: Callable[[CheckpointEvent], bytes] = CheckpointEvent.json_text  # opens payloads, to compare a retry's with
    only_if: Condition | None = None

    def head(self, digest: bytes, partition: int, offset: int, recorded_at: int) -> Head:
        """The head that this proposal becomes when it is committed."""
        return Head(
            self.checkpoint_id,
            self.event_id,
            self.type,
            self.tenant,
            self.run_id,
            self.revision,
            self.kind,
            self.schema_version,
            self.usage,
            digest,
            partition,
            offset,
            recorded_at,
        )


class Verdict(Enum):
    ACCEPT = "accept"
    COMPARE = "compare"  # the log holds an event of this revision: a retry if it is the same event, else `rejection`


def decide(head: Head | None, proposal: Proposal) -> Verdict | CheckpointError:
    """Whether a proposal may be written behind a head: the table of `Checkpoint` and compare-and-swap in docs/guarantees.md."""
    expected, revision = proposal.expected, proposal.revision
    if head is None:
        if expected is not None:
            return NotFound(proposal.checkpoint_id)
        if revision == 0 or proposal.type == EventType.IMPORTED:
            return Verdict.ACCEPT
        return rejection(None, proposal)
    if head.tenant != proposal.tenant:
        return NotFound(proposal.checkpoint_id)
    if revision == head.revision + 1 and expected == head.revision and head.type != EventType.DELETED:
        return _check_successor(head, proposal) or Verdict.ACCEPT
    if proposal.event_id == head.event_id or revision < head.revision:
        return Verdict.COMPARE
    return rejection(head, proposal)


def unmet(proposal: Proposal, head: Head | None) -> Conflict | None:
    """Why a proposal's condition does not hold, given the head of the checkpoint that it names; None when it does.

    The log asks within the durable write, so that nothing can come between: that is what two checkpoints of a partition can promise
    each other without a transaction.
    """
    actual = None if head is None else head.revision
    if proposal.only_if is None or proposal.only_if.revision == actual:
        return None
    named, expected = proposal.only_if
    detail = f"on which revision {proposal.revision} of checkpoint {proposal.checkpoint_id} depends"
    return Conflict(named, expected=expected, actual=actual, proposed=proposal.revision, detail=detail)


def require_form(proposal: Proposal, *, encrypted: bool) -> None:
    """Raises `EncryptionMismatch` for a payload in clear text where the log is encrypted, and for a sealed one where it is not."""
    if proposal.sealed != encrypted and proposal.type != EventType.DELETED:
        problem = IN_CLEAR if encrypted else "its payload is sealed, and this store is not encrypted"
        raise EncryptionMismatch(proposal.checkpoint_id, revision=proposal.revision, problem=problem)


def rejection(head: Head | None, proposal: Proposal) -> CheckpointError:
    """Why a proposal that is no retry cannot follow the head."""
    if head is None:
        return Conflict(proposal.checkpoint_id, expected=proposal.expected, actual=None, proposed=proposal.revision)
    if head.type == EventType.DELETED:
        return Deleted(proposal.checkpoint_id, last_revision=head.revision)
    return Conflict(proposal.checkpoint_id, expected=proposal.expected, actual=head.revision, proposed=proposal.revision)


def _check_successor(head: Head, proposal: Proposal) -> CheckpointError | None:
    if proposal.event_id == head.event_id:
        return EventIdReused(proposal.checkpoint_id, event_id=proposal.event_id, differs="checkpoint or revision")
    if proposal.run_id != head.run_id:
        return InvalidRequest("run_id", f"is {proposal.run_id} where the checkpoint has {head.run_id}", hint="A successor keeps its run.")
    if proposal.type == EventType.IMPORTED:
        return rejection(head, proposal)
    if proposal.type != EventType.MIGRATED:
        if proposal.kind != head.kind:
            return InvalidRequest("kind", f"is {proposal.kind} where the checkpoint has {head.kind}", hint="Only a migration changes it.")
        if proposal.schema_version != head.schema_version:
            return InvalidRequest(
                "schema_version",
                f"is {proposal.schema_version} where the checkpoint has {head.schema_version}",
                hint="Only a migration changes it.",
            )
    if head.usage != proposal.usage:
        for name, spent in head.usage.items():
            now = proposal.usage.get(name, 0)
            if now < spent:
                return InvalidRequest(f"usage.{name}", f"is {now} where {spent} were already spent", hint="Usage never decreases.")
    return None


class Finding(NamedTuple):
    """What a record in the log turned out to be."""

    missing: tuple[int, int] | None = None  # first and last revision that the log no longer holds before it
    fault: str | None = None  # why it cannot be accepted


_GOOD = Finding()


def judge(head: Head | None, header: EventHeader, *, compacted: bool) -> Finding:
    """Whether a record may stand behind a head.

    `compacted` says that records before this one may have been removed by compaction: then a jump forward is a gap, to be
    reported. Otherwise nothing can be missing, and a jump is a foreign writer's.
    """
    if head is None:
        return _judge_first(header, compacted)
    if head.type == EventType.DELETED:
        return Finding(fault=f"revision {header.revision} after the checkpoint was deleted")
    if header.revision <= head.revision:
        return Finding(fault=f"revision {header.revision} after revision {head.revision}")
    fault = _identity_fault(head, header, adjacent=header.revision == head.revision + 1)
    if fault is not None:
        return Finding(fault=fault)
    if header.revision == head.revision + 1:
        return _GOOD if header.previous_hash == head.hash else Finding(fault=f"revision {header.revision} does not continue the hash chain")
    if compacted:
        return Finding(missing=(head.revision + 1, header.revision - 1))
    return Finding(fault=f"revision {header.revision} after revision {head.revision}")


def _judge_first(header: EventHeader, compacted: bool) -> Finding:
    starts = header.revision == 0 or header.type == EventType.IMPORTED
    if starts and header.previous_hash == GENESIS:
        return _GOOD
    if starts and header.revision == 0:
        return Finding(fault="revision 0 continues another event's hash chain")
    if compacted:
        return Finding(missing=(0, header.revision - 1))
    return Finding(fault=f"revision {header.revision} after nothing")


def _identity_fault(head: Head, header: EventHeader, *, adjacent: bool) -> str | None:
    """What a successor may not change, whoever wrote it: the same rules as `_check_successor`."""
    if head.tenant != header.tenant:
        return f"tenant {header.tenant} in a checkpoint of tenant {head.tenant}"
    if head.run_id != header.run_id:
        return f"run {header.run_id} in a checkpoint of run {head.run_id}"
    if header.type == EventType.IMPORTED:
        return "an imported revision after others"
    if header.event_id == head.event_id:
        return f"the event id of revision {head.revision} again"
    if adjacent and header.type != EventType.MIGRATED and (header.kind, header.schema_version) != (head.kind, head.schema_version):
        return f"{header.kind} {header.schema_version} in a checkpoint of {head.kind} {head.schema_version}"
    if head.usage != header.usage:
        for name, spent in head.usage.items():
            if header.usage.get(name, 0) < spent:
                return f"usage.{name} decreases"
    return None
