"""Runs that can be resumed after their process has died, without doing anything outside twice behind anybody's back.

It stands on nothing but `compare_and_swap` and `load` (workers that look for runs to take also use `list`). `agent.py` is the face for
agents, `workflow.py` the one for workflows. What both share, each building on the ones before it:

    errors.py           why a run may not go on, with the evidence: AmbiguousResume(what, since, attempt, effects)
    identity.py         check_identity(id, stored, given): both sides named; before anything else is looked at
    usage.py            numbers that only grow
    policy.py           Reject, RetryInFlight; admit(policy, AmbiguousResume(...)) decides
    boundaries.py       every write by name, the places where a process may be killed
    steps.py            Load, Commit, Advance, Call: the order of write and call, driven by a thread or an event loop
    stream.py           RunStream: the revisions of a run as its one writer sees them, unclear outcomes included
    effect_phases.py    an effect's states; effects.py runs, replays and settles them
    opening.py          how a run is started, and how it is looked at before it is gone on with
    body.py             BodyCore: what may happen in a turn, a step or a branch, and what must have before it may end

A kind of run adds a pure record (`agent_phases.py`; `workflow_layout.py`, `workflow_phases.py` and `workflow_record.py`: identity, phase,
what may follow), members of `Boundary`, and procedures that yield `Advance(stream, change, boundary)` before anything outside is called
(`agent_steps.py`, `workflow_steps.py`). The faces drive these, in a thread or on an event loop.

What a person decides about a run that was left in flight is a revision of it too: `decisions.py` says what there is to decide,
`decided_runs.py` what each makes of a run, `deciding.py` commits it. `in_flight_runs.py` finds the runs, `evidence.py` and `prospects.py`
show one.

Workflows may also be owned: `claims.py` claims, renews and gives back, `log_clock.py` says what time it is for all.

What was written in another version, or by another runtime, is migrated: `migrations.py` has the steps and the way over them, `carrying.py`
takes one checkpoint along it and back, `migrating.py` does so for a store; `runifold.py` ships.
"""

from eventlog.recovery.agent import AgentRun, Turn
from eventlog.recovery.agent_aio import AsyncAgentRun, AsyncTurn
from eventlog.recovery.agent_phases import AgentPhase, Completed, Failed, Model, ReadyForTurn, TurnInFlight
from eventlog.recovery.carrying import Refusal
from eventlog.recovery.claims import AsyncClaims, Claims
from eventlog.recovery.deciding import AsyncDecisions, Decisions, RunsInFlight
from eventlog.recovery.decisions import Decided, Decision
from eventlog.recovery.effect_phases import UNSTORED, Announced, Effect, EffectClass, EffectState
from eventlog.recovery.effects import AsyncEffectStore, EffectStore
from eventlog.recovery.errors import (
    AlreadyOwned,
    AmbiguousEffect,
    AmbiguousResume,
    BranchCancelled,
    DecisionRefused,
    Difference,
    EffectFailed,
    EffectReused,
    IdentityMismatch,
    KnownEffect,
    NotOwner,
    NotWaiting,
    RunFailed,
    StillInFlight,
)
from eventlog.recovery.evidence import AttemptEvidence, EffectEvidence, Evidence, Moment
from eventlog.recovery.in_flight_runs import RunInFlight
from eventlog.recovery.migrating import plan_migration, plan_undo, run_migration, undo_migration
from eventlog.recovery.migration_report import MigrationReport, Refused, Selection
from eventlog.recovery.migrations import CannotCarry, Envelope, Migrations, Schema
from eventlog.recovery.ownership import Claim
from eventlog.recovery.policy import Policy, Reject, RetryInFlight
from eventlog.recovery.runifold import runifold_migrations
from eventlog.recovery.settlement import CertainFailure, NotExecuted, Settlement
from eventlog.recovery.workflow import WorkflowBranch, WorkflowBranches, WorkflowRun, WorkflowStep, send_signal
from eventlog.recovery.workflow_aio import (
    AsyncWorkflowBranch,
    AsyncWorkflowBranches,
    AsyncWorkflowRun,
    AsyncWorkflowStep,
    send_signal_async,
)
from eventlog.recovery.workflow_layout import Parallel, Race, WaitForSignal, WaitForTimer
from eventlog.recovery.workflow_phases import (
    Branch,
    BranchState,
    ParallelInFlight,
    RaceInFlight,
    Ready,
    StepInFlight,
    Waiting,
    WorkflowPhase,
)

__all__ = [
    "UNSTORED",
    "AgentPhase",
    "AgentRun",
    "AlreadyOwned",
    "AmbiguousEffect",
    "AmbiguousResume",
    "Announced",
    "AsyncAgentRun",
    "AsyncClaims",
    "AsyncDecisions",
    "AsyncEffectStore",
    "AsyncTurn",
    "AsyncWorkflowBranch",
    "AsyncWorkflowBranches",
    "AsyncWorkflowRun",
    "AsyncWorkflowStep",
    "AttemptEvidence",
    "Branch",
    "BranchCancelled",
    "BranchState",
    "CannotCarry",
    "CertainFailure",
    "Claim",
    "Claims",
    "Completed",
    "Decided",
    "Decision",
    "DecisionRefused",
    "Decisions",
    "Difference",
    "Effect",
    "EffectClass",
    "EffectEvidence",
    "EffectFailed",
    "EffectReused",
    "EffectState",
    "EffectStore",
    "Envelope",
    "Evidence",
    "Failed",
    "IdentityMismatch",
    "KnownEffect",
    "MigrationReport",
    "Migrations",
    "Model",
    "Moment",
    "NotExecuted",
    "NotOwner",
    "NotWaiting",
    "Parallel",
    "ParallelInFlight",
    "Policy",
    "Race",
    "RaceInFlight",
    "Ready",
    "ReadyForTurn",
    "Refusal",
    "Refused",
    "Reject",
    "RetryInFlight",
    "RunFailed",
    "RunInFlight",
    "RunsInFlight",
    "Schema",
    "Selection",
    "Settlement",
    "StepInFlight",
    "StillInFlight",
    "Turn",
    "TurnInFlight",
    "WaitForSignal",
    "WaitForTimer",
    "Waiting",
    "WorkflowBranch",
    "WorkflowBranches",
    "WorkflowPhase",
    "WorkflowRun",
    "WorkflowStep",
    "plan_migration",
    "plan_undo",
    "run_migration",
    "runifold_migrations",
    "send_signal",
    "send_signal_async",
    "undo_migration",
]
