"""A workflow's run: what is durable when, what a resume does, what is refused with nothing written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventlog import CheckpointStore, Conflict, InvalidRequest, SchemaMismatch
from eventlog.recovery import (
    AmbiguousResume,
    BranchCancelled,
    Completed,
    EffectClass,
    EffectStore,
    IdentityMismatch,
    Parallel,
    Race,
    Ready,
    RetryInFlight,
    Settlement,
    StillInFlight,
    WaitForTimer,
    WorkflowRun,
    steps,
)
from eventlog.recovery.boundaries import Boundary
from tests.recovery.order_runs import PAST, again, begun
from tests.recovery.samples import Lost, Outside
from tests.recovery.schemas import conforms
from tests.store.samples import nothing_written, revisions

WRITE = EffectClass.NON_IDEMPOTENT_WRITE
FANOUT = Parallel("fanout", ["stock", "credit"])
QUOTE = Race("quote", ["a", "b"])


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path / "outside")


def test_a_run_from_start_to_end(store: CheckpointStore) -> None:
    layout = ["validate", FANOUT, QUOTE, WaitForTimer("cool"), "ship"]
    flow = begun(store, *layout)
    with flow.step("validate") as step:
        assert store.load(flow.checkpoint_id).phase == "step_in_flight"
        step.spend(tokens=5)
        step.commit(output={"valid": True})
    with flow.parallel("fanout") as fanout:
        for name in fanout.remaining:
            with fanout.branch(name) as branch:
                branch.commit(output=name.upper())
    with flow.race("quote") as race, race.branch("b") as branch:
        branch.commit(output=39)
    assert flow.winner("quote") == "b"
    assert flow.wait_for_timer("cool", until=PAST)
    with flow.step(str(flow.next)) as step:
        step.commit(output="gone")
    assert flow.next is None
    flow.complete({"shipped": True})
    with nothing_written(store):
        last = again(store, flow, *layout)
        assert (last.response, last.value) == ({"shipped": True}, {"order": 7})
        assert last.outputs["fanout"] == {name: {"state": "completed", "output": name.upper()} for name in ("stock", "credit")}
        last.complete({"shipped": True})
    assert (last.usage["steps"], last.usage["tokens"]) == (5, 5)
    for each in revisions(store, flow.checkpoint_id):
        conforms("eventlog.workflow.v1", each.checkpoint.payload)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_whatever_leaves_a_body_leaves_the_step_in_flight(store: CheckpointStore, error: type[BaseException]) -> None:
    flow = begun(store, "validate")
    with pytest.raises(error), flow.step("validate"):
        raise error
    calls: list[Callable[[], object]] = [lambda: flow.step("validate").__enter__(), lambda: flow.complete(1)]
    for call in calls:
        with nothing_written(store), pytest.raises(StillInFlight):
            call()
    with nothing_written(store), pytest.raises(AmbiguousResume) as found:
        again(store, flow, "validate")
    assert (found.value.what, found.value.attempt, found.value.effects) == ("step validate", 1, ())
    repeated = again(store, flow, "validate", policy=RetryInFlight())
    with repeated.step("validate") as step:
        assert step.attempt == 2
        step.commit(output=1)
    assert store.load(flow.checkpoint_id).phase == "ready"


def test_a_body_that_ends_without_a_commit_stays_in_flight_and_says_so(store: CheckpointStore) -> None:
    flow = begun(store, FANOUT)

    def ends() -> None:
        with flow.parallel("fanout") as fanout:
            with pytest.raises(StillInFlight, match="branch stock of fanout: the body ended without commit"), fanout.branch("stock"):
                pass
            with fanout.branch("credit") as branch:
                branch.fail("declined")

    with pytest.raises(StillInFlight, match="in fanout: stock in flight"):
        ends()


def test_branches_run_in_several_threads_with_one_writer(store: CheckpointStore) -> None:
    names = [f"b{number}" for number in range(6)]
    flow = begun(store, Parallel("fanout", names), effects=EffectStore(store))
    together = threading.Barrier(len(names))
    with flow.parallel("fanout") as fanout:

        def work(name: str) -> None:
            with fanout.branch(name) as branch:
                together.wait(30)  # all are in flight at the same time
                key = f"{flow.checkpoint_id}-{name}"
                branch.commit(output=branch.effect("send", name, str.upper, effect_class=WRITE, idempotency_key=key))

        threads = [threading.Thread(target=work, args=(name,)) for name in names]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert flow.outputs["fanout"] == {name: {"state": "completed", "output": name.upper()} for name in names}
    assert flow.usage["steps"] == flow.usage["tool_calls"] == len(names)
    assert [each.checkpoint.revision for each in revisions(store, flow.checkpoint_id)] == list(range(3 * len(names) + 2))


def test_one_branch_is_begun_by_one_thread(store: CheckpointStore) -> None:
    flow = begun(store, FANOUT)
    begin, outcomes = threading.Barrier(4), []

    def work() -> None:
        begin.wait(30)
        try:
            flow.parallel("fanout").branch("stock").__enter__()
            outcomes.append("begun")
        except (InvalidRequest, StillInFlight):
            outcomes.append("refused")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(outcomes) == ["begun", *["refused"] * 3]


def test_nobody_else_enters_a_branch_whose_beginning_was_answered_just_now(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = begun(store, FANOUT)
    perform, refused = steps.perform, list[Exception]()

    def answered(step: Any) -> Any:
        answer = perform(step)
        if isinstance(step, steps.Advance) and step.boundary is Boundary.BRANCH_IN_FLIGHT and not refused:
            with pytest.raises(StillInFlight) as found:
                flow.parallel("fanout").branch("stock").__enter__()
            refused.append(found.value)
        return answer

    monkeypatch.setattr(steps, "perform", answered)
    with flow.parallel("fanout").branch("stock") as branch:
        branch.commit(output=1)
    assert len(refused) == 1


def test_only_what_is_in_flight_is_repeated(store: CheckpointStore, outside: Outside) -> None:
    flow = begun(store, Parallel("fanout", ["done", "died", "failed", "later"]))

    def dies() -> None:
        with flow.parallel("fanout") as fanout:
            for name in fanout.remaining:
                with fanout.branch(name) as branch:
                    outside.call(name)
                    if name == "died":
                        continue_in(fanout)
                        raise Lost
                    branch.commit(output=name)

    def continue_in(fanout: Any) -> None:
        with fanout.branch("failed") as branch:
            outside.call("failed")
            branch.fail("no")

    with pytest.raises(Lost):
        dies()
    with nothing_written(store), pytest.raises(AmbiguousResume, match="branch died of fanout"):
        again(store, flow, Parallel("fanout", ["done", "died", "failed", "later"]))
    flow = again(store, flow, Parallel("fanout", ["done", "died", "failed", "later"]), policy=RetryInFlight())
    with flow.parallel("fanout") as fanout:
        assert fanout.remaining == ["died", "later"]
        for done in ("done", "failed"):
            with nothing_written(store), pytest.raises(InvalidRequest, match="is not run again"):
                fanout.branch(done).__enter__()
        for name in fanout.remaining:
            with fanout.branch(name) as branch:
                outside.call(name)
                branch.commit(output=name)
    assert outside.calls() == ["done", "died", "failed", "died", "later"]


@pytest.mark.parametrize("policy", [None, RetryInFlight()], ids=["reject", "retry"])
def test_a_parallel_step_whose_branches_have_all_ended_needs_no_retry(store: CheckpointStore, policy: Any) -> None:
    flow = begun(store, FANOUT)
    for name in ("stock", "credit"):
        with flow.parallel("fanout").branch(name) as branch:
            branch.commit(output=name)
    flow = again(store, flow, FANOUT, policy=policy)
    with flow.parallel("fanout") as fanout:
        assert fanout.remaining == []
    assert flow.next is None


@pytest.mark.parametrize("policy", [None, RetryInFlight()], ids=["reject", "retry"])
def test_a_race_with_a_winner_is_not_run_again(store: CheckpointStore, policy: Any) -> None:
    flow = begun(store, QUOTE)
    race = flow.race("quote")
    with race.branch("a") as a:
        with race.branch("b") as b:
            b.commit(output=39)
        with nothing_written(store), pytest.raises(BranchCancelled, match="branch a of quote was beaten by b"):
            a.commit(output=41)
    flow = again(store, flow, QUOTE, policy=policy)
    with flow.race("quote") as race:
        assert race.remaining == []
        with nothing_written(store), pytest.raises(BranchCancelled):
            race.branch("a").__enter__()
    assert (flow.winner("quote"), flow.outputs["quote"]["a"]) == ("b", {"state": "cancelled"})


def test_a_beaten_branch_stops_before_its_next_effect(store: CheckpointStore, outside: Outside) -> None:
    flow = begun(store, QUOTE, effects=EffectStore(store))
    race = flow.race("quote")
    with race.branch("a") as a:
        with race.branch("b") as b:
            b.commit(output=39)
        with nothing_written(store), pytest.raises(BranchCancelled):
            a.effect("book", 1, lambda _: outside.call("book"), effect_class=WRITE)
    assert outside.calls() == []


def test_a_race_is_not_over_while_a_write_of_a_beaten_branch_is_unclear(store: CheckpointStore) -> None:
    effects = EffectStore(store)
    flow = begun(store, QUOTE, effects=effects)
    key = f"{flow.checkpoint_id}-book"

    def times_out(_: Any) -> None:
        raise Lost

    def won() -> None:
        with flow.race("quote") as race, race.branch("a") as a:
            with pytest.raises(Lost):
                a.effect("book", 1, times_out, effect_class=WRITE, idempotency_key=key)
            with race.branch("b") as b:
                b.commit(output=39)

    with pytest.raises(StillInFlight, match=f"book {key} started, and nobody knows how it ended"):
        won()
    effects.settle("book", key, Settlement.not_executed(), reason="asked them")
    with again(store, flow, QUOTE).race("quote"):
        pass
    assert store.load(flow.checkpoint_id).phase == "ready"


def test_a_step_ends_only_with_every_write_settled(store: CheckpointStore) -> None:
    flow = begun(store, "ship", effects=EffectStore(store))

    def times_out(_: Any) -> None:
        raise Lost

    def ships() -> None:
        with flow.step("ship") as step:
            with pytest.raises(Lost):
                step.effect("book", 1, times_out, effect_class=WRITE)
            step.commit(output="booked, I suppose")

    with pytest.raises(StillInFlight, match=r"book .* started"):
        ships()


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"workflow": "orders"}, "workflow"),
        ({"version": 3}, "version"),
        ({"layout": ["ship"]}, "layout"),
        ({"layout": ["validate"]}, "layout"),
    ],
)
def test_another_definition_is_refused_with_both_sides_before_anything_else(
    store: CheckpointStore, changed: dict[str, Any], field: str
) -> None:
    flow = begun(store, "validate", "ship")
    flow.step("validate").__enter__()
    with nothing_written(store), pytest.raises(IdentityMismatch) as refused:
        again(store, flow, "validate", "ship", **{"policy": RetryInFlight(), **changed})
    (difference,) = refused.value.differences
    assert difference.field == field
    assert str(difference.stored) in str(refused.value)
    assert str(difference.given) in str(refused.value)
    assert isinstance(refused.value, SchemaMismatch)


def test_a_foreign_effect_store_and_a_lower_usage_are_refused(store: CheckpointStore) -> None:
    effects = EffectStore(store)
    flow = begun(store, "validate", "ship", effects=effects, usage={"tokens": 5})
    without = begun_in_flight(store)
    with nothing_written(store), pytest.raises(IdentityMismatch, match="effect_store"):
        again(store, without, "validate", "ship", policy=RetryInFlight(effects=effects))
    with nothing_written(store), pytest.raises(InvalidRequest, match=r"usage\.tokens"):
        again(store, flow, "validate", "ship", usage={"tokens": 4})
    with flow.step("validate") as step:
        with nothing_written(store), pytest.raises(InvalidRequest, match=r"usage\.tokens"):
            step.commit(output=1, usage={"tokens": 4})
        step.commit(output=1, usage={"tokens": 9})
    assert again(store, flow, "validate", "ship", usage={"tokens": 10}).usage["tokens"] == 10


def begun_in_flight(store: CheckpointStore) -> WorkflowRun:
    flow = begun(store, "validate", "ship")
    flow.step("validate").__enter__()
    return flow


REFUSED: dict[str, tuple[Callable[[WorkflowRun], object], str]] = {
    "another step": (lambda flow: flow.step("ship").__enter__(), "validate is next"),
    "a step of no layout": (lambda flow: flow.step("pay").__enter__(), "validate is next"),
    "a parallel step where a step is": (lambda flow: flow.parallel("validate").__enter__(), "is a step"),
    "a wait where a step is": (lambda flow: flow.wait_for_signal("validate"), "is no WaitForSignal"),
    "the end before its time": (lambda flow: flow.complete({}), "validate was not done"),
    "renewing without a claim": (lambda flow: flow.renew(), "was not resumed with one"),
    "a body that was not entered": (lambda flow: flow.step("validate").commit(output=1), "has not begun"),
    "the winner of no race": (lambda flow: flow.winner("validate"), "is not a race that is done"),
    "a signal of no layout": (lambda flow: flow.signal("validate", 1), "is no signal in the layout"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_and_nothing_is_written(store: CheckpointStore, name: str) -> None:
    call, said = REFUSED[name]
    flow = begun(store, "validate", "ship")
    with nothing_written(store), pytest.raises(Exception, match=said) as refused:
        call(flow)
    assert refused.value.kind.name in ("INVALID_REQUEST", "INVALID_PAYLOAD")  # type: ignore[attr-defined]
    assert flow.phase == Ready()


def test_a_second_process_makes_the_first_one_stop_before_its_next_call(store: CheckpointStore, outside: Outside) -> None:
    effects = EffectStore(store)
    flow = begun(store, "ship", effects=effects)

    def ships() -> None:
        with flow.step("ship") as step:
            other = again(store, flow, "ship", policy=RetryInFlight(effects=effects))
            with other.step("ship") as taken:
                taken.commit(output="the other's")
            with nothing_written(store):
                step.effect("book", 1, lambda _: outside.call("book"), effect_class=WRITE)

    with pytest.raises(Conflict):
        ships()
    assert outside.calls() == []


def test_a_completed_run_is_replayed_and_nothing_is_called(store: CheckpointStore) -> None:
    flow = begun(store, "ship")
    with flow.step("ship") as step:
        step.commit(output=1)
    flow.complete("done")
    with nothing_written(store):
        last = again(store, flow, "ship", policy=RetryInFlight())
        assert last.phase == Completed("done")
        with pytest.raises(InvalidRequest):
            last.step("ship").__enter__()
        with pytest.raises(InvalidRequest):
            last.complete("something else")
