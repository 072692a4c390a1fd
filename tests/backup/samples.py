"""What the tests of this folder look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eventlog import Checkpoint, CheckpointStore, Position
from eventlog.erasure.erasing import erase
from eventlog.erasure.register import REGISTER_FILE
from eventlog.erasure.selection import Selection
from eventlog.holds.reserved import RESTORE_KIND as KIND

NO_REGISTER = "nothing was ever erased"


def erased(store: CheckpointStore, *checkpoints: Checkpoint) -> Path:
    """Erases some checkpoints; the store's register."""
    erase(store, Selection.of_checkpoints(*(each.id for each in checkpoints)), actor="dpo", reason="request 4711")
    return store.log.directory / REGISTER_FILE


def events(store: CheckpointStore) -> list[tuple[int, int, bytes | None]]:
    """Partition, time and bytes of every event but a restore's record, in the order of each partition."""
    found = [record for records, _ in store.log.revisions(Position()) for record in records]
    kept = [each for each in found if KIND.encode() not in (each.value or b"")]
    return sorted(((each.partition, each.recorded_at, each.value) for each in kept), key=lambda each: each[0])


def answers(store: CheckpointStore) -> list[Any]:
    """Heads with their payloads, and every revision's payload."""
    heads = [each for each in store.list(limit=1000, include_deleted=True).items if each.kind != KIND]
    told: list[Any] = []
    for head in heads:
        fields = head._asdict()
        fields.pop("position")
        told.append(fields)
        told += [getattr(each, "checkpoint", each) for each in store.history(head.id)]
    return told
