"""What an agent's run does, in which order, whichever way it is waited for. `AgentRun` and `AsyncAgentRun` drive these procedures."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from eventlog.checkpoint import Checkpoint, from_millis
from eventlog.errors import InvalidRequest
from eventlog.ids import CheckpointId
from eventlog.recovery.agent_phases import (
    AGENT_KIND,
    AGENT_VERSION,
    AgentIdentity,
    AgentPhase,
    AgentRecord,
    Completed,
    Failed,
    TurnInFlight,
    run_failed,
)
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.effects import EffectLedger
from eventlog.recovery.errors import AmbiguousResume, StillInFlight
from eventlog.recovery.fields import json_copy, own_copy
from eventlog.recovery.identity import check_identity
from eventlog.recovery.opening import AnyEffectStore, Beginning, Opened, create_steps, evidence_steps, given_ledger, ledger_steps
from eventlog.recovery.policy import Policy, admit
from eventlog.recovery.steps import Advance, Load, Settle, Steps, Store
from eventlog.recovery.stream import RunStream
from eventlog.recovery.turn_steps import TurnCore
from eventlog.recovery.usage import TURNS, at_least
from eventlog.recovery.watching import watched_steps


def start_steps(
    store: Store,
    identity: AgentIdentity,
    effects: AnyEffectStore | None,
    state: Any,
    beginning: Beginning,
) -> Steps[Opened[AgentRecord]]:
    """Commits revision 0, before any work."""
    return create_steps(
        store,
        AGENT_KIND,
        AGENT_VERSION,
        AgentRecord.first(identity, json_copy(state)),
        Boundary.AGENT_CREATED,
        effects,
        beginning,
    )


def resume_steps(
    store: Store,
    checkpoint_id: CheckpointId | UUID | str,
    identity: AgentIdentity,
    policy: Policy,
    effects: AnyEffectStore | None,
    usage: Mapping[str, int] | None,
) -> Steps[Opened[AgentRecord]]:
    """Looks at a run, identity first, and says whether it may be gone on with. Writes nothing: the next turn does."""
    given = given_ledger(policy, effects, store)
    checkpoint: Checkpoint = yield Load(store, CheckpointId(checkpoint_id))
    return (yield from watched_steps(store, "agent", checkpoint, _looked_at_steps(store, checkpoint, identity, policy, given, usage)))


def _looked_at_steps(
    store: Store,
    checkpoint: Checkpoint,
    identity: AgentIdentity,
    policy: Policy,
    given: EffectLedger | None,
    usage: Mapping[str, int] | None,
) -> Steps[Opened[AgentRecord]]:
    record = AgentRecord.of(checkpoint)
    check_identity(checkpoint.id, record.identity.fields(), identity.fields())
    stream = RunStream(store=store, checkpoint=checkpoint, record=record, floor=at_least(checkpoint.usage, usage or {}))
    phase = record.phase
    if isinstance(phase, Completed):
        return Opened(stream, None)
    if isinstance(phase, Failed):
        raise run_failed(checkpoint.id, phase)
    ledger = yield from ledger_steps(stream, given)
    if not isinstance(phase, TurnInFlight):
        return Opened(stream, ledger)
    decided = phase.decision is not None
    known = yield from evidence_steps(stream, policy, given, ledger, phase.effects, decided=decided)
    found = AmbiguousResume(checkpoint.id, what=_what(phase), since=_since(phase), attempt=phase.attempt, effects=known)
    admit(policy, found, decided=decided)
    return Opened(stream, ledger, found)


class AgentCore:
    """A run as one process holds it."""

    def __init__(self, opened: Opened[AgentRecord]) -> None:
        self._stream = opened.stream
        self._effects = opened.effects
        self._found = opened.found
        self._may_repeat = opened.found is not None
        self._proposed: tuple[int, int] | None = None  # a turn and attempt whose body has not been entered yet
        self._state: tuple[Any, Any] | None = None

    @property
    def checkpoint(self) -> Checkpoint:
        """The latest revision that this process knows to be durable: a copy of your own, made once a revision."""
        return self._stream.shown

    @property
    def checkpoint_id(self) -> CheckpointId:
        """What the run is resumed by."""
        return self._stream.checkpoint.id

    @property
    def state(self) -> Any:
        """The state of the last stable phase: a copy of your own, made once a phase. Only what `turn.commit` is given is kept."""
        stored = self._stream.record.state
        if self._state is None or self._state[0] is not stored:
            self._state = (stored, own_copy(stored))
        return self._state[1]

    @property
    def usage(self) -> dict[str, int]:
        """What the run has used so far, turns that died included."""
        return self._stream.usage

    @property
    def phase(self) -> AgentPhase:
        """`ReadyForTurn`, `TurnInFlight` or `Completed`; a run that is `Failed` is not resumed."""
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

    def _begin_steps(self) -> Steps[None]:
        """Makes the in-flight phase durable. When this returns, the body may run."""
        stream = self._stream
        if stream.unclear:
            yield Settle(stream)
        phase = stream.record.phase
        if isinstance(phase, TurnInFlight) and (phase.turn, phase.attempt) != self._proposed:
            if not self._may_repeat:
                raise StillInFlight(stream.checkpoint.id, what=_what(phase), reason="its body has not ended with a commit()")
            self._proposed = (phase.turn, phase.attempt + 1)
            yield self._begin()
        elif not isinstance(phase, TurnInFlight):
            self._proposed = (stream.record.turns + 1, 1)
            yield self._begin()
        # else: it was proposed before, its outcome was unknown, and now it is durable; nothing has been called since
        self._proposed, self._may_repeat = None, False

    def _turn_begun(self) -> TurnCore:
        """The turn in flight, for its body."""
        return TurnCore(self._stream, self._effects)

    def _complete_steps(self, response: Any) -> Steps[None]:
        """Ends the run. Ending it again with the same response is no error, since the first answer may have been lost."""
        stream = self._stream
        kept = own_copy(response)
        yield Settle(stream)
        phase = stream.record.phase
        if isinstance(phase, TurnInFlight):
            raise StillInFlight(stream.checkpoint.id, what=_what(phase), reason="a run is completed between its turns")
        if isinstance(phase, Completed) and phase.response == kept:
            return
        yield Advance(stream, lambda record: record.complete(kept), Boundary.AGENT_COMPLETED)

    def _begin(self) -> Advance:
        now = time.time_ns() // 1_000_000
        return Advance(self._stream, lambda record: record.begin(now), Boundary.TURN_IN_FLIGHT, {TURNS: 1})


def _what(phase: TurnInFlight) -> str:
    return f"turn {phase.turn}"


def _since(phase: TurnInFlight) -> datetime:
    return from_millis(phase.since_ms)
