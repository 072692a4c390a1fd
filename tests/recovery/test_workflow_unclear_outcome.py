"""A write of a workflow whose outcome is unknown: nothing goes on before it is known what became of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eventlog import CheckpointStore, Conflict, OutcomeUnknown
from eventlog.recovery import AlreadyOwned, Claims, Parallel, RetryInFlight, WaitForSignal, WaitForTimer, WorkflowRun
from eventlog.recovery.boundaries import Boundary
from tests.recovery.order_runs import PAST, begun
from tests.recovery.samples import phases
from tests.store.samples import nothing_written

COMMITTED = pytest.mark.parametrize("committed", [True, False], ids=["committed", "not committed"])


@COMMITTED
def test_a_step_whose_beginning_or_end_is_unclear_is_begun_once(store: CheckpointStore, breaking: Any, committed: bool) -> None:
    flow = begun(store, "validate", "ship")
    with breaking(Boundary.STEP_IN_FLIGHT, committed=committed), pytest.raises(OutcomeUnknown), flow.step("validate"):
        raise AssertionError("the body must not run")
    with flow.step("validate") as step:
        assert step.attempt == 1
        with breaking(Boundary.STEP_STABLE, committed=committed), pytest.raises(OutcomeUnknown):
            step.commit(output=1)
    with flow.step("ship") as step:
        step.commit(output=2)
    assert (flow.outputs, flow.usage["steps"]) == ({"validate": 1, "ship": 2}, 2)
    assert phases(store, flow.checkpoint_id) == ["ready", *["step_in_flight", "ready"] * 2]


@COMMITTED
@pytest.mark.parametrize("boundary", [Boundary.BRANCH_IN_FLIGHT, Boundary.BRANCH_ENDED, Boundary.BRANCHES_JOINED])
def test_an_unclear_write_of_one_branch_is_settled_by_whichever_writes_next(
    store: CheckpointStore, breaking: Any, boundary: Boundary, committed: bool
) -> None:
    flow = begun(store, Parallel("fanout", ["stock", "credit"]), "ship")
    fanout = flow.parallel("fanout")

    def branch(name: str) -> None:
        with fanout.branch(name) as body:
            assert body.attempt == 1
            body.commit(output=name)

    if boundary is Boundary.BRANCHES_JOINED:
        branch("stock")
        branch("credit")
        with breaking(boundary, committed=committed), pytest.raises(OutcomeUnknown), fanout:
            pass
    else:
        with breaking(boundary, committed=committed), pytest.raises(OutcomeUnknown):
            branch("stock")
        branch("credit")
        if boundary is Boundary.BRANCH_IN_FLIGHT:
            branch("stock")
        with fanout:
            pass
    with flow.step("ship") as step:
        step.commit(output=1)
    assert flow.outputs["fanout"] == {name: {"state": "completed", "output": name} for name in ("stock", "credit")}
    assert flow.usage["steps"] == 3
    assert len(phases(store, flow.checkpoint_id)) == 8


@COMMITTED
def test_a_wait_that_is_unclear_is_waited_and_woken_once(store: CheckpointStore, breaking: Any, committed: bool) -> None:
    flow = begun(store, WaitForSignal("ok"), WaitForTimer("cool"))
    with breaking(Boundary.WORKFLOW_WAITING, committed=committed), pytest.raises(OutcomeUnknown):
        flow.wait_for_signal("ok")
    assert flow.wait_for_signal("ok") is False
    with breaking(Boundary.WORKFLOW_WOKEN, committed=committed), pytest.raises(OutcomeUnknown):
        flow.signal("ok", 1, signal_id="s")
    flow.signal("ok", 1, signal_id="s")
    with breaking(Boundary.WORKFLOW_WOKEN, committed=committed), pytest.raises(OutcomeUnknown):
        flow.wait_for_timer("cool", until=PAST)
    assert flow.wait_for_timer("cool", until=PAST) is True
    with breaking(Boundary.WORKFLOW_COMPLETED, committed=committed), pytest.raises(OutcomeUnknown):
        flow.complete("done")
    flow.complete("done")
    assert phases(store, flow.checkpoint_id) == ["ready", *["waiting", "ready"] * 2, "completed"]


@COMMITTED
def test_a_claim_that_is_unclear_is_never_two(store: CheckpointStore, breaking: Any, committed: bool) -> None:
    flow = begun(store, "ship")
    claims = Claims(store, owner="worker-1", lease=timedelta(hours=1))
    with breaking(Boundary.WORKFLOW_CLAIMED, committed=committed), pytest.raises(OutcomeUnknown):
        claims.claim(flow.checkpoint_id)
    if committed:  # it ends with its lease: nobody has it in the hand
        with pytest.raises(AlreadyOwned, match="worker-1's by claim 1"):
            claims.claim(flow.checkpoint_id)
        assert store.load(flow.checkpoint_id).revision == 1
    else:
        assert claims.claim(flow.checkpoint_id).token == 1


def test_an_owner_that_was_overtaken_while_its_write_was_unclear_is_lost(store: CheckpointStore, breaking: Any) -> None:
    flow = begun(store, "ship")
    claim = Claims(store, owner="worker-1", lease=timedelta(milliseconds=1)).claim(flow.checkpoint_id)
    late = WorkflowRun.resume(store, flow.checkpoint_id, workflow="order", version=2, layout=["ship"], claim=claim)
    with breaking(Boundary.STEP_IN_FLIGHT, committed=False), pytest.raises(OutcomeUnknown), late.step("ship"):
        raise AssertionError
    taker = Claims(store, owner="worker-2")
    taker._clock.seen(datetime.now(UTC) + timedelta(days=1))
    taken = taker.claim(flow.checkpoint_id)
    for _ in range(2):
        with nothing_written(store), pytest.raises(Conflict), late.step("ship"):
            raise AssertionError
    again = WorkflowRun.resume(store, flow.checkpoint_id, workflow="order", version=2, layout=["ship"], claim=taken, policy=RetryInFlight())
    with again.step("ship") as step:
        assert step.attempt == 1
        step.commit(output=1)
