"""Runifold's workflows become runs that are resumed as what they are; and what it has really written goes there and back."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from eventlog import Checkpoint, CheckpointId, CheckpointStore, EventType, RunId
from eventlog.checkpoint import from_millis
from eventlog.recovery import (
    AmbiguousResume,
    Claims,
    Parallel,
    Race,
    RetryInFlight,
    Schema,
    Selection,
    WaitForSignal,
    WorkflowRun,
    plan_migration,
    run_migration,
    runifold_migrations,
    send_signal,
    undo_migration,
)
from tests.recovery.migration_samples import LAYOUT, WRITTEN, built_in, layout_for, sample, samples, stored
from tests.recovery.runifold_runs import changed, migrated, refused
from tests.store.samples import nothing_written, revisions

TEN_SECONDS_LATER = from_millis(1_750_000_010_000)


def resumed(store: CheckpointStore, found: Checkpoint, **fields: Any) -> WorkflowRun:
    kept = {**found.payload, "next_index": len(found.payload["outputs"])}
    return WorkflowRun.resume(
        store, found.id, **{"workflow": found.payload["workflow"], "version": 2, "layout": layout_for(kept), **fields}
    )


@pytest.mark.parametrize("version", [3, 4])
def test_a_workflow_between_its_steps_goes_on(store: CheckpointStore, version: int) -> None:
    flow = resumed(store, migrated(store, "runifold.workflow", version, "between steps"))
    assert (flow.next, flow.outputs, flow.value, flow.usage["tokens"]) == ("fanout", {"validate": {"ok": True}}, None, 12)
    assert flow.checkpoint.payload["runifold"]["value"] == {"ok": True}
    with flow.parallel("fanout") as fanout:
        for name in fanout.remaining:
            with fanout.branch(name) as branch:
                branch.commit(output=name)


def test_a_workflow_at_its_first_step_has_the_value_that_it_was_started_with(store: CheckpointStore) -> None:
    assert resumed(store, migrated(store, "runifold.workflow", 4, "accepted")).value == {"order": 7}


def test_a_completed_workflow_replays_its_response(store: CheckpointStore) -> None:
    found = migrated(store, "runifold.workflow", 4, "completed")
    with nothing_written(store):
        assert resumed(store, found).response == {"shipped": 7}


@pytest.mark.parametrize(
    ("name", "what"),
    [("step in flight", "step validate"), ("parallel in flight", "branch credit of fanout"), ("race in flight", "branch post of quote")],
)
def test_a_workflow_in_flight_stays_in_flight(store: CheckpointStore, name: str, what: str) -> None:
    found = migrated(store, "runifold.workflow", 4, name)
    with nothing_written(store), pytest.raises(AmbiguousResume) as caught:
        resumed(store, found)
    assert (caught.value.what, caught.value.since) == (what, WRITTEN)
    assert resumed(store, found, policy=RetryInFlight()).found is not None


def test_a_race_that_is_won_needs_no_retry(store: CheckpointStore) -> None:
    flow = resumed(store, migrated(store, "runifold.workflow", 4, "race won"))
    with flow.race("quote"):
        pass
    assert flow.winner("quote") == "courier"


def test_waits_go_on_waiting(store: CheckpointStore) -> None:
    signalled = migrated(store, "runifold.workflow", 4, "waiting for a signal with an end")
    assert signalled.payload["phase"]["until_ms"] == 1_750_000_060_000
    send_signal(store, signalled.id, "approve", {"by": "ann"})
    assert resumed(store, store.load(signalled.id), layout=layout_for({"workflow": "order", "next_index": 3})).outputs["approve"] == {
        "by": "signal",
        "value": {"by": "ann"},
        "signal_id": None,
    }
    timer = migrated(store, "runifold.workflow", 4, "waiting for a timer")
    assert from_millis(timer.payload["phase"]["until_ms"]) == from_millis(1_750_000_005_000)
    assert resumed(store, timer).wait_for_timer("cool_off", until=TEN_SECONDS_LATER)


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("accepted", {"workflow": "refund"}, "the layout of refund 2 is not given"),
        ("accepted", {"layout": ["validate", "ship"]}, "its layout is ['validate', 'ship']"),
        ("accepted", {"next_index": 2}, "its outputs are of []"),
        ("accepted", {"workflow_version": 0}, "the layout of order 0 is not given"),
        ("accepted", {"phase": {"state": "paused"}}, "unknown phase 'paused'"),
        ("accepted", {"phase": {"state": "step_in_flight", "step": "ship"}}, "validate is next"),
        (
            "waiting for a signal",
            {"phase": {"state": "waiting", "step": "approve", "wait": {"kind": "interrupt", "request": {}}}},
            "it waits for 'interrupt', which has no counterpart here",
        ),
        (
            "waiting for a signal",
            {"phase": {"state": "waiting", "step": "approve", "wait": {"kind": "timer", "delay_ms": 1}}},
            "does not have as a timer",
        ),
        (
            "race in flight",
            {
                "phase": {
                    "state": "race_in_flight",
                    "step": "quote",
                    "branches": {"post": {"state": "in_flight"}, "courier": {"state": "completed", "output": 1}},
                }
            },
            "the race quote is won, and what its other branches have come to is not known",
        ),
        ("completed", {"usage": dict.fromkeys(("cost_microusd", "delegations", "duration_micros", "tokens", "tool_calls", "turns"), 1)},
         "phase.outcome"),
    ],
)  # fmt: skip
def test_a_workflow_that_has_no_counterpart_is_refused_and_named(
    store: CheckpointStore, name: str, fields: dict[str, Any], said: str
) -> None:
    first = changed("runifold.workflow", name, **fields)
    before = samples("runifold.workflow.v4")[name]
    assert said in refused(store, first, built_in(before))


def test_a_parallel_step_that_is_done_is_carried_as_a_plain_one_or_not_at_all(store: CheckpointStore) -> None:
    first = sample("runifold.workflow", 4, "race in flight")
    whole = runifold_migrations(layouts={("order", 2): LAYOUT})
    assert "fanout is done, and its output does not say how it ended, as that of a parallel does here" in refused(store, first, whole)


def test_steps_done_since_are_not_taken_back(store: CheckpointStore) -> None:
    found = migrated(store, "runifold.workflow", 4, "accepted")
    with resumed(store, found).step("validate") as step:
        step.commit(output=1)
    with nothing_written(store):
        (row,) = undo_migration(store, built_in(), Selection(ids=[found.id])).refused
    assert "steps were done since" in row.detail


def test_label_and_payload_of_version_3_move_together(store: CheckpointStore) -> None:
    """Runifold's next() leaves the label at 3 on a payload that is written as 4 (facts, hazard 7)."""
    steps = built_in()
    first = stored(store, sample("runifold.workflow", 3, "accepted"))
    run_migration(store, steps, Selection(ids=[first.id]), to=("runifold.workflow", 4))
    at = store.load_revision(first.id)
    assert (at.type, at.checkpoint.schema_version, at.checkpoint.payload) == (EventType.MIGRATED, 4, first.payload)
    waiting = {"state": "waiting", "step": "validate", "wait": {"kind": "interrupt", "request": {}}}
    store.compare_and_swap(at.checkpoint.next({**first.payload, "phase": waiting}), 1)
    assert store.load(first.id).schema_version == 4
    with nothing_written(store):
        (row,) = undo_migration(store, steps, Selection(ids=[first.id])).refused
    assert "it was written since as 4" in row.detail
    assert [each.checkpoint.schema_version for each in revisions(store, first.id)] == [3, 4, 4]


