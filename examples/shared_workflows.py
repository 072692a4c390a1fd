"""Orders that two worker processes share: one of them is killed in the middle of a step, and the other takes its run over.

    python examples/shared_workflows.py DIRECTORY

Each order is validated, its stock and the customer's credit are checked in parallel, and it is shipped. Shipping is an effect: the
carrier's books (a file) show that each order went out once, whoever shipped it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from eventlog import CheckpointStore, create_store, open_store
from eventlog.recovery import Claims, EffectClass, EffectStore, Parallel, RetryInFlight, WorkflowRun

IDENTITY: dict[str, Any] = {"workflow": "order", "version": 1, "layout": ["validate", Parallel("checks", ["stock", "credit"]), "ship"]}
ORDERS = range(1, 7)
LEASE = timedelta(seconds=2)  # short, so that the example is; every write renews it


class Carrier:
    """The other side. It knows an order by its idempotency key."""

    def __init__(self, directory: str) -> None:
        self.books = Path(directory) / "shipped"

    def ship(self, given: dict[str, Any]) -> dict[str, Any]:
        line = f"order {given['order']}\n"
        with self.books.open("a+", encoding="utf-8") as books:
            books.seek(0)
            if line not in books.readlines():
                books.write(line)
        return {"shipped": given["order"]}


def run_order(flow: WorkflowRun, carrier: Carrier, *, dies: bool) -> None:
    """From wherever the run is to its end."""
    order = flow.value["order"]
    if flow.next == "validate":
        with flow.step("validate") as step:
            step.commit(output={"valid": True})
    if flow.next == "checks":
        with flow.parallel("checks") as checks:
            for name in checks.remaining:
                with checks.branch(name) as branch:
                    branch.commit(output=f"{name} is there")
    if flow.next == "ship":
        with flow.step("ship") as step:
            key = f"ship-{flow.checkpoint_id}"
            how = EffectClass.IDEMPOTENT_WRITE
            shipped = step.effect("ship", {"order": order}, carrier.ship, effect_class=how, idempotency_key=key)
            if dies:  # the carrier has the order, and nobody has written that down
                os.kill(os.getpid(), signal.SIGKILL)
            step.commit(output=shipped)
    flow.complete(flow.outputs["ship"])


def work(directory: str, name: str, *, dies: bool) -> None:
    """A worker: takes one run after the other, until all are completed."""
    with open_store(directory, actor=name) as store:
        claims = Claims(store, owner=f"{name}-{os.getpid()}", lease=LEASE)
        while unfinished(store):
            claim = claims.next_claimable(workflow=IDENTITY["workflow"])
            if claim is None:
                next(store.subscribe(store.position(), idle_timeout=0.2), None)  # something happens, or a lease ends
                continue
            policy = RetryInFlight(effects=EffectStore(store))  # every effect here may be repeated
            flow = WorkflowRun.resume(store, claim.checkpoint_id, claim=claim, policy=policy, **IDENTITY)
            run_order(flow, Carrier(directory), dies=dies)
            taken_over = f", after claim {claim.token}" if claim.token > 1 else ""
            print(f"{name}: order {flow.value['order']} is done{taken_over}", flush=True)


def unfinished(store: CheckpointStore) -> bool:
    return len(store.list(kind="eventlog.workflow", phase="completed").items) < len(ORDERS)


def main(directory: str) -> None:
    create_store(directory)
    with open_store(directory, actor="shop") as store:
        effects = EffectStore(store)
        for order in ORDERS:
            WorkflowRun.start(store, value={"order": order}, effects=effects, **IDENTITY)
        accepted = store.position()
        first = subprocess.Popen([sys.executable, __file__, directory, "worker-1", "dies"])
        next(store.subscribe(accepted))  # it has claimed a run
        second = subprocess.Popen([sys.executable, __file__, directory, "worker-2"])
        print(f"worker-1 ended with {first.wait()}, worker-2 with {second.wait()}")
        claims = [store.load(each.id).payload["fencing_token"] for each in store.list(kind="eventlog.workflow").items]
        print(f"completed: {len(claims)}, claims: {sum(claims)}")
        print(f"shipped: {len(Carrier(directory).books.read_text(encoding='utf-8').splitlines())}")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        work(sys.argv[1], sys.argv[2], dies="dies" in sys.argv)
