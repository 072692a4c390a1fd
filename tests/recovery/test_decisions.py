"""What a person decides about a run that was left in flight is one more revision, and exactly what a resume then does follows from it."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from eventlog import CheckpointStore, Conflict, create_store, open_store
from eventlog.recovery import (
    AmbiguousEffect,
    AmbiguousResume,
    Claims,
    Decision,
    DecisionRefused,
    Decisions,
    EffectClass,
    EffectStore,
    IdentityMismatch,
    Policy,
    Reject,
    RetryInFlight,
    RunFailed,
    Settlement,
)
from eventlog.recovery.decided_runs import decision_made
from tests.recovery.left_runs import IN_FLIGHT, WHAT, LeftRun
from tests.recovery.samples import Lost, Outside
from tests.recovery.schemas import conforms
from tests.store.samples import nothing_written, revisions

ANN: dict[str, Any] = {"actor": "ann", "reason": "the bank has one payment"}
BODIES = {"turn": "turn", "step": "ship", "parallel": "credit", "race": "post"}


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path / "outside")


def policies(left: LeftRun) -> dict[str, Policy]:
    return {"reject": Reject(), "retry": RetryInFlight(effects=left.effects)}


def decided(left: LeftRun, decision: Decision) -> None:
    """The decision is made, is the only thing that was written, and has cost the run nothing."""
    before = left.store.load(left.id)
    after = Decisions(left.store).resolve(left.id, decision, **ANN)
    assert left.store.load(left.id) == after
    assert (after.revision, after.usage) == (before.revision + 1, before.usage)
    made = decision_made(after)
    assert made is not None
    assert (made.choice, made.actor, made.reason, made.revision, made.what) == (decision, *ANN.values(), before.revision, WHAT[left.phase])
    for each in revisions(left.store, left.id):
        conforms(f"{each.checkpoint.kind}.v1", each.checkpoint.payload)
    assert [decision_made(each.checkpoint) is not None for each in revisions(left.store, left.id)] == [False] * after.revision + [True]


@pytest.mark.parametrize("policy", ["reject", "retry"])
@pytest.mark.parametrize("phase", IN_FLIGHT)
def test_a_decided_retry_repeats_exactly_what_was_in_flight(store: CheckpointStore, outside: Outside, phase: str, policy: str) -> None:
    left = LeftRun(store, outside, phase)
    usage = left.run.usage
    with pytest.raises(AmbiguousResume):
        left.resume()
    decided(left, Decision.RETRY)
    with nothing_written(store):
        again = left.resume(policies(left)[policy])
    assert (again.found.what, again.found.attempt) == (WHAT[phase], 1)
    left.work(again)
    others = {"stock": 1} if phase == "parallel" else {}
    assert left.calls() == {BODIES[phase]: 2, "charge": 1, **others}
    ended = left.resume()
    assert ended.response == "done"
    assert all(ended.usage[name] >= value for name, value in usage.items())
    assert ended.usage["turns" if phase == "turn" else "steps"] == (3 if phase == "parallel" else 2)


@pytest.mark.parametrize("policy", ["reject", "retry"])
@pytest.mark.parametrize("phase", IN_FLIGHT)
def test_a_roll_back_commits_the_last_stable_revision_once_more(store: CheckpointStore, outside: Outside, phase: str, policy: str) -> None:
    left = LeftRun(store, outside, phase)
    decided(left, Decision.ROLL_BACK)
    first, now = revisions(store, left.id)[0].checkpoint.payload, store.load(left.id).payload
    assert {**now, "phase": {"state": now["phase"]["state"]}} == first
    with nothing_written(store):
        again = left.resume(policies(left)[policy])
    assert again.found is None
    left.work(again)
    others = {"stock": 2} if phase == "parallel" else {}
    assert left.calls() == {BODIES[phase]: 2, "charge": 1, **others}
    assert left.resume().response == "done"
    begun_ones = {"turns": 2, "tokens": 200} if phase == "turn" else {"steps": {"step": 2, "parallel": 4, "race": 2}[phase]}
    assert begun_ones.items() <= left.resume().usage.items()


@pytest.mark.parametrize("policy", ["reject", "retry"])
@pytest.mark.parametrize("phase", [*IN_FLIGHT, "waiting"])
def test_a_run_marked_failed_is_never_gone_on_with(store: CheckpointStore, outside: Outside, phase: str, policy: str) -> None:
    left = LeftRun(store, outside, phase)
    calls = left.calls()
    decided(left, Decision.MARK_FAILED)
    with nothing_written(store), pytest.raises(RunFailed, match="ann in revision") as failed:
        left.resume(policies(left)[policy])
    assert (failed.value.reason, failed.value.what) == (ANN["reason"], WHAT[phase])
    assert decision_made(store.load(left.id, revision=failed.value.revision)) is not None
    assert [each["capability"] for each in store.load(left.id).payload["phase"]["effects"]] == (["charge"] if phase != "waiting" else [])
    other: dict[str, Any] = {"definition_version" if phase == "turn" else "version": 9}
    with nothing_written(store), pytest.raises(IdentityMismatch):
        left.resume(**other)
    assert left.calls() == calls


def test_what_is_shown_of_a_run_follows_it_through_its_life(store: CheckpointStore, outside: Outside) -> None:
    left, desk = LeftRun(store, outside, "turn"), Decisions(store)
    shown = desk.show(left.id)
    assert (shown.what, shown.last_stable and shown.last_stable.revision) == ("turn 1", 0)
    assert shown.since == store.load_revision(left.id, revision=1).recorded_at
    assert shown.usage == store.load(left.id).usage
    desk.resolve(left.id, Decision.ROLL_BACK, **ANN)
    rolled = desk.show(left.id)
    assert (rolled.since, rolled.effects) == (None, ())
    assert rolled.last_stable == rolled.latest
    assert rolled.decision is not None
    assert rolled.policies["Reject"] == "goes on: the run is ready_for_turn"
    left.work(left.resume())
    ended = desk.show(left.id)
    assert (ended.what, ended.since, ended.last_stable, ended.decision) == ("completed", None, None, None)
    assert set(ended.policies.values()) == {"gives the stored response; nothing is called or written"}
    given_up = LeftRun(store, outside, "step")
    desk.resolve(given_up.id, Decision.MARK_FAILED, **ANN)
    failed = desk.show(given_up.id)
    assert (failed.since, failed.last_stable) == (None, None)
    assert [each.effect.state for each in failed.effects] == ["completed"]
    assert set(failed.policies.values()) == {"refuses: RunFailed, as ann has decided"}


@pytest.mark.parametrize("phase", IN_FLIGHT)
def test_a_decided_retry_is_good_for_one_repetition(store: CheckpointStore, outside: Outside, phase: str) -> None:
    left = LeftRun(store, outside, phase)
    decided(left, Decision.RETRY)
    with contextlib.suppress(Lost):
        left.work(left.resume(), leave=True)
    with nothing_written(store), pytest.raises(AmbiguousResume) as found:
        left.resume()
    assert found.value.attempt == 2
    assert left.calls()[BODIES[phase]] == 2


def test_a_retry_of_one_branch_leaves_the_decision_about_the_other(store: CheckpointStore, outside: Outside) -> None:
    left = LeftRun(store, outside, "race")
    flow = left.resume(RetryInFlight(effects=left.effects))
    with contextlib.suppress(Lost), flow.race("quote") as race, race.branch("courier"):
        raise Lost
    Decisions(store).resolve(left.id, Decision.RETRY, **ANN)
    with contextlib.suppress(Lost), left.resume().race("quote") as race, race.branch("courier"):
        raise Lost
    branches = store.load(left.id).payload["phase"]["branches"]
    assert {name: "decision" in each for name, each in branches.items()} == {"post": True, "courier": False}
    with pytest.raises(AmbiguousResume):
        left.resume()
    again = Decisions(store).resolve(left.id, Decision.RETRY, actor="bob", reason="the courier too").payload["phase"]["branches"]
    assert {name: each["decision"]["actor"] for name, each in again.items()} == {"post": "ann", "courier": "bob"}
    left.work(left.resume())
    conforms("eventlog.workflow.v1", again and store.load(left.id).payload)


@pytest.mark.parametrize("phase", IN_FLIGHT)
def test_whoever_still_holds_the_run_conflicts_before_it_calls_anything(store: CheckpointStore, outside: Outside, phase: str) -> None:
    left = LeftRun(store, outside, phase)
    holder = left.resume(RetryInFlight(effects=left.effects))
    Decisions(store).resolve(left.id, Decision.RETRY, **ANN)
    calls = left.calls()
    with pytest.raises(Conflict):
        left.work(holder)
    assert left.calls() == calls


def test_an_idempotent_write_without_an_answer_is_run_again_by_a_retry_and_refused_after_a_roll_back(
    store: CheckpointStore, outside: Outside
) -> None:
    retried, rolled = (LeftRun(store, outside, "turn", answered=False) for _ in range(2))
    Decisions(store).resolve(retried.id, Decision.RETRY, **ANN)
    retried.work(retried.resume())
    assert outside.calls().count("charge") == 3
    Decisions(store).resolve(rolled.id, Decision.ROLL_BACK, **ANN)
    with pytest.raises(AmbiguousEffect):
        rolled.work(rolled.resume())
    assert outside.calls().count("charge") == 3
    rolled.effects.settle("charge", rolled.key, Settlement.completed({"charged": 7}), reason="seen", actor="ann")
    Decisions(store).resolve(rolled.id, Decision.RETRY, **ANN)
    rolled.work(rolled.resume())
    assert outside.calls().count("charge") == 3
    assert rolled.resume().state == {"charged": 7}


@pytest.mark.parametrize(("truth", "charged"), [(Settlement.completed({"charged": 7}), 1), (Settlement.not_executed(), 2)])
@pytest.mark.parametrize("phase", IN_FLIGHT)
def test_a_retry_waits_until_a_person_has_settled_what_could_happen_twice(
    store: CheckpointStore, outside: Outside, phase: str, truth: Settlement, charged: int
) -> None:
    left = LeftRun(store, outside, phase, how=EffectClass.NON_IDEMPOTENT_WRITE, answered=False)
    with nothing_written(store), pytest.raises(DecisionRefused, match=f"charge {left.key} \\(started\\)") as refused:
        Decisions(store).resolve(left.id, Decision.RETRY, **ANN)
    assert [each.idempotency_key for each in refused.value.effects] == [left.key]
    settled = left.effects.settle("charge", left.key, truth, reason="asked the bank", actor="ann")
    assert settled.settlement == {"by": "person", "reason": "asked the bank", "actor": "ann"}
    conforms("eventlog.effect.v1", settled.payload())
    decided(left, Decision.RETRY)
    left.work(left.resume())
    assert left.calls()["charge"] == charged
    assert left.resume().response == "done"


@pytest.mark.parametrize("phase", ["turn", "step"])
def test_a_decided_retry_needs_the_effect_store_that_the_run_names(
    store: CheckpointStore, outside: Outside, tmp_path: Path, phase: str
) -> None:
    create_store(tmp_path / "effects")
    with open_store(tmp_path / "effects", actor="tester") as other:
        elsewhere = EffectStore(other)
        left = LeftRun(store, outside, phase, how=EffectClass.NON_IDEMPOTENT_WRITE, effects=elsewhere)
        with nothing_written(store), pytest.raises(DecisionRefused, match=r"\(unknown\)"):
            Decisions(store).resolve(left.id, Decision.RETRY, **ANN)
        Decisions(store, effects=elsewhere).resolve(left.id, Decision.RETRY, **ANN)
        with nothing_written(store), pytest.raises(IdentityMismatch, match="effect_store"):
            left.resume()
        left.work(left.resume(effects=elsewhere))
        assert left.calls() == {BODIES[phase]: 2, "charge": 1}


def test_a_decision_takes_the_run_from_its_owner_and_lets_the_next_worker_have_it(store: CheckpointStore, outside: Outside) -> None:
    left = LeftRun(store, outside, "step")
    claim = Claims(store, owner="worker-1", lease=timedelta(hours=1)).claim(left.id)
    for decision in (Decision.RETRY, Decision.ROLL_BACK):
        Decisions(store).resolve(left.id, decision, **ANN)
        payload = store.load(left.id).payload
        assert (payload["owner"], payload["fencing_token"]) == (None, claim.token)
    decider = Claims(store, owner="worker-2", lease=timedelta(hours=1))
    mine = decider.claim(left.id)
    assert mine.token == claim.token + 1
    left.work(left.resume(claim=mine))


def test_a_worker_takes_a_run_that_a_person_has_decided_to_retry(fresh_address: str, outside: Outside) -> None:
    with open_store(fresh_address, actor="tester") as store:
        left = LeftRun(store, outside, "step")
        worker = Claims(store, owner="worker-1", lease=timedelta(hours=1))
        worker.release(worker.claim(left.id))
        assert worker.next_claimable() is None
        Decisions(store).resolve(left.id, Decision.RETRY, **ANN)
        claim = worker.next_claimable()
        assert claim is not None
        left.work(left.resume(claim=claim))
        assert left.resume().response == "done"
