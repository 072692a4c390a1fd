"""Runifold's agents become runs that are resumed as what they are; what has no counterpart is refused and named."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import CheckpointStore
from eventlog.recovery import (
    AgentRun,
    AmbiguousResume,
    IdentityMismatch,
    Model,
    RetryInFlight,
    Selection,
    undo_migration,
)
from tests.recovery.migration_samples import WRITTEN, built_in, samples
from tests.recovery.runifold_runs import changed, migrated, refused
from tests.store.samples import nothing_written

AGENT: dict[str, Any] = {"agent": "tea-desk", "model": Model("openai", "gpt-4.1"), "definition_version": 3}


def test_an_agent_between_its_turns_goes_on(store: CheckpointStore) -> None:
    found = migrated(store, "runifold.agent", 1, "between turns")
    run = AgentRun.resume(store, found.id, **AGENT)
    transcript = samples("runifold.agent.v1")["between turns"]["transcript"]
    assert run.state == {"transcript": transcript}
    assert run.usage == {"tokens": 210, "cost_microusd": 380, "tool_calls": 1, "turns": 1, "duration_micros": 900000, "delegations": 0}
    with run.turn() as turn:
        assert turn.number == 2
        turn.spend(tokens=10)
        turn.commit(state={"transcript": [*transcript, {"role": "assistant"}]})
    assert store.load(found.id).usage["tokens"] == 220
    run.complete({"answer": "sent"})
    assert store.load(found.id).labels == {"imported_from": "runifold"}


def test_a_completed_agent_replays_its_response(store: CheckpointStore) -> None:
    found = migrated(store, "runifold.agent", 1, "completed")
    with nothing_written(store):
        run = AgentRun.resume(store, found.id, **AGENT)
    assert run.response == samples("runifold.agent.v1")["completed"]["phase"]["response"]


def test_an_agent_in_flight_stays_in_flight(store: CheckpointStore) -> None:
    found = migrated(store, "runifold.agent", 1, "in flight")
    assert found.phase == "turn_in_flight"
    with nothing_written(store), pytest.raises(AmbiguousResume) as caught:
        AgentRun.resume(store, found.id, **AGENT)
    assert (caught.value.what, caught.value.since, caught.value.attempt) == ("turn 2", WRITTEN, 1)
    with AgentRun.resume(store, found.id, policy=RetryInFlight(), **AGENT).turn() as turn:
        assert (turn.number, turn.attempt) == (2, 2)
        turn.commit(state={})


def test_an_agent_is_only_resumed_as_what_it_is(store: CheckpointStore) -> None:
    found = migrated(store, "runifold.agent", 1, "accepted")
    for wrong in ({"agent": "coffee-desk"}, {"model": Model("openai", "gpt-5")}, {"definition_version": 1}):
        with nothing_written(store), pytest.raises(IdentityMismatch):
            AgentRun.resume(store, found.id, **{**AGENT, **wrong})


def test_fields_that_nobody_knows_survive(store: CheckpointStore) -> None:
    found = migrated(store, "runifold.agent", 1, "with fields of a later version")
    assert found.payload["runifold"]["other"] == {"lane": "fast"}
    assert found.payload["runifold"]["other_usage"] == {"watt_hours": 3}
    assert found.payload["model"]["region"] == "eu"
    assert found.payload["phase"]["since"] == "noon"
    run = AgentRun.resume(store, found.id, **AGENT)
    with run.turn() as turn:
        turn.commit(state={"transcript": []})
    assert store.load(found.id).payload["runifold"] == found.payload["runifold"]


def test_turns_since_are_taken_back_to_runifold_with_what_they_used(store: CheckpointStore) -> None:
    found = migrated(store, "runifold.agent", 1, "with fields of a later version")
    run = AgentRun.resume(store, found.id, **AGENT)
    with run.turn() as turn:
        turn.spend(tokens=10, tool_calls=2)
        turn.commit(state={"transcript": [{"role": "user"}]})
    report = undo_migration(store, built_in(), Selection(ids=[found.id]))
    assert report.refused == []
    back = store.load(found.id)
    assert (back.kind, back.phase) == ("runifold.agent", "ready_for_turn")
    assert (back.payload["turns"], back.payload["transcript"]) == (1, [{"role": "user"}])
    assert (back.payload["usage"]["tokens"], back.payload["usage"]["tool_calls"], back.payload["tool_calls"]) == (10, 2, 7)
    assert back.payload["lane"] == "fast"


@pytest.mark.parametrize(
    ("state", "said"), [({"transcript": [], "notes": 1}, "state.notes"), ([], "$.state"), ({"transcript": "none"}, "transcript")]
)
def test_a_state_that_runifold_has_no_field_for_is_not_taken_back(store: CheckpointStore, state: Any, said: str) -> None:
    found = migrated(store, "runifold.agent", 1, "accepted")
    with AgentRun.resume(store, found.id, **AGENT).turn() as turn:
        turn.commit(state=state)
    with nothing_written(store):
        (row,) = undo_migration(store, built_in(), Selection(ids=[found.id])).refused
    assert said in row.detail


def test_a_turn_that_was_begun_since_is_not_taken_back(store: CheckpointStore) -> None:
    found = migrated(store, "runifold.agent", 1, "accepted")
    AgentRun.resume(store, found.id, **AGENT).turn().__enter__()
    with nothing_written(store):
        (row,) = undo_migration(store, built_in(), Selection(ids=[found.id])).refused
    assert "a turn was begun since" in row.detail


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("accepted", {"durable_conversation": {"conversation_id": "c"}}, "durable_conversation"),
        ("accepted", {"phase": {"state": "paused"}}, "unknown phase 'paused'"),
        ("accepted", {"usage": {"tokens": 1}}, "$.usage.cost_microusd: is missing"),
        ("accepted", {"turns": -1}, "$.turns"),
        ("accepted", {"transcript": None}, "$.transcript"),
        ("accepted", {"model": {"provider": "", "name": "x"}}, "$.model.provider"),
        ("in flight", {"turns": 4}, "turn 2 is in flight where 4 turns are completed"),
        ("completed", {"phase": {"state": "completed"}}, "$.phase.response"),
    ],
)
def test_an_agent_that_has_no_counterpart_is_refused_and_named(
    store: CheckpointStore, name: str, fields: dict[str, Any], said: str
) -> None:
    assert said in refused(store, changed("runifold.agent", name, **fields))


def test_what_did_not_come_from_runifold_is_not_taken_there(store: CheckpointStore) -> None:
    native = AgentRun.start(store, state={"transcript": []}, **AGENT)
    with nothing_written(store):
        assert undo_migration(store, built_in(), Selection(ids=[native.checkpoint_id])).unchanged == 1
