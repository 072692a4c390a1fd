"""Two processes that write one run: the first stops with `Conflict` before it calls anything outside again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventlog import CheckpointStore, Conflict
from eventlog.recovery import AgentRun, EffectClass, EffectStore, RetryInFlight
from tests.recovery.samples import Outside, begun, resumed
from tests.store.samples import nothing_written

READ = {"effect_class": EffectClass.READ_ONLY}


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path / "outside")


def looks_up(turn: Any, outside: Outside, key: str = "second") -> None:
    turn.effect("look_up", 1, lambda _: outside.call("look_up"), idempotency_key=f"{turn.number}-{key}-{id(outside)}", **READ)


def taken_over(store: CheckpointStore, run: AgentRun) -> AgentRun:
    """Another process has decided that the first one is dead, and repeats its turn."""
    other = resumed(store, run.checkpoint_id, RetryInFlight(effects=EffectStore(store)))
    with other.turn() as turn:
        turn.commit(state={"by": "the other"})
    return other


@pytest.mark.parametrize(
    "call",
    [
        lambda turn, outside: looks_up(turn, outside),
        lambda turn, _: turn.spend(tokens=1),
        lambda turn, _: turn.commit(state={"by": "the first"}),
    ],
    ids=["effect", "spend", "commit"],
)
def test_the_first_process_stops_before_its_next_external_call(
    store: CheckpointStore, outside: Outside, call: Callable[[Any, Outside], None]
) -> None:
    run = begun(store, effects=EffectStore(store))

    def first_process() -> None:
        with run.turn() as turn:
            looks_up(turn, outside, "first")
            taken_over(store, run)
            with nothing_written(store):
                call(turn, outside)

    with pytest.raises(Conflict) as lost:
        first_process()
    assert lost.value.checkpoint_id == run.checkpoint_id
    assert outside.calls() == ["look_up"]
    assert store.load(run.checkpoint_id).payload["state"] == {"by": "the other"}


def test_it_stops_at_its_next_turn_and_at_its_end_too(store: CheckpointStore) -> None:
    run = begun(store)
    other = resumed(store, run.checkpoint_id)
    with other.turn() as turn:
        turn.commit(state={"by": "the other"})
    for _ in range(2):
        with nothing_written(store), pytest.raises(Conflict), run.turn():
            raise AssertionError
        with nothing_written(store), pytest.raises(Conflict):
            run.complete({})


def test_of_two_that_repeat_the_same_turn_one_does(store: CheckpointStore) -> None:
    run = begun(store)
    with pytest.raises(ValueError, match="dead"), run.turn():
        raise ValueError("dead")
    one, two = (resumed(store, run.checkpoint_id, RetryInFlight()) for _ in range(2))
    with one.turn() as turn:
        with pytest.raises(Conflict), two.turn():
            raise AssertionError
        turn.commit(state={"by": "one"})


def test_of_two_runs_with_one_key_one_runs_the_effect(store: CheckpointStore, outside: Outside) -> None:
    effects = EffectStore(store)
    one, two = begun(store, effects=effects), begun(store, effects=effects)
    key = f"order-{one.checkpoint_id}"

    def charge(_: Any) -> int:
        return outside.call("charge")

    arguments: dict[str, Any] = {"effect_class": EffectClass.NON_IDEMPOTENT_WRITE, "idempotency_key": key}
    with one.turn() as first, two.turn() as second:
        assert first.effect("charge", 7, charge, **arguments) == second.effect("charge", 7, charge, **arguments) == 1
        first.commit(state={})
        second.commit(state={})
    assert outside.calls() == ["charge"]
