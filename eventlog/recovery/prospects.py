"""What each policy and each decision would do with a run, in words. Pure: by the same rules that they follow when they do it."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.checkpoint import Checkpoint
from eventlog.errors import HistoryRemoved
from eventlog.recovery.agent_phases import Completed, Failed
from eventlog.recovery.decided_runs import RunRecord, attempts, check_answered, check_fits, what
from eventlog.recovery.decisions import Decision
from eventlog.recovery.effect_phases import EffectClass
from eventlog.recovery.errors import DecisionRefused, KnownEffect
from eventlog.recovery.workflow_record import WorkflowRecord

_REPEATED = {
    "absent": "run",
    "prepared": "run",
    "completed": "replayed from its record, not run",
    "failed": "fails as it did, not run",
    "deleted": "refused: it is no longer on record",
    "unknown": "its effect store is another one than this",
}


def on_repetition(effect: KnownEffect) -> str:
    """What becomes of an effect when a repetition asks for it again, with the same input."""
    if effect.state == "started":
        return "run again" if EffectClass(effect.effect_class).repeatable else "refused until somebody says how it ended"
    return _REPEATED[effect.state]


def by_policy(record: RunRecord, effects: Sequence[KnownEffect]) -> dict[str, str]:
    """What a resume would do under each policy."""
    names, phase, open_ones = ("Reject", "RetryInFlight"), record.phase, attempts(record)
    if isinstance(phase, Completed):
        return dict.fromkeys(names, "gives the stored response; nothing is called or written")
    if isinstance(phase, Failed):
        return dict.fromkeys(names, f"refuses: RunFailed, as {phase.decision.actor} has decided")
    owner = record.owner if isinstance(record, WorkflowRecord) else None
    claimed = "" if owner is None else f"; without {owner.name}'s claim it refuses: NotOwner"
    if not open_ones:
        return dict.fromkeys(names, f"goes on: the run is {what(record)}{claimed}")
    repeats = f"repeats {what(record)}{_refusing(effects)}{claimed}"
    undecided = [name for name, each in open_ones.items() if each.decision is None]
    return {"Reject": f"refuses: AmbiguousResume about {', '.join(undecided)}" if undecided else repeats, "RetryInFlight": repeats}


def by_decision(
    checkpoint: Checkpoint, record: RunRecord, effects: Sequence[KnownEffect], stable: int | None, removed: HistoryRemoved | None
) -> dict[str, str]:
    """What each decision would do, or why it would be refused.

    Arguments:
        stable: the last stable revision.
        removed: why it cannot be known.
    """
    return {each.value: _prospect(each, checkpoint, record, effects, stable, removed) for each in Decision}


def _prospect(
    choice: Decision,
    checkpoint: Checkpoint,
    record: RunRecord,
    effects: Sequence[KnownEffect],
    stable: int | None,
    removed: HistoryRemoved | None,
) -> str:
    try:
        check_fits(checkpoint.id, record, choice)
        if choice is Decision.RETRY:
            in_flight = {effect.checkpoint_id for each in attempts(record).values() for effect in each.effects}
            check_answered(checkpoint.id, [each for each in effects if each.checkpoint_id in in_flight])
    except DecisionRefused as refused:
        return f"refused: {refused.reason}"
    following = checkpoint.revision + 1
    if choice is Decision.RETRY:
        return f"revision {following} lets {what(record)} be repeated once, under Reject() too"
    if choice is Decision.MARK_FAILED:
        return f"revision {following} ends the run; from then on every resume raises RunFailed"
    if removed is not None:
        return f"refused: {removed}"
    if stable is None:
        return "refused: it has no stable revision to go back to"
    started = [f"{each.capability} {each.idempotency_key}" for each in effects if each.state == "started"]
    left = f"; until somebody says how they ended, whoever asks for these is refused: {', '.join(started)}" if started else ""
    return f"revision {following} is revision {stable} once more, with the usage of now{left}"


def _refusing(effects: Sequence[KnownEffect]) -> str:
    refused = [f"{each.capability} {each.idempotency_key}" for each in effects if on_repetition(each).startswith("refused")]
    return f", and refuses {', '.join(refused)}: AmbiguousEffect" if refused else ""
