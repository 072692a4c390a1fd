"""Workers in several processes that share many runs of workflows: who has which, for how long, and what is there to take.

Claiming a run is a revision of it. So compare-and-swap is the fence: the next commit of an owner who has lost the run is a `Conflict`,
however late it comes and whatever its clock says. A lease only decides when others may try.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from eventlog.checkpoint import Checkpoint, from_millis, to_millis
from eventlog.errors import Conflict, Deleted, InvalidPayload, InvalidRequest, NotFound, SchemaMismatch
from eventlog.ids import CheckpointId
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.errors import AlreadyOwned
from eventlog.recovery.log_clock import LogClock
from eventlog.recovery.ownership import Claim
from eventlog.recovery.steps import Advance, Call, Load, Steps, Store, check_store, drive, drive_async
from eventlog.recovery.stream import RunStream
from eventlog.recovery.workflow_phases import ParallelInFlight, RaceInFlight, Ready, StepInFlight, Waiting
from eventlog.recovery.workflow_record import WORKFLOW_KIND, Owner, WorkflowRecord

if TYPE_CHECKING:
    from eventlog.catalog import Page
    from eventlog.revision import Revision

LEASE = timedelta(seconds=30)
_PAGE = 100
_PHASES = (Ready, Waiting, StepInFlight, ParallelInFlight, RaceInFlight)


class _ClaimsCore:
    """One worker's view of the runs in a store."""

    def __init__(self, store: Store, *, owner: str, lease: timedelta) -> None:
        if not isinstance(lease, timedelta):
            raise InvalidRequest("lease", f"must be a timedelta, not {type(lease).__name__}")
        self._store: Any = store
        self._owner = Owner(owner, lease // timedelta(milliseconds=1))
        self._clock = LogClock()

    def _claim_steps(self, checkpoint_id: CheckpointId | UUID | str) -> Steps[Claim]:
        found, record = yield from self._found_steps(CheckpointId(checkpoint_id))
        ends = record.lease_ends(to_millis(found.recorded_at))
        if record.owner is not None and ends is not None and ends > (yield from self._now_steps(ends)):
            raise AlreadyOwned(found.checkpoint.id, owner=record.owner.name, token=record.token, until=from_millis(ends))
        return (yield from self._take_steps(found, record))

    def _next_steps(self, workflow: str | None) -> Steps[Claim | None]:
        for phase in _PHASES:
            after: str | None = None
            while True:
                page: Page = yield Call(_listing(self._store, phase.name, after), None)
                for each in page.items:
                    claim = yield from self._try_steps(each.id, workflow)
                    if claim is not None:
                        return claim
                if page.next is None:
                    break
                after = page.next
        return None

    def _renew_steps(self, claim: Claim) -> Steps[None]:
        stream = yield from self._held_steps(claim)
        yield Advance(stream, lambda record: record, Boundary.WORKFLOW_RENEWED)

    def _release_steps(self, claim: Claim) -> Steps[None]:
        stream = yield from self._held_steps(claim)
        yield Advance(stream, WorkflowRecord.release, Boundary.WORKFLOW_RELEASED)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _try_steps(self, checkpoint_id: CheckpointId, workflow: str | None) -> Steps[Claim | None]:
        """Claims a run, if that is to be done; None if it is not, or another worker was faster, or this version cannot judge it."""
        try:
            found, record = yield from self._found_steps(checkpoint_id)
            if workflow is not None and record.identity.workflow != workflow:
                return None
            recorded = to_millis(found.recorded_at)
            due = max(record.lease_ends(recorded) or 0, (record.phase.until_ms or 0) if isinstance(record.phase, Waiting) else 0)
            now = yield from self._now_steps(due)
            return (yield from self._take_steps(found, record)) if record.claimable(recorded, now) else None
        except (Conflict, NotFound, SchemaMismatch, InvalidPayload):
            return None

    def _found_steps(self, checkpoint_id: CheckpointId) -> Steps[tuple[Revision, WorkflowRecord]]:
        found: Revision = yield Call(lambda _: self._store.load_revision(checkpoint_id), None)
        if found.type.value == "DELETED":
            raise Deleted(checkpoint_id, last_revision=found.checkpoint.revision - 1)
        return found, WorkflowRecord.of(found.checkpoint)

    def _take_steps(self, found: Revision, record: WorkflowRecord) -> Steps[Claim]:
        checkpoint = found.checkpoint
        stream = RunStream(store=self._store, checkpoint=checkpoint, record=record)
        stream.clock = self._clock
        yield Advance(stream, lambda record: record.claim(self._owner), Boundary.WORKFLOW_CLAIMED)
        return Claim(checkpoint.id, self._owner.name, stream.record.token, self._clock)

    def _now_steps(self, due_ms: int) -> Steps[int]:
        """The log's time; read only where it makes a difference."""
        if due_ms == 0:
            return 0
        return to_millis((yield from self._clock.now_steps(self._store)))

    def _held_steps(self, claim: Claim) -> Steps[RunStream[WorkflowRecord]]:
        checkpoint: Checkpoint = yield Load(self._store, claim.checkpoint_id)
        record = WorkflowRecord.of(checkpoint)
        record.check_owner(checkpoint.id, claim.owner, claim.token)
        return RunStream(store=self._store, checkpoint=checkpoint, record=record)


class Claims(_ClaimsCore):
    """The runs of a `CheckpointStore`, as one worker takes them. Makes no I/O until it is used.

    Arguments:
        owner: the worker's name, which no other process has.
        lease: how long after its last write for the run an owner is believed to live, by the log's clock; 1 ms to a day. Longer than any
            stretch in which the owner writes nothing, or renew the claim in between.
    """

    def __init__(self, store: Store, *, owner: str, lease: timedelta = LEASE) -> None:
        check_store("store", store, wants_async=False)
        super().__init__(store, owner=owner, lease=lease)

    def claim(self, checkpoint_id: CheckpointId | UUID | str) -> Claim:
        """Makes a run this worker's: one that nobody owns, or whose owner's lease has ended.

        Raises `AlreadyOwned`, `InvalidRequest` for a completed run, `Conflict` (somebody else was faster), and as `compare_and_swap` does.
        """
        return drive(self._claim_steps(checkpoint_id))

    def next_claimable(self, *, workflow: str | None = None) -> Claim | None:
        """Claims a run that somebody should go on with; None: there is none now. Oldest first within a phase, ready ones first.

        Those are runs that nobody owns and where nothing is in flight, timers that are due, and runs whose owner's lease has ended, in
        flight ones included: resume them with a policy. A run released in flight is left for a person, or for `claim`.

        Arguments:
            workflow: only runs of this one. Runs that this version cannot read are left alone.
        """
        return drive(self._next_steps(workflow))

    def renew(self, claim: Claim) -> None:
        """For a run that is not open here: its lease counts from now. For an open one there is `WorkflowRun.renew`.

        Raises `NotOwner` for a claim that is not on record (forged, or lost), `Conflict`, and as `compare_and_swap` does.
        """
        drive(self._renew_steps(claim))

    def release(self, claim: Claim) -> None:
        """For a run that is not open here: nobody owns it any more. For an open one there is `WorkflowRun.release`. Raises as `renew`."""
        drive(self._release_steps(claim))


class AsyncClaims(_ClaimsCore):
    """The same in an `AsyncCheckpointStore`."""

    def __init__(self, store: Store, *, owner: str, lease: timedelta = LEASE) -> None:
        check_store("store", store, wants_async=True)
        super().__init__(store, owner=owner, lease=lease)

    async def claim(self, checkpoint_id: CheckpointId | UUID | str) -> Claim:
        """See `Claims.claim`."""
        return await drive_async(self._claim_steps(checkpoint_id))

    async def next_claimable(self, *, workflow: str | None = None) -> Claim | None:
        """See `Claims.next_claimable`."""
        return await drive_async(self._next_steps(workflow))

    async def renew(self, claim: Claim) -> None:
        """See `Claims.renew`."""
        await drive_async(self._renew_steps(claim))

    async def release(self, claim: Claim) -> None:
        """See `Claims.release`."""
        await drive_async(self._release_steps(claim))


def _listing(store: Any, phase: str, after: str | None) -> Callable[[Any], Any]:
    return lambda _: store.list(kind=WORKFLOW_KIND, phase=phase, after=after, limit=_PAGE)
