"""An agent's run over an `AsyncCheckpointStore`: the same names, the same promises as `AgentRun`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self
from uuid import UUID

from eventlog.aio import AsyncCheckpointStore
from eventlog.ids import CheckpointId, RunId
from eventlog.recovery.agent_phases import AgentIdentity, Model
from eventlog.recovery.agent_steps import AgentCore, resume_steps, start_steps
from eventlog.recovery.effects import AsyncEffectStore
from eventlog.recovery.open_body import AsyncOpenBody
from eventlog.recovery.opening import Beginning
from eventlog.recovery.policy import Policy, Reject
from eventlog.recovery.steps import check_store, drive_async
from eventlog.recovery.turn_steps import TurnCore, begun


class AsyncAgentRun(AgentCore):
    """An `AgentRun` for one event loop. Effects of one turn may run at the same time; handlers may be async or plain functions.

    A plain function runs in a thread, so that it does not hold the loop. What is cancelled stays in flight, as if its process had died.
    """

    @classmethod
    async def start(
        cls,
        store: AsyncCheckpointStore,
        *,
        agent: str,
        model: Model,
        definition_version: int,
        state: Any,
        effects: AsyncEffectStore | None = None,
        checkpoint_id: CheckpointId | UUID | str | None = None,
        run_id: RunId | UUID | str | None = None,
        tenant: str | None = None,
        labels: Mapping[str, str] | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> Self:
        """See `AgentRun.start`."""
        check_store("store", store, wants_async=True)
        return cls(
            await drive_async(
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
    async def resume(
        cls,
        store: AsyncCheckpointStore,
        checkpoint_id: CheckpointId | UUID | str,
        *,
        agent: str,
        model: Model,
        definition_version: int,
        policy: Policy | None = None,
        effects: AsyncEffectStore | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> Self:
        """See `AgentRun.resume`."""
        check_store("store", store, wants_async=True)
        identity = AgentIdentity(agent, model, definition_version)
        return cls(await drive_async(resume_steps(store, checkpoint_id, identity, Reject() if policy is None else policy, effects, usage)))

    def turn(self) -> AsyncTurn:
        """See `AgentRun.turn`: `async with run.turn() as turn:`."""
        return AsyncTurn(self)

    async def complete(self, response: Any) -> None:
        """See `AgentRun.complete`."""
        await drive_async(self._complete_steps(response))


class AsyncTurn(AsyncOpenBody):
    """One turn of an `AsyncAgentRun`; see `Turn`."""

    def __init__(self, run: AsyncAgentRun) -> None:
        self._run = run
        self._core: TurnCore | None = None

    async def __aenter__(self) -> Self:
        await drive_async(self._run._begin_steps())
        self._core = self._run._turn_begun()
        return self

    @property
    def number(self) -> int:
        """See `Turn.number`."""
        return self._begun.number

    @property
    def attempt(self) -> int:
        """See `Turn.attempt`."""
        return self._begun.attempt

    async def commit(self, *, state: Any, usage: Mapping[str, int] | None = None) -> None:
        """See `Turn.commit`."""
        await drive_async(self._begun.commit_steps(state, usage))

    @property
    def _begun(self) -> TurnCore:
        return begun(self._core)
