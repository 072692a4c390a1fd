"""An effect on the world outside, as its own checkpoint: what is known of it, and what may follow. Pure: no I/O, no clock.

    prepared -> started -> completed | failed
         ^---------'                              for certain nothing happened

`completed` and `failed` are for ever. A `started` one whose process died, or whose handler did not say how it ended, stays started.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from eventlog.checkpoint import Checkpoint
from eventlog.errors import InvalidRequest, SchemaMismatch
from eventlog.ids import CheckpointId, content_id
from eventlog.recovery.errors import EffectReused, KnownEffect
from eventlog.recovery.fields import a_count, a_list, a_text, an_object, anything, json_copy, others
from eventlog.recovery.identity import check_kind

EFFECT_KIND = "eventlog.effect"
EFFECT_VERSION = 1
MAX_KEY = 500

_FIELDS = frozenset(
    {
        "capability",
        "idempotency_key",
        "effect_class",
        "input",
        "input_digest",
        "output",
        "output_digest",
        "requested_by",
        "attempts",
        "settlement",
        "phase",
    }
)
_PHASE_FIELDS = frozenset({"state", "message"})


class EffectClass(StrEnum):
    """What running a handler does outside."""

    PURE = "pure"  # nothing: it only computes
    READ_ONLY = "read_only"  # looks something up
    IDEMPOTENT_WRITE = "idempotent_write"  # the other side does it once, however often it hears this idempotency key
    NON_IDEMPOTENT_WRITE = "non_idempotent_write"  # each call does it again

    @property
    def repeatable(self) -> bool:
        """Whether it may be run again when nobody knows how it ended (and only by a retry)."""
        return self is not EffectClass.NON_IDEMPOTENT_WRITE

    @property
    def writes(self) -> bool:
        """Whether something outside is different afterwards."""
        return self in (EffectClass.IDEMPOTENT_WRITE, EffectClass.NON_IDEMPOTENT_WRITE)


class EffectState(StrEnum):
    """How far an effect has come."""

    PREPARED = "prepared"
    STARTED = "started"
    COMPLETED = "completed"
    FAILED = "failed"


class _Unstored:
    """In place of a value that is on record by its digest only."""

    def __repr__(self) -> str:
        return "UNSTORED"


UNSTORED = _Unstored()


@dataclass(frozen=True, slots=True)
class Request:
    """An effect that somebody asks for. The key names it for ever, within the capability and the tenant."""

    capability: str
    idempotency_key: str
    effect_class: EffectClass
    input: Any
    digest_only: bool = False
    input_digest: str = field(init=False)

    def __post_init__(self) -> None:
        for name, value, longest in (("capability", self.capability, 200), ("idempotency_key", self.idempotency_key, MAX_KEY)):
            if not isinstance(value, str) or not 0 < len(value) <= longest or not value.isprintable():
                raise InvalidRequest(name, f"{value!r:.60} is not a printable text of 1 to {longest} characters")
        if not isinstance(self.effect_class, EffectClass):
            raise InvalidRequest("effect_class", f"must be an EffectClass, not {self.effect_class!r:.60}")
        object.__setattr__(self, "input_digest", digest(self.input))


@dataclass(frozen=True, slots=True)
class Effect:
    """What is on record of an effect.

    `input` and `output` are `UNSTORED` where only their digests are on record. `requested_by` is who asked first: a run's checkpoint id
    and what it was in. `attempts` counts how often the handler was started. `settlement` says who found out how it ended, and why, where
    that was not its handler.
    """

    capability: str
    idempotency_key: str
    effect_class: EffectClass
    input: Any
    input_digest: str
    requested_by: Mapping[str, Any]
    state: EffectState = EffectState.PREPARED
    attempts: int = 0
    output: Any = None
    output_digest: str | None = None
    message: str | None = None
    settlement: Mapping[str, Any] | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)
    phase_rest: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def prepared(cls, request: Request, requested_by: Mapping[str, Any]) -> Effect:
        """The first revision: the intent, with its input."""
        return cls(
            capability=request.capability,
            idempotency_key=request.idempotency_key,
            effect_class=request.effect_class,
            input=UNSTORED if request.digest_only else json_copy(request.input),
            input_digest=request.input_digest,
            requested_by=requested_by,
        )

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Effect:
        """What a checkpoint says. Raises `SchemaMismatch` for another kind, version or state, `InvalidPayload` with the path."""
        check_kind(checkpoint, EFFECT_KIND, EFFECT_VERSION)
        fields = an_object(checkpoint.payload, "$")
        phase = an_object(anything(fields, "phase", "$"), "$.phase")
        state = _known(EffectState, a_text(phase, "state", "$.phase"), "state of an effect")
        completed = state is EffectState.COMPLETED
        return cls(
            capability=a_text(fields, "capability", "$"),
            idempotency_key=a_text(fields, "idempotency_key", "$"),
            effect_class=_known(EffectClass, a_text(fields, "effect_class", "$"), "class of an effect"),
            input=fields.get("input", UNSTORED),
            input_digest=a_text(fields, "input_digest", "$"),
            requested_by=an_object(anything(fields, "requested_by", "$"), "$.requested_by"),
            state=state,
            attempts=a_count(fields, "attempts", "$", 0 if state is EffectState.PREPARED else 1),
            output=fields.get("output", UNSTORED) if completed else None,
            output_digest=a_text(fields, "output_digest", "$") if completed else None,
            message=a_text(phase, "message", "$.phase") if state is EffectState.FAILED else None,
            settlement=an_object(fields["settlement"], "$.settlement") if "settlement" in fields else None,
            rest=others(fields, _FIELDS),
            phase_rest=others(phase, _PHASE_FIELDS),
        )

    def payload(self) -> dict[str, Any]:
        """As it stands in the log: docs/payloads.md, `eventlog.effect`."""
        fields: dict[str, Any] = {
            **self.rest,
            "capability": self.capability,
            "idempotency_key": self.idempotency_key,
            "effect_class": self.effect_class.value,
            "input_digest": self.input_digest,
            "requested_by": self.requested_by,
            "attempts": self.attempts,
            "phase": {**self.phase_rest, "state": self.state.value},
        }
        if self.message is not None:
            fields["phase"]["message"] = self.message
        if self.settlement is not None:
            fields["settlement"] = self.settlement
        if self.input is not UNSTORED:
            fields["input"] = self.input
        if self.state is EffectState.COMPLETED:
            fields["output_digest"] = self.output_digest
            if self.output is not UNSTORED:
                fields["output"] = self.output
        return fields

    # -- what may follow ------------------------------------------------------------------------------------------

    def check_same(self, request: Request, checkpoint_id: str) -> None:
        """Raises `EffectReused` when the key is on record for something else."""
        same_class, same_input = self.effect_class is request.effect_class, self.input_digest == request.input_digest
        if not (same_class and same_input):
            raise EffectReused(
                checkpoint_id,
                capability=self.capability,
                idempotency_key=self.idempotency_key,
                differs="input" if same_class else "class",
                state=self.state.value,
            )

    def started(self) -> Effect:
        """The handler is about to run, for the first time or again."""
        self._expect(EffectState.PREPARED, EffectState.STARTED)
        return self._now(EffectState.STARTED, attempts=self.attempts + 1)

    def completed(self, output: Any, *, digest_only: bool = False, settlement: Mapping[str, Any] | None = None) -> Effect:
        """It has happened, with this output."""
        self._expect(EffectState.STARTED)
        kept = UNSTORED if digest_only else json_copy(output)
        return self._now(EffectState.COMPLETED, output=kept, output_digest=digest(output), settlement=settlement)

    def failed(self, message: str, *, settlement: Mapping[str, Any] | None = None) -> Effect:
        """The other side has refused it for certain."""
        self._expect(EffectState.STARTED)
        return self._now(EffectState.FAILED, message=message or "refused", settlement=settlement)

    def not_executed(self, *, settlement: Mapping[str, Any] | None = None) -> Effect:
        """It was started, and for certain nothing happened."""
        self._expect(EffectState.STARTED)
        return self._now(EffectState.PREPARED, settlement=settlement)

    def _now(self, state: EffectState, **changes: Any) -> Effect:
        return replace(self, state=state, phase_rest={}, **changes)

    def _expect(self, *states: EffectState) -> None:
        if self.state not in states:
            raise InvalidRequest("effect", f"{self.capability} {self.idempotency_key} is {self.state.value}, not {' or '.join(states)}")


@dataclass(frozen=True, slots=True)
class Announced:
    """An effect that an in-flight phase names before it is prepared, so that whoever resumes knows where to look."""

    capability: str
    idempotency_key: str
    effect_class: EffectClass
    checkpoint_id: str
    rest: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, value: Any, path: str) -> Announced:
        """An entry of a phase's `effects`."""
        fields = an_object(value, path)
        return cls(
            a_text(fields, "capability", path),
            a_text(fields, "idempotency_key", path),
            _known(EffectClass, a_text(fields, "effect_class", path), "class of an effect"),
            a_text(fields, "checkpoint_id", path),
            others(fields, _ANNOUNCED_FIELDS),
        )

    def known(self, state: str, attempts: int) -> KnownEffect:
        """With how far it has come."""
        return KnownEffect(self.capability, self.idempotency_key, self.effect_class.value, self.checkpoint_id, state, attempts)

    def entry(self) -> dict[str, Any]:
        """As it stands in the phase."""
        return {
            **self.rest,
            "capability": self.capability,
            "idempotency_key": self.idempotency_key,
            "effect_class": self.effect_class.value,
            "checkpoint_id": self.checkpoint_id,
        }


def read_announced(fields: Mapping[str, Any], path: str) -> tuple[Announced, ...]:
    """The `effects` of a phase."""
    return tuple(Announced.read(each, f"{path}.effects[{number}]") for number, each in enumerate(a_list(fields, "effects", path)))


_ANNOUNCED_FIELDS = frozenset({"capability", "idempotency_key", "effect_class", "checkpoint_id"})


def effect_id(tenant: str, capability: str, idempotency_key: str) -> CheckpointId:
    """Where an effect's stream is: nothing but its tenant, capability and key decide, so that compare-and-swap makes it the only one."""
    return CheckpointId(content_id("eventlog.effect", tenant, capability, idempotency_key))


def digest(value: Any) -> str:
    """SHA-256 of a JSON value in one form: keys sorted, no blanks, ASCII. Raises `InvalidPayload` for what is not JSON."""
    text = json.dumps(json_copy(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _known(kind: Any, value: str, what: str) -> Any:
    if value not in {each.value for each in kind}:
        raise SchemaMismatch(f"unknown {what} {value!r:.60}; this version knows {', '.join(kind)}")
    return kind(value)
