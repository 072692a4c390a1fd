"""An agent's run: in flight before its body, stable only when everything that explains it was handed over, and resumed identity first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from eventlog import CheckpointId, CheckpointStore, Conflict, InvalidPayload, InvalidRequest, NotFound, SchemaMismatch, open_store
from eventlog.recovery import (
    AgentRun,
    AmbiguousResume,
    Completed,
    EffectClass,
    EffectStore,
    IdentityMismatch,
    Model,
    ReadyForTurn,
    Reject,
    RetryInFlight,
    StillInFlight,
    TurnInFlight,
)
from eventlog.recovery.agent_phases import AgentRecord
from tests.recovery.samples import AGENT, DEFINITION, MODEL, begun, phases, resumed
from tests.recovery.schemas import conforms
from tests.store.samples import nothing_written, revisions


def left_in_flight(store: CheckpointStore, **fields: Any) -> AgentRun:
    """A run whose process has died in its first turn, as far as the store knows."""
    run = begun(store, **fields)
    with pytest.raises(KeyboardInterrupt):
        spending_and_dying(run)
    return run


def spending_and_dying(run: AgentRun) -> None:
    with run.turn() as turn:
        turn.spend(tokens=812)
        raise KeyboardInterrupt


def test_the_example_of_the_documentation_runs_as_written(store: CheckpointStore) -> None:
    charged: list[Any] = []

    def charge_card(order: dict[str, int]) -> dict[str, int]:
        charged.append(order)
        return {"charged": order["order"]}

    effects = EffectStore(store)
    run = AgentRun.start(
        store, agent="order-desk", model=Model("openai", "gpt-4.1"), definition_version=3, effects=effects, state={"messages": []}
    )
    key = f"order-{run.checkpoint_id}"
    with run.turn() as turn:
        assert store.load(run.checkpoint_id).phase == "turn_in_flight"
        turn.spend(tokens=812, cost_microusd=950)
        charge = turn.effect("charge_card", {"order": 7}, charge_card, effect_class=EffectClass.IDEMPOTENT_WRITE, idempotency_key=key)
        turn.commit(state={"messages": ["charged"], "charge": charge})
    run.complete({"answer": "done"})
    run = AgentRun.resume(
        store, run.checkpoint_id, agent="order-desk", model=Model("openai", "gpt-4.1"), definition_version=3, policy=Reject()
    )
    assert run.response == {"answer": "done"}
    assert run.state == {"messages": ["charged"], "charge": {"charged": 7}}
    assert charged == [{"order": 7}]
    assert {name: run.usage[name] for name in ("tokens", "cost_microusd", "turns", "tool_calls")} == {
        "tokens": 812,
        "cost_microusd": 950,
        "turns": 1,
        "tool_calls": 1,
    }


def test_an_accepted_run_is_durable_before_any_work(store: CheckpointStore) -> None:
    run = begun(store, labels={"desk": "north"}, usage={"tokens": 5})
    stored = store.load(run.checkpoint_id)
    assert (stored.revision, stored.kind, stored.schema_version, stored.phase) == (0, "eventlog.agent", 1, "ready_for_turn")
    assert (stored.labels, stored.usage) == ({"desk": "north"}, {"tokens": 5})
    assert (run.phase, run.state) == (ReadyForTurn(), {"messages": []})
    with pytest.raises(Conflict):
        begun(store, checkpoint_id=run.checkpoint_id)


def test_the_in_flight_phase_is_durable_before_the_body_runs_and_the_stable_one_after(store: CheckpointStore) -> None:
    run = begun(store)
    for number in (1, 2):
        with run.turn() as turn:
            stored = AgentRecord.of(store.load(run.checkpoint_id))
            assert isinstance(stored.phase, TurnInFlight)
            assert (stored.phase.turn, turn.number, turn.attempt) == (number, number, 1)
            turn.commit(state={"messages": [number]})
            assert AgentRecord.of(store.load(run.checkpoint_id)).state == {"messages": [number]}
    run.complete("done")
    assert phases(store, run.checkpoint_id) == ["ready_for_turn", *["turn_in_flight", "ready_for_turn"] * 2, "completed"]
    for each in revisions(store, run.checkpoint_id):
        conforms("eventlog.agent.v1", each.checkpoint.payload)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_whatever_leaves_the_body_leaves_the_turn_in_flight(store: CheckpointStore, error: type[BaseException]) -> None:
    run = begun(store)
    with pytest.raises(error), run.turn():
        raise error
    assert isinstance(run.phase, TurnInFlight)
    with nothing_written(store), pytest.raises(StillInFlight), run.turn():
        raise AssertionError
    with nothing_written(store), pytest.raises(StillInFlight):
        run.complete({})
    with nothing_written(store), pytest.raises(AmbiguousResume):
        resumed(store, run.checkpoint_id)


def test_a_body_that_ends_without_a_commit_stays_in_flight_and_says_so(store: CheckpointStore) -> None:
    run = begun(store)
    with pytest.raises(StillInFlight, match="turn 1: the body ended without commit"), run.turn():
        pass
    assert store.load(run.checkpoint_id).phase == "turn_in_flight"


def test_after_its_end_a_turn_does_nothing_more(store: CheckpointStore) -> None:
    run = begun(store, effects=EffectStore(store))
    with run.turn() as turn:
        turn.commit(state=1)
        for call in (
            lambda: turn.commit(state=2),
            lambda: turn.spend(tokens=1),
            lambda: turn.effect("x", 1, abs, effect_class=EffectClass.PURE),
        ):
            with nothing_written(store), pytest.raises(InvalidRequest, match="turn 1 has ended"):
                call()
    with pytest.raises(ValueError, match="after"):
        committing_and_failing(run)
    assert (run.phase, run.state) == (ReadyForTurn(), 2)


def committing_and_failing(run: AgentRun) -> None:
    with run.turn() as turn:
        turn.commit(state=2)
        raise ValueError("after")


def test_a_turn_is_a_context_manager(store: CheckpointStore) -> None:
    with pytest.raises(InvalidRequest, match="has not begun"):
        begun(store).turn().spend(tokens=1)


def test_a_completed_run_gives_its_response_and_does_nothing_else(store: CheckpointStore) -> None:
    run = begun(store, effects=EffectStore(store))
    run.complete({"answer": 42})
    for policy in (None, Reject(), RetryInFlight(effects=EffectStore(store)), RetryInFlight()):
        with nothing_written(store):
            again = resumed(store, run.checkpoint_id, policy)
            assert again.phase == Completed({"answer": 42})
            assert again.response == {"answer": 42}
            with pytest.raises(InvalidRequest, match="is completed, not ready_for_turn"), again.turn():
                raise AssertionError
            again.complete({"answer": 42})  # its answer may have been lost
            with pytest.raises(InvalidRequest, match="is completed"):
                again.complete({"answer": 43})


def test_a_stable_run_goes_on_where_it_was(store: CheckpointStore) -> None:
    run = begun(store)
    with run.turn() as turn:
        turn.commit(state={"messages": ["one"]})
    with nothing_written(store):
        again = resumed(store, run.checkpoint_id)
    assert (again.phase, again.state) == (ReadyForTurn(), {"messages": ["one"]})
    with pytest.raises(InvalidRequest, match="no response yet"):
        _ = again.response
    with again.turn() as turn:
        assert turn.number == 2
        turn.commit(state={"messages": ["one", "two"]})
    again.complete("done")
    assert resumed(store, run.checkpoint_id).response == "done"


def test_what_is_in_flight_is_refused_with_what_is_known(store: CheckpointStore) -> None:
    effects = EffectStore(store)
    run = begun(store, effects=effects)
    with pytest.raises(KeyboardInterrupt):
        mailing_and_dying(run)
    with nothing_written(store), pytest.raises(AmbiguousResume) as refused:
        resumed(store, run.checkpoint_id)
    error = refused.value
    assert (error.checkpoint_id, error.what, error.attempt) == (run.checkpoint_id, "turn 1", 1)
    began = revisions(store, run.checkpoint_id)[1].checkpoint.updated_at
    assert abs((error.since - began).total_seconds()) < 1
    assert [(each.capability, each.state, each.attempts) for each in error.effects] == [
        ("look_up", "completed", 1),
        ("send_mail", "started", 1),
    ]
    assert "send_mail" in str(error)


def mailing_and_dying(run: AgentRun) -> None:
    with run.turn() as turn:
        turn.effect("look_up", 1, abs, effect_class=EffectClass.READ_ONLY)
        turn.effect("send_mail", 1, interrupted, effect_class=EffectClass.NON_IDEMPOTENT_WRITE)


def interrupted(_: Any) -> None:
    raise KeyboardInterrupt


def test_a_retry_repeats_the_turn_from_the_last_stable_state(store: CheckpointStore) -> None:
    run = left_in_flight(store)
    again = resumed(store, run.checkpoint_id, RetryInFlight())
    assert again.found is not None
    assert (again.found.what, again.state) == ("turn 1", {"messages": []})
    with again.turn() as turn:
        assert (turn.number, turn.attempt) == (1, 2)
        turn.commit(state={"messages": ["hello"]})
    with again.turn() as turn:
        assert (turn.number, turn.attempt) == (2, 1)
        turn.commit(state={})


def test_a_retry_is_granted_once(store: CheckpointStore) -> None:
    again = resumed(store, left_in_flight(store).checkpoint_id, RetryInFlight())
    with pytest.raises(ValueError, match="once more"), again.turn():
        raise ValueError("once more")
    with nothing_written(store), pytest.raises(StillInFlight), again.turn():
        raise AssertionError


def test_what_a_turn_that_died_has_used_is_on_record(store: CheckpointStore) -> None:
    run = left_in_flight(store)
    again = resumed(store, run.checkpoint_id, RetryInFlight())
    assert again.usage["tokens"] == 812
    with again.turn() as turn:
        turn.spend(tokens=100)
        turn.commit(state={})
    assert (again.usage["tokens"], again.usage["turns"]) == (912, 2)
    assert store.load(run.checkpoint_id).usage == again.usage


def test_the_callers_own_meter_may_know_more_but_not_less(store: CheckpointStore) -> None:
    run = left_in_flight(store)
    for policy in (Reject(), RetryInFlight()):
        with nothing_written(store), pytest.raises(InvalidRequest, match=r"usage\.tokens: is 811 where 812"):
            resumed(store, run.checkpoint_id, policy, usage={"tokens": 811})
    again = resumed(store, run.checkpoint_id, RetryInFlight(), usage={"tokens": 1000, "delegations": 2})
    assert (again.usage["tokens"], again.usage["delegations"]) == (1000, 2)
    with again.turn() as turn:
        turn.spend(tokens=1)
        with nothing_written(store), pytest.raises(InvalidRequest, match=r"usage\.tokens: is 1000 where 1001"):
            turn.commit(state={}, usage={"tokens": 1000})
        with nothing_written(store), pytest.raises(InvalidRequest, match=r"usage\.tokens"):
            turn.spend(tokens=-1)
        turn.commit(state={}, usage={"tokens": 1100})
    stored = store.load(run.checkpoint_id).usage
    assert (stored["tokens"], stored["delegations"], stored["turns"]) == (1100, 2, 2)


@pytest.mark.parametrize(
    ("changed", "sides"),
    [
        ({"agent": "refund-desk"}, ["agent is 'order-desk' in the checkpoint and 'refund-desk' here"]),
        ({"model": Model("openai", "gpt-5")}, ["model.name is 'gpt-4.1' in the checkpoint and 'gpt-5' here"]),
        ({"model": Model("azure", "gpt-4.1")}, ["model.provider is 'openai' in the checkpoint and 'azure' here"]),
        ({"definition_version": 4, "agent": "x"}, ["definition_version is 3 in the checkpoint and 4 here", "agent is 'order-desk'"]),
    ],
)
@pytest.mark.parametrize("phase", ["ready", "in flight", "completed"])
def test_another_definition_is_refused_before_anything_else_is_looked_at(
    store: CheckpointStore, changed: dict[str, Any], sides: list[str], phase: str
) -> None:
    run = left_in_flight(store) if phase == "in flight" else begun(store)
    if phase == "completed":
        run.complete("secret")
    for policy in (Reject(), RetryInFlight()):
        with nothing_written(store), pytest.raises(IdentityMismatch) as refused:
            resumed(store, run.checkpoint_id, policy, **{"agent": AGENT, "model": MODEL, "definition_version": DEFINITION, **changed})
        assert isinstance(refused.value, SchemaMismatch)
        assert all(side in str(refused.value) for side in sides)


def test_another_effect_store_is_refused(store: CheckpointStore, fresh_address: str) -> None:
    run = left_in_flight(store, effects=EffectStore(store))
    with open_store(fresh_address, actor="tester") as other:
        foreign = EffectStore(other)
        with nothing_written(store), nothing_written(other), pytest.raises(IdentityMismatch, match="effect_store") as refused:
            resumed(store, run.checkpoint_id, RetryInFlight(effects=foreign))
        assert "one that was never used" in str(refused.value)
        identity = foreign.identity()
        with nothing_written(store), pytest.raises(IdentityMismatch, match=identity):
            resumed(store, run.checkpoint_id, RetryInFlight(effects=foreign))
        with nothing_written(store), pytest.raises(IdentityMismatch, match=identity):
            resumed(store, run.checkpoint_id, effects=foreign)
        with nothing_written(store), pytest.raises(IdentityMismatch, match="None here"):
            resumed(store, run.checkpoint_id, RetryInFlight())
    with pytest.raises(IdentityMismatch, match="None in the checkpoint"):
        resumed(store, left_in_flight(store).checkpoint_id, RetryInFlight(effects=EffectStore(store)))
    assert resumed(store, run.checkpoint_id, RetryInFlight(effects=EffectStore(store))).found is not None


def test_a_state_is_the_runs_own_until_it_is_committed(store: CheckpointStore) -> None:
    mine: dict[str, Any] = {"messages": []}
    run = begun(store, state=mine)
    mine["messages"].append("before the turn")
    with run.turn() as turn:
        run.state["messages"].append("in the body")
        turn.spend(tokens=1)
        assert store.load(run.checkpoint_id).payload["state"] == {"messages": []}
        turn.commit(state=mine)
        mine["messages"].append("after the commit")
    assert run.state == store.load(run.checkpoint_id).payload["state"] == {"messages": ["before the turn"]}


def test_the_checkpoint_of_a_run_is_anybodys_to_change(store: CheckpointStore) -> None:
    """Its text is written once a turn and kept for the next: nothing of what a caller does to a payload may meet it."""
    run = begun(store)
    with run.turn() as turn:
        run.checkpoint.payload["turns"] = 7
        turn.commit(state={"n": 1})
    assert type(run.checkpoint.payload) is dict
    run.checkpoint.payload["state"]["n"] = 2
    taken = run.checkpoint
    with run.turn() as turn:
        assert store.load(run.checkpoint_id).payload["state"] == {"n": 1}
        assert run.state == {"n": 1}
        turn.commit(state={"n": 3})
    store.compare_and_swap(run.checkpoint.next({**taken.payload, "said": "by somebody else"}), run.checkpoint.revision)
    assert store.load(run.checkpoint_id).payload["said"] == "by somebody else"


@pytest.mark.parametrize("bad", [{1, 2}, float("nan"), {"x": ("a",)}, object()])
def test_what_is_not_json_is_refused_and_the_turn_can_still_end(store: CheckpointStore, bad: Any) -> None:
    north = EffectStore(store, tenant=f"t{CheckpointId.new()}")  # never used, so that its identity would be written
    with nothing_written(store), pytest.raises(InvalidPayload):
        begun(store, state=bad, effects=north, tenant=north.ledger.tenant)
    run = begun(store)
    with run.turn() as turn:
        with nothing_written(store), pytest.raises(InvalidPayload):
            turn.commit(state=bad)
        turn.commit(state={})
    with nothing_written(store), pytest.raises(InvalidPayload):
        run.complete(bad)


def test_bad_input_is_refused_by_name_and_writes_nothing(store: CheckpointStore) -> None:
    run = begun(store)
    loose = cast(Any, AgentRun)
    rest: dict[str, Any] = {"agent": AGENT, "model": MODEL, "definition_version": DEFINITION}
    with nothing_written(store):
        calls: dict[str, Callable[[], Any]] = {
            "store": lambda: loose.start("orders", state={}, **rest),
            "agent": lambda: loose.start(store, state={}, **{**rest, "agent": ""}),
            "model": lambda: loose.start(store, state={}, **{**rest, "model": "gpt-4.1"}),
            "definition_version": lambda: loose.start(store, state={}, **{**rest, "definition_version": "3"}),
            "effects": lambda: loose.start(store, state={}, effects=store, **rest),
            "tenant": lambda: loose.start(store, state={}, tenant="", **rest),
            "policy": lambda: loose.resume(store, run.checkpoint_id, policy="retry", **rest),
            "id": lambda: loose.resume(store, "no id", **rest),
        }
        for field, call in calls.items():
            with pytest.raises(InvalidRequest) as refused:
                call()
            assert refused.value.field == field
        with pytest.raises(InvalidRequest, match="is tenant default's, where the run is tenant north's"):
            loose.start(store, state={}, tenant="north", effects=EffectStore(store), **rest)
        with pytest.raises(NotFound):
            resumed(store, CheckpointId.new())


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"phase": {"state": "turn_in_flight", "turn": 7, "attempt": 1, "since_ms": 1, "effects": []}}, InvalidPayload),
        ({"phase": {"state": "paused"}}, SchemaMismatch),
        ({"turns": "none"}, InvalidPayload),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused_and_left_as_it_is(store: CheckpointStore, changes: dict[str, Any], error: Any) -> None:
    run = begun(store)
    forged = run.checkpoint.next({**run.checkpoint.payload, **changes})
    store.compare_and_swap(forged, 0)
    for policy in (Reject(), RetryInFlight()):
        with nothing_written(store), pytest.raises(error):
            resumed(store, run.checkpoint_id, policy)


def test_tenants_are_apart(store: CheckpointStore, opening: Any) -> None:
    north = opening(tenant="north")
    run = begun(north, effects=EffectStore(north))
    assert run.checkpoint.tenant == "north"
    assert resumed(store, run.checkpoint_id).phase == ReadyForTurn()
    with pytest.raises(NotFound):
        resumed(opening(tenant="south"), run.checkpoint_id)
    assert EffectStore(store, tenant="north").identity() == EffectStore(north).identity() != EffectStore(store).identity()
