"""Every write that the recovery library makes, by name: the places where a process can die between two things that it does.

No write is made but by a `Commit` or an `Advance` (`steps.py`), and both take one of these. A test kills a process before and after each
and states what a new process finds; another holds this list against the code.
"""

from __future__ import annotations

from enum import StrEnum


class Boundary(StrEnum):
    """A write, named by what is durable once it has been made."""

    EFFECT_STORE_NAMED = "effect_store_named"  # the effect store has an identity; once in its life
    AGENT_CREATED = "agent_created"  # revision 0: the accepted run, before any work
    TURN_IN_FLIGHT = "turn_in_flight"  # before the body runs
    USAGE_SPENT = "usage_spent"  # as it happens
    EFFECT_ANNOUNCED = "effect_announced"  # in the run: an effect may be under way; also the fence before the handler
    EFFECT_PREPARED = "effect_prepared"  # the effect has a stream of its own, with its input
    EFFECT_STARTED = "effect_started"  # before the handler runs
    EFFECT_COMPLETED = "effect_completed"  # its output, or the output's digest
    EFFECT_FAILED = "effect_failed"  # the other side refused for certain
    EFFECT_NOT_EXECUTED = "effect_not_executed"  # for certain nothing happened: prepared again
    EFFECT_SETTLED = "effect_settled"  # a reconciler or a person says how it ended
    TURN_STABLE = "turn_stable"  # ready_for_turn, with everything that explains it
    AGENT_COMPLETED = "agent_completed"  # the response
    WORKFLOW_CREATED = "workflow_created"  # revision 0: the accepted run, before any work
    STEP_IN_FLIGHT = "step_in_flight"  # before the body runs
    STEP_STABLE = "step_stable"  # ready, with its output
    BRANCH_IN_FLIGHT = "branch_in_flight"  # before the body runs; the first one puts the parallel step or race in flight
    BRANCH_ENDED = "branch_ended"  # completed, failed or cancelled
    BRANCHES_JOINED = "branches_joined"  # ready, with what each branch has come to
    WORKFLOW_WAITING = "workflow_waiting"  # for a signal or a time; nobody owns it
    WORKFLOW_WOKEN = "workflow_woken"  # ready, with what has woken it
    WORKFLOW_CLAIMED = "workflow_claimed"  # somebody owns it; the one before has lost it
    WORKFLOW_RENEWED = "workflow_renewed"  # the owner is alive
    WORKFLOW_RELEASED = "workflow_released"  # nobody owns it
    CLOCK_READ = "clock_read"  # the log says what time it is
    WORKFLOW_COMPLETED = "workflow_completed"  # the response
    CHECKPOINT_MIGRATED = "checkpoint_migrated"  # another kind or version of the payload; whoever held the revision before conflicts
    MIGRATION_UNDONE = "migration_undone"  # the earlier one again, with what was done since
    RUN_DECIDED = "run_decided"  # what a person has decided about a run that was in flight
