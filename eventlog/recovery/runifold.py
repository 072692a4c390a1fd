"""Migrations of what `eventlog import runifold` has brought in: Runifold's agents and workflows become runs of this library. Pure.

docs/migrations.md says what becomes of each field, and what is refused. Facts about Runifold are of its version 0.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eventlog.checkpoint import LAST_REVISION
from eventlog.errors import InvalidRequest
from eventlog.recovery import runifold_agent, runifold_workflow
from eventlog.recovery.agent_phases import AGENT_KIND, AGENT_VERSION
from eventlog.recovery.migrations import CannotCarry, Envelope, Migrations, Payload
from eventlog.recovery.runifold_fields import or_cannot, usage_of
from eventlog.recovery.workflow_layout import Node, layout_of
from eventlog.recovery.workflow_record import WORKFLOW_KIND, WORKFLOW_VERSION

AGENT_1 = ("runifold.agent", 1)
WORKFLOW_3, WORKFLOW_4 = ("runifold.workflow", 3), ("runifold.workflow", 4)


def runifold_migrations(
    *, definition_version: int = 1, layouts: Mapping[tuple[str, int], Sequence[str | Node]] | None = None
) -> Migrations:
    """`runifold.agent` 1 to `eventlog.agent` 1; `runifold.workflow` 3 to 4 to `eventlog.workflow` 1.

    Arguments:
        definition_version: of the agents, which Runifold does not have; runs are resumed with it.
        layouts: of the workflows, by name and version, as they will be given to `WorkflowRun.resume`. Runifold's checkpoints name the steps
            and not what they are, and nothing is guessed: a workflow that is not given here is refused.

    Raises `InvalidRequest`.
    """
    if type(definition_version) is not int or not 1 <= definition_version <= LAST_REVISION:
        raise InvalidRequest("definition_version", f"{definition_version!r:.40} is not a whole number from 1 on")
    agent = runifold_agent.AgentStep(definition_version)
    workflow = runifold_workflow.WorkflowStep({key: layout_of(layout) for key, layout in (layouts or {}).items()})
    ours = (WORKFLOW_KIND, WORKFLOW_VERSION)
    made = Migrations()
    made.register(from_=AGENT_1, to=(AGENT_KIND, AGENT_VERSION), up=agent.up, down=agent.down, usage=_used, with_envelope=True)
    made.register(from_=WORKFLOW_3, to=WORKFLOW_4, up=_labelled_4, down=_labelled_3, usage=_used, with_envelope=True)
    made.register(from_=WORKFLOW_4, to=ours, up=workflow.up, down=workflow.down, usage=_used, with_envelope=True)
    made.validator(AGENT_1, runifold_agent.check)
    made.validator(WORKFLOW_3, runifold_workflow.check)
    made.validator(WORKFLOW_4, runifold_workflow.check)
    return made


def _used(payload: Payload) -> dict[str, int]:
    return or_cannot(lambda: usage_of(payload))


def _labelled_4(payload: Payload, _envelope: Envelope) -> Payload:
    """Runifold reads both by one decoder, and leaves the label at 3 on what it then writes as 4. Here both change in one revision."""
    or_cannot(lambda: runifold_workflow.check(payload))
    return payload


def _labelled_3(payload: Payload, envelope: Envelope) -> Payload:
    if envelope.moved_on:
        raise CannotCarry("it was written since as 4, and a payload of 4 under the label 3 is what this step is there to end")
    return payload


migrations = runifold_migrations()  # what `eventlog migrate` takes when it is given no other
