"""A plan is applied exactly: what has changed since is skipped by name, nothing else is touched, and a kill changes nothing of that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eventlog import Checkpoint, CheckpointId, CheckpointStore, EventType, HeldByLegalHold, InvalidRequest, create_store, open_store
from eventlog.erasure.erasing import erase
from eventlog.erasure.selection import Selection
from eventlog.recovery import Decision, Decisions
from eventlog.retention import Holds, HoldTarget, Item, Kept, Plan, Skipped, applications, apply_plan, retention_report
from tests.recovery.left_runs import WHAT, LeftRun
from tests.recovery.samples import Outside
from tests.retention.samples import ALL, ids, is_deleted, orders, planned, soon
from tests.store.samples import chain_is_intact, nothing_written, revisions

PROCESS = Path(__file__).parent / "applying_process.py"
REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_plan_shows_what_would_go_and_deletes_nothing(own: CheckpointStore, tenant: str) -> None:
    made = orders(own, 3)
    kept = orders(own, 1, kind="other.thing")
    with nothing_written(own):
        plan = planned(own)
    assert ids(plan.items) == ids(made)
    assert (plan.kept, plan.looked_at, plan.tenant, plan.made_by) == ((), 4, tenant, "ann")
    item = next(each for each in plan.items if each.checkpoint_id == made[0].id)
    assert (item.tenant, item.kind, item.revision, item.revisions, item.rule) == (tenant, "acme.order", 0, 1, "all orders")
    assert item.stored_bytes > 0
    assert item.due_since == item.recorded_at + 1000
    assert not is_deleted(own, kept[0].id)


def test_just_what_was_planned_is_deleted_and_who_and_why_is_on_record(own: CheckpointStore, tenant: str) -> None:
    made, others = orders(own, 3), orders(own, 1, kind="other.thing")
    plan = planned(own)
    later = orders(own, 2)
    done = apply_plan(own, plan, reason="monthly clean-up")
    assert (done.deleted.checkpoints, done.skipped) == (3, ())
    assert [is_deleted(own, each.id) for each in (*made, *others, *later)] == [True] * 3 + [False] * 3
    for each in made:
        last = own.load_revision(each.id)
        assert (last.type, last.actor, last.checkpoint.event_id) == (EventType.DELETED, "ann", plan.event_id(_item(plan, each.id)))
        assert len(revisions(own, each.id)) == 2  # the whole stream has ended, and no revision of it is gone by itself
    (record,) = applications(own)
    assert (record.id, record.plan, record.policy, record.ended, record.planned) == (done.record, plan.digest, plan.policy, True, 3)
    assert [tuple(each) for each in record.starts] == [("ann", "monthly clean-up")]
    assert {key: number for key, (number, _) in record.deleted.items()} == {(tenant, "acme.order", "all orders"): 3}


def test_what_has_changed_since_the_plan_is_skipped_and_named(own: CheckpointStore) -> None:
    moved, held, gone, left = orders(own, 4)
    plan = planned(own)
    own.compare_and_swap(moved.next({"step": 1}), 0)
    hold = Holds(own).place(HoldTarget.of_checkpoint(held.id), reason="case 4711").hold
    own.delete(gone.id, 0)
    done = apply_plan(own, plan, reason="clean-up")
    assert {each.checkpoint_id: each.why for each in done.skipped} == {
        moved.id: "moved on",
        held.id: "held",
        gone.id: "deleted by somebody else",
    }
    assert done.deleted.checkpoints == 1
    assert is_deleted(own, left.id)
    assert not is_deleted(own, moved.id)
    (skipped,) = (each for each in done.skipped if each.why == "held")
    assert isinstance(skipped, Skipped)
    assert hold.id in skipped.detail
    with pytest.raises(HeldByLegalHold):
        own.delete(held.id, 0)
    assert [each.checkpoint_id for each in Holds(own).release(hold.id, reason="closed").requeued] == [held.id]


def test_a_plan_that_is_applied_again_does_nothing_more(own: CheckpointStore) -> None:
    orders(own, 3)
    plan = planned(own)
    first = apply_plan(own, plan, reason="clean-up")
    after = orders(own, 1)
    again = apply_plan(own, plan, reason="once more")
    assert again == first
    assert not is_deleted(own, after[0].id)
    (record,) = applications(own)
    assert [each.reason for each in record.starts] == ["clean-up", "once more"]


def test_an_effect_stays_whose_run_has_moved_on(own: CheckpointStore) -> None:
    run = orders(own, 1, kind="eventlog.workflow", phase="completed")[0]
    effect = Checkpoint.initial(CheckpointId.new(), run.run_id, "eventlog.effect", 1, {}, tenant=run.tenant, phase="completed")
    own.compare_and_swap(effect, None)
    plan = planned(own, b'[[rule]]\nname = "all"\nolder_than = "1s"\n')
    assert ids(plan.items) == ids([run, effect])
    own.compare_and_swap(run.next({"step": 1}), 0)
    done = apply_plan(own, plan, reason="clean-up")
    assert {each.checkpoint_id: each.why for each in done.skipped} == {run.id: "moved on", effect.id: "its run is kept"}
    assert not is_deleted(own, effect.id)


@pytest.mark.parametrize("phase", WHAT)
def test_a_run_in_flight_is_kept_with_its_effects_until_somebody_has_decided(own: CheckpointStore, tmp_path: Path, phase: str) -> None:
    left = LeftRun(own, Outside(tmp_path / "outside"), phase)
    everything = b'[[rule]]\nname = "all"\nolder_than = "1s"\n'
    plan = planned(own, everything)
    assert plan.items == ()
    kept = {each.kind: each for each in plan.kept}
    assert (kept[plan_kind(phase)].checkpoint_id, kept[plan_kind(phase)].kept) == (left.id, Kept.IN_FLIGHT)
    assert {each.kept for each in plan.kept} <= {Kept.IN_FLIGHT, Kept.RUN_KEPT}
    assert len(plan.kept) == (1 if phase == "waiting" else 2)
    Decisions(own).resolve(left.id, Decision.MARK_FAILED, actor="ann", reason="order cancelled")
    decided = planned(own, everything)
    assert ids(decided.items) == ids(plan.kept)
    assert apply_plan(own, decided, reason="clean-up").deleted.checkpoints == len(plan.kept)


def plan_kind(phase: str) -> str:
    return "eventlog.agent" if phase == "turn" else "eventlog.workflow"


def test_a_plan_of_another_store_or_tenant_is_refused(own: CheckpointStore, store: CheckpointStore) -> None:
    plan = planned(own)
    foreign = Plan.of(**{**_arguments(plan), "store_id": "another"})
    of_all = Plan.of(**{**_arguments(plan), "tenant": None})
    with nothing_written(store):
        for wrong in (foreign, of_all):
            with pytest.raises(InvalidRequest):
                apply_plan(own, wrong, reason="clean-up")


def test_a_plan_by_a_clock_ahead_of_the_logs_is_refused(own: CheckpointStore) -> None:
    made = orders(own, 1)
    plan = planned(own, now=soon() + 3_600_000)
    assert ids(plan.items) == ids(made)
    with pytest.raises(InvalidRequest, match="ahead of the log's"):
        apply_plan(own, plan, reason="clean-up")
    assert not is_deleted(own, made[0].id)


def test_a_plan_survives_its_file_and_a_changed_file_is_refused(own: CheckpointStore, tmp_path: Path) -> None:
    made = orders(own, 2)
    Holds(own).place(HoldTarget.of_checkpoint(made[0].id), reason="case 4711")
    plan, folder = planned(own, override_floor="the regulator agreed"), tmp_path / "plans"
    folder.mkdir()
    file = folder / "plan.json"
    plan.write(file)
    assert Plan.read(file) == plan
    assert list(folder.iterdir()) == [file]
    text = file.read_text()
    for changed in (text.replace(made[1].id, made[0].id), text.replace('"revision":0', '"revision":1'), text[:-10], "[]"):
        file.write_text(changed)
        with pytest.raises(InvalidRequest):
            Plan.read(file)


def test_an_overridden_floor_is_on_record_with_who_and_why(own: CheckpointStore) -> None:
    made = orders(own, 1)
    policy = b'[floor]\n"acme.*" = "183d"\n' + ALL
    plan = planned(own, policy, override_floor="the regulator agreed")
    assert [each.below_floor for each in plan.items] == [True]
    apply_plan(own, plan, reason="clean-up")
    assert is_deleted(own, made[0].id)
    (record,) = applications(own)
    assert record.floor_override == {"actor": "ann", "at": plan.made_at, "reason": "the regulator agreed"}


def test_the_report_counts_due_overdue_held_in_flight_and_deleted(own: CheckpointStore, tenant: str) -> None:
    policy = b'grace = "1s"\n' + ALL
    orders(own, 2)
    apply_plan(own, planned(own, policy), reason="clean-up")
    held, _, _ = orders(own, 3)
    Holds(own).place(HoldTarget.of_checkpoint(held.id), reason="case 4711")
    orders(own, 1, kind="eventlog.agent", phase="turn_in_flight")
    plan = planned(own, policy.replace(b'kind = "acme.*"\n', b""))
    lines = {each.kind: each for each in retention_report(own, plan)}
    line = lines["acme.order"]
    assert (line.tenant, line.rule, line.due, line.overdue, line.held, line.in_flight) == (tenant, "all orders", 2, 2, 1, 0)
    assert (line.deleted, line.due_bytes > 0, line.deleted_bytes > 0) == (2, True, True)
    assert (lines["eventlog.agent"].due, lines["eventlog.agent"].in_flight) == (0, 1)


def test_the_report_counts_what_was_erased_apart_from_what_rules_have_deleted(tmp_path: Path) -> None:
    tenant = "acme"
    create_store(tmp_path / "store")
    with open_store(tmp_path / "store", tenant=tenant) as alone:  # an erasure needs the projection for itself
        gone, _ = orders(alone, 2)
        erase(alone, Selection.of_checkpoints(gone.id), actor="dpo", reason="request 4711")
        lines = retention_report(alone, planned(alone, ALL))
    assert [(each.tenant, each.kind, each.rule, each.due, each.deleted, each.erased) for each in lines] == [
        (tenant, "acme.order", None, 0, 0, 1),
        (tenant, "acme.order", "all orders", 1, 0, 0),
    ]


@pytest.mark.long_on_kafka
def test_killed_before_or_after_any_write_and_started_again_exactly_the_plan_is_deleted(
    store: CheckpointStore, second_address: str, tenant: str, tmp_path: Path
) -> None:
    of_nobody = f'[[rule]]\nname = "none"\ntenant = "{tenant}"\nolder_than = "1s"\n'.encode()
    apply_plan(store, planned(store, of_nobody), reason="what other tests were refused is due in every plan of the whole store")
    number, finished = 0, False
    while not finished:
        number += 1
        for when in ("before", "after"):
            name = f"{tenant}-{number}-{when}"
            made = orders(store, 7, tenant=name)
            bystanders = orders(store, 2, tenant=f"{name}-other")
            policy = f'[[rule]]\nname = "all"\ntenant = "{name}"\nolder_than = "1s"\n'
            plan, file = planned(store, policy.encode()), tmp_path / f"{number}-{when}.json"
            assert ids(plan.items) == ids(made)
            plan.write(file)
            victim = subprocess.run(
                [sys.executable, str(PROCESS), second_address, str(file), when, str(number)],
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            finished = victim.stdout == "unkilled\n"
            assert finished or victim.returncode == -9, victim.stderr
            done = apply_plan(store, Plan.read(file), reason="clean-up")
            assert (done.deleted.checkpoints, done.skipped) == (7, ())
            for each in made:
                history = revisions(store, each.id)
                assert [one.type for one in history] == [EventType.REVISION, EventType.DELETED]
                assert chain_is_intact(history)
            assert not any(is_deleted(store, each.id) for each in bystanders)
            (record,) = (each for each in applications(store) if each.plan == plan.digest)
            assert (record.ended, sum(count for count, _ in record.deleted.values())) == (True, 7)
    assert number == 6  # the beginning, three batches, the end, and one more that there is not


def _item(plan: Plan, checkpoint_id: str) -> Item:
    found: Item = next(each for each in plan.items if each.checkpoint_id == checkpoint_id)
    return found


def _arguments(plan: Plan) -> dict[str, object]:
    return {name: getattr(plan, name) for name in type(plan).model_fields if name != "digest"}
