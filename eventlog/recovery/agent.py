"""An agent's run over a `CheckpointStore`: one turn after the other, each in flight before it does anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self
from uuid import UUID

from eventlog.ids import CheckpointId, RunId
from eventlog.recovery.agent_phases import AgentIdentity, Model
from eventlog.recovery.agent_steps import AgentCore, resume_steps, start_steps
from eventlog.recovery.effects import EffectStore
from eventlog.recovery.open_body import OpenBody
from eventlog.recovery.opening import Beginning
from eventlog.recovery.policy import Policy, Reject
from eventlog.recovery.steps import check_store, drive
from eventlog.recovery.turn_steps import TurnCore, begun
from eventlog.store import CheckpointStore


class AgentRun(AgentCore):
    """One run of an agent, written by one process at a time.

    Once another process has written the run, every further call here raises `Conflict` before anything outside is called. After an
    `OutcomeUnknown` the next call first finds out what became of the write before.
    """

    @classmethod
    def start(
        cls,
        store: CheckpointStore,
        *,
        agent: str,
        model: Model,
        definition_version: int,
        state: Any,
        effects: EffectStore | None = None,
        checkpoint_id: CheckpointId | UUID | str | None = None,
        run_id: RunId | UUID | str | None = None,
        tenant: str | None = None,
        labels: Mapping[str, str] | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> Self:
        """Accepts a run: revision 0 is durable when this returns.

        Arguments:
            agent, model, definition_version: its identity; it is only ever resumed with the same.
            state: what a turn starts from, any JSON value.
            effects: where its effects are; None for a run without.
            checkpoint_id: a name of your own, to find the run again if this call's answer is lost; starting it twice is a `Conflict`.
            tenant: in a store that sees all tenants.

        Raises `InvalidRequest`, `InvalidPayload`, and as `compare_and_swap` does.
        """
        check_store("store", store, wants_async=False)
        return cls(
            drive(
                start_steps(
                    store,
                    AgentIdentity(agent, model, definition_version),
                    effects,
                    state,
                    Beginning(checkpoint_id, run_id, tenant, labels, usage),
                )
            )
        )

    @classmethod
    def resume(
        cls,
        store: CheckpointStore,
        checkpoint_id: CheckpointId | UUID | str,
        *,
        agent: str,
        model: Model,
        definition_version: int,
        policy: Policy | None = None,
        effects: EffectStore | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> Self:
        """Goes on with a run that another process, or this one, has left. Writes nothing.

        A completed run has its `response`; a stable one is ready for its next turn; one that is in flight is refused, or with
        `RetryInFlight` its `turn()` repeats the turn.

        Arguments:
            policy: `Reject()` when None.
            effects: the effect store that the checkpoint names. None: the policy's, or the store itself, where that is the one.
            usage: what your own meter says was used, in total; it may know more than the checkpoint.

        Raises `IdentityMismatch` and other `SchemaMismatch` before it looks at anything else, `AmbiguousResume`, `InvalidPayload` for a
        payload that does not fit, `InvalidRequest` (a usage below the one on record), and as `load` does.
        """
        check_store("store", store, wants_async=False)
        identity = AgentIdentity(agent, model, definition_version)
        return cls(drive(resume_steps(store, checkpoint_id, identity, Reject() if policy is None else policy, effects, usage)))

    def turn(self) -> Turn:
        """The next turn, or the one in flight if it is to be repeated: `with run.turn() as turn:`."""
        return Turn(self)

    def complete(self, response: Any) -> None:
        """Ends the run with a response, any JSON value. Again with the same one: nothing is written.

        Raises `StillInFlight` in a turn, `InvalidRequest` for a completed run, and as `compare_and_swap` does.
        """
        drive(self._complete_steps(response))


class Turn(OpenBody):
    """One turn of an `AgentRun`: in flight from the first line of its body to `commit()`."""

    def __init__(self, run: AgentRun) -> None:
        self._run = run
        self._core: TurnCore | None = None

    def __enter__(self) -> Self:
        drive(self._run._begin_steps())
        self._core = self._run._turn_begun()
        return self

    @property
    def number(self) -> int:
        """Which turn of the run this is, from 1 on."""
        return self._begun.number

    @property
    def attempt(self) -> int:
        """How often this turn has been begun, from 1 on."""
        return self._begun.attempt

    def commit(self, *, state: Any, usage: Mapping[str, int] | None = None) -> None:
        """Ends the turn: `state` (any JSON value) explains everything that was done, and the next turn starts from it.

        Arguments:
            usage: what your own meter says was used, in total; lower than what is on record is refused.

        Raises `StillInFlight` while a write of this turn is without an answer, `InvalidPayload`, `InvalidRequest`, and as
        `compare_and_swap` does.
        """
        drive(self._begun.commit_steps(state, usage))

    @property
    def _begun(self) -> TurnCore:
        return begun(self._core)
