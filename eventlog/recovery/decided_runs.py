"""What a decision makes of a run, and which decisions do not fit it. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from eventlog.checkpoint import Checkpoint
from eventlog.errors import InvalidPayload, SchemaMismatch
from eventlog.recovery.agent_phases import AGENT_KIND, AgentRecord, Completed, Failed, ReadyForTurn, TurnInFlight
from eventlog.recovery.decisions import Decided, Decision
from eventlog.recovery.effect_phases import Announced, EffectClass
from eventlog.recovery.errors import DecisionRefused, KnownEffect
from eventlog.recovery.workflow_phases import Branch, BranchState, ParallelInFlight, RaceInFlight, Ready, StepInFlight, Waiting
from eventlog.recovery.workflow_record import WORKFLOW_KIND, WorkflowRecord

RunRecord = AgentRecord | WorkflowRecord
Attempt = TurnInFlight | StepInFlight | Branch
STABLE = (ReadyForTurn.name, Ready.name)  # the phases that a run goes back to
_UNANSWERED = ("started", "deleted", "unknown")


def run_record(checkpoint: Checkpoint) -> RunRecord:
    """What a run's checkpoint says. Raises `SchemaMismatch` for what is no run, or one of another version; `InvalidPayload`."""
    if checkpoint.kind == AGENT_KIND:
        return AgentRecord.of(checkpoint)
    if checkpoint.kind == WORKFLOW_KIND:
        return WorkflowRecord.of(checkpoint)
    raise SchemaMismatch(
        f"checkpoint {checkpoint.id} is a {checkpoint.kind}; decisions are about {AGENT_KIND} and {WORKFLOW_KIND}",
        hint="Name the checkpoint of a run: `eventlog recovery list` shows those that are in flight.",
    )


def attempts(record: RunRecord) -> dict[str, Attempt]:
    """What is in flight, by the name that errors call it by."""
    if isinstance(record, AgentRecord):
        return {f"turn {record.phase.turn}": record.phase} if isinstance(record.phase, TurnInFlight) else {}
    return {str(place): each for place, each in record.in_flight().items()}


def announced(record: RunRecord) -> tuple[Announced, ...]:
    """Every effect that the phase names, each once: those of branches that have ended too."""
    phase = record.phase
    if isinstance(phase, ParallelInFlight | RaceInFlight):
        effects = [effect for branch in phase.branches.values() for effect in branch.effects]
    else:
        effects = list(phase.effects) if isinstance(phase, TurnInFlight | StepInFlight | Failed) else []
    return tuple({each.checkpoint_id: each for each in effects}.values())


def what(record: RunRecord) -> str:
    """What the run is in, in words."""
    phase, open_ones = record.phase, attempts(record)
    if open_ones:
        return ", ".join(open_ones)
    if isinstance(phase, ParallelInFlight | RaceInFlight):
        return f"step {phase.step}, with no branch in flight"
    return f"waiting for {phase.step}" if isinstance(phase, Waiting) else phase.name


def decided(record: RunRecord) -> Decided | None:
    """What was decided about the run as it is now."""
    if isinstance(record.phase, ReadyForTurn | Ready | Failed):
        return record.phase.decision
    return next((each.decision for each in attempts(record).values() if each.decision is not None), None)


def decision_made(checkpoint: Checkpoint) -> Decided | None:
    """The decision that a revision was committed for; None for every other revision, also of what is no run."""
    try:
        found = decided(run_record(checkpoint))
    except (SchemaMismatch, InvalidPayload):
        return None
    return found if found is not None and found.revision == checkpoint.revision - 1 else None


def check_fits(checkpoint_id: str, record: RunRecord, choice: Decision) -> None:
    """Raises `DecisionRefused` for a decision that does not fit the phase."""
    phase = record.phase
    begun = isinstance(phase, TurnInFlight | StepInFlight | ParallelInFlight | RaceInFlight)
    if isinstance(phase, Completed | Failed):
        reason = f"the run is {phase.name}"
    elif not begun and not (isinstance(phase, Waiting) and choice is Decision.MARK_FAILED):
        reason = f"nothing of it is in flight: it is {what(record)}"
    elif choice is Decision.RETRY and not attempts(record):
        reason = f"nothing is to be repeated: it is in {what(record)}, and a resume goes on with it"
    elif choice is Decision.RETRY and not _undecided(record):
        earlier = decided(record)
        assert earlier is not None
        reason = f"it may be repeated already, as {earlier.actor} has decided: {earlier.reason}"
    else:
        return
    raise DecisionRefused(checkpoint_id, decision=choice.value, reason=reason)


def check_answered(checkpoint_id: str, effects: Iterable[KnownEffect]) -> None:
    """Raises `DecisionRefused` for a retry while a write that could happen twice is without an answer, naming each."""
    open_ones = tuple(each for each in effects if not EffectClass(each.effect_class).repeatable and each.state in _UNANSWERED)
    if open_ones:
        listed = ", ".join(f"{each.capability} {each.idempotency_key} ({each.state})" for each in open_ones)
        raise DecisionRefused(
            checkpoint_id,
            decision=Decision.RETRY.value,
            reason=f"running it again could do it twice, and nobody has said how it ended: {listed}",
            effects=open_ones,
            hint="Find out whether each has happened, and say so: `eventlog recovery settle`, or EffectStore.settle().",
        )


def retried(record: RunRecord, decision: Decided) -> RunRecord:
    """The same, in flight as before: each attempt that nobody has decided about may be repeated once."""
    phase = record.phase
    if isinstance(record, AgentRecord):
        assert isinstance(phase, TurnInFlight)
        return replace(record, phase=replace(phase, decision=decision))
    if isinstance(phase, StepInFlight):
        return replace(record, owner=None, phase=replace(phase, decision=decision))
    assert isinstance(phase, ParallelInFlight | RaceInFlight)
    return replace(record, owner=None, phase=replace(phase, branches=_permitted(phase.branches, decision)))


def rolled_back(record: RunRecord, stable: RunRecord, decision: Decided) -> RunRecord:
    """The last stable revision once more. Who may write the run is never taken back, and nobody owns it."""
    if isinstance(stable, AgentRecord):
        return replace(stable, phase=ReadyForTurn(decision))
    assert isinstance(record, WorkflowRecord)
    return replace(stable, token=record.token, owner=None, phase=Ready(decision))


def failed(record: RunRecord, decision: Decided) -> RunRecord:
    """The end, with the effects that what was in flight had announced."""
    phase = Failed(decision, announced(record))
    if isinstance(record, AgentRecord):
        return replace(record, phase=phase)
    return replace(record, owner=None, phase=phase)


def _undecided(record: RunRecord) -> Sequence[Attempt]:
    return [each for each in attempts(record).values() if each.decision is None]


def _permitted(branches: Mapping[str, Branch], decision: Decided) -> dict[str, Branch]:
    return {
        name: replace(each, decision=decision) if each.state is BranchState.IN_FLIGHT and each.decision is None else each
        for name, each in branches.items()
    }
