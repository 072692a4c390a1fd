"""What time it is by the log's clock: the one clock that all processes share. Never the clock of whoever asks."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from eventlog.checkpoint import DEFAULT_TENANT, Checkpoint, Receipt
from eventlog.errors import Conflict, NotFound
from eventlog.ids import CheckpointId, RunId, content_id
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.steps import Call, Commit, Load, Steps, Store

if TYPE_CHECKING:
    from eventlog.revision import Revision

CLOCK_KIND = "eventlog.clock"
CLOCK_VERSION = 1


class LogClock:
    """The log's time as this process knows it: when its last write was recorded, and how long ago it heard so.

    It never runs ahead of the log's, so that what has expired by it has.
    """

    def __init__(self) -> None:
        self._reading: tuple[datetime, int] | None = None

    def seen(self, recorded_at: datetime) -> None:
        """The log has recorded something of ours just now."""
        self._reading = recorded_at, time.monotonic_ns()

    def now(self) -> datetime | None:
        """None: it has not been read yet."""
        if self._reading is None:
            return None
        recorded_at, heard = self._reading
        return recorded_at + timedelta(microseconds=(time.monotonic_ns() - heard) // 1000)

    def now_steps(self, store: Store) -> Steps[datetime]:
        """Reads it, if that was not done: by one write, since a log says the time of nothing else."""
        if self._reading is None:
            self.seen((yield from _reading_steps(store)))
        now = self.now()
        assert now is not None
        return now


def _reading_steps(store: Store) -> Steps[datetime]:
    """One checkpoint a tenant is written for it; whoever is beaten to that has a time too, the winner's."""
    tenant = store.tenant or DEFAULT_TENANT
    where = CheckpointId(content_id(CLOCK_KIND, tenant))
    try:
        last: Checkpoint = yield Load(store, where)
    except NotFound:
        following = Checkpoint.initial(where, RunId.new(), CLOCK_KIND, CLOCK_VERSION, {}, tenant=tenant)
        expected = None
    else:
        following, expected = last.next({}), last.revision
    try:
        receipt: Receipt = yield Commit(store, following, expected, Boundary.CLOCK_READ)
    except Conflict:
        winner: Revision = yield Call(lambda _: store.load_revision(where), None)
        return winner.recorded_at
    return receipt.recorded_at
