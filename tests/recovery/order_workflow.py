"""A workflow whose every body leaves a line in a file, so that what it did can be counted after it was killed.

It validates an order, holds stock and credit in parallel, races two quotes, waits for an approval and for a time, and ships.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from eventlog import CheckpointStore
from eventlog.recovery import (
    Claim,
    Claims,
    EffectClass,
    EffectStore,
    Parallel,
    Policy,
    Race,
    RetryInFlight,
    WaitForSignal,
    WaitForTimer,
    WorkflowRun,
    send_signal,
)
from tests.recovery.samples import Outside

IDENTITY: dict[str, Any] = {
    "workflow": "order",
    "version": 2,
    "layout": [
        "validate",
        Parallel("fanout", ["stock", "credit"]),
        Race("quote", ["cheap", "fast"]),
        WaitForSignal("approval"),
        WaitForTimer("cool_off"),
        "ship",
    ],
}
VALUE = {"order": 7}
RESPONSE = {"shipped": 7}
APPROVED: dict[str, Any] = {"by": "signal", "value": {"approved": True}, "signal_id": "ann-1"}
OUTPUTS: dict[str, Any] = {
    "validate": "validate of 7",
    "fanout": {"stock": {"state": "completed", "output": "stock of 7"}, "credit": {"state": "completed", "output": {"held": 7}}},
    "quote": {"cheap": {"state": "cancelled"}, "fast": {"state": "completed", "output": "fast of 7"}},
    "approval": APPROVED,
    "cool_off": {"by": "timer"},
    "ship": "ship of 7",
}
UNDISTURBED = {"validate": 1, "stock": 1, "credit": 1, "cheap": 1, "fast": 1, "ship": 1}
ABOUT_THE_RUN = {
    "effect_store_named",
    "workflow_created",
    "workflow_renewed",
    "workflow_released",
    "workflow_completed",
    "clock_read",
}
OVER = timedelta(milliseconds=1)  # a lease that has ended once it is looked at


class OrderWorkflow:
    """Runs one order.

    Arguments:
        at: told where the work has come to: `in validate`, `in stock`.
    """

    def __init__(self, outside: Outside, at: Callable[[str], object] = str) -> None:
        self.outside = outside
        self.at = at
        self.place = ""  # what the next write is about, for naming it
        self.claims = 0

    def label(self, boundary: str) -> str:
        """How a write is named."""
        if boundary == "workflow_claimed":
            return f"{boundary} {self.claims}"
        return boundary if boundary in ABOUT_THE_RUN else f"{boundary} {self.place}"

    def work(self, flow: WorkflowRun) -> bool:
        """From wherever the run is, as far as it can go; whether that is its end."""
        while (step := flow.next) is not None:
            self.place = step
            if step == "fanout":
                self._fanout(flow)
            elif step == "quote":
                self._quote(flow)
            elif step == "approval":
                if not flow.wait_for_signal(step):
                    return False
            elif step == "cool_off":
                if not flow.wait_for_timer(step, until=datetime(2020, 1, 1, tzinfo=UTC)):
                    return False
            else:
                with flow.step(step) as body:
                    body.commit(output=self._done(step, flow))
        flow.complete(RESPONSE)
        return True

    def _fanout(self, flow: WorkflowRun) -> None:
        if flow.phase.name == "ready":
            flow.renew()
        with flow.parallel("fanout") as fanout:
            for name in fanout.remaining:
                self.place = name
                with fanout.branch(name) as branch:
                    if name == "credit":
                        key = f"{flow.checkpoint_id}-credit"
                        how = EffectClass.IDEMPOTENT_WRITE
                        branch.commit(output=branch.effect("hold_credit", VALUE, self._hold, effect_class=how, idempotency_key=key))
                    else:
                        branch.commit(output=self._done(name, flow))
            self.place = "fanout"

    def _quote(self, flow: WorkflowRun) -> None:
        with flow.race("quote") as race:
            if race.remaining:
                self.place = "cheap"
                with race.branch("cheap"):
                    self._done("cheap", flow)
                    self.place = "fast"
                    with race.branch("fast") as fast:
                        fast.commit(output=self._done("fast", flow))
            self.place = "quote"

    def _hold(self, order: dict[str, int]) -> dict[str, int]:
        self.outside.call("credit")
        self.at("in credit")
        return {"held": order["order"]}

    def _done(self, name: str, flow: WorkflowRun) -> str:
        self.outside.call(name)
        self.at(f"in {name}")
        return f"{name} of {flow.value['order']}"

    def claimed(self, claims: Claims, take: Callable[[Claims], Claim | None]) -> Claim:
        """A claim, counted."""
        self.claims += 1
        claim = take(claims)
        assert claim is not None
        return claim


def resumed(store: CheckpointStore, checkpoint_id: str, policy: Policy | None = None, **fields: Any) -> WorkflowRun:
    """The order's run, resumed."""
    return WorkflowRun.resume(store, checkpoint_id, policy=policy, **{**IDENTITY, **fields})


def approve(store: CheckpointStore, checkpoint_id: str) -> None:
    """Somebody sends the approval."""
    send_signal(store, checkpoint_id, "approval", APPROVED["value"], signal_id=APPROVED["signal_id"])


def live(order: OrderWorkflow, store: CheckpointStore, checkpoint_id: str, tenant: str) -> None:
    """The whole life of an order, as several workers would have it who die of nothing."""
    effects = EffectStore(store)
    WorkflowRun.start(store, value=VALUE, effects=effects, checkpoint_id=checkpoint_id, tenant=tenant, **IDENTITY)

    def once_more(take: Callable[[Claims], Claim | None]) -> WorkflowRun:
        claim = order.claimed(Claims(store, owner="victim", lease=OVER), take)
        return resumed(store, checkpoint_id, RetryInFlight(effects=effects), claim=claim)

    order.work(once_more(lambda claims: claims.claim(checkpoint_id)))
    order.place = "approval"
    approve(store, checkpoint_id)
    once_more(lambda claims: claims.claim(checkpoint_id)).release()
    order.work(once_more(lambda claims: claims.claim(checkpoint_id)))
    assert order.work(once_more(lambda claims: claims.next_claimable()))
