"""A person decides about a run that was left in flight: one more revision, by compare-and-swap. Nothing is rewritten."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from eventlog.checkpoint import LAST_REVISION, Checkpoint
from eventlog.errors import Conflict, InvalidRequest
from eventlog.ids import CheckpointId
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.decided_runs import RunRecord, attempts, check_answered, check_fits, failed, retried, rolled_back, run_record, what
from eventlog.recovery.decisions import Decided, Decision
from eventlog.recovery.effects import EffectLedger, ledger_of
from eventlog.recovery.errors import DecisionRefused, KnownEffect
from eventlog.recovery.evidence import Evidence, evidence_steps
from eventlog.recovery.in_flight_runs import DEFAULT_LIMIT, RunInFlight, in_flight_steps
from eventlog.recovery.opening import AnyEffectStore, ledger_steps
from eventlog.recovery.stable_revision import revision_steps, stretch_steps
from eventlog.recovery.steps import Advance, Load, Steps, Store, check_store, drive, drive_async
from eventlog.recovery.stream import RunStream


class RunsInFlight(NamedTuple):
    """The oldest runs that are in flight or wait, and whether there are more than these."""

    runs: tuple[RunInFlight, ...]
    more: bool


class _DecisionsCore:
    """A person's view of the runs in a store."""

    def __init__(self, store: Store, effects: AnyEffectStore | None) -> None:
        self._store = store
        self._given: EffectLedger | None = None if effects is None else ledger_of(effects, store)

    def _list_steps(self, kind: str | None, tenant: str | None, older_than: datetime | None, limit: int) -> Steps[RunsInFlight]:
        runs, more = yield from in_flight_steps(self._store, kind, tenant, older_than, limit)
        return RunsInFlight(tuple(runs), more)

    def _show_steps(self, checkpoint_id: CheckpointId | UUID | str) -> Steps[Evidence]:
        return (yield from evidence_steps(self._store, CheckpointId(checkpoint_id), self._given))

    def _resolve_steps(
        self, checkpoint_id: CheckpointId | UUID | str, decision: Decision, actor: str, reason: str, expected: int | None
    ) -> Steps[Checkpoint]:
        if not isinstance(decision, Decision):
            raise InvalidRequest("decision", f"must be a Decision, not {decision!r:.60}")
        if expected is not None and (type(expected) is not int or not 0 <= expected < LAST_REVISION):
            raise InvalidRequest("expected", f"{expected!r:.40} is not a revision that another can follow")
        Decided(decision, actor, reason, 0, "")  # refused before anything is looked at, if malformed
        checkpoint: Checkpoint = yield Load(self._store, CheckpointId(checkpoint_id))
        record = run_record(checkpoint)
        if expected is not None and checkpoint.revision != expected:
            moved = "the run is not as it was when the decision was made"
            raise Conflict(checkpoint.id, expected=expected, actual=checkpoint.revision, proposed=expected + 1, detail=moved)
        check_fits(checkpoint.id, record, decision)
        stream = RunStream(store=self._store, checkpoint=checkpoint, record=record)
        made = Decided(decision, actor, reason, checkpoint.revision, what(record))
        following = yield from self._following_steps(stream, made)
        yield Advance(stream, lambda _: following, Boundary.RUN_DECIDED)
        self._store.metrics.decided(decision.value)
        return stream.checkpoint

    def _following_steps(self, stream: RunStream[RunRecord], made: Decided) -> Steps[RunRecord]:
        """What the decision makes of the run, if it may be made."""
        checkpoint, record = stream.checkpoint, stream.record
        if made.choice is Decision.MARK_FAILED:
            return failed(record, made)
        if made.choice is Decision.RETRY:
            check_answered(checkpoint.id, (yield from self._known_steps(stream)))
            return retried(record, made)
        latest = yield from revision_steps(self._store, checkpoint.id, checkpoint.revision)
        stable = (yield from stretch_steps(self._store, latest)).stable
        if stable is None:
            raise DecisionRefused(checkpoint.id, decision=made.choice.value, reason="it has no stable revision to go back to")
        return rolled_back(record, run_record(stable.checkpoint), made)

    def _known_steps(self, stream: RunStream[RunRecord]) -> Steps[list[KnownEffect]]:
        """How far the effects have come of what is in flight."""
        ledger = yield from ledger_steps(stream, self._given)
        effects = [effect for each in attempts(stream.record).values() for effect in each.effects]
        if ledger is None:
            return [each.known("unknown", 0) for each in effects]
        return (yield from ledger.known_steps(effects))


