"""What a workflow's run does, in which order, whichever way it is waited for: the procedures of `WorkflowRun` and `AsyncWorkflowRun`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from eventlog.checkpoint import Checkpoint, from_millis, to_millis
from eventlog.errors import Conflict, InvalidRequest
from eventlog.ids import CheckpointId
from eventlog.recovery.agent_phases import Completed, Failed, run_failed
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.effects import EffectLedger
from eventlog.recovery.errors import AmbiguousResume, StillInFlight
from eventlog.recovery.fields import json_copy, own_copy
from eventlog.recovery.identity import check_identity
from eventlog.recovery.opening import AnyEffectStore, Beginning, Opened, create_steps, evidence_steps, given_ledger, ledger_steps
from eventlog.recovery.ownership import Claim
from eventlog.recovery.policy import Policy, admit
from eventlog.recovery.steps import Advance, Load, Settle, Steps, Store
from eventlog.recovery.stream import RunStream
from eventlog.recovery.usage import STEPS, at_least
from eventlog.recovery.watching import watched_steps
from eventlog.recovery.workflow_bodies import StepCore
from eventlog.recovery.workflow_layout import Node, Race, layout_of
from eventlog.recovery.workflow_phases import Branch, BranchState, Place, Waiting, WorkflowPhase
from eventlog.recovery.workflow_record import WORKFLOW_KIND, WORKFLOW_VERSION, WorkflowIdentity, WorkflowRecord
from eventlog.recovery.workflow_signals import wake_steps


def start_steps(
    store: Store,
    identity: WorkflowIdentity,
    effects: AnyEffectStore | None,
    value: Any,
    beginning: Beginning,
) -> Steps[Opened[WorkflowRecord]]:
    """Commits revision 0, before any work."""
    return create_steps(
        store,
        WORKFLOW_KIND,
        WORKFLOW_VERSION,
        WorkflowRecord.first(identity, json_copy(value)),
        Boundary.WORKFLOW_CREATED,
        effects,
        beginning,
    )


def resume_steps(
    store: Store,
    checkpoint_id: CheckpointId | UUID | str,
    identity: WorkflowIdentity,
    policy: Policy,
    effects: AnyEffectStore | None,
    claim: Claim | None,
    usage: Mapping[str, int] | None,
) -> Steps[Opened[WorkflowRecord]]:
    """Looks at a run, identity first, and says whether it may be gone on with. Writes nothing: the next step does."""
    given = given_ledger(policy, effects, store)
    checkpoint: Checkpoint = yield Load(store, CheckpointId(checkpoint_id))
    looked_at = _looked_at_steps(store, checkpoint, identity, policy, given, claim, usage)
    return (yield from watched_steps(store, "workflow", checkpoint, looked_at))


def _looked_at_steps(
    store: Store,
    checkpoint: Checkpoint,
    identity: WorkflowIdentity,
    policy: Policy,
    given: EffectLedger | None,
    claim: Claim | None,
    usage: Mapping[str, int] | None,
) -> Steps[Opened[WorkflowRecord]]:
    record = WorkflowRecord.of(checkpoint)
    check_identity(checkpoint.id, record.identity.fields(), identity.fields())
    stream = RunStream(store=store, checkpoint=checkpoint, record=record, floor=at_least(checkpoint.usage, usage or {}))
    if isinstance(record.phase, Completed):
        return Opened(stream, None)
    if isinstance(record.phase, Failed):
        raise run_failed(checkpoint.id, record.phase)
    record.check_owner(checkpoint.id, *((None, None) if claim is None else (claim.owner, claim.token)))
    if claim is not None:
        stream.clock = claim.clock
    ledger = yield from ledger_steps(stream, given)
    in_flight = record.in_flight()
    if not in_flight:
        return Opened(stream, ledger)
    announced = [effect for each in in_flight.values() for effect in each.effects]
    decided = all(each.decision is not None for each in in_flight.values())
    found = AmbiguousResume(
        checkpoint.id,
        what=", ".join(map(str, in_flight)),
        since=from_millis(min(each.since_ms for each in in_flight.values())),
        attempt=max(each.attempt for each in in_flight.values()),
        effects=(yield from evidence_steps(stream, policy, given, ledger, announced, decided=decided)),
    )
    admit(policy, found, decided=decided)
    return Opened(stream, ledger, found)


class WorkflowCore:
    """A run as one process holds it; its branches may be run by several threads or tasks of it."""

    def __init__(self, opened: Opened[WorkflowRecord], claim: Claim | None = None) -> None:
        self._stream = opened.stream
        self._effects = opened.effects
        self._found = opened.found
        self._claim = claim
        self._may_repeat = set(opened.stream.record.in_flight()) if opened.found is not None else set()
        self._proposed: dict[Place, int] = {}  # attempts whose beginning is unclear: their bodies have not been entered

    @property
    def checkpoint(self) -> Checkpoint:
        """The latest revision that this process knows to be durable: a copy of your own, made once a revision."""
        return self._stream.shown

    @property
    def checkpoint_id(self) -> CheckpointId:
        """What the run is resumed by."""
        return self._stream.checkpoint.id

    @property
    def value(self) -> Any:
        """What the run was started with: a copy of your own."""
        return own_copy(self._stream.record.value)

    @property
    def outputs(self) -> dict[str, Any]:
        """What each step that is done has come to, by name: a copy of your own.

        Of a step: what it committed. Of a parallel step or race: by branch, `{"state": "completed", "output": ...}`,
        `{"state": "failed", "message": ...}`, `{"state": "cancelled"}`, or in a race also `{"state": "not_begun"}`. Of a wait:
        `{"by": "timer"}` or `{"by": "signal", "value": ..., "signal_id": ...}`.
        """
        copied: dict[str, Any] = own_copy(dict(self._stream.record.outputs))
        return copied

    @property
    def next(self) -> str | None:
        """The name of the step that comes next, or is in flight; None: all are done, and the run may be completed."""
        node = self._stream.record.next
        return None if node is None else node.name

    @property
    def usage(self) -> dict[str, int]:
        """What the run has used so far, steps that died included."""
        return self._stream.usage

    @property
    def phase(self) -> WorkflowPhase:
        """`Ready`, `StepInFlight`, `ParallelInFlight`, `RaceInFlight`, `Waiting` or `Completed`; a run that is `Failed` is not resumed."""
        return self._stream.record.phase

    @property
    def response(self) -> Any:
        """What a completed run has come to. Raises `InvalidRequest` before that."""
        phase = self.phase
        if not isinstance(phase, Completed):
            raise InvalidRequest("phase", f"is {phase.name}; there is no response yet")
        return own_copy(phase.response)

    @property
    def found(self) -> AmbiguousResume | None:
        """What was in flight when the run was resumed to repeat it (`RetryInFlight`, or a decision): since when, and the effects."""
        return self._found

    def winner(self, race: str) -> str | None:
        """The branch that has won a race which is done; None: all have failed or were cancelled."""
        outputs = self._stream.record.outputs
        if race not in outputs or not any(isinstance(node, Race) and node.name == race for node in self._stream.record.identity.layout):
            raise InvalidRequest("race", f"{race!r:.60} is not a race that is done")
        return next((name for name, each in outputs[race].items() if each["state"] == BranchState.COMPLETED), None)

    # -- steps and branches ---------------------------------------------------------------------------------------

    def _begin_steps(self, place: Place) -> Steps[StepCore]:
        """Makes the in-flight phase durable. When this returns, the body may run."""
        stream = self._stream
        if stream.unclear:
            yield Settle(stream)
        self._check_claim()
        now = stream.record.in_flight().get(place)
        proposed = self._proposed.pop(place, None)  # by whichever thread is the first to ask
        if now is None or now.attempt != proposed:
            if now is not None and place not in self._may_repeat:
                raise self._still_in_flight(str(place), "its body has not ended with a commit()")
            attempt = 1 if now is None else now.attempt + 1
            since = time.time_ns() // 1_000_000
            try:
                yield Advance(
                    stream,
                    lambda record: record.begin(place, attempt, since),
                    Boundary.STEP_IN_FLIGHT if place.branch is None else Boundary.BRANCH_IN_FLIGHT,
                    {STEPS: 1},
                )
            except BaseException:
                if stream.unclear:
                    self._proposed[place] = attempt
                raise
        # else: it was proposed before, its outcome was unknown, and now it is durable; nothing has been called since
        self._may_repeat.discard(place)
        return StepCore(stream, self._effects, place)

    def _branches_steps(self, step: str, node: type[Node]) -> Steps[None]:
        """Looks whether the branches of this step are next."""
        if self._stream.unclear:
            yield Settle(self._stream)
        self._check_claim()
        self._stream.record.branches(step)
        if not isinstance(self._stream.record.next, node):
            raise InvalidRequest("step", f"{step} is no {node.__name__} in the layout")

    def _branches(self, step: str) -> dict[str, Branch]:
        return dict(self._stream.record.branches(step))

    def _join_steps(self, step: str) -> Steps[None]:
        """Ends a parallel step or race, when each branch has ended or one has won, and every write of a cancelled one is settled."""
        stream = self._stream
        if stream.unclear:
            yield Settle(stream)
        open_ones = stream.record.unjoined(step)
        if open_ones:
            raise self._still_in_flight(step, ", ".join(open_ones))
        announced = [effect for each in stream.record.branches(step).values() for effect in each.effects if effect.effect_class.writes]
        if announced and self._effects is not None:
            known = yield from self._effects.known_steps(announced)
            started = [f"{each.capability} {each.idempotency_key}" for each in known if each.state == "started"]
            if started:
                raise self._still_in_flight(step, f"{', '.join(started)} started, and nobody knows how it ended")
        yield Advance(stream, lambda record: record.join(step), Boundary.BRANCHES_JOINED)

    # -- waiting --------------------------------------------------------------------------------------------------

    def _wait_steps(self, step: str, node: type[Node], until: datetime | None) -> Steps[bool]:
        """Waits, or looks whether it was woken."""
        stream = self._stream
        until_ms = None if until is None else to_millis(until, "until")
        if stream.unclear:
            yield Settle(stream)
        if step in stream.record.outputs:
            return True
        self._check_claim()
        if not isinstance(stream.record.next, node):
            raise InvalidRequest("step", f"{step!r:.60} is no {node.__name__} that is next")
        if not isinstance(stream.record.phase, Waiting):
            yield Advance(stream, lambda record: record.wait(step, until_ms), Boundary.WORKFLOW_WAITING)
            if self._claim is not None:
                return False  # the claim was given back with it
        yield from self._woken_steps()
        if step in stream.record.outputs:
            return True
        if not (yield from self._due_steps()):
            if self._claim is not None:
                yield Advance(stream, WorkflowRecord.release, Boundary.WORKFLOW_RELEASED)
            return False
        yield Advance(stream, lambda record: record.wake(step, {"by": "timer"}), Boundary.WORKFLOW_WOKEN)
        return True

    def _woken_steps(self) -> Steps[None]:
        """Goes on from the one revision that another process may have written while this one waited: the one that wakes it."""
        stream = self._stream
        found: Checkpoint = yield Load(stream.store, stream.checkpoint.id)
        if found.revision == stream.checkpoint.revision:
            return
        record = WorkflowRecord.of(found)
        if found.revision != stream.checkpoint.revision + 1 or record.token != stream.record.token:
            expected = stream.checkpoint.revision
            raise Conflict(
                found.id, expected=expected, actual=found.revision, proposed=expected + 1, detail="another process has gone on with it"
            )
        stream.checkpoint, stream.record = found, record

    def _due_steps(self) -> Steps[bool]:
        """Whether the time has come, by the log's clock."""
        phase, clock = self._stream.record.phase, self._stream.clock
        if not isinstance(phase, Waiting) or phase.until_ms is None:
            return False
        now = yield from clock.now_steps(self._stream.store)
        return to_millis(now) >= phase.until_ms

    def _signal_steps(self, name: str, value: Any, signal_id: str | None) -> Steps[None]:
        yield Settle(self._stream)
        yield from wake_steps(self._stream, name, value, signal_id)

    # -- the end, and who runs it ---------------------------------------------------------------------------------

    def _complete_steps(self, response: Any) -> Steps[None]:
        """Ends the run. Ending it again with the same response is no error, since the first answer may have been lost."""
        stream = self._stream
        kept = own_copy(response)
        yield Settle(stream)
        phase = stream.record.phase
        if isinstance(phase, Completed) and phase.response == kept:
            return
        self._check_claim()
        in_flight = stream.record.in_flight()
        if in_flight:
            raise self._still_in_flight(", ".join(map(str, in_flight)), "a run is completed between its steps")
        yield Advance(stream, lambda record: record.complete(kept), Boundary.WORKFLOW_COMPLETED)

    def _renew_steps(self) -> Steps[None]:
        self._check_claimed()
        yield Advance(self._stream, lambda record: record, Boundary.WORKFLOW_RENEWED)

    def _release_steps(self) -> Steps[None]:
        self._check_claimed()
        yield Advance(self._stream, WorkflowRecord.release, Boundary.WORKFLOW_RELEASED)

    def _check_claimed(self) -> None:
        if self._claim is None:
            raise InvalidRequest("claim", "the run was not resumed with one")
        self._check_claim()

    def _check_claim(self) -> None:
        """Raises `NotOwner` for a run whose claim was given back."""
        if self._claim is not None:
            self._stream.record.check_owner(self.checkpoint_id, self._claim.owner, self._claim.token)

    def _still_in_flight(self, what: str, reason: str) -> StillInFlight:
        return StillInFlight(self.checkpoint_id, what=what, reason=reason)


def identity_of(workflow: str, version: int, layout: Sequence[str | Node]) -> WorkflowIdentity:
    """What a caller says the run is."""
    return WorkflowIdentity(workflow, version, layout_of(layout))
