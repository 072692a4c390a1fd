"""Every deletion goes this way: a DELETED event on the condition that no hold came between the look at the holds and the commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from eventlog.checkpoint import Checkpoint
from eventlog.codec import decode_header
from eventlog.errors import CheckpointError, Conflict, HeldByLegalHold, InvalidRequest, NotFound
from eventlog.event import EventHeader, EventType, to_checkpoint
from eventlog.holds.refusals import Wanted, remember
from eventlog.holds.register import HoldRegister
from eventlog.holds.reserved import PROTECTED, TENANT, ReservedStreams
from eventlog.holds.targets import HoldIndex
from eventlog.ids import CheckpointId, EventId
from eventlog.log import Log, Outcome
from eventlog.position import Position
from eventlog.rules import Condition, Proposal

_HISTORY_ROWS = 500
_AS_SEEN = Position()  # no barrier: what this process has seen by now


class Deletion(NamedTuple):
    """A checkpoint that is to be ended behind a revision."""

    checkpoint_id: CheckpointId
    expected: int
    event_id: EventId | None = None


class Deleter:
    """Deletes for one store. Safe to share between threads.

    Arguments:
        tenant: others' checkpoints do not exist.
        propose: from a tombstone and the revision that it follows to a proposal.
        append: as the log does, within some seconds.
    """

    def __init__(
        self,
        *,
        streams: ReservedStreams,
        tenant: str | None,
        propose: Callable[[Checkpoint, int], Proposal],
        append: Callable[[Sequence[Proposal], float], Sequence[Outcome]],
    ) -> None:
        self._streams = streams
        self._log: Log = streams.log
        self._tenant = tenant
        self._propose = propose
        self._append = append
        self.register = HoldRegister(streams)

    def delete(self, deletions: Sequence[Deletion], *, timeout: float, reason: str | None = None) -> list[Outcome]:
        """One outcome each, in order, none raised. `reason`: of a refusal that is remembered.

        1. Look at the checkpoint, then at the register of holds of its partition, then at what is held.
        2. Propose the DELETED event on the condition that the register is as it was. The log decides that within the durable write: a hold
           that was placed since makes it refuse, one that is placed later finds the checkpoint deleted.
        3. Refused for that condition alone: look again, until the time is up.

        A checkpoint that is deleted already is not asked for holds: its log answers, with the first receipt where it is a retry.
        """
        deadline = time.monotonic() + timeout
        one = len(deletions) == 1
        if not one:
            self._log.end()  # one barrier for all
        outcomes: list[Outcome | None] = [None] * len(deletions)
        while (left := [number for number, outcome in enumerate(outcomes) if outcome is None]) and outcomes:
            proposals: dict[int, Proposal] = {}
            for number in left:
                try:
                    proposals[number] = self._proposal(deletions[number], None if one else _AS_SEEN, reason)
                except CheckpointError as error:
                    outcomes[number] = error
            answers = self._append(list(proposals.values()), max(deadline - time.monotonic(), 0.001)) if proposals else ()
            for (number, proposal), answer in zip(proposals.items(), answers, strict=True):
                if not _holds_changed(answer, proposal) or time.monotonic() > deadline:
                    outcomes[number] = answer
        return [outcome for outcome in outcomes if outcome is not None]

    def require_not_held(self, header: EventHeader, *, wanted: Wanted, reason: str | None) -> Condition:
        """Under what condition a checkpoint is free of holds. Raises `HeldByLegalHold`; that it was wanted is on record then."""
        return self._free(header, None, wanted, reason)

    def holds_on(self, header: EventHeader) -> tuple[str, ...]:
        """The ids of the holds on a checkpoint, as of now."""
        return held(self.register.read(self._log.partition_of(header.checkpoint_id)).by_target, self._log, header)

    def header(self, checkpoint_id: CheckpointId, *, at_least: Position | None = None) -> EventHeader:
        """Of the latest event. Raises `NotFound`, also for another tenant's."""
        record = None if self._log.place(checkpoint_id, at_least=at_least) is None else self._log.latest(checkpoint_id)
        if record is None or record.value is None:
            raise NotFound(checkpoint_id)
        header, _ = decode_header(record.value)
        if self._tenant is not None and header.tenant != self._tenant:
            raise NotFound(checkpoint_id)
        return header

    def _proposal(self, deletion: Deletion, at_least: Position | None, reason: str | None) -> Proposal:
        header = self.header(deletion.checkpoint_id, at_least=at_least)
        last = to_checkpoint(header, b"null").model_copy(update={"revision": deletion.expected})
        proposal = self._propose(last.next(None, phase=last.phase, event_id=deletion.event_id), deletion.expected)
        if header.type == EventType.DELETED or header.revision != deletion.expected:
            return proposal  # the log says what it is: a retry, a conflict or too late
        if header.tenant == TENANT and header.kind in PROTECTED:
            raise InvalidRequest("checkpoint_id", f"{header.checkpoint_id} is a {header.kind}: a record of who did what")
        return proposal._replace(only_if=self._free(header, _AS_SEEN, Wanted.DELETE, reason))

    def _free(self, header: EventHeader, at_least: Position | None, wanted: Wanted, reason: str | None) -> Condition:
        registered = self.register.read(self._log.partition_of(header.checkpoint_id), at_least=at_least)
        holds = held(registered.by_target, self._log, header)
        if not holds:
            return registered.condition
        try:
            remember(self._streams, header, wanted=wanted, reason=reason, holds=holds)
        except CheckpointError as error:
            raise HeldByLegalHold(header.checkpoint_id, holds=holds, remembered=False) from error
        raise HeldByLegalHold(header.checkpoint_id, holds=holds, remembered=True)


def held(index: HoldIndex, log: Log, header: EventHeader) -> tuple[str, ...]:
    """The holds on a checkpoint, by what it is and every label that it has borne as far as the log knows."""
    if not len(index):
        return ()
    borne = _labels_borne(log, header) if index.labels else ()
    return index.on(checkpoint_id=header.checkpoint_id, run_id=header.run_id, tenant=header.tenant, labels=borne)


def _labels_borne(log: Log, header: EventHeader) -> Iterable[tuple[str, str]]:
    return {pair for each in _headers(log, header.checkpoint_id) for pair in each.labels.items()} | set(header.labels.items())


def _headers(log: Log, checkpoint_id: str) -> Iterator[EventHeader]:
    after = -1
    while records := log.history(checkpoint_id, after=after, position=None, limit=_HISTORY_ROWS):
        for record in records:
            if record.value is not None:
                header, _ = decode_header(record.value)
                after = header.revision
                yield header
        if len(records) < _HISTORY_ROWS:
            return


def _holds_changed(answer: Outcome, proposal: Proposal) -> bool:
    return isinstance(answer, Conflict) and proposal.only_if is not None and answer.checkpoint_id == proposal.only_if.checkpoint_id
