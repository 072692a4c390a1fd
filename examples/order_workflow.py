"""An order: validated, quoted by racing carriers, approved by a person, charged and shipped; its process dies and another goes on.

python examples/order_workflow.py DIRECTORY
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from eventlog import CheckpointStore, create_store, open_store
from eventlog.recovery import (
    AmbiguousResume,
    BranchCancelled,
    EffectClass,
    EffectStore,
    Parallel,
    Race,
    RetryInFlight,
    WaitForSignal,
    WorkflowBranches,
    WorkflowRun,
    send_signal,
)

LAYOUT = ["validate", Parallel("fanout", ["stock", "credit"]), Race("quote", ["post", "courier"]), WaitForSignal("approval"), "ship"]
IDENTITY: dict[str, Any] = {"workflow": "order", "version": 2, "layout": LAYOUT}
charged: list[int] = []  # the payment provider's books


def charge(order: dict[str, int]) -> dict[str, int]:
    """Moves money; a real provider is given the idempotency key."""
    if order["order"] not in charged:
        charged.append(order["order"])
    return {"charged": order["order"]}


def check(fanout: WorkflowBranches, name: str) -> None:
    """A branch, in whatever thread."""
    with fanout.branch(name) as branch:
        branch.commit(output=f"{name} is there")


def ask(race: WorkflowBranches, name: str) -> None:
    """A branch of a race: the first to commit has won, and the other one hears so at its next call."""
    try:
        with race.branch(name) as branch:
            branch.commit(output={"cents": 490})
    except BranchCancelled:
        pass


def work(flow: WorkflowRun, *, dies: bool = False) -> None:
    """From wherever the run is, as far as it can go."""
    while (step := flow.next) is not None:
        if step == "validate":
            with flow.step(step) as body:
                body.commit(output={"valid": True})
        elif step == "fanout":
            with flow.parallel(step) as fanout, ThreadPoolExecutor() as threads:
                list(threads.map(lambda name: check(fanout, name), fanout.remaining))
        elif step == "quote":
            with flow.race(step) as race, ThreadPoolExecutor() as threads:
                list(threads.map(lambda name: ask(race, name), race.remaining))
        elif step == "approval":
            if not flow.wait_for_signal(step):
                return  # nothing to do now; this process may end
        else:
            with flow.step(step) as body:
                key = f"charge-{flow.checkpoint_id}"
                how = EffectClass.IDEMPOTENT_WRITE
                paid = body.effect("charge", flow.value, charge, effect_class=how, idempotency_key=key)
                if dies:
                    raise SystemExit("the power is cut")
                body.commit(output=paid)
    flow.complete({"shipped": flow.value["order"]})


def main(directory: str) -> None:
    create_store(directory)
    with open_store(directory, actor="order-desk") as store:
        effects = EffectStore(store)
        flow = WorkflowRun.start(store, value={"order": 7}, effects=effects, **IDENTITY)
        work(flow)
        print(f"{flow.phase.name} for {flow.next}; done: {', '.join(flow.outputs)}")
        send_signal(store, flow.checkpoint_id, "approval", {"by": "ann"})
        try:
            work(WorkflowRun.resume(store, flow.checkpoint_id, **IDENTITY), dies=True)
        except SystemExit as cut:
            print(f"ship: {cut}; charged: {charged}")
        flow = resumed(store, effects, flow.checkpoint_id)
        print(f"response: {flow.response}, charged: {charged}")


def resumed(store: CheckpointStore, effects: EffectStore, checkpoint_id: str) -> WorkflowRun:
    """As a process does that knows nothing but the id."""
    try:
        return WorkflowRun.resume(store, checkpoint_id, **IDENTITY)
    except AmbiguousResume as found:
        print(f"refused: {found.what} has been in flight; " + ", ".join(f"{each.capability} {each.state}" for each in found.effects))
    flow = WorkflowRun.resume(store, checkpoint_id, policy=RetryInFlight(effects=effects), **IDENTITY)
    work(flow)
    return flow


if __name__ == "__main__":
    main(sys.argv[1])
