"""A decision that does not fit is refused and writes nothing; of two people one decides; a killed one has decided, or has not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eventlog import (
    Checkpoint,
    CheckpointError,
    CheckpointId,
    CheckpointStore,
    Conflict,
    Deleted,
    HistoryRemoved,
    InvalidRequest,
    NotFound,
    OutcomeUnknown,
    RunId,
    SchemaMismatch,
)
from eventlog.aio import AsyncCheckpointStore
from eventlog.recovery import (
    AmbiguousResume,
    AsyncDecisions,
    AsyncEffectStore,
    Decision,
    DecisionRefused,
    Decisions,
    RetryInFlight,
)
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.decided_runs import decision_made
from tests.recovery.left_runs import LeftRun
from tests.recovery.samples import Outside, begun
from tests.recovery.victims import DECISION_KILLS, Job, Victims, victims
from tests.store.samples import UNUSED_ID, initial, nothing_written, revisions

ANN: dict[str, Any] = {"actor": "ann", "reason": "the bank has one payment"}
BOB: dict[str, Any] = {"actor": "bob", "reason": "no longer wanted"}


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path / "outside")


@pytest.fixture(scope="module")
def killer() -> Iterator[Victims]:
    with victims() as made:
        yield made


def refused(store: CheckpointStore, checkpoint_id: str, decision: Decision, *, why: str) -> None:
    with nothing_written(store), pytest.raises(DecisionRefused, match=why):
        Decisions(store).resolve(checkpoint_id, decision, **ANN)
    assert Decisions(store).show(checkpoint_id).decisions[decision].startswith("refused: ")


@pytest.mark.parametrize("decision", Decision)
def test_a_run_that_is_ready_or_has_ended_has_nothing_to_decide(store: CheckpointStore, outside: Outside, decision: Decision) -> None:
    run = begun(store)
    refused(store, run.checkpoint_id, decision, why="nothing of it is in flight: it is ready_for_turn")
    run.complete("done")
    refused(store, run.checkpoint_id, decision, why="the run is completed")
    left = LeftRun(store, outside, "step")
    Decisions(store).resolve(left.id, Decision.MARK_FAILED, **ANN)
    refused(store, left.id, decision, why="the run is failed")


@pytest.mark.parametrize("decision", [Decision.RETRY, Decision.ROLL_BACK])
def test_a_run_that_waits_can_only_be_given_up(store: CheckpointStore, outside: Outside, decision: Decision) -> None:
    left = LeftRun(store, outside, "waiting")
    refused(store, left.id, decision, why="nothing of it is in flight: it is waiting for approval")


def test_what_a_resume_goes_on_with_needs_no_retry(store: CheckpointStore, outside: Outside) -> None:
    left = LeftRun(store, outside, "parallel")
    flow = left.resume(RetryInFlight(effects=left.effects))
    with flow.parallel("fanout") as fanout, fanout.branch("credit") as credit:
        credit.fail("declined")
        held = store.load(left.id)
        refused(store, held.id, Decision.RETRY, why="a resume goes on with it")


def test_what_was_decided_for_a_retry_is_not_decided_so_again_but_may_be_decided_otherwise(
    store: CheckpointStore, outside: Outside
) -> None:
    left = LeftRun(store, outside, "turn")
    Decisions(store).resolve(left.id, Decision.RETRY, **ANN)
    refused(store, left.id, Decision.RETRY, why="as ann has decided: the bank has one payment")
    Decisions(store).resolve(left.id, Decision.ROLL_BACK, **BOB)
    assert [made.actor for made in map(decision_made, (each.checkpoint for each in revisions(store, left.id))) if made] == ["ann", "bob"]


def test_what_is_no_run_is_refused(store: CheckpointStore) -> None:
    foreign = initial({"phase": "turn_in_flight"})
    store.compare_and_swap(foreign, None)
    newer = Checkpoint.initial(CheckpointId.new(), RunId.new(), "eventlog.agent", 2, {"phase": {"state": "turn_in_flight"}})
    store.compare_and_swap(newer, None)
    deleted = begun(store).checkpoint_id
    store.delete(deleted, 0)
    for where, error in ((foreign.id, SchemaMismatch), (newer.id, SchemaMismatch), (deleted, Deleted), (UNUSED_ID, NotFound)):
        for decision in Decision:
            with nothing_written(store), pytest.raises(error):
                Decisions(store).resolve(where, decision, **ANN)
        with nothing_written(store), pytest.raises(error):
            Decisions(store).show(where)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("actor", ""),
        ("actor", " "),
        ("actor", "a" * 201),
        ("actor", None),
        ("reason", ""),
        ("reason", "  "),
        ("reason", "two\nlines"),
        ("reason", "r" * 1001),
        ("expected", -1),
        ("expected", True),
        ("decision", "retry"),
    ],
)
def test_a_decision_without_a_name_or_a_reason_is_refused(store: CheckpointStore, outside: Outside, field: str, value: Any) -> None:
    left = LeftRun(store, outside, "turn")
    given: dict[str, Any] = {"decision": Decision.RETRY, **ANN, field: value}
    with nothing_written(store), pytest.raises(InvalidRequest, match=field):
        Decisions(store).resolve(left.id, **given)


def test_a_decision_about_another_revision_is_a_conflict(store: CheckpointStore, outside: Outside) -> None:
    left = LeftRun(store, outside, "turn")
    seen = store.load(left.id).revision
    Decisions(store).resolve(left.id, Decision.RETRY, **ANN, expected=seen)
    with nothing_written(store), pytest.raises(Conflict) as moved:
        Decisions(store).resolve(left.id, Decision.MARK_FAILED, **BOB, expected=seen)
    assert (moved.value.expected, moved.value.actual) == (seen, seen + 1)


def test_a_roll_back_to_what_the_log_does_not_hold_is_refused(store: CheckpointStore, outside: Outside) -> None:
    left = store.load(LeftRun(store, outside, "turn").id)
    never_stable = Checkpoint.initial(CheckpointId.new(), left.run_id, left.kind, 1, {**left.payload, "effect_store": None})
    store.compare_and_swap(never_stable, None)
    refused(store, never_stable.id, Decision.ROLL_BACK, why="it has no stable revision to go back to")
    from_elsewhere = never_stable.model_copy(update={"id": CheckpointId.new(), "revision": 7, "event_id": type(left.event_id).new()})
    store.import_revision(from_elsewhere)
    with nothing_written(store), pytest.raises(HistoryRemoved, match=r"revision 6 .* import"):
        Decisions(store).resolve(from_elsewhere.id, Decision.ROLL_BACK, **ANN)
    shown = Decisions(store).show(from_elsewhere.id)
    assert (shown.since, shown.last_stable) == (None, None)
    assert shown.removed is not None
    assert shown.decisions["roll_back"].startswith("refused: revision 6")


def test_of_people_who_decide_at_once_one_has_decided(
    store: CheckpointStore, opening: Callable[..., CheckpointStore], outside: Outside
) -> None:
    left = LeftRun(store, outside, "turn")
    seen = store.load(left.id).revision
    desks = [Decisions(store), Decisions(opening(actor="second"))]
    together = threading.Barrier(6)
    outcomes: list[Checkpoint | CheckpointError] = []

    def decide(number: int) -> None:
        together.wait()
        try:
            outcomes.append(desks[number % 2].resolve(left.id, list(Decision)[number % 3], actor=f"p{number}", reason="x", expected=seen))
        except CheckpointError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    winners = [each for each in outcomes if isinstance(each, Checkpoint)]
    assert len(winners) == 1
    assert all(isinstance(each, Conflict) for each in outcomes if each is not winners[0])
    assert store.load(left.id) == winners[0]
    assert winners[0].revision == seen + 1


@pytest.mark.parametrize("committed", [True, False])
def test_a_decision_whose_answer_was_lost_is_there_or_not(
    store: CheckpointStore, outside: Outside, breaking: Callable[..., Any], committed: bool
) -> None:
    left = LeftRun(store, outside, "turn")
    with breaking(Boundary.RUN_DECIDED, committed=committed), pytest.raises(OutcomeUnknown):
        Decisions(store).resolve(left.id, Decision.RETRY, **ANN)
    if committed:
        refused(store, left.id, Decision.RETRY, why="ann has decided")
    else:
        Decisions(store).resolve(left.id, Decision.RETRY, **ANN)
    left.work(left.resume())


@pytest.mark.parametrize("kill", DECISION_KILLS)
def test_killed_before_or_after_its_commit_a_decision_is_not_there_or_is(
    store: CheckpointStore, second_address: str, outside: Outside, killer: Victims, kill: str
) -> None:
    left = LeftRun(store, outside, "turn")
    before = store.load(left.id)
    killer.kill(Job(second_address, "default", left.id, str(outside.file), kill, "decide"))
    if kill.startswith("before"):
        assert store.load(left.id) == before
        with pytest.raises(AmbiguousResume):
            left.resume()
    else:
        assert store.load(left.id).revision == before.revision + 1
        left.work(left.resume())
        assert left.calls() == {"turn": 2, "charge": 1}


async def _decided_on_a_loop(store: CheckpointStore, left: LeftRun) -> None:
    aio = AsyncCheckpointStore(store)
    desk = AsyncDecisions(aio, effects=AsyncEffectStore(aio))
    assert await desk.show(left.id) == Decisions(store).show(left.id)
    made = await desk.resolve(left.id, Decision.RETRY, **ANN)
    assert store.load(left.id) == made
    (listed,) = [each for each in (await desk.list(limit=100_000)).runs if each.checkpoint_id == left.id]
    assert listed.decision == decision_made(made)
    with pytest.raises(DecisionRefused):
        await desk.resolve(left.id, Decision.RETRY, **ANN)


def test_on_an_event_loop_it_is_the_same(store: CheckpointStore, outside: Outside) -> None:
    import asyncio

    asyncio.run(_decided_on_a_loop(store, LeftRun(store, outside, "parallel")))


def test_the_other_kind_of_store_is_refused(store: CheckpointStore) -> None:
    with pytest.raises(InvalidRequest, match="CheckpointStore"):
        Decisions(AsyncCheckpointStore(store))
    with pytest.raises(InvalidRequest, match="AsyncCheckpointStore"):
        AsyncDecisions(store)
