"""Every version in every phase is migrated by one revision and taken back by another; what cannot be is refused by name and stays."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from eventlog import Checkpoint, CheckpointId, CheckpointStore, Conflict, EventType, InvalidRequest
from eventlog.recovery import (
    CannotCarry,
    MigrationReport,
    Migrations,
    Refusal,
    Schema,
    Selection,
    plan_migration,
    plan_undo,
    run_migration,
    undo_migration,
)
from eventlog.recovery.boundaries import Boundary
from eventlog.recovery.migrations import Payload
from tests.recovery.migration_samples import built_in, every_sample, orders, sample, steps_for, stored
from tests.store.samples import chain_is_intact, initial, nothing_written, revisions

ORDER_1, ORDER_2, ORDER_3 = (Schema("acme.order", version) for version in (1, 2, 3))


def order(store: CheckpointStore, *, version: int = 1, payload: Any = None, **fields: Any) -> Checkpoint:
    given = {"price": 5, "phase": "ready"} if payload is None else payload
    return stored(store, initial(given, schema_version=version, **fields))


def only(*checkpoints: Checkpoint, **fields: Any) -> Selection:
    return Selection(ids=[each.id for each in checkpoints], **fields)


def moved(report: MigrationReport) -> dict[str, int]:
    return {f"{start} -> {end}": count for (start, end), count in report.moves.items()}


def why(report: MigrationReport) -> list[tuple[str, str]]:
    return [(each.checkpoint_id, each.why.value) for each in report.refused]


@pytest.mark.parametrize(("schema", "name"), every_sample(), ids=str)
def test_every_version_in_every_phase_is_migrated_and_taken_back(store: CheckpointStore, schema: Schema, name: str) -> None:
    kind, version = schema
    first = stored(store, sample(kind, version, name, revision=4, labels={"env": "prod"}, usage={"tokens": 9, "private": 1}))
    migrations = steps_for(kind, first.payload)
    with nothing_written(store):
        planned = plan_migration(store, migrations, only(first))
    done = run_migration(store, migrations, only(first))
    assert (moved(planned), planned.refused) == (moved(done), [])
    found = store.load_revision(first.id)
    after = found.checkpoint
    assert done.moves == {(Schema(kind, version), Schema(after.kind, after.schema_version)): 1}
    assert (found.type, after.revision, after.phase) == (EventType.MIGRATED, 5, first.phase)
    assert (after.labels, after.run_id, after.tenant, after.updated_at) == (first.labels, first.run_id, first.tenant, first.updated_at)
    assert all(after.usage[meter] >= spent for meter, spent in first.usage.items())
    assert all(after.usage[meter] >= first.payload["usage"][meter] for meter in after.usage if meter in first.payload.get("usage", {}))

    with nothing_written(store):
        back = plan_undo(store, migrations, only(first))
    undone = undo_migration(store, migrations, only(first))
    assert (moved(back), back.refused) == (moved(undone), [])
    found = store.load_revision(first.id)
    assert (found.type, found.checkpoint.revision) == (EventType.MIGRATED, 6)
    restored = {**first.payload}
    if "usage" in restored:  # never decreases: nor by an undo, where the header said more than the payload
        raised = {meter: max(spent, first.usage.get(meter, 0)) for meter, spent in restored["usage"].items()}
        assert found.checkpoint.payload["usage"] == raised
        restored = with_usage(restored, found.checkpoint.payload["usage"])
    assert found.checkpoint == after.next(restored, event_id=found.checkpoint.event_id, updated_at=first.updated_at).model_copy(
        update={"kind": kind, "schema_version": version}
    )
    assert chain_is_intact(revisions_behind_import(store, first.id))
    with nothing_written(store):
        assert undo_migration(store, migrations, only(first)).unchanged == 1


def with_usage(payload: Payload, usage: dict[str, int]) -> Payload:
    """The payload as Runifold would say it of more usage."""
    text = json.dumps({**payload, "usage": usage})
    changed: Payload = json.loads(text)
    if "outcome" in changed["phase"]:
        changed["phase"]["outcome"]["usage"] = usage
    return changed


def revisions_behind_import(store: CheckpointStore, checkpoint_id: str) -> list[Any]:
    return [each for each in store.history(checkpoint_id) if hasattr(each, "checkpoint")]


def test_several_steps_are_one_revision_and_each_checkpoint_is_migrated_once(store: CheckpointStore) -> None:
    first, second, third = order(store), order(store, version=2, payload={"price": 1, "currency": "EUR"}), order(store, version=3)
    selection = only(first, second, third)
    report = run_migration(store, orders(), selection)
    assert moved(report) == {f"{ORDER_1} -> {ORDER_3}": 1, f"{ORDER_2} -> {ORDER_3}": 1}
    assert (report.unchanged, report.refused, report.conflicts, report.looked_at) == (1, [], 0, 3)
    assert store.load(first.id).payload == {"cents": 500, "currency": "EUR", "phase": "ready"}
    assert [each.type for each in revisions(store, first.id)] == [EventType.REVISION, EventType.MIGRATED]
    with nothing_written(store):
        again = run_migration(store, orders(), selection)
    assert (moved(again), again.unchanged) == ({}, 3)


def test_it_goes_no_further_than_it_is_told(store: CheckpointStore) -> None:
    first, past = order(store), order(store, version=3)
    report = run_migration(store, orders(), only(first, past), to=ORDER_2)
    assert (moved(report), report.unchanged) == ({f"{ORDER_1} -> {ORDER_2}": 1}, 1)
    with pytest.raises(InvalidRequest, match=r"no step leads to acme\.order 9"):
        plan_migration(store, orders(), only(first), to=("acme.order", 9))


def test_a_migration_is_undone_as_often_as_it_was_done(store: CheckpointStore) -> None:
    first = order(store)
    for _ in range(2):
        run_migration(store, orders(), only(first), to=ORDER_2)
        run_migration(store, orders(), only(first))
        assert moved(undo_migration(store, orders(), only(first))) == {f"{ORDER_3} -> {ORDER_2}": 1}
        assert moved(undo_migration(store, orders(), only(first))) == {f"{ORDER_2} -> {ORDER_1}": 1}
        with nothing_written(store):
            assert undo_migration(store, orders(), only(first)).unchanged == 1
    assert store.load(first.id).payload == first.payload


def test_what_was_never_migrated_is_nothing_to_undo(store: CheckpointStore) -> None:
    native = order(store, version=3, payload={"cents": 5, "currency": "EUR"})
    with nothing_written(store):
        report = undo_migration(store, orders(), only(native))
    assert (moved(report), report.unchanged, report.refused) == ({}, 1, [])


def test_what_was_written_since_is_taken_back_with_it_if_the_earlier_version_can_hold_it(store: CheckpointStore) -> None:
    whole, broken, more = (order(store) for _ in range(3))
    selection = only(whole, broken, more)
    run_migration(store, orders(), selection)
    for checkpoint, payload in ((whole, {"cents": 900}), (broken, {"cents": 950}), (more, {"cents": 900, "currency": "CHF"})):
        at = store.load(checkpoint.id)
        store.compare_and_swap(at.next({**at.payload, **payload}), at.revision)
    report = undo_migration(store, orders(), selection)
    assert moved(report) == {f"{ORDER_3} -> {ORDER_1}": 1}
    assert store.load(whole.id).payload == {"price": 9, "phase": "ready"}
    assert why(report) == [(broken.id, "cannot_carry"), (more.id, "would_lose")]
    assert "the price is no whole number" in report.refused[0].detail
    assert "acme.order 1 cannot hold what currency has come to since it was migrated" in report.refused[1].detail
    assert store.load(more.id).revision == 2


def test_a_step_without_a_way_back_makes_an_undo_refuse_it_by_name(store: CheckpointStore) -> None:
    one_way = Migrations().register(from_=("acme.order", 1), to=("acme.order", 2), up=lambda payload: payload)
    first = order(store)
    run_migration(store, one_way, only(first))
    with nothing_written(store):
        report = undo_migration(store, one_way, only(first))
    assert why(report) == [(first.id, "no_down_step")]
    assert "acme.order 1 -> acme.order 2" in report.refused[0].detail


def picky(payload: Payload) -> Payload:
    if payload["phase"] == "in_flight":
        raise CannotCarry("in flight, and version 2 knows no such phase")
    return {**payload, **({"of": payload["missing"]} if payload["phase"] == "odd" else {})}


def demands_a_price(payload: Payload) -> None:
    if "price" not in payload:
        raise ValueError("there is no price")


def test_what_cannot_be_migrated_is_named_with_its_reason_and_the_others_go_on(store: CheckpointStore) -> None:
    migrations = (
        Migrations().register(from_=("acme.order", 1), to=("acme.order", 2), up=picky).validator(("acme.order", 2), demands_a_price)
    )
    good, in_flight, odd = (order(store, payload={"price": 1, "phase": phase}) for phase in ("ready", "in_flight", "odd"))
    invalid, no_object = order(store, payload={"phase": "ready"}), order(store, payload=["a", "list"])
    unknown_version, foreign, gone = order(store, version=7), stored(store, initial(kind="acme.invoice")), order(store)
    store.delete(gone.id, 0)
    absent = initial()
    all_of_them = [in_flight, odd, invalid, no_object, unknown_version, foreign, gone, absent]
    selection = only(*all_of_them, good)
    with nothing_written(store):
        planned = plan_migration(store, migrations, selection)
    report = run_migration(store, migrations, selection)
    assert planned.refused == report.refused
    assert moved(report) == {f"{ORDER_1} -> {ORDER_2}": 1}
    assert [each.why for each in report.refused] == [
        Refusal.CANNOT_CARRY,
        Refusal.STEP_FAILED,
        Refusal.INVALID_RESULT,
        Refusal.CANNOT_CARRY,
        Refusal.NO_WAY,
        Refusal.NO_WAY,
        Refusal.DELETED,
        Refusal.NOT_FOUND,
    ]
    said = {each.checkpoint_id: each.detail for each in report.refused}
    assert said[in_flight.id] == "acme.order 1 -> acme.order 2: in flight, and version 2 knows no such phase"
    assert "KeyError: 'missing'" in said[odd.id]
    assert "not what acme.order 2 demands: ValueError: there is no price" in said[invalid.id]
    assert "no step starts from acme.order 7" in said[unknown_version.id]
    assert report.refused[0][1:5] == (0, "acme.order", 1, "in_flight")
    assert store.load(in_flight.id).revision == 0


@pytest.mark.parametrize("made", [None, [], {"set": {1}}, {"phase": {"state": "ready_for_turn"}}], ids=str)
def test_what_is_no_run_of_ours_is_never_written_as_one(store: CheckpointStore, made: Any) -> None:
    migrations = Migrations().register(from_=("acme.order", 1), to=("eventlog.agent", 1), up=lambda _: made)
    first = order(store)
    with nothing_written(store):
        report = run_migration(store, migrations, only(first))
    assert why(report) == [(first.id, "invalid_result")]
    assert "not what eventlog.agent 1 demands" in report.refused[0].detail


def test_a_step_cannot_change_what_is_stored_by_changing_what_it_gets(store: CheckpointStore) -> None:
    def greedy(payload: Payload) -> Payload:
        payload["items"].append("mine")
        return {"nothing": True}

    first = order(store, payload={"items": []})
    plan_migration(store, Migrations().register(from_=("acme.order", 1), to=("acme.order", 2), up=greedy), only(first))
    assert store.load(first.id).payload == {"items": []}


def test_a_phase_that_the_payload_never_named_stays(store: CheckpointStore) -> None:
    first = order(store, payload={"price": 1}, phase="charging")
    run_migration(store, orders(), only(first))
    assert store.load(first.id).phase == "charging"


def test_usage_is_raised_to_what_the_payload_held_and_never_lowered(store: CheckpointStore) -> None:
    migrations = Migrations().register(
        from_=("acme.order", 1), to=("acme.order", 2), up=lambda payload: payload, usage=lambda payload: payload["used"]
    )
    first = order(store, payload={"used": {"tokens": 7, "turns": 9}}, usage={"tokens": 12, "turns": 1})
    odd = order(store, payload={"used": "much"})
    report = run_migration(store, migrations, only(first, odd))
    assert store.load(first.id).usage == {"tokens": 12, "turns": 9}
    assert why(report) == [(odd.id, "step_failed")]


def test_filters_choose_by_kind_tenant_and_number(store: CheckpointStore) -> None:
    tenant, other = f"t{CheckpointId.new()}", f"t{CheckpointId.new()}"
    mine = [order(store, tenant=tenant) for _ in range(5)]
    elsewhere, invoice = order(store, tenant=other), stored(store, initial(kind="acme.invoice", tenant=tenant))
    gone = order(store, tenant=tenant)
    store.delete(gone.id, 0)
    both = orders().register(from_=("acme.invoice", 1), to=("acme.invoice", 2), up=lambda payload: payload)
    assert moved(run_migration(store, both, Selection(tenant=tenant, kind="acme.order", limit=2))) == {f"{ORDER_1} -> {ORDER_3}": 2}
    rest = run_migration(store, both, Selection(tenant=tenant, kind="acme.order"))
    assert (moved(rest), rest.unchanged, why(rest)) == ({f"{ORDER_1} -> {ORDER_3}": 3}, 2, [(gone.id, "deleted")])
    assert moved(run_migration(store, both, Selection(ids=[elsewhere.id, invoice.id], tenant=tenant))) == {
        "acme.invoice 1 -> acme.invoice 2": 1
    }
    assert store.load(elsewhere.id).schema_version == 1
    assert {store.load(each.id).schema_version for each in mine} == {3}
    assert moved(undo_migration(store, both, Selection(tenant=tenant, limit=4))) == {f"{ORDER_3} -> {ORDER_1}": 4}
    for wrong, field in ((Selection(kind="acme.car"), "kind"), (Selection(limit=0), "limit")):
        with pytest.raises(InvalidRequest) as caught:
            plan_migration(store, both, wrong)
        assert caught.value.field == field


def test_a_fork_is_refused_before_anything_is_written(store: CheckpointStore) -> None:
    first = order(store)
    fork = orders().register(from_=("acme.order", 1), to=("acme.bill", 1), up=lambda payload: payload)
    with nothing_written(store), pytest.raises(InvalidRequest, match=r"acme\.bill 1, acme\.order 3"):
        run_migration(store, fork, only(first))


def test_beside_a_live_writer_the_one_that_loses_loads_anew(store: CheckpointStore) -> None:
    first = order(store)
    turns: list[int] = []

    def while_somebody_writes(payload: Payload) -> Payload:
        if len(turns) < 3:
            at = store.load(first.id)
            store.compare_and_swap(at.next({"price": len(turns), "phase": "ready"}), at.revision)
            turns.append(at.revision)
        return payload

    migrations = Migrations().register(from_=("acme.order", 1), to=("acme.order", 2), up=while_somebody_writes)
    held = store.load(first.id)
    report = run_migration(store, migrations, only(first))
    assert (moved(report), report.conflicts) == ({f"{ORDER_1} -> {ORDER_2}": 1}, 3)
    assert [each.checkpoint.payload["price"] for each in revisions(store, first.id)] == [5, 0, 1, 2, 2]
    with pytest.raises(Conflict):
        store.compare_and_swap(held.next({"price": 100}), 0)


def test_writers_that_are_always_first_are_left_alone(store: CheckpointStore) -> None:
    first = order(store)

    def always_late(payload: Payload) -> Payload:
        at = store.load(first.id)
        store.compare_and_swap(at.next(payload), at.revision)
        return payload

    report = run_migration(store, Migrations().register(from_=("acme.order", 1), to=("acme.order", 2), up=always_late), only(first))
    assert why(report) == [(first.id, "busy")]
    assert store.load(first.id).schema_version == 1


def test_two_that_migrate_at_once_write_it_once(store: CheckpointStore) -> None:
    first = order(store)
    inner: list[MigrationReport] = []

    def at_the_same_time(payload: Payload) -> Payload:
        if not inner:
            inner.append(MigrationReport())
            inner[0] = run_migration(store, migrations, only(first))
        return {**payload, "currency": "EUR"}

    migrations = Migrations().register(from_=("acme.order", 1), to=("acme.order", 2), up=at_the_same_time)
    outer = run_migration(store, migrations, only(first))
    assert (inner[0].moves.total(), outer.moves.total(), outer.unchanged) == (1, 0, 1)
    assert outer.conflicts == 0  # it was the very same event
    assert len(revisions(store, first.id)) == 2


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("undo", [False, True])
def test_an_answer_that_is_lost_is_looked_for_in_the_log(
    store: CheckpointStore, breaking: Callable[..., Any], committed: bool, undo: bool
) -> None:
    first = order(store)
    if undo:
        run_migration(store, orders(), only(first))
    boundary = Boundary.MIGRATION_UNDONE if undo else Boundary.CHECKPOINT_MIGRATED
    with breaking(boundary, committed=committed):
        report = (undo_migration if undo else run_migration)(store, orders(), only(first))
    assert (report.moves.total(), report.conflicts) == (1, 0 if committed else 1)
    assert len(revisions(store, first.id)) == (3 if undo else 2)


def test_progress_is_told_after_each_checkpoint(store: CheckpointStore) -> None:
    made = [order(store) for _ in range(3)]
    seen: list[int] = []
    run_migration(store, orders(), only(*made), progress=lambda report: seen.append(report.looked_at))
    assert seen == [1, 2, 3]


def test_a_report_counts_what_is_in_many_versions(store: CheckpointStore) -> None:
    tenant = f"t{CheckpointId.new()}"
    mine = [(schema, name) for schema, name in every_sample() if schema.kind.startswith("runifold.")]
    for schema, name in mine:
        stored(store, sample(*schema, name, tenant=tenant))
    report = run_migration(store, built_in(), Selection(tenant=tenant))
    kinds = Counter(start.kind for start, _ in report.moves.elements())
    assert kinds["runifold.agent"] == 6
    assert {each.why for each in report.refused} == {Refusal.CANNOT_CARRY}
    assert report.looked_at == len(mine)
