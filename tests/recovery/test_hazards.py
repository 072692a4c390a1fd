"""Eight ways in which another runtime's checkpoints can go wrong, none of which exists here. Numbered as they were found there."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from eventlog import CheckpointStore, SchemaMismatch, create_store, open_store
from eventlog.embedded_files import FORMAT_WITH_STUBS
from eventlog.recovery import (
    AgentRun,
    AmbiguousResume,
    EffectClass,
    EffectReused,
    EffectState,
    EffectStore,
    RetryInFlight,
    StillInFlight,
)
from eventlog.recovery.agent_phases import AgentRecord
from tests.recovery.samples import Lost, Outside, as_checkpoint, begun, resumed
from tests.store.samples import nothing_written, revisions

READ = EffectClass.READ_ONLY
WRITE = EffectClass.NON_IDEMPOTENT_WRITE


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path / "outside")


def test_hazard_1_a_run_is_never_completed_without_its_conversation(store: CheckpointStore) -> None:
    """There: one of two ways of resuming wrote `completed` without appending the transcript, and the other then reported success.

    Here there is one way; the conversation is the state, in the same revision as the response, and unknown fields are kept.
    """
    run = begun(store)
    foreign = {**run.checkpoint.payload, "durable_conversation": {"conversation_id": "c-7", "persisted_prefix_len": 1}}
    store.compare_and_swap(run.checkpoint.next(foreign), 0)
    again = resumed(store, run.checkpoint_id)
    with again.turn() as turn:
        turn.commit(state={"messages": ["hi", "hello"]})
    again.complete("hello")
    last = store.load(run.checkpoint_id).payload
    assert (last["phase"]["response"], last["state"]) == ("hello", {"messages": ["hi", "hello"]})
    assert last["durable_conversation"] == foreign["durable_conversation"]


def test_hazard_2_a_resumed_run_never_goes_on_without_its_context(store: CheckpointStore, outside: Outside) -> None:
    """There: a crash between the first revision and the one with the retrieved context made the resume skip the retrieval."""

    def first_turn(run: AgentRun, *, dies: bool) -> None:
        with run.turn() as turn:
            context = turn.effect("retrieve", "teapots", lambda _: [f"document {outside.call('retrieve')}"], effect_class=READ)
            if dies:
                raise Lost
            turn.commit(state={"context": context})

    effects = EffectStore(store)
    run = begun(store, effects=effects, state={})
    with pytest.raises(Lost):
        first_turn(run, dies=True)
    with pytest.raises(AmbiguousResume):  # not "ready", as if there had been nothing to retrieve
        resumed(store, run.checkpoint_id)
    again = resumed(store, run.checkpoint_id, RetryInFlight(effects=effects))
    first_turn(again, dies=False)
    assert again.state == {"context": ["document 1"]}
    assert outside.calls() == ["retrieve"]


def test_hazard_3_another_process_finds_the_effects_of_the_first(store: CheckpointStore, opening: Any, outside: Outside) -> None:
    """There: keys were derived from a run id that each process made anew, so that nothing was replayed across processes."""

    def turn_of(run: AgentRun, *, dies: bool) -> None:
        with run.turn() as turn:
            turn.effect("send_mail", "hello", lambda _: outside.call("send_mail"), effect_class=WRITE)  # no key of the caller's
            if dies:
                raise Lost
            turn.commit(state={})

    run = begun(store, effects=EffectStore(store))
    with pytest.raises(Lost):
        turn_of(run, dies=True)
    elsewhere = opening(actor="another process")
    turn_of(resumed(elsewhere, run.checkpoint_id, RetryInFlight(effects=EffectStore(elsewhere))), dies=False)
    assert outside.calls() == ["send_mail"]


def test_hazard_4_an_uncertain_outcome_is_never_recorded_as_known(store: CheckpointStore, outside: Outside) -> None:
    """There: an error of a tool was wrapped as a completed answer, and the turn went on."""
    effects = EffectStore(store)
    run = begun(store, effects=effects)

    def times_out(_: Any) -> None:
        outside.call("send_mail")
        raise TimeoutError("no answer")

    def goes_on_all_the_same() -> None:
        with run.turn() as turn:
            with pytest.raises(TimeoutError):
                turn.effect("send_mail", "hello", times_out, effect_class=WRITE, idempotency_key=run.checkpoint_id)
            turn.commit(state={"messages": ["tool: error, no answer"]})

    with pytest.raises(StillInFlight, match="send_mail"):
        goes_on_all_the_same()
    effect = effects.load("send_mail", run.checkpoint_id)
    assert effect is not None
    assert effect.state is EffectState.STARTED
    assert store.load(run.checkpoint_id).phase == "turn_in_flight"


def test_hazard_5_a_repeated_model_call_with_other_arguments_has_a_way_out(store: CheckpointStore, outside: Outside) -> None:
    """There: the repeated model asked for something else, the key was taken, and the run was stuck."""
    effects = EffectStore(store)
    replies = iter([{"refund": 39}, {"refund": 40}, {"refund": 41}])

    def refund(arguments: dict[str, int]) -> dict[str, int]:
        outside.call(f"refund-{arguments['refund']}")
        return {"refunded": arguments["refund"]}

    def turn_of(run: AgentRun, *, dies: bool = False, recorded: bool = False) -> None:
        with run.turn() as turn:
            reply = turn.effect("model", {}, lambda _: next(replies), effect_class=READ) if recorded else next(replies)
            key = f"{run.checkpoint_id}/refund"
            try:
                answer = turn.effect("refund", reply, refund, effect_class=WRITE, idempotency_key=key)
            except EffectReused:  # the way out: what was done is on record, and the turn goes on from there
                done = effects.load("refund", key)
                answer = done.output if done is not None and done.input == {"refund": 39} else "not on record"
            if dies:
                raise Lost
            turn.commit(state=answer)

    run = begun(store, effects=effects)
    with pytest.raises(Lost):
        turn_of(run, dies=True)
    again = resumed(store, run.checkpoint_id, RetryInFlight(effects=effects))
    turn_of(again)
    assert again.state == {"refunded": 39}

    replies = iter([{"refund": 50}, {"refund": 51}])
    run = begun(store, effects=effects)
    with pytest.raises(Lost):
        turn_of(run, dies=True, recorded=True)
    again = resumed(store, run.checkpoint_id, RetryInFlight(effects=effects))
    turn_of(again, recorded=True)  # the better way: the reply is an effect itself, so it cannot come to differ
    assert again.state == {"refunded": 50}
    assert outside.calls() == ["refund-39", "refund-50"]


def test_hazard_6_nothing_of_a_payload_is_in_what_stays_in_clear(store: CheckpointStore) -> None:
    """There: lifecycle events stored the prompt and the proposal that were to be kept out of the journal."""
    secret = "the patient's name"
    effects = EffectStore(store)
    run = begun(store, effects=effects, state={"messages": [secret]})

    def refuses(_: Any) -> None:
        raise Lost(secret)

    def turn_of(run: AgentRun) -> None:
        with run.turn() as turn:
            turn.effect("model", {"prompt": secret}, lambda _: {"reply": secret}, effect_class=READ)
            turn.effect("send_mail", {"text": secret}, refuses, effect_class=WRITE)

    with pytest.raises(Lost):
        turn_of(run)
    with pytest.raises(AmbiguousResume) as found:
        resumed(store, run.checkpoint_id)
    streams = [run.checkpoint_id, *(each.checkpoint_id for each in found.value.effects)]
    events = [each for stream in streams for each in revisions(store, stream)]
    assert len(events) == 4 + 3 + 2
    for each in events:
        clear = each.checkpoint.model_dump(mode="json", exclude={"payload"})
        assert secret not in json.dumps(clear)
    assert secret not in f"{found.value} {vars(found.value)}"


def test_hazard_7_a_payload_never_stands_under_another_versions_number(store: CheckpointStore) -> None:
    """There: an older checkpoint that was gone on with kept its number and got the newer payload."""
    run = begun(store)
    for version in (2, 3):
        newer = as_checkpoint(run.checkpoint.payload, schema_version=version)
        store.compare_and_swap(newer, None)
        with nothing_written(store), pytest.raises(SchemaMismatch, match=rf"eventlog\.agent {version}"):
            resumed(store, newer.id, RetryInFlight())
    with run.turn() as turn:
        turn.commit(state={})
    for each in revisions(store, run.checkpoint_id):
        assert AgentRecord.of(each.checkpoint).payload() == each.checkpoint.payload


def test_hazard_8_a_newer_database_keeps_its_version(tmp_path: Path) -> None:
    """There: opening a database stamped the version of whoever opened it, unread."""
    create_store(tmp_path)
    with sqlite3.connect(tmp_path / "log.sqlite3") as connection:
        version = FORMAT_WITH_STUBS + 1
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with pytest.raises(SchemaMismatch):
        open_store(tmp_path)
    connection = sqlite3.connect(tmp_path / "log.sqlite3")
    assert connection.execute("PRAGMA user_version").fetchone() == (version,)
    connection.close()
