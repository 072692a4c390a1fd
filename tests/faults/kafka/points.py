"""Where the victim is killed or stopped: each boundary of the writer, in each part of the workload that passes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from eventlog.kafka.boundaries import Boundary


class Phase(StrEnum):
    """Parts of the victim's workload (tests/faults/kafka/workload.py)."""

    FIRST = "first"  # it takes the partition over, and creates its checkpoints one by one
    BATCH = "batch"  # one transaction of several events, each a batch of the client's own
    SETTLING = "settling"  # fenced in the middle of such a transaction, it takes over again and settles what was in flight


BATCH_EVENTS = 4  # of the transactions in BATCH and SETTLING


@dataclass(frozen=True)
class Point:
    """The n-th passing of a boundary within a phase."""

    boundary: Boundary
    phase: Phase
    nth: int = 1
    lingers: bool = False  # a moment later: the client's own thread has gone on, so that its request is on the wire

    def __str__(self) -> str:
        return f"{self.phase}-{self.boundary.name}-{self.nth}{'-and-a-moment' if self.lingers else ''}"


_TAKE_OVER = (Boundary.FENCING, Boundary.FENCED, Boundary.BARRIER_SET, Boundary.CAUGHT_UP)
_TRANSACTION = tuple(boundary for boundary in Boundary if boundary not in _TAKE_OVER)
_EACH_RECORD = (Boundary.SENT, Boundary.ACKNOWLEDGED)


def _last(boundary: Boundary, phase: Phase) -> Point:
    return Point(boundary, phase, BATCH_EVENTS if boundary in _EACH_RECORD else 1)


STOPS = [*(_last(boundary, Phase.SETTLING) for boundary in _TAKE_OVER), *(_last(boundary, Phase.BATCH) for boundary in _TRANSACTION)]
"""Each boundary once, with as much in flight as can be."""

KILLS = [
    *STOPS,
    *(Point(boundary, Phase.FIRST) for boundary in _TAKE_OVER),
    *(Point(boundary, Phase.BATCH, nth) for boundary in _EACH_RECORD for nth in range(1, BATCH_EVENTS)),
    Point(Boundary.COMMIT_SENT, Phase.BATCH, lingers=True),
    *(_last(boundary, Phase.SETTLING) for boundary in _TRANSACTION),
]

NOT_COMMITTED, COMMITTED, EITHER = "not committed", "committed", "either"

IN_FLIGHT = {
    Boundary.FENCING: NOT_COMMITTED,
    Boundary.FENCED: NOT_COMMITTED,
    Boundary.BARRIER_SET: NOT_COMMITTED,
    Boundary.CAUGHT_UP: NOT_COMMITTED,
    Boundary.VALIDATING: NOT_COMMITTED,
    Boundary.VALIDATED: NOT_COMMITTED,
    Boundary.BEGUN: NOT_COMMITTED,
    Boundary.SENT: NOT_COMMITTED,
    Boundary.ACKNOWLEDGED: NOT_COMMITTED,
    Boundary.COMMIT_SENT: EITHER,
    Boundary.COMMIT_ANSWERED: COMMITTED,
    Boundary.TAIL_READ: COMMITTED,
    Boundary.TAIL_SEEN: COMMITTED,
    Boundary.ANSWERED: COMMITTED,
    Boundary.PROJECTING: EITHER,  # its thread is not in step with the transactions
    Boundary.PROJECTED: EITHER,
}
"""What becomes of the transaction in flight when the process goes no further than a boundary."""
