"""Whether an access log is what its writers made of it, and what the projection has of it.

Each record carries the hash of the one before it of the same session, and offsets have no gaps: a record that was changed, exchanged or
removed is noticed, and so is a beginning that nobody's retention has removed. Not noticed is a lost end, which no chain shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from eventlog.errors import Corrupted, SchemaMismatch
from eventlog.position import Position
from eventlog.privacy.access_event import GENESIS, AccessOutcome, SealedAccess, decode
from eventlog.privacy.access_log import AccessLog, AccessRecord
from eventlog.privacy.principals import Operation
from projections.access import hashes
from projections.engine import Projection


class AccessFault(NamedTuple):
    """One thing that is wrong. `position` is the record's own place, partition:offset."""

    position: str
    problem: str


class _Link(NamedTuple):
    number: int
    hash: bytes


def verify_accesses(log: AccessLog, projection: Projection | None = None) -> Iterator[AccessFault | int]:
    """Every fault, and after each batch the number of records in it. Without `projection` the log by itself is looked at."""
    start = log.start()
    sessions: dict[str, _Link] = {}
    noted = {str(Position(((partition, 0),))) for partition, _ in start.offsets}
    expected = dict(start.offsets)
    for records, _ in log.read(Position()):
        known: dict[int, bytes] = {}
        if projection is not None and records:
            known = hashes(projection, records[0].partition, records[0].offset, records[-1].offset)
        for record in records:
            place = f"{record.partition}:{record.offset}"
            if record.offset != expected.get(record.partition, 0):
                yield AccessFault(place, f"{record.offset - expected.get(record.partition, 0)} records before it are missing")
            expected[record.partition] = record.offset + 1
            sealed = _decoded(record)
            if isinstance(sealed, str):
                yield AccessFault(place, sealed)
                continue
            problem = _link(sessions, sealed, begins_late=start.next_offset(record.partition) > 0)
            if problem is not None:
                yield AccessFault(place, problem)
            if record.offset in known and known[record.offset] != sealed.hash:
                yield AccessFault(place, "the projection has another record there")
            if sealed.event.action == Operation.ACCESS_PRUNE and sealed.event.outcome is AccessOutcome.ALLOWED:
                noted.add(str(sealed.event.position))
        yield len(records)
    if log.notes_retention and str(start) not in noted:
        yield AccessFault(str(start), "the log begins here, and no record says that retention has removed what came before")


def _decoded(record: AccessRecord) -> SealedAccess | str:
    try:
        return decode(record.value)
    except (Corrupted, SchemaMismatch) as error:
        return str(error)


def _link(sessions: dict[str, _Link], sealed: SealedAccess, *, begins_late: bool) -> str | None:
    """What is wrong with a record's place in its session's chain."""
    before = sessions.get(sealed.session)
    sessions[sealed.session] = _Link(sealed.number, sealed.hash)
    if before is None:
        if sealed.number == 0:
            return None if sealed.previous_hash == GENESIS else "the first record of a session continues another one"
        return None if begins_late else f"it is number {sealed.number} of its session, and nothing is there before it"
    if sealed.number != before.number + 1:
        return f"it is number {sealed.number} of its session, behind number {before.number}"
    return None if sealed.previous_hash == before.hash else "it does not continue its session's hash chain"
