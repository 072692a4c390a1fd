"""A workflow's run over a `CheckpointStore`: steps, parallel branches, races and waits, each in flight before it does anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from eventlog.ids import CheckpointId, RunId
from eventlog.recovery.effects import EffectStore
from eventlog.recovery.open_body import OpenBody
from eventlog.recovery.opening import Beginning
from eventlog.recovery.ownership import Claim
from eventlog.recovery.policy import Policy, Reject
from eventlog.recovery.steps import check_store, drive
from eventlog.recovery.workflow_bodies import BranchesCore, StepFace
from eventlog.recovery.workflow_layout import Node, Parallel, Race, WaitForSignal, WaitForTimer
from eventlog.recovery.workflow_phases import Place
from eventlog.recovery.workflow_signals import send_signal_steps
from eventlog.recovery.workflow_steps import WorkflowCore, identity_of, resume_steps, start_steps
from eventlog.store import CheckpointStore


class WorkflowRun(WorkflowCore):
    """One run of a workflow, written by one process at a time; its branches may run in several threads of it.

    Once another process has written the run, every further call here raises `Conflict` before anything outside is called. After an
    `OutcomeUnknown` the next call first finds out what became of the write before.
    """

    @classmethod
    def start(
        cls,
        store: CheckpointStore,
        *,
        workflow: str,
        version: int,
        layout: Sequence[str | Node],
        value: Any,
        effects: EffectStore | None = None,
        checkpoint_id: CheckpointId | UUID | str | None = None,
        run_id: RunId | UUID | str | None = None,
        tenant: str | None = None,
        labels: Mapping[str, str] | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> Self:
        """Accepts a run: revision 0 is durable when this returns.

        Arguments:
            workflow, version, layout: its identity; it is only ever resumed with the same. A layout is a list of names of steps,
                `Parallel`, `Race`, `WaitForSignal` and `WaitForTimer`, in their order.
            value: what the run is about, any JSON value.
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
                    identity_of(workflow, version, layout),
                    effects,
                    value,
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
        workflow: str,
        version: int,
        layout: Sequence[str | Node],
        policy: Policy | None = None,
        effects: EffectStore | None = None,
        claim: Claim | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> Self:
        """Goes on with a run that another process, or this one, has left. Writes nothing.

        A completed run has its `response`; one where nothing is in flight goes on; one that is in flight is refused, or with
        `RetryInFlight` repeats the steps and branches that are, and no others.

        Arguments:
            policy: `Reject()` when None.
            effects: the effect store that the checkpoint names. None: the policy's, or the store itself, where that is the one.
            claim: what `Claims` gave for this run. Without one, a run that somebody owns is refused.
            usage: what your own meter says was used, in total; it may know more than the checkpoint.

        Raises `IdentityMismatch` and other `SchemaMismatch` before it looks at anything else, `NotOwner`, `AmbiguousResume`,
        `InvalidPayload` for a payload that does not fit, `InvalidRequest` (a usage below the one on record), and as `load` does.
        """
        check_store("store", store, wants_async=False)
        identity = identity_of(workflow, version, layout)
        return cls(
            drive(resume_steps(store, checkpoint_id, identity, Reject() if policy is None else policy, effects, claim, usage)), claim
        )

    def step(self, name: str) -> WorkflowStep:
        """The next step, or the one in flight if it is to be repeated: `with flow.step("validate") as step:`."""
        return WorkflowStep(self, Place(name))

    def parallel(self, name: str) -> WorkflowBranches:
        """The next step, of branches that may run at the same time: `with flow.parallel("fanout") as fanout:`."""
        return WorkflowBranches(self, name, Parallel)

    def race(self, name: str) -> WorkflowBranches:
        """The next step, of branches of which the first that commits wins: `with flow.race("quote") as race:`."""
        return WorkflowBranches(self, name, Race)

    def wait_for_signal(self, name: str, *, until: datetime | None = None) -> bool:
        """Whether the signal has come, or the time; the run waits from the first call on, and is nobody's meanwhile.

        Does not block: False means that there is nothing to do here now. Call it again, or let whoever claims the run after it was
        woken go on. What came is in `outputs`.

        Arguments:
            until: when to stop waiting, by the log's clock; the first call's counts.
        """
        return drive(self._wait_steps(name, WaitForSignal, until))

    def wait_for_timer(self, name: str, *, until: datetime) -> bool:
        """Whether the time has come, by the log's clock; see `wait_for_signal`."""
        return drive(self._wait_steps(name, WaitForTimer, until))

    def signal(self, name: str, value: Any, *, signal_id: str | None = None) -> None:
        """Wakes the run, which waits for it, from whatever process: once. See `send_signal`, which needs nothing but the run's id.

        Raises `NotWaiting`, `Conflict` (somebody else has woken it, or it has gone on), and as `compare_and_swap` does.
        """
        drive(self._signal_steps(name, value, signal_id))

    def renew(self) -> None:
        """Says that this owner is alive: its lease counts from now. Every other write of the run says so too."""
        drive(self._renew_steps())

    def release(self) -> None:
        """Gives the claim back, so that another may have the run at once. What is in flight stays in flight."""
        drive(self._release_steps())

    def complete(self, response: Any) -> None:
        """Ends the run with a response, any JSON value. Again with the same one: nothing is written.

        Raises `StillInFlight` in a step, `InvalidRequest` while steps are left, and as `compare_and_swap` does.
        """
        drive(self._complete_steps(response))


