"""Effects on the world outside, each once: an effect is itself a checkpoint, and compare-and-swap makes it the only one of its key.

The order is the point: announced in the run, prepared, started, then the handler, then completed or failed. What dies in between is found
as far as it came, and is never taken for more or less than that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from eventlog.checkpoint import DEFAULT_TENANT, MAX_ACTOR, MAX_TENANT, Checkpoint, check_name, check_text
from eventlog.errors import Conflict, Deleted, InvalidRequest, NotFound
from eventlog.ids import CheckpointId, RunId, content_id
from eventlog.privacy.guard import Access
from eventlog.privacy.principals import Operation
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.effect_phases import (
    EFFECT_KIND,
    EFFECT_VERSION,
    UNSTORED,
    Announced,
    Effect,
    EffectState,
    Request,
    digest,
    effect_id,
)
from eventlog.recovery.errors import AmbiguousEffect, EffectFailed, KnownEffect
from eventlog.recovery.fields import a_text, an_object, json_copy
from eventlog.recovery.identity import check_kind
from eventlog.recovery.settlement import CertainFailure, NotExecuted, Settlement
from eventlog.recovery.steps import Call, Commit, Handler, Load, Steps, Store, announcing, check_store, drive, drive_async, is_async

STORE_KIND = "eventlog.effect_store"
STORE_VERSION = 1

Reconciler = Callable[[Effect], Any]  # returns a Settlement; may be async under an AsyncAgentRun
Recall = Callable[[Effect], Any]  # returns the output whose digest is on record


@dataclass(frozen=True, slots=True)
class EffectCall:
    """An effect that a run wants, and what may be done about it.

    Arguments:
        announce: commits in the run that the effect may be under way; nothing outside is called before.
        repeat: whether this is a retry of the attempt that announced it.
    """

    request: Request
    handler: Handler
    run_id: RunId
    requested_by: Mapping[str, Any]
    announce: Callable[[], Steps[None]]
    repeat: bool = False
    reconcile: Reconciler | None = None
    recall: Recall | None = None


class EffectLedger:
    """The streams of one tenant's effects in a store, and the procedures over them, for either kind of store."""

    def __init__(self, store: Store, tenant: str | None) -> None:
        if tenant is not None:
            check_name("tenant", tenant, MAX_TENANT)
            if store.tenant not in (None, tenant):
                raise InvalidRequest("tenant", f"is {tenant} where the store is opened for {store.tenant}")
        self.store = store
        self.tenant = (store.tenant or DEFAULT_TENANT) if tenant is None else tenant
        self._identity: str | None = None
        self._named_at = CheckpointId(content_id(STORE_KIND, self.tenant))

    def announced(self, request: Request) -> Announced:
        """How a phase names an effect."""
        where = effect_id(self.tenant, request.capability, request.idempotency_key)
        return Announced(request.capability, request.idempotency_key, request.effect_class, where)

    def known_identity_steps(self) -> Steps[str | None]:
        """The identity that this effect store was given when it was first used; None if it never was. Writes nothing."""
        if self._identity is None:
            try:
                found: Checkpoint = yield Load(self.store, self._named_at)
            except NotFound:
                return None
            check_kind(found, STORE_KIND, STORE_VERSION)
            self._identity = a_text(an_object(found.payload, "$"), "identity", "$")
        return self._identity

    def identity_steps(self) -> Steps[str]:
        """Its identity, which it is given now if it has none."""
        while (known := (yield from self.known_identity_steps())) is None:
            fields = {"identity": str(RunId.new())}
            first = Checkpoint.initial(self._named_at, RunId.new(), STORE_KIND, STORE_VERSION, fields, tenant=self.tenant)
            with contextlib.suppress(Conflict):  # somebody else has named it meanwhile
                yield Commit(self.store, first, None, Boundary.EFFECT_STORE_NAMED)
        return known

    def known_steps(self, effects: Iterable[Announced]) -> Steps[list[KnownEffect]]:
        """How far each announced effect has come."""
        known: list[KnownEffect] = []
        for each in effects:
            try:
                checkpoint = yield from self._find(each.checkpoint_id)
            except Deleted:
                state, attempts = "deleted", 0
            else:
                effect = None if checkpoint is None else Effect.of(checkpoint)
                state, attempts = ("absent", 0) if effect is None else (effect.state.value, effect.attempts)
            known.append(each.known(state, attempts))
        return known

    def load_steps(self, capability: str, idempotency_key: str) -> Steps[Effect | None]:
        """What is on record of an effect."""
        checkpoint = yield from self._find(effect_id(self.tenant, capability, idempotency_key))
        return None if checkpoint is None else Effect.of(checkpoint)

    def run_steps(self, call: EffectCall) -> Steps[Any]:
        """Runs an effect, or replays it. What is raised says whether the handler ran: see `Turn.effect`."""
        request, announced = call.request, False
        where = effect_id(self.tenant, request.capability, request.idempotency_key)
        while True:
            found = yield from self._find(where)
            if found is not None:
                effect = Effect.of(found)
                effect.check_same(request, where)
                if effect.state in (EffectState.COMPLETED, EffectState.FAILED):
                    return (yield from _replayed(effect, where, call))
                if effect.state is EffectState.STARTED and call.reconcile is None and not _may_repeat(call):
                    raise _ambiguous(effect, where, call)
            if not announced:
                yield from call.announce()
                announced = True
            try:
                started = yield from self._start(call, found, where)
            except Conflict as error:
                if error.checkpoint_id != where:
                    raise
                continue  # another run with the same key was faster; nothing of ours has been called, so look again
            settled = Effect.of(started)
            if settled.state is EffectState.STARTED:
                return (yield from self._execute(call, started))
            return (yield from _replayed(settled, where, call))

    def settle_steps(
        self, capability: str, idempotency_key: str, settlement: Settlement, reason: str, actor: str | None = None
    ) -> Steps[Effect]:
        """Records what a person has found out about a started effect."""
        said = {"by": "person", "reason": reason}
        if actor is not None:
            check_text("actor", actor, MAX_ACTOR)
            said["actor"] = actor
        where = effect_id(self.tenant, capability, idempotency_key)
        yield announcing(self.store, Access(Operation.EFFECTS_SETTLE, where, target=settlement.outcome))
        found: Checkpoint = yield Load(self.store, where)
        effect = Effect.of(found)
        if effect.state is not EffectState.STARTED:
            raise InvalidRequest("effect", f"{capability} {idempotency_key} is {effect.state.value}; only a started one can be settled")
        settled = _settled(effect, settlement, said)
        yield from self._commit(found, settled, Boundary.EFFECT_SETTLED)
        return settled

    # -- inside ---------------------------------------------------------------------------------------------------

    def _start(self, call: EffectCall, found: Checkpoint | None, where: str) -> Steps[Checkpoint]:
        """Up to the write before the handler; or to the record that makes it needless."""
        if found is None:
            prepared = Effect.prepared(call.request, call.requested_by).payload()
            found = Checkpoint.initial(CheckpointId(where), call.run_id, EFFECT_KIND, EFFECT_VERSION, prepared, tenant=self.tenant)
            yield Commit(self.store, found, None, Boundary.EFFECT_PREPARED)
        effect = Effect.of(found)
        if effect.state is EffectState.STARTED:
            settlement = yield from _reconciled(effect, call)
            if settlement.outcome != "unknown":
                effect = _settled(effect, settlement, {"by": "reconciler"})
                found = yield from self._commit(found, effect, Boundary.EFFECT_SETTLED)
            elif not _may_repeat(call):
                raise _ambiguous(effect, where, call)
        if effect.state in (EffectState.COMPLETED, EffectState.FAILED):
            return found
        return (yield from self._commit(found, effect.started(), Boundary.EFFECT_STARTED))

    def _execute(self, call: EffectCall, started: Checkpoint) -> Steps[Any]:
        effect = Effect.of(started)
        try:
            output = yield Call(call.handler, call.request.input)
        except CertainFailure as failure:
            failed = effect.failed(str(failure) or type(failure).__name__)
            yield from self._commit(started, failed, Boundary.EFFECT_FAILED)
            raise _failure(failed, started.id) from failure
        except NotExecuted:
            yield from self._commit(started, effect.not_executed(), Boundary.EFFECT_NOT_EXECUTED)
            raise
        # Anything else that is raised says nothing about the other side: the effect stays started.
        yield from self._commit(started, effect.completed(output, digest_only=call.request.digest_only), Boundary.EFFECT_COMPLETED)
        return json_copy(output)

    def _commit(self, before: Checkpoint, effect: Effect, boundary: Boundary) -> Steps[Checkpoint]:
        following = before.next(effect.payload())
        yield Commit(self.store, following, before.revision, boundary)
        return following

    def _find(self, where: str) -> Steps[Checkpoint | None]:
        try:
            found: Checkpoint = yield Load(self.store, where)
        except Deleted:
            raise  # what happened is no longer on record, which is not the same as never
        except NotFound:
            return None
        return found


