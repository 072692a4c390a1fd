"""Why a run may not go on. Part of the one tree of `eventlog/errors.py`; nothing of it is written by whoever gets one of these."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from eventlog.errors import CheckpointError, ErrorKind, Retry, SchemaMismatch


class Difference(NamedTuple):
    """One part of an identity that does not match."""

    field: str
    stored: Any
    given: Any


class KnownEffect(NamedTuple):
    """What is known of an effect that an in-flight phase has announced."""

    capability: str
    idempotency_key: str
    effect_class: str
    checkpoint_id: str
    state: str  # absent | prepared | started | completed | failed | deleted | unknown (its effect store was not given)
    attempts: int  # how often its handler was started


class IdentityMismatch(SchemaMismatch):
    """The run belongs to another definition, or its effects to another effect store, than the ones it was to be resumed with."""

    hint = "Resume it with the definition that it was started with, or migrate the checkpoint first."

    def __init__(self, checkpoint_id: str, differences: Sequence[Difference]) -> None:
        listed = "; ".join(f"{each.field} is {each.stored!r} in the checkpoint and {each.given!r} here" for each in differences)
        super().__init__(f"checkpoint {checkpoint_id} was written by another definition: {listed}")
        self.checkpoint_id = checkpoint_id
        self.differences = tuple(differences)


class AmbiguousResume(CheckpointError):
    """The run was in flight when its process ended: what it called outside may or may not have happened."""

    kind = ErrorKind.AMBIGUOUS
    hint = "Find out what happened outside. Then repeat it with RetryInFlight(effects=...), or decide: `eventlog recovery show` says how."

    def __init__(self, checkpoint_id: str, *, what: str, since: datetime, attempt: int, effects: Sequence[KnownEffect]) -> None:
        known = ", ".join(f"{each.capability} {each.idempotency_key} {each.state}" for each in effects) or "none announced"
        super().__init__(
            f"checkpoint {checkpoint_id} has been in flight in {what} (attempt {attempt}) since {since.isoformat()}; effects: {known}"
        )
        self.checkpoint_id = checkpoint_id
        self.what = what
        self.since = since
        self.attempt = attempt
        self.effects = tuple(effects)


class DecisionRefused(CheckpointError):
    """A person's decision does not fit what the run is in; nothing was written. `effects` are those that it is refused for."""

    kind = ErrorKind.CONFLICT
    retry = Retry.NEVER
    hint = "Look at the run with `eventlog recovery show`, which says what each decision would do."

    def __init__(
        self, checkpoint_id: str, *, decision: str, reason: str, effects: Sequence[KnownEffect] = (), hint: str | None = None
    ) -> None:
        super().__init__(f"{decision} does not fit checkpoint {checkpoint_id}: {reason}", hint=hint)
        self.checkpoint_id = checkpoint_id
        self.decision = decision
        self.reason = reason
        self.effects = tuple(effects)


class RunFailed(CheckpointError):
    """A person has given the run up while it was in `what`, in `revision`. It is never gone on with."""

    kind = ErrorKind.RUN_FAILED
    hint = "Start a new run. The history says how far this one came, and which effects it had announced."

    def __init__(self, checkpoint_id: str, *, actor: str, reason: str, revision: int, what: str) -> None:
        super().__init__(f"checkpoint {checkpoint_id} was marked failed by {actor} in revision {revision} ({what}): {reason}")
        self.checkpoint_id = checkpoint_id
        self.actor = actor
        self.reason = reason
        self.revision = revision
        self.what = what


class StillInFlight(CheckpointError):
    """The phase stays in flight, because not everything is there that would explain its end."""

    kind = ErrorKind.AMBIGUOUS
    hint = "Call commit() at the end of the body, with every effect settled. To go on, resume the run by its checkpoint id."

    def __init__(self, checkpoint_id: str, *, what: str, reason: str) -> None:
        super().__init__(f"checkpoint {checkpoint_id} stays in flight in {what}: {reason}")
        self.checkpoint_id = checkpoint_id
        self.what = what
        self.reason = reason


