"""The ways in which another runtime's workflows can go wrong, none of which exists here. Numbered as in `test_hazards.py`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventlog import CheckpointStore, SchemaMismatch
from eventlog.recovery import (
    AmbiguousResume,
    EffectClass,
    EffectStore,
    NotWaiting,
    Parallel,
    RetryInFlight,
    StillInFlight,
    WaitForSignal,
    WorkflowRun,
    send_signal,
)
from eventlog.recovery.workflow_record import WorkflowRecord
from tests.recovery.samples import Lost, Outside, as_checkpoint
from tests.store.samples import nothing_written, revisions

WRITE = EffectClass.NON_IDEMPOTENT_WRITE
IDENTITY: dict[str, Any] = {"workflow": "order", "version": 2, "layout": [Parallel("tell", ["mail", "text"]), WaitForSignal("ok"), "ship"]}


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path / "outside")


def begun(store: CheckpointStore, **fields: Any) -> WorkflowRun:
    return WorkflowRun.start(store, **{"value": {"order": 7}, "effects": EffectStore(store), **IDENTITY, **fields})


def test_hazard_3_another_process_finds_the_effects_of_a_step(store: CheckpointStore, opening: Any, outside: Outside) -> None:
    """There: the keys of a step's tools came from a run id that each worker made anew, so that a retry ran the tools again."""

    def tell(flow: WorkflowRun, *, dies: bool) -> None:
        with flow.parallel("tell") as branches:
            for name in branches.remaining:
                with branches.branch(name) as branch:
                    for _ in range(2):  # no key of the caller's: each belongs to its place in the branch
                        branch.effect("send", name, outside.call, effect_class=WRITE)
                    if dies and name == "text":
                        raise Lost
                    branch.commit(output=name)

    flow = begun(store)
    with pytest.raises(Lost):
        tell(flow, dies=True)
    elsewhere = opening(actor="another process")
    policy = RetryInFlight(effects=EffectStore(elsewhere))
    tell(WorkflowRun.resume(elsewhere, flow.checkpoint_id, policy=policy, **IDENTITY), dies=False)
    assert outside.calls() == ["mail", "mail", "text", "text"]


def test_hazard_4_an_uncertain_outcome_of_a_branch_is_never_recorded_as_known(store: CheckpointStore) -> None:
    """There: an error of a tool was wrapped as a completed answer. Neither a commit nor giving the branch up hides it here."""

    def times_out(_: Any) -> None:
        raise TimeoutError("no answer")

    flow = begun(store)

    def mails() -> None:
        with flow.parallel("tell").branch("mail") as branch:
            with pytest.raises(TimeoutError):
                branch.effect("send", 1, times_out, effect_class=WRITE)
            ends: list[Callable[[], object]] = [lambda: branch.commit(output="no answer"), lambda: branch.fail("no answer"), branch.cancel]
            for end in ends:
                with nothing_written(store), pytest.raises(StillInFlight, match=r"send .* started"):
                    end()

    with pytest.raises(StillInFlight, match="branch mail of tell"):
        mails()
    assert store.load(flow.checkpoint_id).phase == "parallel_in_flight"


def test_hazard_6_nothing_of_a_payload_is_in_what_stays_in_clear(store: CheckpointStore) -> None:
    """There: the event of an interrupted workflow stored the prompt and the proposal that were to be kept out of the journal."""
    secret = "the patient's name"
    flow = begun(store, value={"about": secret})
    for name in ("mail", "text"):
        with flow.parallel("tell").branch(name) as branch:
            branch.effect("send", {"text": secret}, lambda given: given, effect_class=WRITE)
            if name == "mail":
                branch.fail(secret)
            else:
                branch.commit(output=secret)
    with flow.parallel("tell"):
        pass
    flow.wait_for_signal("ok")
    send_signal(store, flow.checkpoint_id, "ok", {"proposal": secret})
    with pytest.raises(NotWaiting) as refused:
        send_signal(store, flow.checkpoint_id, "ok", {"proposal": secret})
    with pytest.raises(Lost), flow_of(store, flow).step("ship"):
        raise Lost(secret)
    with pytest.raises(AmbiguousResume) as found:
        flow_of(store, flow)
    for each in revisions(store, flow.checkpoint_id):
        assert secret not in json.dumps(each.checkpoint.model_dump(mode="json", exclude={"payload"}))
    for error in (refused.value, found.value):
        assert secret not in f"{error} {vars(error)}"


def flow_of(store: CheckpointStore, flow: WorkflowRun) -> WorkflowRun:
    return WorkflowRun.resume(store, flow.checkpoint_id, **IDENTITY)


def test_hazard_7_a_payload_never_stands_under_another_versions_number(store: CheckpointStore) -> None:
    """There: a checkpoint of version 3 that was gone on with kept its number and got the payload of version 4."""
    flow = begun(store)
    for version in (2, 3, 4):
        newer = as_checkpoint(flow.checkpoint.payload, kind="eventlog.workflow", schema_version=version)
        store.compare_and_swap(newer, None)
        with nothing_written(store):
            with pytest.raises(SchemaMismatch, match=rf"eventlog\.workflow {version}"):
                WorkflowRun.resume(store, newer.id, policy=RetryInFlight(), **IDENTITY)
            with pytest.raises(SchemaMismatch, match=rf"eventlog\.workflow {version}"):
                send_signal(store, newer.id, "ok", 1)
    with flow.parallel("tell").branch("mail") as branch:
        branch.commit(output=1)
    for each in revisions(store, flow.checkpoint_id):
        assert WorkflowRecord.of(each.checkpoint).payload() == each.checkpoint.payload
