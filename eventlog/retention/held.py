"""For whoever removes something in another way than by `store.delete`: an erasure, for example."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from eventlog.holds.refusals import Wanted
from eventlog.ids import CheckpointId

if TYPE_CHECKING:
    from eventlog.store import CheckpointStore


def require_not_held(
    store: CheckpointStore,
    checkpoint_ids: Iterable[CheckpointId | UUID | str],
    *,
    wanted: Wanted = Wanted.ERASE,
    reason: str | None = None,
) -> None:
    """Raises `HeldByLegalHold` for the first checkpoint that a hold lies on, deleted ones too; that it was wanted is remembered then.

    Each is looked at behind a barrier: every hold that was placed before the call is seen. One that is placed after it is not; for what is
    not deleted yet, delete first (`store.delete`, which cannot be overtaken by a hold) and remove the rest afterwards.

    Arguments:
        wanted: what was wanted; a refused erasure shows in plans as `to be erased`, and only `eventlog erase` makes up for it.
        reason: why, for the record of a refusal.

    Raises `NotFound` too.
    """
    for each in checkpoint_ids:
        header = store._deleter.header(CheckpointId(each))
        store._deleter.require_not_held(header, wanted=wanted, reason=reason)
