"""The access log: an append-only companion of a store's log, with an order and a retention of its own.

Two implementations, one contract: `access_embedded.py` (SQLite in the store's directory) and `eventlog/kafka/access.py` (a topic).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol
from uuid import uuid4

from eventlog.errors import InvalidRequest
from eventlog.position import Position
from eventlog.privacy.access_event import GENESIS, AccessEvent, encode


class AccessMode(StrEnum):
    """How much of what was done is sure to be on record."""

    OFF = "off"  # nothing is recorded
    BUFFERED = "buffered"  # soon: what may be lost is bounded, see `recorder.py`
    STRICT = "strict"  # before anything is handed out or written

    @property
    def strictness(self) -> int:
        return list(AccessMode).index(self)


def access_mode(given: AccessMode | str) -> AccessMode:
    """Raises `InvalidRequest` for anything else than a mode."""
    try:
        return AccessMode(given)
    except ValueError as error:
        raise InvalidRequest("access", f"{given!r} is not a mode", hint=f"Modes are {', '.join(AccessMode)}.") from error


class AccessRecord(NamedTuple):
    """One record, as the log has it."""

    partition: int
    offset: int
    recorded_at: int  # milliseconds since 1970 UTC, the log's clock
    value: bytes  # Avro single-object encoding of an AccessEvent


class AccessLog(Protocol):
    """The contract that every access log keeps. Methods raise errors of `eventlog.errors` only; any number of threads may use them."""

    @property
    def identity(self) -> str:
        """What makes this access log this one and no other."""
        ...

    @property
    def notes_retention(self) -> bool:
        """Whether nothing is ever removed without a record that says so."""
        ...

    def append(self, events: Sequence[AccessEvent]) -> None:
        """Returns once all of them are durable, in the chain of this writer's session. Concurrent callers share one durable write.

        Raises `AuditUnavailable`: then they may or may not be there, and nobody must be handed what they are about.
        """
        ...

    def read(self, after: Position) -> Iterator[tuple[Sequence[AccessRecord], Position]]:
        """Records behind a position up to the end at the time of the call, in batches, each with the position that it reaches."""
        ...

    def start(self) -> Position:
        """Where the log begins, now that retention has removed what came before."""
        ...

    def end(self) -> Position:
        """Everything that was appended before the call lies before it."""
        ...

    def start_at(self, millis: int) -> Position:
        """Where the log would begin without what was recorded before a time."""
        ...

    def prune(self, start: Position) -> int:
        """Removes everything before `start`; returns how many records that were. That it was done is on record by then."""
        ...

    def close(self) -> None: ...


class Chain:
    """The chain of one writer's session. Not thread-safe: the log's writer holds it.

    Whatever may or may not have been written ends the session, because nobody can continue a chain whose last link is unclear.
    """

    def __init__(self) -> None:
        self.session = ""
        self.renew()

    def renew(self) -> None:
        """Begins a new session."""
        self.session, self._number, self._hash = str(uuid4()), 0, GENESIS

    def seal(self, events: Sequence[AccessEvent]) -> list[bytes]:
        """The bytes of the next events. The chain moves on: call `renew` when they are not known to be written."""
        sealed = []
        for event in events:
            data, self._hash = encode(event, session=self.session, number=self._number, previous_hash=self._hash)
            self._number += 1
            sealed.append(data)
        return sealed
