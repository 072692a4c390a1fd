"""Who owns a run: claiming is a revision, a late owner conflicts, and a lease ends by the log's clock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eventlog import CheckpointId, CheckpointStore, Conflict, InvalidRequest, NotFound, checkpoint
from eventlog.recovery import (
    AlreadyOwned,
    AmbiguousResume,
    Claim,
    Claims,
    EffectClass,
    EffectStore,
    NotOwner,
    NotWaiting,
    RetryInFlight,
    WaitForSignal,
    WaitForTimer,
    WorkflowRun,
    send_signal,
    steps,
)
from eventlog.recovery.log_clock import LogClock
from eventlog.recovery.workflow_record import WorkflowRecord
from tests.recovery.order_runs import claimed, once
from tests.recovery.samples import as_checkpoint
from tests.store.samples import nothing_written, revisions
from tests.waiting import eventually

IDENTITY: dict[str, Any] = {"workflow": "order", "version": 2, "layout": ["validate", WaitForSignal("ok"), "ship"]}
LONG, SHORT = timedelta(hours=1), timedelta(milliseconds=1)


@pytest.fixture
def tenant_store(opening: Any) -> CheckpointStore:
    """A store in which there is nothing to take but what the test has put there."""
    store: CheckpointStore = opening(tenant=f"t{CheckpointId.new()}")
    return store


def accepted(store: CheckpointStore, **fields: Any) -> WorkflowRun:
    return WorkflowRun.start(store, value=7, **{**IDENTITY, **fields})


def resumed(store: CheckpointStore, claim: Claim, **fields: Any) -> WorkflowRun:
    return WorkflowRun.resume(store, claim.checkpoint_id, claim=claim, **IDENTITY, **fields)


def validate(flow: WorkflowRun) -> None:
    with flow.step("validate") as step:
        step.commit(output=1)


def test_a_claim_is_a_revision_with_owner_and_token(store: CheckpointStore) -> None:
    flow = accepted(store)
    claim = Claims(store, owner="worker-1", lease=LONG).claim(flow.checkpoint_id)
    assert (claim.checkpoint_id, claim.owner, claim.token) == (flow.checkpoint_id, "worker-1", 1)
    last = store.load(flow.checkpoint_id)
    assert (last.revision, last.payload["owner"], last.payload["fencing_token"]) == (1, {"name": "worker-1", "lease_ms": 3_600_000}, 1)
    assert last.phase == "ready"


def test_a_late_owner_conflicts_at_its_next_write_whatever_its_clock_says(store: CheckpointStore) -> None:
    flow = accepted(store, effects=EffectStore(store))
    late = resumed(store, Claims(store, owner="late", lease=SHORT).claim(flow.checkpoint_id))
    taker = Claims(store, owner="next", lease=LONG)
    calls: list[int] = []

    def validates_late() -> None:
        with late.step("validate") as step:
            eventually(lambda: claimed(taker, flow.checkpoint_id))
            with nothing_written(store):
                step.effect("look", 1, calls.append, effect_class=EffectClass.READ_ONLY)

    with pytest.raises(Conflict):
        validates_late()
    writes: list[Callable[[], object]] = [late.renew, late.release]
    for call in writes:
        with nothing_written(store), pytest.raises(Conflict):
            call()
    assert calls == []


def test_a_run_that_is_owned_is_refused_until_its_lease_has_ended(store: CheckpointStore) -> None:
    flow = accepted(store)
    Claims(store, owner="worker-1", lease=LONG).claim(flow.checkpoint_id)
    second = Claims(store, owner="worker-2")
    with pytest.raises(AlreadyOwned) as refused:
        second.claim(flow.checkpoint_id)
    (_, last) = revisions(store, flow.checkpoint_id)
    assert (refused.value.owner, refused.value.token, refused.value.until) == ("worker-1", 1, last.recorded_at + LONG)
    with nothing_written(store), pytest.raises(AlreadyOwned):
        second.claim(flow.checkpoint_id)
    with nothing_written(store), pytest.raises(NotOwner, match="worker-1's by claim 1, and no claim was given"):
        WorkflowRun.resume(store, flow.checkpoint_id, **IDENTITY)


def test_a_lease_ends_by_the_logs_clock_and_not_by_the_writers(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = accepted(store)
    Claims(store, owner="worker-1", lease=LONG).claim(flow.checkpoint_id)
    now = checkpoint._now
    monkeypatch.setattr(checkpoint, "_now", lambda: now() + 2 * LONG)  # this worker's clock is ahead
    with pytest.raises(AlreadyOwned):
        Claims(store, owner="worker-2").claim(flow.checkpoint_id)
    (_, last) = revisions(store, flow.checkpoint_id)
    ahead = Claims(store, owner="worker-3")
    ahead._clock.seen(last.recorded_at + LONG)  # so late has the log become
    assert ahead.claim(flow.checkpoint_id).token == 2


def test_the_clock_never_runs_ahead_of_the_logs(store: CheckpointStore) -> None:
    clock = LogClock()
    assert clock.now() is None
    flow = accepted(store)
    claim = Claims(store, owner="worker-1", lease=LONG).claim(flow.checkpoint_id)
    read = claim.clock.now()
    again = resumed(store, claim)
    again.renew()
    assert read is not None
    assert read <= revisions(store, flow.checkpoint_id)[-1].recorded_at + timedelta(milliseconds=1)  # it records whole ones


def test_every_write_of_an_owner_renews_its_lease(store: CheckpointStore) -> None:
    flow = accepted(store)
    claims = Claims(store, owner="worker-1", lease=LONG)
    claim = claims.claim(flow.checkpoint_id)
    owned = resumed(store, claim)
    writes: list[Callable[[], object]] = [owned.renew, lambda: validate(owned)]
    for write in writes:
        write()
        last = revisions(store, flow.checkpoint_id)[-1]
        with pytest.raises(AlreadyOwned) as refused:
            Claims(store, owner="worker-2").claim(flow.checkpoint_id)
        assert refused.value.until == last.recorded_at + LONG


def test_a_run_is_handed_over_at_once_by_giving_it_back(store: CheckpointStore) -> None:
    flow = accepted(store)
    first = resumed(store, Claims(store, owner="worker-1", lease=LONG).claim(flow.checkpoint_id))
    validate(first)
    first.release()
    calls: list[Callable[[], object]] = [first.renew, first.release, lambda: first.wait_for_signal("ok"), lambda: validate(first)]
    for call in calls:
        with nothing_written(store), pytest.raises(NotOwner):
            call()
    second = resumed(store, Claims(store, owner="worker-2", lease=LONG).claim(flow.checkpoint_id))
    assert (second.outputs, second.checkpoint.payload["fencing_token"]) == ({"validate": 1}, 2)


@pytest.mark.parametrize(
    "forged",
    [
        lambda claim: Claim(claim.checkpoint_id, claim.owner, claim.token + 1),
        lambda claim: Claim(claim.checkpoint_id, claim.owner, claim.token - 1),
        lambda claim: Claim(claim.checkpoint_id, "worker-2", claim.token),
    ],
    ids=["a token of the future", "a token of the past", "another owner"],
)
def test_a_forged_token_is_refused_by_name_and_nothing_is_written(store: CheckpointStore, forged: Callable[[Claim], Claim]) -> None:
    flow = accepted(store)
    claims = Claims(store, owner="worker-1", lease=SHORT)
    false = forged(claims.claim(flow.checkpoint_id))
    calls: list[Callable[[], object]] = [lambda: resumed(store, false), lambda: claims.renew(false), lambda: claims.release(false)]
    for call in calls:
        with nothing_written(store), pytest.raises(NotOwner, match=f"worker-1's by claim 1, and claim {false.token} of {false.owner}"):
            call()


def test_a_claim_that_is_not_open_is_renewed_and_given_back(store: CheckpointStore) -> None:
    flow = accepted(store)
    claims = Claims(store, owner="worker-1", lease=LONG)
    claim = claims.claim(flow.checkpoint_id)
    claims.renew(claim)
    claims.release(claim)
    assert [each.checkpoint.payload["owner"] is None for each in revisions(store, flow.checkpoint_id)] == [True, False, False, True]


def test_waiting_gives_the_claim_back_and_waking_offers_the_run_again(tenant_store: CheckpointStore) -> None:
    store = tenant_store
    flow = accepted(store)
    claims = Claims(store, owner="worker-1", lease=LONG)
    owned = resumed(store, some(claims.next_claimable()))
    validate(owned)
    assert owned.wait_for_signal("ok") is False
    assert claims.next_claimable() is None
    send_signal(store, flow.checkpoint_id, "ok", 1)
    with pytest.raises(NotWaiting):
        send_signal(store, flow.checkpoint_id, "ok", 2)
    assert some(claims.next_claimable()).token == 2


def some(claim: Claim | None) -> Claim:
    assert claim is not None
    return claim


def test_a_claimed_run_that_still_waits_is_given_back(store: CheckpointStore) -> None:
    flow = accepted(store)
    validate(flow)
    flow.wait_for_signal("ok")
    owned = resumed(store, Claims(store, owner="worker-1", lease=LONG).claim(flow.checkpoint_id))
    assert owned.wait_for_signal("ok") is False
    assert WorkflowRecord.of(store.load(flow.checkpoint_id)).owner is None


def test_what_is_offered(tenant_store: CheckpointStore) -> None:
    store = tenant_store
    ready, other, in_flight = accepted(store), accepted(store, workflow="refund"), accepted(store)
    unclaimed = accepted(store)
    unclaimed.step("validate").__enter__()  # somebody runs it without a claim
    dying = Claims(store, owner="dying", lease=SHORT)
    resumed(store, dying.claim(in_flight.checkpoint_id)).step("validate").__enter__()
    store.compare_and_swap(as_checkpoint({"x": 1}, kind="eventlog.workflow").model_copy(update={"tenant": store.tenant}), None)
    newer = as_checkpoint(ready.checkpoint.payload, kind="eventlog.workflow", schema_version=2)
    store.compare_and_swap(newer.model_copy(update={"tenant": store.tenant}), None)
    claims = Claims(store, owner="worker-1", lease=LONG)
    assert some(claims.next_claimable(workflow="refund")).checkpoint_id == other.checkpoint_id
    assert claims.next_claimable(workflow="refund") is None
    assert some(claims.next_claimable()).checkpoint_id == ready.checkpoint_id
    taken = once(claims.next_claimable)
    assert (taken.checkpoint_id, taken.token) == (in_flight.checkpoint_id, 2)
    with pytest.raises(AmbiguousResume):
        resumed(store, taken)
    claims.release(taken)  # left for a person
    assert claims.next_claimable() is None
    assert claims.claim(in_flight.checkpoint_id).token == 3


def test_one_of_many_workers_gets_a_run(tenant_store: CheckpointStore) -> None:
    store = tenant_store
    runs = {accepted(store).checkpoint_id for _ in range(3)}
    begin, taken = threading.Barrier(6), []

    def works(number: int) -> None:
        claims = Claims(store, owner=f"worker-{number}", lease=LONG)
        begin.wait(30)
        while (claim := claims.next_claimable()) is not None:
            taken.append(claim.checkpoint_id)

    threads = [threading.Thread(target=works, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(taken) == sorted(runs)


def test_a_run_that_another_worker_has_just_taken_is_passed_over(tenant_store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tenant_store
    first, second = accepted(store), accepted(store)
    perform, taken = steps.perform, list[Claim]()

    def overtaken(step: Any) -> Any:
        if isinstance(step, steps.Advance) and not taken:
            monkeypatch.setattr(steps, "perform", perform)
            taken.append(Claims(store, owner="faster", lease=LONG).claim(first.checkpoint_id))
        return perform(step)

    monkeypatch.setattr(steps, "perform", overtaken)
    assert some(Claims(store, owner="slower", lease=LONG).next_claimable()).checkpoint_id == second.checkpoint_id
    assert taken[0].token == 1


def test_a_claimed_run_does_not_go_on_behind_a_wait_even_if_that_is_over(store: CheckpointStore) -> None:
    flow = WorkflowRun.start(store, value=7, workflow="order", version=1, layout=[WaitForTimer("cool")])
    claim = Claims(store, owner="worker-1", lease=LONG).claim(flow.checkpoint_id)
    owned = WorkflowRun.resume(store, flow.checkpoint_id, claim=claim, workflow="order", version=1, layout=[WaitForTimer("cool")])
    assert owned.wait_for_timer("cool", until=datetime(2020, 1, 1, tzinfo=UTC)) is False
    last = store.load(flow.checkpoint_id)
    assert (last.revision, last.phase, last.payload["owner"]) == (2, "waiting", None)


def test_a_run_that_waited_without_a_claim_is_lost_to_whoever_claims_it(store: CheckpointStore) -> None:
    flow = accepted(store)
    validate(flow)
    flow.wait_for_signal("ok")
    Claims(store, owner="worker-1", lease=LONG).claim(flow.checkpoint_id)
    with nothing_written(store), pytest.raises(Conflict, match="another process has gone on with it"):
        flow.wait_for_signal("ok")


def test_what_cannot_be_claimed_is_refused_by_name(store: CheckpointStore) -> None:
    claims = Claims(store, owner="worker-1", lease=SHORT)
    flow = WorkflowRun.start(store, value=7, workflow="order", version=1, layout=["a"])
    with flow.step("a") as step:
        step.commit(output=1)
    flow.complete(1)
    with nothing_written(store):
        with pytest.raises(InvalidRequest, match="nothing to claim"):
            claims.claim(flow.checkpoint_id)
        with pytest.raises(NotFound):
            claims.claim(CheckpointId.new())
        for wrong in ({"owner": ""}, {"lease": timedelta(0)}, {"lease": 30}):
            with pytest.raises(InvalidRequest):
                Claims(store, **{"owner": "worker-1", **wrong})  # type: ignore[arg-type]


def test_a_worker_that_died_is_followed_by_one_that_repeats_only_what_was_in_flight(store: CheckpointStore) -> None:
    flow = accepted(store)
    died = resumed(store, Claims(store, owner="died", lease=SHORT).claim(flow.checkpoint_id))
    died.step("validate").__enter__()
    claims = Claims(store, owner="next", lease=LONG)
    again = resumed(store, once(lambda: claimed(claims, flow.checkpoint_id)), policy=RetryInFlight())
    with again.step("validate") as step:
        assert step.attempt == 2
        step.commit(output=1)
