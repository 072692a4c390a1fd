"""A write whose outcome is unknown: nothing goes on before it is known what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eventlog import CheckpointStore, Conflict, OutcomeUnknown, Unavailable
from eventlog.recovery import Completed, EffectClass, EffectState, EffectStore, ReadyForTurn, RetryInFlight, StillInFlight
from eventlog.recovery.boundaries import Boundary
from tests.recovery.samples import Outside, begun, phases, resumed
from tests.store.samples import nothing_written

COMMITTED = pytest.mark.parametrize("committed", [True, False], ids=["committed", "not committed"])


@COMMITTED
def test_a_turn_whose_beginning_is_unclear_begins_once_it_is_known(store: CheckpointStore, breaking: Any, committed: bool) -> None:
    run = begun(store)
    with breaking(Boundary.TURN_IN_FLIGHT, committed=committed), pytest.raises(OutcomeUnknown), run.turn():
        raise AssertionError("the body must not run")
    with run.turn() as turn:
        assert (turn.number, turn.attempt) == (1, 1)
        turn.commit(state={})
    assert phases(store, run.checkpoint_id) == ["ready_for_turn", "turn_in_flight", "ready_for_turn"]
    assert run.usage["turns"] == 1


@COMMITTED
def test_a_turn_whose_end_is_unclear_has_ended_before_the_next_begins(store: CheckpointStore, breaking: Any, committed: bool) -> None:
    run = begun(store)
    with breaking(Boundary.TURN_STABLE, committed=committed), pytest.raises(OutcomeUnknown), run.turn() as turn:
        turn.commit(state={"turns": 1})
    with run.turn() as turn:
        assert (turn.number, run.state) == (2, {"turns": 1})
        turn.commit(state={"turns": 2})
    assert len(phases(store, run.checkpoint_id)) == 5


@COMMITTED
def test_an_end_that_is_unclear_is_asked_for_again(store: CheckpointStore, breaking: Any, committed: bool) -> None:
    run = begun(store)
    with breaking(Boundary.AGENT_COMPLETED, committed=committed), pytest.raises(OutcomeUnknown):
        run.complete("done")
    run.complete("done")
    assert run.phase == resumed(store, run.checkpoint_id).phase == Completed("done")
    assert phases(store, run.checkpoint_id) == ["ready_for_turn", "completed"]


@COMMITTED
def test_what_was_spent_unclearly_is_on_record_once(store: CheckpointStore, breaking: Any, committed: bool) -> None:
    run = begun(store)
    with run.turn() as turn:
        with breaking(Boundary.USAGE_SPENT, committed=committed), pytest.raises(OutcomeUnknown):
            turn.spend(tokens=5)
        turn.spend(tokens=7)
        turn.commit(state={})
    assert store.load(run.checkpoint_id).usage["tokens"] == 12


def test_a_run_that_another_process_took_meanwhile_is_lost(store: CheckpointStore, breaking: Any) -> None:
    run = begun(store)
    with breaking(Boundary.TURN_IN_FLIGHT, committed=False), pytest.raises(OutcomeUnknown), run.turn():
        raise AssertionError
    with resumed(store, run.checkpoint_id).turn() as turn:
        turn.commit(state={"by": "another"})
    for _ in range(2):
        with nothing_written(store), pytest.raises(Conflict), run.turn():
            raise AssertionError


def test_while_it_stays_unclear_nothing_goes_on(store: CheckpointStore, breaking: Any) -> None:
    run = begun(store)
    for _ in range(3):
        with breaking(Boundary.TURN_IN_FLIGHT, committed=False), pytest.raises(OutcomeUnknown), run.turn():
            raise AssertionError
    with run.turn() as turn:
        turn.commit(state={})
    assert len(phases(store, run.checkpoint_id)) == 3


@COMMITTED
def test_a_write_that_was_interrupted_is_as_unclear(store: CheckpointStore, breaking: Any, committed: bool) -> None:
    run = begun(store)
    interrupted = breaking(Boundary.TURN_STABLE, committed=committed, error=lambda _: KeyboardInterrupt())
    with interrupted, pytest.raises(KeyboardInterrupt), run.turn() as turn:
        turn.commit(state={"turns": 1})
    run.complete("done")
    assert resumed(store, run.checkpoint_id).state == {"turns": 1}


def test_what_was_certainly_not_written_is_as_if_it_had_not_been_tried(store: CheckpointStore, breaking: Any) -> None:
    run = begun(store)

    def unavailable(_: Any) -> Unavailable:
        return Unavailable("here", "no broker")

    with breaking(Boundary.TURN_IN_FLIGHT, committed=False, error=unavailable), pytest.raises(Unavailable), run.turn():
        raise AssertionError
    assert run.phase == ReadyForTurn()
    with run.turn() as turn:
        with breaking(Boundary.TURN_STABLE, committed=False, error=unavailable), pytest.raises(Unavailable):
            turn.commit(state=1)
        turn.commit(state=2)
    assert resumed(store, run.checkpoint_id).state == 2


@COMMITTED
@pytest.mark.parametrize(
    "boundary", [Boundary.EFFECT_ANNOUNCED, Boundary.EFFECT_PREPARED, Boundary.EFFECT_STARTED, Boundary.EFFECT_COMPLETED]
)
def test_an_effect_whose_state_is_unclear_is_never_run_on_a_guess(
    store: CheckpointStore, breaking: Any, tmp_path: Path, boundary: Boundary, committed: bool
) -> None:
    outside, effects = Outside(tmp_path / "outside"), EffectStore(store)
    run = begun(store, effects=effects)
    arguments: dict[str, Any] = {"effect_class": EffectClass.NON_IDEMPOTENT_WRITE, "idempotency_key": f"x-{run.checkpoint_id}"}

    def charge(_: Any) -> int:
        return outside.call("charge")

    def ignoring() -> None:
        with run.turn() as turn:
            with breaking(boundary, committed=committed), pytest.raises(OutcomeUnknown):
                turn.effect("charge", 7, charge, **arguments)
            turn.commit(state={"messages": ["went on all the same"]})

    called = boundary is Boundary.EFFECT_COMPLETED
    left_started = (boundary, committed) in {(Boundary.EFFECT_STARTED, True), (Boundary.EFFECT_COMPLETED, False)}
    if left_started:
        with pytest.raises(StillInFlight, match="charge"):
            ignoring()
        again = resumed(store, run.checkpoint_id, RetryInFlight(effects=effects))
        assert again.found is not None
        assert [each.state for each in again.found.effects] == ["started"]
    else:
        ignoring()
    assert outside.calls() == ["charge"] * called
    effect = effects.load("charge", arguments["idempotency_key"])
    if boundary is Boundary.EFFECT_COMPLETED and committed:
        assert effect is not None
        assert effect.state is EffectState.COMPLETED
