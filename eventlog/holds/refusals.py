"""Deletions that a legal hold has refused, remembered until they are made up for: a stream for each checkpoint."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from eventlog.checkpoint import Checkpoint
from eventlog.errors import Conflict, SchemaMismatch
from eventlog.event import EventHeader
from eventlog.holds.reserved import REFUSAL_KIND, ReservedStreams, first
from eventlog.ids import CheckpointId, content_id


class Wanted(StrEnum):
    """What was refused."""

    DELETE = "delete"
    ERASE = "erase"


class Refusal(NamedTuple):
    """A refused deletion. `revision` is the one that was to be deleted: a checkpoint that has moved on since is not."""

    checkpoint_id: str
    revision: int
    tenant: str
    wanted: Wanted
    actor: str | None
    reason: str | None
    holds: tuple[str, ...]

    def labels(self) -> dict[str, str]:
        """What a plan needs of it, in clear text."""
        return {"checkpoint": self.checkpoint_id, "revision": str(self.revision), "tenant": self.tenant, "wanted": self.wanted.value}

    def payload(self) -> dict[str, object]:
        return {**self._asdict(), "wanted": self.wanted.value, "holds": list(self.holds), "phase": "refused"}

    @classmethod
    def read(cls, checkpoint: Checkpoint) -> Refusal:
        """Raises `SchemaMismatch`."""
        try:
            fields = checkpoint.payload
            return cls(
                str(CheckpointId(fields["checkpoint_id"])),
                int(fields["revision"]),
                fields["tenant"],
                Wanted(fields["wanted"]),
                fields["actor"],
                fields["reason"],
                tuple(fields["holds"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SchemaMismatch(f"checkpoint {checkpoint.id} revision {checkpoint.revision} is no refusal") from error


def refusal_id(checkpoint_id: str) -> CheckpointId:
    """Where the refusals of a checkpoint's deletion are."""
    return CheckpointId(content_id(REFUSAL_KIND, checkpoint_id))


def remember(streams: ReservedStreams, header: EventHeader, *, wanted: Wanted, reason: str | None, holds: tuple[str, ...]) -> None:
    """Puts a refusal on record. The same once more writes nothing. Raises as `compare_and_swap` does."""
    refusal = Refusal(header.checkpoint_id, header.revision, header.tenant, wanted, streams.actor, reason, holds)
    where = refusal_id(header.checkpoint_id)
    while True:
        found = streams.load(where, REFUSAL_KIND)
        if found is not None and Refusal.read(found) == refusal:
            return
        try:
            if found is None:
                streams.commit(first(where, REFUSAL_KIND, refusal.payload(), labels=refusal.labels()), None)
            else:
                streams.commit(found.next(refusal.payload(), labels=refusal.labels()), found.revision)
        except Conflict:
            continue
        return
