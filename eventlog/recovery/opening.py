"""How a run of any kind is started, and how it is looked at before it is gone on with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from eventlog.checkpoint import DEFAULT_TENANT, Checkpoint
from eventlog.errors import InvalidRequest
from eventlog.ids import CheckpointId, RunId
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.effect_phases import Announced
from eventlog.recovery.effects import AsyncEffectStore, EffectLedger, EffectStore, ledger_of
from eventlog.recovery.errors import AmbiguousResume, KnownEffect
from eventlog.recovery.identity import check_effect_store
from eventlog.recovery.policy import Policy, RetryInFlight, check_policy
from eventlog.recovery.steps import Commit, Steps, Store
from eventlog.recovery.stream import Record, RunStream

AnyEffectStore = EffectStore | AsyncEffectStore


class OpenedRecord(Record, Protocol):
    """The record of a run that may have effects."""

    @property
    def effect_store(self) -> str | None: ...

    def with_effects(self: O, effect_store: str) -> O: ...


O = TypeVar("O", bound=OpenedRecord)  # noqa: E741 - of `OpenedRecord`


class Opened(NamedTuple, Generic[O]):
    """A run that was started or resumed."""

    stream: RunStream[O]
    effects: EffectLedger | None
    found: AmbiguousResume | None = None  # what was in flight, where that may be repeated


class Beginning(NamedTuple):
    """What revision 0 of a run of any kind may be given; None: chosen here."""

    checkpoint_id: CheckpointId | UUID | str | None
    run_id: RunId | UUID | str | None
    tenant: str | None
    labels: Mapping[str, str] | None
    usage: Mapping[str, int] | None


def create_steps(
    store: Store,
    kind: str,
    schema_version: int,
    record: O,
    boundary: Boundary,
    effects: AnyEffectStore | None,
    beginning: Beginning,
) -> Steps[Opened[O]]:
    """Commits revision 0, before any work."""
    tenant = beginning.tenant
    if tenant is None:
        tenant = store.tenant or DEFAULT_TENANT
    ledger = None if effects is None else ledger_of(effects, store)
    if ledger is not None and ledger.tenant != tenant:
        raise InvalidRequest("effects", f"is tenant {ledger.tenant}'s, where the run is tenant {tenant}'s")
    checkpoint = Checkpoint.initial(
        CheckpointId.new() if beginning.checkpoint_id is None else beginning.checkpoint_id,
        RunId.new() if beginning.run_id is None else beginning.run_id,
        kind,
        schema_version,
        record.payload(),
        tenant=tenant,
        labels=beginning.labels,
        usage=beginning.usage,
    )
    if ledger is not None:  # its first use writes, so everything that can be refused has been by now
        record = record.with_effects((yield from ledger.identity_steps()))
        checkpoint = checkpoint.model_copy(update={"payload": record.payload()})
    yield Commit(store, checkpoint, None, boundary)
    return Opened(RunStream(store=store, checkpoint=checkpoint, record=record), ledger)


def given_ledger(policy: Policy, effects: AnyEffectStore | None, store: Store) -> EffectLedger | None:
    """The ledger that a caller has named, as an argument or by the policy. Raises `InvalidRequest` for two different ones."""
    check_policy(policy)
    if isinstance(policy, RetryInFlight) and policy.effects is not None:
        if effects is not None and effects is not policy.effects:
            raise InvalidRequest("effects", "is another effect store than the policy's")
        effects = policy.effects
    return None if effects is None else ledger_of(effects, store)


def ledger_steps(stream: RunStream[Any], given: EffectLedger | None) -> Steps[EffectLedger | None]:
    """The effect store that the checkpoint names: the given one, which must be it, or the run's own store, if that is it."""
    checkpoint, named = stream.checkpoint, stream.record.effect_store
    if given is not None:
        check_effect_store(checkpoint.id, named, (yield from given.known_identity_steps()) or "one that was never used")
        return given
    if named is None:
        return None
    own = EffectLedger(stream.store, checkpoint.tenant)
    return own if (yield from own.known_identity_steps()) == named else None


def evidence_steps(
    stream: RunStream[Any],
    policy: Policy,
    given: EffectLedger | None,
    ledger: EffectLedger | None,
    announced: Iterable[Announced],
    *,
    decided: bool,
) -> Steps[list[KnownEffect]]:
    """How far the effects of an in-flight phase have come. A retry needs the effect store that the checkpoint names.

    Arguments:
        decided: that a person has decided for a retry, which then may use the run's own store without being told so.
    """
    if (isinstance(policy, RetryInFlight) and given is None and not decided) or (decided and ledger is None):
        check_effect_store(stream.checkpoint.id, stream.record.effect_store, None)
    if ledger is None:
        return [each.known("unknown", 0) for each in announced]
    return (yield from ledger.known_steps(announced))
