"""The promises of docs/guarantees.md, held against every answer and every commit of a run.

The log of commits is the broker's own; nothing here asks the product what happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from eventlog import codec
from eventlog.checkpoint import Receipt
from eventlog.errors import CheckpointError, Conflict, Deleted, NotFound, OutcomeUnknown, Unavailable
from eventlog.event import GENESIS, EventType
from eventlog.log import Outcome
from eventlog.rules import Proposal
from tests.protocol_model.simulated_kafka import SimulatedKafka, Slot


class PromiseBroken(AssertionError):
    """What a removed step of the protocol leads to."""


@dataclass(frozen=True, slots=True)
class Committed:
    offset: int
    revision: int
    event_id: str
    hash: bytes
    deleted: bool


@dataclass(slots=True, eq=False)
class Asked:
    """A proposal on its way. `known`: the newest revision that anybody had been told of when it was made; None: of none."""

    proposal: Proposal
    known: int | None
    outcome: Outcome | None = None
    lost: bool = False  # with its process: nobody will be told
    resolved: bool = False

    @property
    def unclear(self) -> bool:
        """Whether its caller knows no more than that it may have been written."""
        return (self.lost or isinstance(self.outcome, OutcomeUnknown)) and not self.resolved


@dataclass
class Promises:
    broker: SimulatedKafka
    happened: Counter[str] = field(default_factory=Counter)
    streams: dict[str, list[Committed]] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)  # event id -> offset
    known: dict[str, int] = field(default_factory=dict)  # checkpoint -> newest revision that anybody was told of
    asked: dict[str, list[Asked]] = field(default_factory=dict)  # event id -> every time it was proposed
    never: dict[str, str] = field(default_factory=dict)  # event id -> why it must not be in the log
    _decided: int = 0

    # -- what is committed ----------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Looks at what was committed since the last time."""
        while self._decided < len(self.broker.decided):
            self._commit(self.broker.decided[self._decided])
            self._decided += 1

    def _commit(self, slot: Slot) -> None:
        assert slot.value is not None
        header, digest = codec.decode_header(slot.value)
        stream = self.streams.setdefault(header.checkpoint_id, [])
        last = stream[-1] if stream else Committed(-1, -1, "", GENESIS, False)
        what = f"revision {header.revision} at offset {slot.offset}"
        hold(header.event_id not in self.places, f"{what} is an event that is in the log already")
        hold(header.revision == last.revision + 1, f"{what} follows revision {last.revision}")
        hold(slot.offset > last.offset and header.previous_hash == last.hash, f"{what} does not continue revision {last.revision}")
        hold(not last.deleted, f"{what} follows a deletion")
        hold(header.event_id not in self.never, f"{what} was {self.never.get(header.event_id)}")
        stream.append(Committed(slot.offset, header.revision, header.event_id, digest, header.type == EventType.DELETED))
        self.places[header.event_id] = slot.offset
        self.happened["commits"] += 1

    def revision(self, checkpoint_id: str) -> int | None:
        stream = self.streams.get(checkpoint_id)
        return stream[-1].revision if stream else None

    # -- what is answered -----------------------------------------------------------------------------------------

    def ask(self, proposal: Proposal) -> Asked:
        asked = Asked(proposal, self.known.get(proposal.checkpoint_id))
        self.asked.setdefault(proposal.event_id, []).append(asked)
        return asked

    def answer(self, asked: Asked, outcome: Outcome) -> None:
        self.watch()
        asked.outcome = outcome
        self.happened[type(outcome).__name__] += 1
        if isinstance(outcome, Receipt):
            self._receipt(asked.proposal, outcome)
        elif isinstance(outcome, Unavailable):
            # That is said of this call. What an earlier one of the same event did stays as unclear as it was.
            if not any(other is not asked and other.unclear for other in self.asked[asked.proposal.event_id]):
                self._refuse(asked, "reported as not written")
        elif isinstance(outcome, Conflict | NotFound | Deleted):
            self._refuse(asked, f"refused with {outcome}")
            self._justified(asked, outcome)
        else:
            hold(isinstance(outcome, OutcomeUnknown), f"nothing here can be the reason of {outcome!r}")

    def _receipt(self, proposal: Proposal, receipt: Receipt) -> None:
        place = receipt.position.next_offset(0) - 1
        hold(proposal.event_id == receipt.event_id and proposal.revision == receipt.revision, "a receipt of another event")
        hold(self.places.get(proposal.event_id) == place, f"revision {proposal.revision} is not at offset {place}, where its receipt says")
        self.tell(proposal.checkpoint_id, proposal.revision)

    def _refuse(self, asked: Asked, why: str) -> None:
        event_id = asked.proposal.event_id
        if any(other is not asked and other.outcome is None and not other.lost for other in self.asked[event_id]):
            return  # proposed once more meanwhile: that one may still be committed
        hold(event_id not in self.places, f"revision {asked.proposal.revision} is in the log, and was {why}")
        self.never[event_id] = why

    def _justified(self, asked: Asked, error: CheckpointError) -> None:
        """A refusal is true of a state that the log had between the call and its answer."""
        proposal, known, now = asked.proposal, asked.known, self.revision(asked.proposal.checkpoint_id)
        if isinstance(error, NotFound) and not isinstance(error, Deleted):
            hold(known is None, f"revision {known} was acknowledged, and the checkpoint is reported as absent")
        elif isinstance(error, Deleted):
            hold(self.streams[proposal.checkpoint_id][-1].deleted, "reported as deleted")
        else:
            assert isinstance(error, Conflict)
            actual = -1 if error.actual is None else error.actual
            hold(actual <= (-1 if now is None else now), f"a conflict with revision {actual}, which is not in the log")
            hold(actual >= (-1 if known is None else known), f"a conflict with revision {actual}, when {known} was acknowledged")

    def tell(self, checkpoint_id: str, revision: int) -> None:
        """Somebody has learnt of a revision."""
        self.known[checkpoint_id] = max(revision, self.known.get(checkpoint_id, -1))

    def read(self, checkpoint_id: str, known: int | None, revision: int | None) -> None:
        """A load that was called when `known` was the newest revision anybody had been told of has answered `revision`."""
        self.watch()
        hold(known is None or (revision is not None and revision >= known), f"a load shows revision {revision} when {known} was known")
        now = self.revision(checkpoint_id)
        hold(revision is None or (now is not None and revision <= now), f"a load shows revision {revision}, which is not in the log")
        if revision is not None:
            self.tell(checkpoint_id, revision)

    def resolve(self, asked: Asked, *, found: bool) -> None:
        """`resolve()` has answered that an event is in the log, or that it never will be."""
        self.watch()
        proposal, asked.resolved = asked.proposal, True
        self.happened["resolved: in the log" if found else "resolved: not in the log"] += 1
        there = proposal.event_id in self.places
        hold(found == there, f"resolve() says that revision {proposal.revision} is {'' if found else 'not '}in the log")
        if not found:
            self.never[proposal.event_id] = "resolved as not in the log"

    def unclear(self) -> list[Asked]:
        """Of each event whose caller does not know what became of it, the call that says so."""
        return [
            next(each for each in calls if each.unclear)
            for calls in self.asked.values()
            if any(each.unclear for each in calls) and all(each.unclear or isinstance(each.outcome, Unavailable) for each in calls)
        ]


def hold(condition: bool, otherwise: str | Callable[[], str]) -> None:
    if not condition:
        raise PromiseBroken(otherwise if isinstance(otherwise, str) else otherwise())
