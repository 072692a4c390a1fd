"""How far back the last revision lies in which nothing of a run was in flight: what a roll-back commits again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from eventlog.ids import CheckpointId
from eventlog.recovery.decided_runs import STABLE
from eventlog.recovery.steps import Call, Steps, Store

if TYPE_CHECKING:
    from eventlog.revision import Revision


class Stretch(NamedTuple):
    """How long a run has been in what it is in: the first revision of that, and the stable one before it; None: there never was one."""

    began: Revision
    stable: Revision | None


def stretch_steps(store: Store, latest: Revision) -> Steps[Stretch]:
    """Goes back from a run's latest revision, one after the other: there are as many as it has written since it was stable.

    Raises `HistoryRemoved` when the log no longer holds one that would have to be looked at.
    """
    began = latest
    while began.checkpoint.revision > 0:
        before = yield from revision_steps(store, latest.checkpoint.id, began.checkpoint.revision - 1)
        if before.checkpoint.phase in STABLE:
            return Stretch(began, before)
        began = before
    return Stretch(began, None)


def revision_steps(store: Store, checkpoint_id: CheckpointId, revision: int | None = None) -> Steps[Revision]:
    """A revision, with when and by whom it was committed."""
    found: Revision = yield Call(lambda _: store.load_revision(checkpoint_id, revision=revision), None)
    return found