def test_a_step_that_was_begun_since_is_not_taken_back(store: CheckpointStore) -> None:
    flow = migrated(store, "runifold.workflow", 4, "accepted")
    resumed(store, flow).step("validate").__enter__()
    with nothing_written(store):
        (row,) = undo_migration(store, built_in(), Selection(ids=[flow.id])).refused
    assert "a step was begun since" in row.detail


def test_a_workflow_that_was_claimed_since_is_not_taken_back(store: CheckpointStore) -> None:
    found = migrated(store, "runifold.workflow", 4, "accepted")
    Claims(store, owner="worker-1", lease=timedelta(minutes=1)).claim(found.id)
    with nothing_written(store):
        (row,) = undo_migration(store, built_in(), Selection(ids=[found.id])).refused
    assert "cannot hold what fencing_token, owner has come to since it was migrated" in row.detail


def test_fields_of_a_workflow_that_nobody_knows_survive(store: CheckpointStore) -> None:
    flow = migrated(store, "runifold.workflow", 4, "with fields of a later version")
    assert (flow.payload["runifold"]["other"], flow.payload["phase"]["since"]) == ({"lane": "fast"}, "noon")


@pytest.mark.shared_data
def test_what_runifold_has_really_written_goes_there_and_back(store: CheckpointStore, shared_data: Path) -> None:
    texts = [json.loads(line) for line in (shared_data / "runifold-serde-samples.jsonl").read_text(encoding="utf-8").splitlines()]
    written = [json.loads(each["text"]) for each in texts if each["name"].startswith(("agent ", "wf "))]
    envelopes = [each for each in written if "schema_version" in each]
    phases = [each for each in written if "state" in each]
    workflow = next(each for each in envelopes if each["kind"] == "runifold.workflow")
    outcomes: list[str] = []
    for envelope in [*envelopes, *({**workflow, "payload": at_phase(workflow["payload"], phase)} for phase in phases)]:
        first = stored(store, checkpoint(envelope))
        steps = runifold_migrations(layouts={("order", 1): real_layout(envelope["payload"])})
        only = Selection(ids=[first.id])
        report = run_migration(store, steps, only)
        outcomes.extend(each.detail.partition(": ")[2] for each in report.refused)
        if not report.refused:
            undone = undo_migration(store, steps, only)
            assert undone.moves == {(Schema(f"eventlog.{first.kind.split('.')[1]}", 1), Schema(first.kind, first.schema_version)): 1}
            assert store.load(first.id).payload == first.payload
            outcomes.append(first.phase or "")
    assert sorted(outcomes) == [
        "completed",
        "completed",
        "it waits for 'interrupt', which has no counterpart here",
        "it waits for a timer in approve, which the given layout does not have as a timer",
        "parallel_in_flight",
        "ready",
        "ready_for_turn",
        "step_in_flight",
        "the race fanout is won, and what its other branches have come to is not known",
        "turn_in_flight",
        "waiting",
        "waiting",
    ]