class WorkflowStep(StepFace, OpenBody):
    """A step or a branch of a `WorkflowRun`: in flight from the first line of its body to `commit()`."""

    def __init__(self, run: WorkflowRun, place: Place) -> None:
        super().__init__()
        self._run = run
        self._place = place

    def __enter__(self) -> Self:
        self._core = drive(self._run._begin_steps(self._place))
        return self

    def commit(self, *, output: Any, usage: Mapping[str, int] | None = None) -> None:
        """Ends the body: `output` (any JSON value) explains everything that was done. In a race, the first to commit has won.

        Arguments:
            usage: what your own meter says was used, in total; lower than what is on record is refused.

        Raises `StillInFlight` while a write of this body is without an answer, `BranchCancelled`, `InvalidPayload`, `InvalidRequest`,
        and as `compare_and_swap` does.
        """
        drive(self._begun.commit_steps(output, usage))


class WorkflowBranch(WorkflowStep):
    """A branch."""

    def fail(self, message: str, *, usage: Mapping[str, int] | None = None) -> None:
        """Ends the branch: it has failed for certain, and is not run again."""
        drive(self._begun.give_up_steps(message, usage))

    def cancel(self, *, usage: Mapping[str, int] | None = None) -> None:
        """Ends the branch: nothing more is done in it, and it is not run again."""
        drive(self._begun.give_up_steps(None, usage))


class WorkflowBranches(BranchesCore):
    """A parallel step or a race, until its branches are joined at the end of the `with` block."""

    _run: WorkflowRun

    def __enter__(self) -> Self:
        drive(self._run._branches_steps(self._step, self._node))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            drive(self._run._join_steps(self._step))

    def branch(self, name: str) -> WorkflowBranch:
        """One of the branches, in whatever thread: `with fanout.branch("stock") as branch:`."""
        return WorkflowBranch(self._run, Place(self._step, name))


def send_signal(
    store: CheckpointStore, checkpoint_id: CheckpointId | UUID | str, name: str, value: Any, *, signal_id: str | None = None
) -> None:
    """Wakes a run that waits for a signal, once.

    Arguments:
        name: of the `WaitForSignal` in its layout.
        value: any JSON value; it is in the run's `outputs`.
        signal_id: sending the signal that has woken the run once more, with the same id and value, is no error.

    Raises `NotWaiting` (not yet, or woken by another), `NotFound`, `SchemaMismatch`, and as `compare_and_swap` does.
    """
    check_store("store", store, wants_async=False)
    drive(send_signal_steps(store, checkpoint_id, name, value, signal_id))
