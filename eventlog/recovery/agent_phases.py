"""The phases of an agent's run, and what may follow each. Pure: no I/O, no clock.

ready_for_turn -> turn_in_flight -> ready_for_turn -> ... -> completed
                     ^   |  ^__ spending, announcing an effect, repeating the turn
                     '---'
A person may also decide: turn_in_flight -> turn_in_flight (may be repeated), ready_for_turn (rolled back), failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from eventlog.checkpoint import Checkpoint, check_text
from eventlog.errors import InvalidPayload, InvalidRequest, SchemaMismatch
from eventlog.payload import with_texts
from eventlog.recovery.decisions import Decided, Decision, read_decision
from eventlog.recovery.decisions import written as written_decision
from eventlog.recovery.effect_phases import Announced, read_announced
from eventlog.recovery.errors import RunFailed
from eventlog.recovery.fields import a_count, a_text, an_object, anything, others
from eventlog.recovery.identity import check_kind

AGENT_KIND = "eventlog.agent"
AGENT_VERSION = 1
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Model:
    """A model: who provides it, and its name there."""

    provider: str
    name: str

    def __post_init__(self) -> None:
        check_text("model.provider", self.provider, _LONGEST_NAME)
        check_text("model.name", self.name, _LONGEST_NAME)


@dataclass(frozen=True, slots=True)
class ReadyForTurn:
    """Stable: everything that was done is in the state. `decision`: that it was rolled back to here."""

    name: ClassVar[str] = "ready_for_turn"
    decision: Decided | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnInFlight:
    """Something may have been called outside since the state was written.

    `turn` counts from 1, `attempt` says how often this turn was begun, `since_ms` when this attempt was (its process's clock), and
    `effects` which effects it and the attempts before it have announced. `decision`: that it may be repeated, once.
    """

    name: ClassVar[str] = "turn_in_flight"
    turn: int
    attempt: int
    since_ms: int
    effects: tuple[Announced, ...] = ()
    decision: Decided | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Completed:
    """The end, with what came of it."""

    name: ClassVar[str] = "completed"
    response: Any
    rest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failed:
    """The end too: a person has given the run up. `effects` are those that what was in flight had announced."""

    name: ClassVar[str] = "failed"
    decision: Decided
    effects: tuple[Announced, ...] = ()
    rest: Mapping[str, Any] = field(default_factory=dict)

    def written(self) -> dict[str, Any]:
        """As it stands in a payload, of an agent or a workflow."""
        return {**self.rest, "state": self.name, **written_decision(self.decision), "effects": [each.entry() for each in self.effects]}

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Failed:
        """From a payload. Raises `InvalidPayload`, `SchemaMismatch`."""
        decided = read_decision(fields, Decision.MARK_FAILED, "$.phase")
        if decided is None:
            raise InvalidPayload("$.phase.decision", "is missing")
        return cls(decided, read_announced(fields, "$.phase"), others(fields, frozenset({"state", "decision", "effects"})))


def run_failed(checkpoint_id: str, phase: Failed) -> RunFailed:
    """What a resume of a failed run raises."""
    made = phase.decision
    return RunFailed(checkpoint_id, actor=made.actor, reason=made.reason, revision=made.revision + 1, what=made.what)


AgentPhase = ReadyForTurn | TurnInFlight | Completed | Failed


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """What must be the same for a run to be gone on with."""

    agent: str
    model: Model
    definition_version: int

    def __post_init__(self) -> None:
        check_text("agent", self.agent, _LONGEST_NAME)
        if not isinstance(self.model, Model):
            raise InvalidRequest("model", f"must be a Model(provider, name), not {type(self.model).__name__}")
        if type(self.definition_version) is not int or self.definition_version < 1:
            raise InvalidRequest("definition_version", f"{self.definition_version!r:.40} is not a whole number from 1 on")

    def fields(self) -> dict[str, Any]:
        """By the names that a mismatch is told with."""
        return {
            "agent": self.agent,
            "model.provider": self.model.provider,
            "model.name": self.model.name,
            "definition_version": self.definition_version,
        }


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """What a revision of an agent's run says. `turns` are completed ones; `rest` are fields that this version does not know."""

    identity: AgentIdentity
    effect_store: str | None
    turns: int
    state: Any
    phase: AgentPhase
    rest: Mapping[str, Any] = field(default_factory=dict)
    model_rest: Mapping[str, Any] = field(default_factory=dict)
    state_text: bytes | None = field(default=None, compare=False)  # of the state, where it is known: it is written twice a turn

    @classmethod
    def first(cls, identity: AgentIdentity, state: Any) -> AgentRecord:
        """Revision 0 of a run without effects."""
        return cls(identity, None, 0, state, ReadyForTurn())

    def with_effects(self, effect_store: str) -> AgentRecord:
        """The same with the identity of the store of its effects."""
        return replace(self, effect_store=effect_store)

    # -- what may follow ------------------------------------------------------------------------------------------

    def begin(self, since_ms: int) -> AgentRecord:
        """The next turn; or the one in flight once more, which only an explicit decision may ask for."""
        phase = self.phase
        if isinstance(phase, TurnInFlight):
            return replace(self, phase=replace(phase, attempt=phase.attempt + 1, since_ms=since_ms, decision=None))
        self._expect(ReadyForTurn)
        return replace(self, phase=TurnInFlight(self.turns + 1, 1, since_ms))

    def announce(self, effect: Announced) -> AgentRecord:
        """An effect may be under way from here on."""
        phase = self.in_flight()
        if any(each.checkpoint_id == effect.checkpoint_id for each in phase.effects):
            return self
        return replace(self, phase=replace(phase, effects=(*phase.effects, effect)))

    def stable(self, state: Any, text: bytes | None = None) -> AgentRecord:
        """The turn is done, and `state` holds everything that explains it; `text` is its JSON text, if that is known."""
        phase = self.in_flight()
        return replace(self, turns=phase.turn, state=state, state_text=text, phase=ReadyForTurn())

    def complete(self, response: Any) -> AgentRecord:
        """The run is done."""
        self._expect(ReadyForTurn)
        return replace(self, phase=Completed(response))

    def in_flight(self) -> TurnInFlight:
        """Its phase, which must be in flight."""
        self._expect(TurnInFlight)
        assert isinstance(self.phase, TurnInFlight)
        return self.phase

    def _expect(self, wanted: type[AgentPhase]) -> None:
        if not isinstance(self.phase, wanted):
            raise InvalidRequest("phase", f"is {self.phase.name}, not {wanted.name}", hint="Load the run and see what it is in.")

    # -- the payload ----------------------------------------------------------------------------------------------

    def payload(self) -> dict[str, Any]:
        """As it stands in the log: docs/payloads.md, `eventlog.agent`."""
        fields = {
            **self.rest,
            "agent": self.identity.agent,
            "model": {**self.model_rest, "provider": self.identity.model.provider, "name": self.identity.model.name},
            "definition_version": self.identity.definition_version,
            "effect_store": self.effect_store,
            "turns": self.turns,
            "state": self.state,
            "phase": _written(self.phase),
        }
        return fields if self.state_text is None else with_texts(fields, {"state": self.state_text})

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> AgentRecord:
        """What a checkpoint says. Raises `SchemaMismatch` for another kind, version or phase, `InvalidPayload` for what does not fit."""
        check_kind(checkpoint, AGENT_KIND, AGENT_VERSION)
        fields = an_object(checkpoint.payload, "$")
        model = an_object(anything(fields, "model", "$"), "$.model")
        turns = a_count(fields, "turns", "$")
        effect_store = anything(fields, "effect_store", "$")
        return cls(
            AgentIdentity(
                a_text(fields, "agent", "$"),
                Model(a_text(model, "provider", "$.model"), a_text(model, "name", "$.model")),
                a_count(fields, "definition_version", "$", 1),
            ),
            None if effect_store is None else a_text(fields, "effect_store", "$"),
            turns,
            anything(fields, "state", "$"),
            _read(an_object(anything(fields, "phase", "$"), "$.phase"), turns),
            others(fields, _FIELDS),
            others(model, frozenset({"provider", "name"})),
        )


_FIELDS = frozenset({"agent", "model", "definition_version", "effect_store", "turns", "state", "phase"})


def _written(phase: AgentPhase) -> dict[str, Any]:
    if isinstance(phase, TurnInFlight):
        return {
            **phase.rest,
            "state": phase.name,
            "turn": phase.turn,
            "attempt": phase.attempt,
            "since_ms": phase.since_ms,
            "effects": [each.entry() for each in phase.effects],
            **written_decision(phase.decision),
        }
    if isinstance(phase, Failed):
        return phase.written()
    if isinstance(phase, Completed):
        return {**phase.rest, "state": phase.name, "response": phase.response}
    return {**phase.rest, "state": phase.name, **written_decision(phase.decision)}


def _read(fields: dict[str, Any], turns: int) -> AgentPhase:
    state = a_text(fields, "state", "$.phase")
    if state == ReadyForTurn.name:
        return ReadyForTurn(read_decision(fields, Decision.ROLL_BACK, "$.phase"), others(fields, frozenset({"state", "decision"})))
    if state == Completed.name:
        return Completed(anything(fields, "response", "$.phase"), others(fields, frozenset({"state", "response"})))
    if state == Failed.name:
        return Failed.read(fields)
    if state != TurnInFlight.name:
        known = ", ".join(each.name for each in (ReadyForTurn, TurnInFlight, Completed, Failed))
        raise SchemaMismatch(f"unknown phase {state!r:.60} of an agent; this version knows {known}")
    turn = a_count(fields, "turn", "$.phase", 1)
    if turn != turns + 1:
        raise InvalidPayload("$.phase.turn", f"is {turn} where {turns} turns are completed")
    return TurnInFlight(
        turn,
        a_count(fields, "attempt", "$.phase", 1),
        a_count(fields, "since_ms", "$.phase"),
        read_announced(fields, "$.phase"),
        read_decision(fields, Decision.RETRY, "$.phase"),
        others(fields, frozenset({"state", "turn", "attempt", "since_ms", "effects", "decision"})),
    )
