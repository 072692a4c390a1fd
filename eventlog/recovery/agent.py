"""An agent's run over a `CheckpointStore`: one turn after the other, each in flight before it does anything."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from eventlog.ids import CheckpointId, RunId
from eventlog.recovery.agent_phases import AgentIdentity, Model
from eventlog.recovery.agent_steps import AgentCore, resume_steps, start_steps
from eventlog.recovery.effect_phases import EffectClass
from eventlog.recovery.effects import EffectStore, Recall, Reconciler
from eventlog.recovery.opening import Beginning
from eventlog.recovery.policy import Policy, Reject
from eventlog.recovery.steps import Handler, check_store, drive
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


class Turn:
    """One turn of an `AgentRun`: in flight from the first line of its body to `commit()`."""

    def __init__(self, run: AgentRun) -> None:
        self._run = run
        self._core: TurnCore | None = None

    def __enter__(self) -> Self:
        drive(self._run._begin_steps())
        self._core = self._run._turn_begun()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._begun.leave(error)

    @property
    def number(self) -> int:
        """Which turn of the run this is, from 1 on."""
        return self._begun.number

    @property
    def attempt(self) -> int:
        """How often this turn has been begun, from 1 on."""
        return self._begun.attempt

    def spend(self, **amounts: int) -> None:
        """Records what was used just now (`tokens=812, cost_microusd=950`), durably: a process that dies later has still used it.

        One commit. `turns`, `tool_calls` and `duration_micros` are counted without it. Raises `InvalidRequest` for a negative amount.
        """
        drive(self._begun.spend_steps(amounts))

    def effect(
        self,
        capability: str,
        input: Any,  # noqa: A002 - what it is
        handler: Handler,
        *,
        effect_class: EffectClass,
        idempotency_key: str | None = None,
        reconcile: Reconciler | None = None,
        recall: Recall | None = None,
        digest_only: bool = False,
    ) -> Any:
        """Does something outside, at most once as far as can be known, and returns what came of it.

        Arguments:
            capability, idempotency_key: name the effect for ever, in this tenant. Without a key it belongs to its place in this turn: the
                first, second, ... call of the capability. An idempotent write needs a key, and its handler should pass it on.
            input: any JSON value; it is what the handler gets.
            effect_class: what may be done when nobody knows how it ended.
            reconcile: gets the `Effect` of an earlier attempt that did not answer; returns a `Settlement`.
            digest_only: keep the digests of input and output, not themselves; then a replay asks `recall` for the output.

        A completed effect returns its output without being run. The handler says that it failed for certain by `CertainFailure` (then this
        and every later call raises `EffectFailed`), that nothing happened by `NotExecuted`; whatever else it raises comes through, and the
        effect stays started.

        Raises before the handler: `Conflict` (another process has the run), `EffectReused` (same key, other input), `AmbiguousEffect`,
        `InvalidRequest`, `InvalidPayload`. After it: `InvalidPayload` or `TooLarge` for an output that cannot be recorded. `OutcomeUnknown`
        may be raised by any of the writes.
        """
        return drive(
            self._begun.effect_steps(
                capability,
                input,
                handler,
                effect_class=effect_class,
                idempotency_key=idempotency_key,
                reconcile=reconcile,
                recall=recall,
                digest_only=digest_only,
            )
        )

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
