"""The agent's phases, pure: what may follow what, and what is refused by name."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventlog import InvalidPayload, InvalidRequest, SchemaMismatch
from eventlog.recovery import Announced, Completed, EffectClass, Model, ReadyForTurn, TurnInFlight
from eventlog.recovery.agent_phases import AgentIdentity, AgentRecord
from tests.core.json_values import JSON, TEXT
from tests.recovery.samples import as_checkpoint
from tests.recovery.schemas import conforms, validator

IDENTITY = AgentIdentity("order-desk", Model("openai", "gpt-4.1"), 3)
EFFECT = Announced("charge_card", "order-7", EffectClass.IDEMPOTENT_WRITE, "0197a0b0-0000-8000-8000-000000000001")
READY = AgentRecord.first(IDENTITY, {"messages": []}).with_effects("a store")
IN_FLIGHT = READY.begin(1_764_000_000_000).announce(EFFECT)
COMPLETED = READY.complete({"answer": "done"})


def test_a_turn_is_in_flight_until_it_is_stable() -> None:
    begun = READY.begin(5)
    assert begun.phase == TurnInFlight(1, 1, 5)
    assert (begun.turns, begun.state) == (0, READY.state)
    stable = begun.stable({"messages": ["hello"]})
    assert (stable.phase, stable.turns, stable.state) == (ReadyForTurn(), 1, {"messages": ["hello"]})
    assert stable.begin(6).phase == TurnInFlight(2, 1, 6)


def test_a_repeated_turn_keeps_its_number_and_what_it_has_announced() -> None:
    again = IN_FLIGHT.begin(9)
    assert again.phase == TurnInFlight(1, 2, 9, (EFFECT,))


def test_an_effect_is_announced_once() -> None:
    assert IN_FLIGHT.announce(EFFECT) == IN_FLIGHT


def test_a_completed_run_holds_its_state_and_its_response() -> None:
    assert (COMPLETED.phase, COMPLETED.state) == (Completed({"answer": "done"}), READY.state)


@pytest.mark.parametrize(
    ("record", "change"),
    [
        (READY, lambda record: record.stable({})),
        (READY, lambda record: record.announce(EFFECT)),
        (IN_FLIGHT, lambda record: record.complete({})),
        (COMPLETED, lambda record: record.begin(1)),
        (COMPLETED, lambda record: record.stable({})),
        (COMPLETED, lambda record: record.complete({})),
    ],
)
def test_what_does_not_follow_is_refused(record: AgentRecord, change: Any) -> None:
    with pytest.raises(InvalidRequest, match=f"^phase: is {record.phase.name}, not "):
        change(record)


@pytest.mark.parametrize("record", [READY, IN_FLIGHT, COMPLETED], ids=lambda record: record.phase.name)
def test_what_is_written_is_read_back_and_is_as_documented(record: AgentRecord) -> None:
    payload = record.payload()
    conforms("eventlog.agent.v1", payload)
    assert AgentRecord.of(as_checkpoint(payload)) == record


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(extra=st.dictionaries(TEXT.map("x-{}".format), JSON, max_size=3), record=st.sampled_from([READY, IN_FLIGHT, COMPLETED]))
def test_fields_that_this_version_does_not_know_survive(extra: dict[str, Any], record: AgentRecord) -> None:
    payload = {**record.payload(), **extra}
    payload["model"] = {**payload["model"], **extra}
    payload["phase"] = {**payload["phase"], **extra}
    if payload["phase"].get("effects"):
        payload["phase"]["effects"] = [{**each, **extra} for each in payload["phase"]["effects"]]
    conforms("eventlog.agent.v1", payload)
    read = AgentRecord.of(as_checkpoint(copy.deepcopy(payload)))
    assert read.payload() == payload


def test_unknown_fields_survive_a_whole_turn() -> None:
    read = AgentRecord.of(as_checkpoint({**READY.payload(), "conversation": {"id": 7}}))
    assert read.begin(1).announce(EFFECT).stable([]).complete("x").payload()["conversation"] == {"id": 7}


FIRST = "$.phase.effects[0]"
UNFIT: dict[str, tuple[Any, str]] = {
    "no object": (["x"], "$"),
    "agent missing": ({"agent": None}, "$.agent"),
    "agent no text": ({"agent": 7}, "$.agent"),
    "model missing": ({"model": None}, "$.model"),
    "model without a name": ({"model": {"provider": "openai"}}, "$.model.name"),
    "definition version 0": ({"definition_version": 0}, "$.definition_version"),
    "definition version true": ({"definition_version": True}, "$.definition_version"),
    "effect store no text": ({"effect_store": 7}, "$.effect_store"),
    "turns negative": ({"turns": -1}, "$.turns"),
    "phase no object": ({"phase": "ready_for_turn"}, "$.phase"),
    "phase without a state": ({"phase": {}}, "$.phase.state"),
    "turn too high": ({"phase": {**IN_FLIGHT.payload()["phase"], "turn": 5}}, "$.phase.turn"),
    "turn again": ({"turns": 1, "phase": {**IN_FLIGHT.payload()["phase"], "turn": 1}}, "$.phase.turn"),
    "turn missing": ({"phase": {"state": "turn_in_flight"}}, "$.phase.turn"),
    "attempt 0": ({"phase": {**IN_FLIGHT.payload()["phase"], "attempt": 0}}, "$.phase.attempt"),
    "effects no list": ({"phase": {**IN_FLIGHT.payload()["phase"], "effects": {}}}, "$.phase.effects"),
    "effect without a key": (
        {"phase": {**IN_FLIGHT.payload()["phase"], "effects": [{"capability": "x"}]}},
        "$.phase.effects[0].idempotency_key",
    ),
    "no response": ({"phase": {"state": "completed"}}, "$.phase.response"),
}
BEYOND_THE_SCHEMA = {"turn too high", "turn again"}  # arithmetic


@pytest.mark.parametrize("name", UNFIT)
def test_a_payload_that_does_not_fit_is_refused_with_its_path(name: str) -> None:
    changes, path = UNFIT[name]
    payload: Any = changes
    if isinstance(changes, dict):
        payload = {**READY.payload(), **changes}
        payload = {field: value for field, value in payload.items() if not (value is None and field in changes)}
    with pytest.raises(InvalidPayload) as refused:
        AgentRecord.of(as_checkpoint(payload))
    assert refused.value.path == path
    assert validator("eventlog.agent.v1").is_valid(payload) is (name in BEYOND_THE_SCHEMA)


WITH_AN_UNKNOWN_CLASS = {
    **IN_FLIGHT.payload(),
    "phase": {**IN_FLIGHT.payload()["phase"], "effects": [{**EFFECT.entry(), "effect_class": "reversible"}]},
}


@pytest.mark.parametrize(
    ("payload", "kind", "version", "named"),
    [
        ({**READY.payload(), "phase": {"state": "paused"}}, "eventlog.agent", 1, "paused"),
        (READY.payload(), "eventlog.agent", 2, "eventlog.agent 2"),
        (READY.payload(), "runifold.agent", 1, "runifold.agent 1"),
        (WITH_AN_UNKNOWN_CLASS, "eventlog.agent", 1, "reversible"),
    ],
)
def test_an_unknown_phase_kind_version_or_class_is_refused_by_name(payload: Any, kind: str, version: int, named: str) -> None:
    with pytest.raises(SchemaMismatch, match=named):
        AgentRecord.of(as_checkpoint(payload, kind=kind, schema_version=version))


@pytest.mark.parametrize(
    ("identity", "field"),
    [
        (lambda: AgentIdentity("", Model("a", "b"), 1), "agent"),
        (lambda: AgentIdentity("x", Model("", "b"), 1), "model.provider"),
        (lambda: AgentIdentity("x", Model("a", "b\n"), 1), "model.name"),
        (lambda: AgentIdentity("x", cast(Any, "gpt"), 1), "model"),
        (lambda: AgentIdentity("x", Model("a", "b"), 0), "definition_version"),
        (lambda: AgentIdentity("x", Model("a", "b"), True), "definition_version"),
    ],
)
def test_a_malformed_identity_is_refused(identity: Any, field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        identity()
    assert refused.value.field == field