class Decisions(_DecisionsCore):
    """The runs of a `CheckpointStore` that were left in flight, for a person to look at and to decide about.

    Arguments:
        effects: where the runs' effects are; None: in the store itself.
    """

    def __init__(self, store: Store, *, effects: AnyEffectStore | None = None) -> None:
        check_store("store", store, wants_async=False)
        super().__init__(store, effects)

    def list(
        self, *, kind: str | None = None, tenant: str | None = None, older_than: datetime | None = None, limit: int = DEFAULT_LIMIT
    ) -> RunsInFlight:
        """Runs that are in flight or wait, the oldest first, by the log's clock.

        Arguments:
            kind: `eventlog.agent` or `eventlog.workflow`.
            older_than: in flight, or waiting, since before.
            limit: 1 to 100,000. The payload of each that is returned is read.

        Raises `InvalidRequest`, and as `CheckpointStore.list` does.
        """
        return drive(self._list_steps(kind, tenant, older_than, limit))

    def show(self, checkpoint_id: CheckpointId | UUID | str) -> Evidence:
        """What is on record of a run, and what each policy and decision would do. Writes nothing.

        Raises `SchemaMismatch` for what is no run, `IdentityMismatch` for another effect store than the run's, and as `load` does.
        """
        return drive(self._show_steps(checkpoint_id))

    def resolve(
        self, checkpoint_id: CheckpointId | UUID | str, decision: Decision, *, actor: str, reason: str, expected: int | None = None
    ) -> Checkpoint:
        """Commits a decision about a run that is in flight: the next revision, with who has decided, and why. The one committed.

        `RETRY`: what is in flight may be repeated, once, under whatever policy. `ROLL_BACK`: the last stable revision once more.
        `MARK_FAILED` (of a run that waits, too): the end; every resume raises `RunFailed`. Usage stays as it is. Whoever still held the run
        gets `Conflict` at its next write, and nobody owns it.

        Arguments:
            actor: who decides, 1 to 200 characters.
            reason: why, 1 to 1000 characters on one line.
            expected: the revision that was looked at: if the run has moved on, nothing is decided.

        Raises `DecisionRefused` (it does not fit; nothing was written), `Conflict` (the run has moved on, or somebody else was faster),
        `HistoryRemoved` (the log no longer holds what to roll back to), `SchemaMismatch`, `InvalidRequest`, and as `compare_and_swap` does.
        """
        return drive(self._resolve_steps(checkpoint_id, decision, actor, reason, expected))


class AsyncDecisions(_DecisionsCore):
    """The same in an `AsyncCheckpointStore`."""

    def __init__(self, store: Store, *, effects: AnyEffectStore | None = None) -> None:
        check_store("store", store, wants_async=True)
        super().__init__(store, effects)

    async def list(
        self, *, kind: str | None = None, tenant: str | None = None, older_than: datetime | None = None, limit: int = DEFAULT_LIMIT
    ) -> RunsInFlight:
        """See `Decisions.list`."""
        return await drive_async(self._list_steps(kind, tenant, older_than, limit))

    async def show(self, checkpoint_id: CheckpointId | UUID | str) -> Evidence:
        """See `Decisions.show`."""
        return await drive_async(self._show_steps(checkpoint_id))

    async def resolve(
        self, checkpoint_id: CheckpointId | UUID | str, decision: Decision, *, actor: str, reason: str, expected: int | None = None
    ) -> Checkpoint:
        """See `Decisions.resolve`."""
        return await drive_async(self._resolve_steps(checkpoint_id, decision, actor, reason, expected))