def real_layout(payload: dict[str, Any]) -> list[Any]:
    """The layout of the samples' workflow; what is done are plain steps."""
    whole = ["validate", Parallel("fanout", ["a", "b", "c", "d"]), WaitForSignal("approve")]
    if payload.get("phase", {}).get("state") == "race_in_flight":
        whole[1] = Race("fanout", ["a", "b", "c", "d"])
    names: list[Any] = payload.get("layout", [])
    return [*names[: payload.get("next_index", 0)], *whole[payload.get("next_index", 0) : len(names)]] or ["none"]


def at_phase(payload: dict[str, Any], phase: dict[str, Any]) -> dict[str, Any]:
    """The sample workflow at the step that a phase is of."""
    done = payload["layout"].index(phase["step"])
    return {**payload, "next_index": done, "outputs": dict.fromkeys(payload["layout"][:done], 1), "phase": phase}


def checkpoint(envelope: dict[str, Any]) -> Checkpoint:
    return Checkpoint.initial(
        CheckpointId.new(),
        RunId.new(),
        envelope["kind"],
        envelope["schema_version"],
        envelope["payload"],
        updated_at=from_millis(envelope["updated_at_ms"]),
    )


def test_a_plan_says_what_the_shipped_steps_refuse(store: CheckpointStore) -> None:
    first = stored(store, sample("runifold.workflow", 4, "accepted"))
    (row,) = plan_migration(store, runifold_migrations(), Selection(ids=[first.id])).refused
    assert 'pass it as runifold_migrations(layouts={("order", 2): [...]})' in row.detail
