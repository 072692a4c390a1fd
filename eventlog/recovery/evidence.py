"""What the log says about a run, for a person who has to decide about it: nothing that is not on record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from eventlog.checkpoint import from_millis, to_millis
from eventlog.errors import Deleted, HistoryRemoved, NotFound
from eventlog.event import EventType
from eventlog.ids import CheckpointId, RunId
from eventlog.position import Position
from eventlog.recovery.agent_phases import Completed, Failed
from eventlog.recovery.decided_runs import Attempt, RunRecord, announced, attempts, decided, run_record, what
from eventlog.recovery.decisions import Decided
from eventlog.recovery.effect_phases import Announced, Effect
from eventlog.recovery.effects import EffectLedger
from eventlog.recovery.errors import KnownEffect
from eventlog.recovery.opening import ledger_steps
from eventlog.recovery.prospects import by_decision, by_policy, on_repetition
from eventlog.recovery.stable_revision import Stretch, revision_steps, stretch_steps
from eventlog.recovery.steps import Steps, Store
from eventlog.recovery.stream import RunStream
from eventlog.recovery.workflow_phases import Waiting
from eventlog.recovery.workflow_record import WorkflowRecord

if TYPE_CHECKING:
    from eventlog.revision import Revision


class Moment(NamedTuple):
    """A revision of a run or an effect: when the log recorded it, where it stands, and who wrote it in which phase."""

    revision: int
    phase: str | None
    recorded_at: datetime
    position: Position
    actor: str | None


class AttemptEvidence(NamedTuple):
    """Something that is in flight. `began` is by the clock of the process that began it."""

    what: str
    attempt: int
    began: datetime
    decision: Decided | None


class EffectEvidence(NamedTuple):
    """An effect that the run's phase has announced, each revision of it, and what a repetition that asks for it again would do."""

    effect: KnownEffect
    history: tuple[Moment, ...]
    on_repetition: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A run as the log has it.

    `since` is when a run that is in flight or waits came into that, by the log's clock. `last_stable` is the last revision in which nothing
    was in flight, of a run that has not ended. Either is None where the log no longer holds it, or never did; `removed` says so.
    `lease_ends` and `wakes_at` are by the log's clock too. `policies` and `decisions` say what each would do, or why it would be refused.
    """

    checkpoint_id: CheckpointId
    run_id: RunId
    tenant: str
    kind: str
    identity: Mapping[str, Any]
    latest: Moment
    what: str
    since: datetime | None
    attempts: tuple[AttemptEvidence, ...]
    usage: Mapping[str, int]
    owner: str | None
    lease_ends: datetime | None
    wakes_at: datetime | None
    decision: Decided | None
    last_stable: Moment | None
    removed: str | None
    effects: tuple[EffectEvidence, ...]
    policies: Mapping[str, str]
    decisions: Mapping[str, str]


def evidence_steps(store: Store, checkpoint_id: CheckpointId, given: EffectLedger | None) -> Steps[Evidence]:
    """Collects it. Writes nothing."""
    found = yield from revision_steps(store, checkpoint_id)
    checkpoint = found.checkpoint
    if found.type is EventType.DELETED:
        raise Deleted(checkpoint_id, last_revision=checkpoint.revision)
    record = run_record(checkpoint)
    stretch, removed = None, None
    try:
        if _has_begun(record) or isinstance(record.phase, Waiting):
            stretch = yield from stretch_steps(store, found)
    except HistoryRemoved as error:
        removed = error
    stable = _stable(record, found, stretch)
    ledger = yield from ledger_steps(RunStream(store=store, checkpoint=checkpoint, record=record), given)
    effects = yield from _effects_steps(ledger, announced(record))
    known = [each.effect for each in effects]
    return Evidence(
        checkpoint_id=checkpoint.id,
        run_id=checkpoint.run_id,
        tenant=checkpoint.tenant,
        kind=checkpoint.kind,
        identity=record.identity.fields(),
        latest=_moment(found),
        what=what(record),
        since=None if stretch is None else stretch.began.recorded_at,
        attempts=tuple(_attempt(name, each) for name, each in attempts(record).items()),
        usage=dict(checkpoint.usage),
        owner=owner_of(record),
        lease_ends=lease_of(record, found.recorded_at),
        wakes_at=wake_of(record),
        decision=decided(record),
        last_stable=None if stable is None else _moment(stable),
        removed=None if removed is None else str(removed),
        effects=tuple(effects),
        policies=by_policy(record, known),
        decisions=by_decision(checkpoint, record, known, None if stable is None else stable.checkpoint.revision, removed),
    )


def owner_of(record: RunRecord) -> str | None:
    """Who has claimed a run."""
    return record.owner.name if isinstance(record, WorkflowRecord) and record.owner is not None else None


def lease_of(record: RunRecord, recorded_at: datetime) -> datetime | None:
    """Until when its owner keeps it, if its latest revision was recorded then."""
    ends = record.lease_ends(to_millis(recorded_at)) if isinstance(record, WorkflowRecord) else None
    return None if ends is None else from_millis(ends)


def wake_of(record: RunRecord) -> datetime | None:
    """When a run that waits is woken at the latest."""
    phase = record.phase
    return from_millis(phase.until_ms) if isinstance(phase, Waiting) and phase.until_ms is not None else None


def _effects_steps(ledger: EffectLedger | None, announced_ones: Iterable[Announced]) -> Steps[list[EffectEvidence]]:
    found: list[EffectEvidence] = []
    for each in announced_ones:
        known, history = (each.known("unknown", 0), list[Moment]()) if ledger is None else (yield from _effect_steps(ledger, each))
        found.append(EffectEvidence(known, tuple(history), on_repetition(known)))
    return found


def _effect_steps(ledger: EffectLedger, effect: Announced) -> Steps[tuple[KnownEffect, list[Moment]]]:
    identity = CheckpointId(effect.checkpoint_id)
    try:
        latest = yield from revision_steps(ledger.store, identity)
    except NotFound:
        return effect.known("absent", 0), []
    history = [_moment(latest)]
    while history[0].revision > 0:
        try:
            before = yield from revision_steps(ledger.store, identity, history[0].revision - 1)
        except HistoryRemoved:
            break
        history.insert(0, _moment(before))
    if latest.type is EventType.DELETED:
        return effect.known("deleted", 0), history
    now = Effect.of(latest.checkpoint)
    return effect.known(now.state.value, now.attempts), history


def _stable(record: RunRecord, found: Revision, stretch: Stretch | None) -> Revision | None:
    if isinstance(record.phase, Completed | Failed):
        return None
    if not _has_begun(record):
        return found
    return None if stretch is None else stretch.stable


def _has_begun(record: RunRecord) -> bool:
    """Whether it is in flight, so that what was stable lies behind it."""
    return record.phase.name.endswith("_in_flight")


def _attempt(name: str, attempt: Attempt) -> AttemptEvidence:
    return AttemptEvidence(name, attempt.attempt, from_millis(attempt.since_ms), attempt.decision)


def _moment(found: Revision) -> Moment:
    phase = found.type.value if found.type is EventType.DELETED else found.checkpoint.phase
    return Moment(found.checkpoint.revision, phase, found.recorded_at, found.position, found.actor)
