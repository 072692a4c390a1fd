"""Effects: each once, as far as can be known; what cannot be known stays started until somebody says how it ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from eventlog import CheckpointStore, Deleted, EventType, InvalidPayload, InvalidRequest
from eventlog.recovery import (
    UNSTORED,
    AgentRun,
    AmbiguousEffect,
    CertainFailure,
    Effect,
    EffectClass,
    EffectFailed,
    EffectReused,
    EffectState,
    EffectStore,
    NotExecuted,
    RetryInFlight,
    Settlement,
    StillInFlight,
)
from eventlog.recovery.effect_phases import effect_id
from tests.recovery.samples import Lost, Outside, begun, resumed
from tests.recovery.schemas import conforms
from tests.store.samples import nothing_written, revisions

WRITES = (EffectClass.IDEMPOTENT_WRITE, EffectClass.NON_IDEMPOTENT_WRITE)
ORDER = {"order": 7}


class Desk:
    """A run with an effect store, and the other side that its one tool talks to."""

    def __init__(self, store: CheckpointStore, folder: Path) -> None:
        self.store = store
        self.effects = EffectStore(store)
        self.outside = Outside(folder / "outside")
        self.run = begun(store, effects=self.effects)
        self.key = f"order-{self.run.checkpoint_id}"

    def call(self, turn: Any, handler: Callable[[Any], Any] | None = None, **changes: Any) -> Any:
        arguments: dict[str, Any] = {"effect_class": EffectClass.NON_IDEMPOTENT_WRITE, "idempotency_key": self.key, **changes}
        return turn.effect("charge", arguments.pop("input", ORDER), handler or self.charge, **arguments)

    def charge(self, order: dict[str, int]) -> dict[str, int]:
        return {"charge": self.outside.call("charge"), **order}

    def lose(self, order: dict[str, int]) -> None:
        """The other side has done it; its answer is lost."""
        self.charge(order)
        raise Lost

    def leave_started(self, **changes: Any) -> None:
        """A turn whose effect has reached the other side and got no answer, and whose process then died."""
        with pytest.raises(Lost), self.run.turn() as turn:
            self.call(turn, self.lose, **changes)

    def retry(self) -> AgentRun:
        self.run = resumed(self.store, self.run.checkpoint_id, RetryInFlight(effects=self.effects))
        return self.run

    def record(self) -> Effect:
        effect = self.effects.load("charge", self.key)
        assert effect is not None
        return effect

    def stream(self) -> list[Any]:
        return revisions(self.store, effect_id("default", "charge", self.key))


@pytest.fixture
def desk(store: CheckpointStore, tmp_path: Path) -> Desk:
    return Desk(store, tmp_path)


def test_an_effect_is_prepared_started_and_completed_in_a_stream_of_its_own(desk: Desk) -> None:
    with desk.run.turn() as turn:
        assert desk.call(turn) == {"charge": 1, "order": 7}
        turn.commit(state={})
    history = desk.stream()
    assert [each.checkpoint.phase for each in history] == ["prepared", "started", "completed"]
    for each in history:
        conforms("eventlog.effect.v1", each.checkpoint.payload)
        assert each.checkpoint.run_id == desk.run.checkpoint.run_id
    effect = desk.record()
    assert (effect.input, effect.output, effect.attempts) == (ORDER, {"charge": 1, "order": 7}, 1)
    assert effect.requested_by == {"checkpoint_id": desk.run.checkpoint_id, "in": "turn 1"}


def test_a_completed_effect_is_replayed_without_being_run(desk: Desk) -> None:
    with desk.run.turn() as turn:
        first = desk.call(turn)
        with nothing_written(desk.store):
            assert desk.call(turn) == first
        turn.commit(state={})
    other = begun(desk.store, effects=desk.effects)
    with other.turn() as turn:
        with nothing_written(desk.store):
            assert desk.call(turn) == first
        turn.commit(state={})
    assert desk.outside.calls() == ["charge"]


@pytest.mark.parametrize(
    ("changes", "differs"), [({"input": {"order": 8}}, "input"), ({"effect_class": EffectClass.READ_ONLY}, "class")], ids=["input", "class"]
)
def test_the_same_key_for_something_else_is_refused(desk: Desk, changes: dict[str, Any], differs: str) -> None:
    with desk.run.turn() as turn:
        desk.call(turn)
        with nothing_written(desk.store), pytest.raises(EffectReused) as refused:
            desk.call(turn, **changes)
        assert (refused.value.differs, refused.value.state) == (differs, "completed")
        turn.commit(state={})
    assert desk.outside.calls() == ["charge"]


def test_an_uncertain_failure_stays_started_and_the_turn_in_flight(desk: Desk) -> None:
    run = desk.run
    with pytest.raises(StillInFlight, match=r"charge .* started, and nobody knows"):
        ignoring_the_error(desk)
    assert desk.record().state is EffectState.STARTED
    assert desk.store.load(run.checkpoint_id).phase == "turn_in_flight"


def ignoring_the_error(desk: Desk) -> None:
    """What an agent does that takes every error of a tool for an answer of it."""
    with desk.run.turn() as turn:
        with pytest.raises(Lost):
            desk.call(turn, desk.lose)
        turn.commit(state={"messages": ["the tool has failed"]})


def test_what_a_handler_raises_of_another_effect_says_nothing_about_its_own(desk: Desk) -> None:
    def nested(_: dict[str, int]) -> None:
        desk.outside.call("charge")
        raise EffectFailed("another", capability="another", idempotency_key="another", message="declined")

    def turn_of(run: AgentRun) -> None:
        with run.turn() as turn:
            with pytest.raises(EffectFailed):
                desk.call(turn, nested)
            turn.commit(state={"messages": ["declined"]})

    with pytest.raises(StillInFlight, match="charge"):
        turn_of(desk.run)
    assert desk.record().state is EffectState.STARTED


def test_a_read_without_an_answer_does_not_keep_a_turn_from_its_end(desk: Desk) -> None:
    with desk.run.turn() as turn:
        with pytest.raises(Lost):
            desk.call(turn, desk.lose, effect_class=EffectClass.READ_ONLY)
        turn.commit(state={"messages": ["no answer"]})
    assert desk.record().state is EffectState.STARTED


@pytest.mark.parametrize("effect_class", EffectClass)
def test_a_started_effect_is_run_again_only_by_a_retry_and_only_if_its_class_allows(desk: Desk, effect_class: EffectClass) -> None:
    desk.leave_started(effect_class=effect_class)
    other = begun(desk.store, effects=desk.effects)
    with pytest.raises(AmbiguousEffect), other.turn() as turn:  # not the run that has announced it
        desk.call(turn, effect_class=effect_class)
    assert desk.outside.calls() == ["charge"]
    if effect_class is EffectClass.NON_IDEMPOTENT_WRITE:
        with pytest.raises(AmbiguousEffect, match="could do it twice"), desk.retry().turn() as turn:
            desk.call(turn)
        assert desk.outside.calls() == ["charge"]
    else:
        with desk.retry().turn() as turn:
            assert desk.call(turn, effect_class=effect_class)["charge"] == 2
            turn.commit(state={})
        assert desk.record().attempts == 2


def test_an_idempotent_write_needs_a_key(desk: Desk) -> None:
    with pytest.raises(InvalidRequest, match="idempotency_key: is needed"), desk.run.turn() as turn:
        desk.call(turn, effect_class=EffectClass.IDEMPOTENT_WRITE, idempotency_key=None)


@pytest.mark.parametrize("outcome", ["completed", "failed", "not executed", "unknown"])
def test_a_reconciler_says_how_a_started_effect_has_ended(desk: Desk, outcome: str) -> None:
    desk.leave_started()
    seen: list[Effect] = []

    def reconcile(effect: Effect) -> Settlement:
        seen.append(effect)
        return {
            "completed": Settlement.completed({"charge": 1}),
            "failed": Settlement.failed("declined"),
            "not executed": Settlement.not_executed(),
            "unknown": Settlement.unknown(),
        }[outcome]

    again = desk.retry()
    if outcome == "unknown":
        with pytest.raises(AmbiguousEffect), again.turn() as turn:
            desk.call(turn, reconcile=reconcile)
    elif outcome == "failed":
        with again.turn() as turn:
            with pytest.raises(EffectFailed, match="declined"):
                desk.call(turn, reconcile=reconcile)
            turn.commit(state={})
    else:
        with again.turn() as turn:
            assert desk.call(turn, reconcile=reconcile)["charge"] == (1 if outcome == "completed" else 2)
            turn.commit(state={})
    assert desk.outside.calls() == ["charge"] * (2 if outcome == "not executed" else 1)
    assert [each.input for each in seen] == [ORDER]
    assert desk.record().state.value == {"unknown": "started", "failed": "failed"}.get(outcome, "completed")
    if outcome == "completed":
        assert desk.record().settlement == {"by": "reconciler"}
    for each in desk.stream():
        conforms("eventlog.effect.v1", each.checkpoint.payload)


def test_an_idempotent_write_whose_reconciler_does_not_know_is_run_again(desk: Desk) -> None:
    desk.leave_started(effect_class=EffectClass.IDEMPOTENT_WRITE)
    with desk.retry().turn() as turn:
        assert desk.call(turn, effect_class=EffectClass.IDEMPOTENT_WRITE, reconcile=lambda _: Settlement.unknown())["charge"] == 2
        turn.commit(state={})


def test_a_reconciler_that_answers_something_else_is_refused(desk: Desk) -> None:
    desk.leave_started()
    with pytest.raises(InvalidRequest, match="must return a Settlement, not bool"), desk.retry().turn() as turn:
        desk.call(turn, reconcile=lambda _: cast(Any, True))
    assert desk.record().state is EffectState.STARTED


def test_a_certain_failure_is_on_record_and_fails_again_without_being_run(desk: Desk) -> None:
    def declined(order: dict[str, int]) -> None:
        desk.charge(order)
        raise CertainFailure("card declined")

    with desk.run.turn() as turn:
        with pytest.raises(EffectFailed, match="card declined") as failed:
            desk.call(turn, declined)
        assert isinstance(failed.value.__cause__, CertainFailure)
        with nothing_written(desk.store), pytest.raises(EffectFailed, match="card declined"):
            desk.call(turn)
        turn.commit(state={"messages": ["declined"]})
    assert desk.record().state is EffectState.FAILED
    assert desk.outside.calls() == ["charge"]


def test_what_for_certain_did_not_happen_may_be_started_again(desk: Desk) -> None:
    def unreachable(_: dict[str, int]) -> None:
        raise NotExecuted("no route")

    with desk.run.turn() as turn:
        with pytest.raises(NotExecuted):
            desk.call(turn, unreachable)
        assert desk.record().state is EffectState.PREPARED
        assert desk.call(turn)["charge"] == 1
        turn.commit(state={})
    assert desk.record().attempts == 2


def test_a_person_settles_what_nobody_else_can_with_actor_and_reason(desk: Desk) -> None:
    desk.leave_started()
    with pytest.raises(InvalidRequest, match="settles nothing"):
        desk.effects.settle("charge", desk.key, Settlement.unknown(), reason="x")
    settled = desk.effects.settle("charge", desk.key, Settlement.completed({"charge": 1}), reason="seen on the statement")
    assert settled == desk.record()
    assert settled.settlement == {"by": "person", "reason": "seen on the statement"}
    assert (desk.stream()[-1].actor, desk.stream()[-1].type) == ("tester", EventType.REVISION)
    with pytest.raises(InvalidRequest, match="is completed; only a started one"):
        desk.effects.settle("charge", desk.key, Settlement.not_executed(), reason="x")
    with desk.retry().turn() as turn:
        assert desk.call(turn) == {"charge": 1}
        turn.commit(state={})
    assert desk.outside.calls() == ["charge"]


def test_a_repeated_turn_cannot_leave_a_write_of_its_first_attempt_behind(desk: Desk) -> None:
    desk.leave_started()
    with pytest.raises(StillInFlight, match="charge"), desk.retry().turn() as turn:
        turn.commit(state={"messages": ["the model did not ask for it this time"]})
    desk.effects.settle("charge", desk.key, Settlement.not_executed(), reason="asked the bank")
    with desk.retry().turn() as turn:
        turn.commit(state={})


def test_output_and_input_may_be_on_record_by_their_digests_only(desk: Desk) -> None:
    with desk.run.turn() as turn:
        assert desk.call(turn, digest_only=True) == {"charge": 1, "order": 7}
        with pytest.raises(InvalidRequest, match="only the digest is on record"):
            desk.call(turn, digest_only=True)
        assert desk.call(turn, digest_only=True, recall=lambda _: {"order": 7, "charge": 1}) == {"charge": 1, "order": 7}
        with pytest.raises(InvalidRequest, match="another output"):
            desk.call(turn, digest_only=True, recall=lambda _: {"order": 7, "charge": 2})
        turn.commit(state={})
    effect = desk.record()
    assert effect.input is effect.output is UNSTORED
    for each in desk.stream():
        conforms("eventlog.effect.v1", each.checkpoint.payload)
        assert "input" not in each.checkpoint.payload
        assert "output" not in each.checkpoint.payload
    assert desk.outside.calls() == ["charge"]


def test_a_handler_gets_the_input_and_its_output_must_be_json(desk: Desk) -> None:
    with pytest.raises(InvalidPayload), desk.run.turn() as turn:
        desk.call(turn, lambda order: {desk.charge(order)["charge"]})
    assert desk.record().state is EffectState.STARTED  # it has happened, and what came of it is not on record


def test_effects_without_a_key_are_of_their_place_in_the_turn(desk: Desk) -> None:
    def count(turn: Any) -> int:
        return int(desk.call(turn, idempotency_key=None)["charge"])

    def three(run: AgentRun, last: Callable[[Any], Any]) -> None:
        with run.turn() as turn:
            assert [count(turn), count(turn)] == [1, 2]
            desk.call(turn, last, idempotency_key=None)

    with pytest.raises(Lost):
        three(desk.run, desk.lose)
    with pytest.raises(AmbiguousEffect):
        three(desk.retry(), desk.charge)
    assert desk.outside.calls() == ["charge"] * 3


def test_effects_of_other_tenants_and_capabilities_are_others() -> None:
    ids = {effect_id(tenant, capability, key) for tenant in ("a", "b") for capability in ("x", "y") for key in ("1", "2")}
    assert len(ids) == 8
    assert effect_id("default", "charge_card", "order-7") == "41d85b78-1a4e-8c31-bb8a-e07df59a3bcc"  # for ever


def test_a_deleted_effect_is_not_taken_for_one_that_never_was(desk: Desk) -> None:
    desk.leave_started()
    stream = desk.stream()
    desk.store.delete(stream[-1].checkpoint.id, stream[-1].checkpoint.revision)
    again = desk.retry()
    assert again.found is not None
    assert [each.state for each in again.found.effects] == ["deleted"]
    with pytest.raises(Deleted), again.turn() as turn:
        desk.call(turn)
    assert desk.outside.calls() == ["charge"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"idempotency_key": "x" * 501}, "idempotency_key"),
        ({"idempotency_key": "a\nb"}, "idempotency_key"),
        ({"effect_class": "pure"}, "effect_class"),
        ({"reconcile": True}, "reconcile"),
        ({"recall": "x"}, "recall"),
    ],
)
def test_a_malformed_effect_is_refused_by_name_and_nothing_is_written(desk: Desk, changes: dict[str, Any], field: str) -> None:
    with desk.run.turn() as turn:
        with nothing_written(desk.store), pytest.raises(InvalidRequest) as refused:
            desk.call(turn, **changes)
        assert refused.value.field == field
        with nothing_written(desk.store), pytest.raises(InvalidRequest, match="handler"):
            turn.effect("charge", ORDER, cast(Any, None), effect_class=EffectClass.PURE)
        with nothing_written(desk.store), pytest.raises(InvalidRequest, match="capability"):
            turn.effect("", ORDER, desk.charge, effect_class=EffectClass.PURE)
        with nothing_written(desk.store), pytest.raises(InvalidPayload):
            desk.call(turn, input={1, 2})
        turn.commit(state={})
    assert desk.outside.calls() == []


def test_a_run_without_an_effect_store_has_no_effects(store: CheckpointStore) -> None:
    run = begun(store)
    with run.turn() as turn:
        with nothing_written(store), pytest.raises(InvalidRequest, match="no effect store"):
            turn.effect("charge", ORDER, abs, effect_class=EffectClass.PURE)
        turn.commit(state={})


def test_an_async_handler_is_refused_before_anything_is_written(desk: Desk) -> None:
    async def charge(_: dict[str, int]) -> None:
        raise AssertionError

    with desk.run.turn() as turn:
        with nothing_written(desk.store), pytest.raises(InvalidRequest, match="handler: is async"):
            desk.call(turn, charge)
        turn.commit(state={})
