"""The log: an append-only, totally ordered (per partition) sequence of events, which decides every compare-and-swap.

Two implementations, one contract: `embedded.py` (SQLite in a directory) and `kafka/` (a compacted topic).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from eventlog.checkpoint import Receipt
from eventlog.errors import CheckpointError
from eventlog.position import Position
from eventlog.rules import Proposal

Outcome = Receipt | CheckpointError


class Record(NamedTuple):
    """One committed record. `value` is the event's bytes, exactly; on Kafka a foreign record may lack either."""

    partition: int
    offset: int
    recorded_at: int  # milliseconds since 1970 UTC, the log's clock
    key: bytes | None
    value: bytes | None
    damage: str | None = None  # why these bytes are not the ones that were written
    moved: int | None = None  # bytes of the event as it was committed, where its body is in the archive only and `value` lacks it


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """What makes a log this one and no other; a projection is pinned to it."""

    store_id: str
    partitions: int
    encrypted: bool = False  # for ever: chosen when the store is made

    @property
    def pinned(self) -> str:
        """What a projection is pinned to: one of an encrypted store is none of a store in clear text of the same place."""
        return f"{self.store_id} encrypted" if self.encrypted else self.store_id


class Log(Protocol):
    """The contract that every log keeps. Methods raise errors of `eventlog.errors` only."""

    @property
    def kind(self) -> str:
        """`embedded` or `kafka`: what metrics are labelled with."""
        ...

    @property
    def identity(self) -> LogIdentity: ...

    @property
    def directory(self) -> Path:
        """Where this process keeps what belongs to the log, its projection included."""
        ...

    @property
    def max_event_bytes(self) -> int: ...

    @property
    def compress_from(self) -> int:
        """Bytes of JSON text from which a payload is compressed before the log gets it."""
        ...

    @property
    def reads_wait(self) -> bool:
        """Whether a read may wait for somebody else (an event loop then uses a thread)."""
        ...

    def append(self, proposals: Sequence[Proposal], *, timeout: float) -> Sequence[Outcome]:
        """Decides each proposal against its checkpoint's head inside the durable write; one outcome each, in order.

        `timeout` is in seconds. A proposal whose fate cannot be known in time gets `OutcomeUnknown`.
        """
        ...

    def append_at_once(self, proposals: Sequence[Proposal]) -> Sequence[Outcome] | None:
        """As `append`, if that takes no longer than the disk; None, and nothing done, if somebody else would have to be waited for."""
        ...

    def append_later(self, proposals: Sequence[Proposal], *, timeout: float, done: Callable[[Sequence[Outcome]], None]) -> bool:
        """As `append`, without waiting: `done` gets the outcomes from a thread of the log's. False, and nothing done, if it has none."""
        ...

    def read(self, after: Position) -> Iterator[tuple[Sequence[Record], Position]]:
        """Committed records behind a position up to the end at the time of the call: in order, without gaps, in batches.

        Each batch comes with the position that it reaches; the last one may lie behind the last record, since not every offset is one.
        """
        ...

    def revisions(self, after: Position) -> Iterator[tuple[Sequence[Record], Position]]:
        """As `read`, without what is quarantined."""
        ...

    def end(self) -> Position:
        """A barrier: everything acknowledged before the call lies before it."""
        ...

    def wait(self, after: Position, timeout: float) -> bool:
        """Waits up to `timeout` seconds for a committed event behind a position; whether there is one."""
        ...

    def settle(self, checkpoint_id: str | None, timeout: float) -> None:
        """Returns when no append of a checkpoint (None: of any) that has ended with an unknown outcome can still become committed."""
        ...

    def place(self, checkpoint_id: str, *, at_least: Position | None) -> tuple[int, int] | None:
        """Partition and offset of the latest revision, at least as fresh as a position (None: as of now)."""
        ...

    def tenant_of(self, checkpoint_id: str, *, at_least: Position | None) -> str | None:
        """Whose a checkpoint is, as fresh as `place` says it; None: there is none. What is read for it does not depend on its size."""
        ...

    def latest(self, checkpoint_id: str) -> Record | None:
        """The latest good revision that this process has seen."""
        ...

    def revision(self, checkpoint_id: str, revision: int) -> Record | None: ...

    def as_of(self, checkpoint_id: str, position: Position) -> Record | None: ...

    def by_event_id(self, event_id: str) -> Record | None: ...

    def history(self, checkpoint_id: str, *, after: int, position: Position | None, limit: int) -> Sequence[Record]:
        """Up to `limit` revisions behind revision `after`, as far as they lie before `position`."""
        ...

    def position_at(self, millis: int) -> Position:
        """Just behind the last event recorded up to a time, by the log's own clock."""
        ...

    def partition_of(self, checkpoint_id: str) -> int:
        """Where a checkpoint's records belong, for ever."""
        ...

    def unread(self) -> int | None:
        """How many offsets of the log this process has yet to read, without asking anybody; None: it reads on demand."""
        ...

    def compacted_before(self) -> int:
        """Milliseconds of the log's clock: of what was recorded earlier, compaction may have removed some. 0: it never does."""
        ...

    def close(self) -> None: ...
