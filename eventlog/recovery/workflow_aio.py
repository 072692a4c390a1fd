"""A workflow's run over an `AsyncCheckpointStore`: the same names, the same promises as `WorkflowRun`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from eventlog.aio import AsyncCheckpointStore
from eventlog.ids import CheckpointId, RunId
from eventlog.recovery.effects import AsyncEffectStore
from eventlog.recovery.open_body import AsyncOpenBody
from eventlog.recovery.opening import Beginning
from eventlog.recovery.ownership import Claim
from eventlog.recovery.policy import Policy, Reject
from eventlog.recovery.steps import check_store, drive_async
from eventlog.recovery.workflow_bodies import BranchesCore, StepFace
from eventlog.recovery.workflow_layout import Node, Parallel, Race, WaitForSignal, WaitForTimer
from eventlog.recovery.workflow_phases import Place
from eventlog.recovery.workflow_signals import send_signal_steps
from eventlog.recovery.workflow_steps import WorkflowCore, identity_of, resume_steps, start_steps


class AsyncWorkflowRun(WorkflowCore):
    """A `WorkflowRun` for one event loop; its branches may run in several tasks of it.

    Handlers may be async or plain functions, which run in a thread. What is cancelled stays in flight, as if its process had died.
    """

    @classmethod
    async def start(
        cls,
        store: AsyncCheckpointStore,
        *,
        workflow: str,
        version: int,
        layout: Sequence[str | Node],
        value: Any,
        effects: AsyncEffectStore | None = None,
        checkpoint_id: CheckpointId | UUID | str | None = None,
        run_id: RunId | UUID | str | None = None,
        tenant: str | None = None,
        labels: Mapping[str, str] | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> Self:
        """See `WorkflowRun.start`."""
        check_store("store", store, wants_async=True)
        return cls(
            await drive_async(
                start_steps(
                    store,
                    identity_of(workflow, version, layout),
                    effects,
                    value,
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
        workflow: str,
        version: int,
        layout: Sequence[str | Node],
        policy: Policy | None = None,
        effects: AsyncEffectStore | None = None,
        claim: Claim | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> Self:
        """See `WorkflowRun.resume`."""
        check_store("store", store, wants_async=True)
        identity = identity_of(workflow, version, layout)
        return cls(
            await drive_async(resume_steps(store, checkpoint_id, identity, Reject() if policy is None else policy, effects, claim, usage)),
            claim,
        )

    def step(self, name: str) -> AsyncWorkflowStep:
        """See `WorkflowRun.step`."""
        return AsyncWorkflowStep(self, Place(name))

    def parallel(self, name: str) -> AsyncWorkflowBranches:
        """See `WorkflowRun.parallel`."""
        return AsyncWorkflowBranches(self, name, Parallel)

    def race(self, name: str) -> AsyncWorkflowBranches:
        """See `WorkflowRun.race`."""
        return AsyncWorkflowBranches(self, name, Race)

    async def wait_for_signal(self, name: str, *, until: datetime | None = None) -> bool:
        """See `WorkflowRun.wait_for_signal`."""
        return await drive_async(self._wait_steps(name, WaitForSignal, until))

    async def wait_for_timer(self, name: str, *, until: datetime) -> bool:
        """See `WorkflowRun.wait_for_timer`."""
        return await drive_async(self._wait_steps(name, WaitForTimer, until))

    async def signal(self, name: str, value: Any, *, signal_id: str | None = None) -> None:
        """See `WorkflowRun.signal`."""
        await drive_async(self._signal_steps(name, value, signal_id))

    async def renew(self) -> None:
        """See `WorkflowRun.renew`."""
        await drive_async(self._renew_steps())

    async def release(self) -> None:
        """See `WorkflowRun.release`."""
        await drive_async(self._release_steps())

    async def complete(self, response: Any) -> None:
        """See `WorkflowRun.complete`."""
        await drive_async(self._complete_steps(response))


class AsyncWorkflowStep(StepFace, AsyncOpenBody):
    """See `WorkflowStep`."""

    def __init__(self, run: AsyncWorkflowRun, place: Place) -> None:
        super().__init__()
        self._run = run
        self._place = place

    async def __aenter__(self) -> Self:
        self._core = await drive_async(self._run._begin_steps(self._place))
        return self

    async def commit(self, *, output: Any, usage: Mapping[str, int] | None = None) -> None:
        """See `WorkflowStep.commit`."""
        await drive_async(self._begun.commit_steps(output, usage))


class AsyncWorkflowBranch(AsyncWorkflowStep):
    """See `WorkflowBranch`."""

    async def fail(self, message: str, *, usage: Mapping[str, int] | None = None) -> None:
        """See `WorkflowBranch.fail`."""
        await drive_async(self._begun.give_up_steps(message, usage))

    async def cancel(self, *, usage: Mapping[str, int] | None = None) -> None:
        """See `WorkflowBranch.cancel`."""
        await drive_async(self._begun.give_up_steps(None, usage))


class AsyncWorkflowBranches(BranchesCore):
    """See `WorkflowBranches`."""

    _run: AsyncWorkflowRun

    async def __aenter__(self) -> Self:
        await drive_async(self._run._branches_steps(self._step, self._node))
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            await drive_async(self._run._join_steps(self._step))

    def branch(self, name: str) -> AsyncWorkflowBranch:
        """See `WorkflowBranches.branch`."""
        return AsyncWorkflowBranch(self._run, Place(self._step, name))


async def send_signal_async(
    store: AsyncCheckpointStore, checkpoint_id: CheckpointId | UUID | str, name: str, value: Any, *, signal_id: str | None = None
) -> None:
    """See `send_signal`."""
    check_store("store", store, wants_async=True)
    await drive_async(send_signal_steps(store, checkpoint_id, name, value, signal_id))