class AmbiguousEffect(CheckpointError):
    """An effect was started and nobody knows how it ended; it is not run again."""

    kind = ErrorKind.AMBIGUOUS
    hint = "Pass a reconciler that can ask the other side, or record what a person found out with EffectStore.settle()."

    def __init__(self, checkpoint_id: str, *, capability: str, idempotency_key: str, effect_class: str, reason: str) -> None:
        super().__init__(f"the {effect_class} {capability} {idempotency_key} was started and has no answer: {reason}")
        self.checkpoint_id = checkpoint_id
        self.capability = capability
        self.idempotency_key = idempotency_key
        self.effect_class = effect_class
        self.reason = reason


class EffectFailed(CheckpointError):
    """The other side has refused the effect for certain. It is on record: the same effect fails like this from now on."""

    kind = ErrorKind.EFFECT_FAILED
    hint = "Commit the turn with this answer. To try again, use another idempotency key."

    def __init__(self, checkpoint_id: str, *, capability: str, idempotency_key: str, message: str) -> None:
        super().__init__(f"{capability} {idempotency_key} has failed: {message}")
        self.checkpoint_id = checkpoint_id
        self.capability = capability
        self.idempotency_key = idempotency_key
        self.message = message


class EffectReused(CheckpointError):
    """The idempotency key is on record with another input or class; nothing was run."""

    kind = ErrorKind.CONFLICT
    retry = Retry.NEVER
    hint = (
        "A key names one effect with one input for ever. If a repeated model call asks for something else, look at what is on record with "
        "EffectStore.load(), go on from its answer, or decide on another key. Recording the model's reply as a READ_ONLY effect avoids it."
    )

    def __init__(self, checkpoint_id: str, *, capability: str, idempotency_key: str, differs: str, state: str) -> None:
        super().__init__(f"{capability} {idempotency_key} is on record ({state}) with another {differs}")
        self.checkpoint_id = checkpoint_id
        self.capability = capability
        self.idempotency_key = idempotency_key
        self.differs = differs
        self.state = state


class NotOwner(CheckpointError):
    """The run is another worker's, or this one's claim of it is no longer, or never was, the one on record; nothing was written."""

    kind = ErrorKind.CONFLICT
    retry = Retry.NEVER
    hint = "Claim the run, and resume it with that claim."

    def __init__(
        self, checkpoint_id: str, *, owner: str | None, token: int | None, given_owner: str | None, given_token: int | None
    ) -> None:
        stored = "nobody's" if owner is None else f"{owner}'s by claim {token}"
        given = "no claim was given" if given_owner is None else f"claim {given_token} of {given_owner} was given"
        super().__init__(f"checkpoint {checkpoint_id} is {stored}, and {given}")
        self.checkpoint_id = checkpoint_id
        self.owner = owner
        self.token = token
        self.given_owner = given_owner
        self.given_token = given_token


class AlreadyOwned(CheckpointError):
    """Another worker has claimed the run, and its lease has not run out by the log's clock."""

    kind = ErrorKind.CONFLICT
    retry = Retry.BACKOFF
    hint = "Take another run, or wait until the lease has ended."

    def __init__(self, checkpoint_id: str, *, owner: str, token: int, until: datetime) -> None:
        super().__init__(f"checkpoint {checkpoint_id} is {owner}'s by claim {token} until {until.isoformat()}")
        self.checkpoint_id = checkpoint_id
        self.owner = owner
        self.token = token
        self.until = until


class BranchCancelled(CheckpointError):
    """Another branch of the race has won; nothing that this one still does counts."""

    kind = ErrorKind.CONFLICT
    retry = Retry.NEVER
    hint = "Let the branch end."

    def __init__(self, message: str, *, step: str, branch: str) -> None:
        super().__init__(message)
        self.step = step
        self.branch = branch


class NotWaiting(CheckpointError):
    """The run does not wait for this signal: not yet, no longer, or never; nothing was written."""

    kind = ErrorKind.CONFLICT
    retry = Retry.BACKOFF
    hint = "Send it when the run waits for it. A signal with the signal_id that has woken the run may be sent again."

    def __init__(self, checkpoint_id: str, *, signal: str, found: str) -> None:
        super().__init__(f"checkpoint {checkpoint_id} does not wait for the signal {signal}: {found}")
        self.checkpoint_id = checkpoint_id
        self.signal = signal
        self.found = found
