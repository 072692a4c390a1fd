"""What the kit asks of a store. Ours has it; for another one, an adapter of a screenful gives it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from eventlog.checkpoint import Checkpoint
from eventlog.position import Position


class Committed(NamedTuple):
    """A revision of a history. Of another store's, the kit looks at the first two alone, and takes a bare `Checkpoint` as well."""

    checkpoint: Checkpoint
    type: str  # REVISION | IMPORTED | MIGRATED | DELETED
    position: Position
    recorded_at: datetime


class Acknowledged(Protocol):
    """What a commit gives back: `eventlog.Receipt`, or something like it."""

    @property
    def event_id(self) -> str: ...
    @property
    def revision(self) -> int: ...


class StoreUnderTest(Protocol):
    """The least that a store must have. Everything else is a `Feature` that it may lack.

    Its errors are those of `eventlog`: `Conflict` with the current revision as `actual`, `NotFound`, `Deleted` with the deletion's own
    revision, `OutcomeUnknown` when a write may have happened. Any other error of a write counts as an unknown outcome.
    """

    def compare_and_swap(self, checkpoint: Checkpoint, expected: int | None) -> Any:
        """Commits revision 0 of an absent checkpoint (`expected` None), or the successor of `expected`; returns an `Acknowledged`."""
        ...

    def load(self, checkpoint_id: Any) -> Checkpoint:
        """The current revision, with everything that was acknowledged before the call. It keeps the event id that it was committed with."""
        ...

    def history(self, checkpoint_id: Any) -> Iterable[Any]:
        """Every revision, oldest first: what the store holds in the end, and the yardstick of the checker."""
        ...