class EffectStore:
    """The effects of a tenant, in a `CheckpointStore`. Makes no I/O until it is used.

    Arguments:
        tenant: whose effects; the store's own when None, or `default` in a store that sees all tenants.

    `ledger` are the procedures that runs drive.
    """

    def __init__(self, store: Store, *, tenant: str | None = None) -> None:
        check_store("store", store, wants_async=False)
        self.ledger = EffectLedger(store, tenant)

    def identity(self) -> str:
        """What checkpoints name this effect store by: given to it once, kept in it. Raises as `compare_and_swap` does."""
        return drive(self.ledger.identity_steps())

    def load(self, capability: str, idempotency_key: str) -> Effect | None:
        """What is on record of an effect; None if nothing is."""
        return drive(self.ledger.load_steps(capability, idempotency_key))

    def settle(self, capability: str, idempotency_key: str, settlement: Settlement, *, reason: str, actor: str | None = None) -> Effect:
        """Records what a person has found out about an effect that was started and has no answer.

        Arguments:
            actor: the person, where that is not the store's actor, who is on the event.

        Raises `InvalidRequest` for an effect that is not started or a settlement that says nothing, `NotFound`, `Conflict`.
        """
        return drive(self.ledger.settle_steps(capability, idempotency_key, settlement, reason, actor))


