"""A worker that is killed at any write-ahead boundary of a workflow: what the next one finds, repeats and refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eventlog import CheckpointId, CheckpointStore, NotFound
from eventlog.recovery import AmbiguousResume, Claims, EffectStore, NotOwner, RetryInFlight, WorkflowRun
from tests.recovery.order_runs import claimed, once
from tests.recovery.order_workflow import IDENTITY, OUTPUTS, OVER, RESPONSE, UNDISTURBED, VALUE, OrderWorkflow, approve, resumed
from tests.recovery.samples import Outside
from tests.recovery.victims import Job, Victims, victims
from tests.recovery.workflow_kill_table import GROUPS, Row
from tests.store.samples import nothing_written

pytestmark = pytest.mark.long_on_kafka


@pytest.fixture(scope="module")
def killer() -> Iterator[Victims]:
    with victims() as made:
        yield made


class Killed:
    """A run whose worker was killed, as the next one sees it."""

    def __init__(self, killer: Victims, address: str, folder: Path, kill: str) -> None:
        self.id = CheckpointId.new()
        self.tenant = f"t{self.id}"
        self.kill = kill
        self.outside = Outside(folder / f"outside-{self.id}")
        killer.kill(Job(address, self.tenant, self.id, str(self.outside.file), kill, "workflow"))


def aftermath(store: CheckpointStore, killed: Killed) -> dict[str, Any]:
    """What is found without a claim, and with one under `Reject`; then what `RetryInFlight` does, to the end."""
    told: dict[str, Any] = {"kill": killed.kill, "rejected": "ready"}
    effects = EffectStore(store, tenant=killed.tenant)
    try:
        with nothing_written(store):
            told["found"] = resumed(store, killed.id).phase.name
    except NotFound:
        told["found"] = "absent"
        WorkflowRun.start(store, value=VALUE, effects=effects, checkpoint_id=killed.id, tenant=killed.tenant, **IDENTITY)
    except NotOwner as error:
        told["found"] = f"{error.owner}'s"
    order, ended = OrderWorkflow(killed.outside), told["found"] == "completed"
    claims = Claims(store, owner="next", lease=OVER)
    before = killed.outside.calls()
    while not ended:
        claim = once(lambda: claimed(claims, killed.id))
        if killed.outside.calls() == before:
            try:
                with nothing_written(store):
                    told["rejected"] = resumed(store, killed.id, claim=claim).phase.name
            except AmbiguousResume as error:
                told["rejected"] = error.what
            before = []
        flow = resumed(store, killed.id, RetryInFlight(effects=effects), claim=claim)
        ended = order.work(flow)
        if flow.next == "approval":
            approve(store, killed.id)
    with nothing_written(store):
        again = resumed(store, killed.id)
        told |= {"response": again.response, "outputs": again.outputs, "steps": again.usage["steps"]}
    return told | {"calls": dict(Counter(killed.outside.calls()))}


def expected(row: Row, kill: str) -> dict[str, Any]:
    """The same as the table has it."""
    return {
        "kill": kill,
        "found": row.found,
        "rejected": row.rejected,
        "response": RESPONSE,
        "outputs": OUTPUTS,
        "steps": 6 + row.repeated,
        "calls": {name: number + (name in row.again) for name, number in UNDISTURBED.items()},
    }


@pytest.mark.parametrize("group", GROUPS)
def test_a_workflow_killed_at_any_boundary_is_taken_over_knowing_what_happened(
    store: CheckpointStore, second_address: str, killer: Victims, tmp_path: Path, group: str
) -> None:
    jobs = [(row, kill) for row in GROUPS[group] for kill in row.kills]
    all_killed = [Killed(killer, second_address, tmp_path, kill) for _, kill in jobs]
    found = [aftermath(store, killed) for killed in all_killed]
    assert found == [expected(row, kill) for row, kill in jobs]
