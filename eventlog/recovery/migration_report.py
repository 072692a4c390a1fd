"""Which checkpoints are migrated, and what became of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from eventlog.ids import CheckpointId
from eventlog.recovery.carrying import Refusal
from eventlog.recovery.migrations import Schema


class Selection(NamedTuple):
    """Which checkpoints. Everything given must match; None: all.

    `limit` ends it after so many checkpoints that are, or would be, migrated.
    """

    kind: str | None = None
    tenant: str | None = None
    ids: Sequence[CheckpointId | UUID | str] | None = None
    limit: int | None = None


EVERYTHING = Selection()


class Refused(NamedTuple):
    """A checkpoint that stays as it is, and why."""

    checkpoint_id: CheckpointId
    revision: int | None
    kind: str | None
    schema_version: int | None
    phase: str | None
    why: Refusal
    detail: str


@dataclass
class MigrationReport:
    """What was done, or would be. `moves` counts by what a checkpoint was and what it becomes."""

    moves: Counter[tuple[Schema, Schema]] = field(default_factory=Counter)
    unchanged: int = 0  # there is nothing to do: it is where the steps lead; for an undo: they have not led it there
    conflicts: int = 0  # lost against a live writer, and planned again
    refused: list[Refused] = field(default_factory=list)

    @property
    def looked_at(self) -> int:
        """Checkpoints so far."""
        return self.moves.total() + self.unchanged + len(self.refused)