class AsyncEffectStore:
    """The same in an `AsyncCheckpointStore`."""

    def __init__(self, store: Store, *, tenant: str | None = None) -> None:
        check_store("store", store, wants_async=True)
        self.ledger = EffectLedger(store, tenant)

    async def identity(self) -> str:
        """See `EffectStore.identity`."""
        return await drive_async(self.ledger.identity_steps())

    async def load(self, capability: str, idempotency_key: str) -> Effect | None:
        """See `EffectStore.load`."""
        return await drive_async(self.ledger.load_steps(capability, idempotency_key))

    async def settle(
        self, capability: str, idempotency_key: str, settlement: Settlement, *, reason: str, actor: str | None = None
    ) -> Effect:
        """See `EffectStore.settle`."""
        return await drive_async(self.ledger.settle_steps(capability, idempotency_key, settlement, reason, actor))


def ledger_of(effects: EffectStore | AsyncEffectStore, store: Store) -> EffectLedger:
    """The ledger of an effect store that a run over `store` may use. Raises `InvalidRequest` for the other kind."""
    if not isinstance(effects, EffectStore | AsyncEffectStore):
        raise InvalidRequest("effects", f"must be an EffectStore, not {type(effects).__name__}")
    if is_async(effects.ledger.store) is not is_async(store):
        raise InvalidRequest("effects", "and the run's store must both be async, or neither")
    return effects.ledger


def _may_repeat(call: EffectCall) -> bool:
    return call.repeat and call.request.effect_class.repeatable


def _reconciled(effect: Effect, call: EffectCall) -> Steps[Settlement]:
    if call.reconcile is None:
        return Settlement.unknown()
    answer = yield Call(call.reconcile, effect)
    if not isinstance(answer, Settlement):
        raise InvalidRequest("reconcile", f"must return a Settlement, not {type(answer).__name__}")
    return answer


def _settled(effect: Effect, settlement: Settlement, said: Mapping[str, Any]) -> Effect:
    if settlement.outcome == "completed":
        return effect.completed(settlement.output, digest_only=effect.input is UNSTORED, settlement=said)
    if settlement.outcome == "failed":
        return effect.failed(settlement.message, settlement=said)
    if settlement.outcome == "not_executed":
        return effect.not_executed(settlement=said)
    raise InvalidRequest("settlement", "says that nothing is known, which settles nothing")


def _replayed(effect: Effect, where: str, call: EffectCall) -> Steps[Any]:
    """How a completed or failed effect ended, without running it."""
    if effect.state is EffectState.FAILED:
        raise _failure(effect, where)
    if effect.output is not UNSTORED:
        return effect.output
    if call.recall is None:
        raise InvalidRequest(
            "recall", f"is needed: of the output of {effect.capability} {effect.idempotency_key} only the digest is on record"
        )
    output = yield Call(call.recall, effect)
    if digest(output) != effect.output_digest:
        raise InvalidRequest("recall", f"returned another output of {effect.capability} {effect.idempotency_key} than the one on record")
    return output


def _failure(effect: Effect, where: str) -> EffectFailed:
    return EffectFailed(where, capability=effect.capability, idempotency_key=effect.idempotency_key, message=effect.message or "")


def _ambiguous(effect: Effect, where: str, call: EffectCall) -> AmbiguousEffect:
    if not effect.effect_class.repeatable:
        why = "running it again could do it twice"
    elif not call.repeat:
        why = "it is not run again but by a retry of the turn that announced it"
    else:
        why = "its reconciler does not know"
    return AmbiguousEffect(
        where,
        capability=effect.capability,
        idempotency_key=effect.idempotency_key,
        effect_class=effect.effect_class.value,
        reason=why,
    )
