"""An erased id does not begin again, not even where a log that was restored from a backup does not know it."""

from __future__ import annotations

from collections.abc import Mapping

from eventlog.checkpoint import Checkpoint
from eventlog.erasure.register import Erased
from eventlog.errors import Deleted
from eventlog.log import Log


def refuse_erased(log: Log, erased: Mapping[str, Erased], checkpoint: Checkpoint, expected: int | None) -> None:
    """Raises `Deleted` for what would begin an erased checkpoint. Where the log knows it, the log answers: a retry gets its receipt."""
    if not erased or expected is not None or not isinstance(checkpoint, Checkpoint):
        return
    gone = erased.get(checkpoint.id)
    if gone is not None and log.place(checkpoint.id, at_least=None) is None:
        raise Deleted(checkpoint.id, last_revision=gone.last_revision)
