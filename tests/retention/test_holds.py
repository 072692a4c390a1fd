"""A legal hold keeps what it lies on from every deletion, by name, until it is released; others on the same thing stay."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import CheckpointId, CheckpointStore, Conflict, HeldByLegalHold, InvalidRequest, NotFound, RunId
from eventlog.holds.placing import _Holds
from eventlog.holds.reserved import TENANT
from eventlog.retention import Holds, HoldState, HoldTarget, Wanted, require_not_held
from tests.retention.samples import ids, is_deleted, orders, planned
from tests.store.other_process import Refused, calling
from tests.store.samples import initial, nothing_written, revisions, stream


@pytest.mark.parametrize("by", ["checkpoint", "run", "tenant", "label"])
def test_what_a_hold_lies_on_is_not_deleted_and_the_error_names_the_hold(store: CheckpointStore, tenant: str, by: str) -> None:
    made = stream(store, 2, tenant=tenant, labels={"case": tenant})[-1]
    other = stream(store, 1, tenant=f"{tenant}-other")[0]
    target = {
        "checkpoint": HoldTarget.of_checkpoint(made.id),
        "run": HoldTarget.of_run(made.run_id),
        "tenant": HoldTarget.of_tenant(tenant),
        "label": HoldTarget.of_label("case", tenant),
    }[by]
    placed = Holds(store).place(target, reason="case 4711")
    assert (placed.kept, placed.already_deleted, placed.hold.state) == (1, (), HoldState.PLACED)
    for _ in range(2):
        with pytest.raises(HeldByLegalHold, match=placed.hold.id) as caught:
            store.delete(made.id, 1)
        assert (caught.value.checkpoint_id, caught.value.holds, caught.value.remembered) == (made.id, (placed.hold.id,), True)
    assert store.load(made.id) == made
    store.delete(other.id, 0)
    Holds(store).release(placed.hold.id, reason="closed")
    assert store.delete(made.id, 1).revision == 2


def test_several_on_one_thing_are_independent(store: CheckpointStore, tenant: str) -> None:
    made = stream(store, 1, tenant=tenant)[0]
    holds = Holds(store)
    first, second = (holds.place(HoldTarget.of_checkpoint(made.id), reason=reason).hold.id for reason in ("one", "two"))
    third = holds.place(HoldTarget.of_tenant(tenant), reason="three").hold.id
    for left in ([first, second, third], [second, third], [third]):
        with pytest.raises(HeldByLegalHold) as caught:
            store.delete(made.id, 0)
        assert caught.value.holds == tuple(sorted(left))
        holds.release(left[0], reason="closed")
    store.delete(made.id, 0)


def test_it_holds_in_another_process_and_for_whoever_sees_one_tenant_only(
    store: CheckpointStore, own: CheckpointStore, second_address: str, tenant: str
) -> None:
    made = stream(store, 1, tenant=tenant)[0]
    hold = Holds(store).place(HoldTarget.of_run(made.run_id), reason="case 4711").hold.id
    with pytest.raises(HeldByLegalHold, match=hold):
        own.delete(made.id, 0)
    if not second_address.startswith("kafka://"):  # there it is in use by `own`
        (refused,) = calling(second_address, ("delete", (made.id, 0), {}))
        assert isinstance(refused, Refused)
        assert (refused.error, refused.attributes["holds"]) == ("HeldByLegalHold", (hold,))


def test_what_comes_later_is_held_too(store: CheckpointStore, tenant: str) -> None:
    hold = Holds(store).place(HoldTarget.of_label("customer", tenant), reason="case 4711")
    assert hold.kept == 0
    made = stream(store, 1, tenant=tenant, labels={"customer": tenant})[0]
    with pytest.raises(HeldByLegalHold):
        store.delete(made.id, 0)


def test_who_takes_the_label_off_does_not_take_the_hold_off(store: CheckpointStore, tenant: str) -> None:
    made = stream(store, 1, tenant=tenant, labels={"customer": tenant})[0]
    Holds(store).place(HoldTarget.of_label("customer", tenant), reason="case 4711")
    store.compare_and_swap(made.next({"step": 1}, labels={}), 0)
    with pytest.raises(HeldByLegalHold):
        store.delete(made.id, 1)
    held = [each for each in planned(store).kept if each.checkpoint_id == made.id]
    assert [str(each.kept) for each in held] == ["held"]


def test_a_hold_on_a_label_may_be_limited_to_a_tenant(store: CheckpointStore, tenant: str) -> None:
    label = {"customer": tenant}
    inside, outside = (stream(store, 1, tenant=name, labels=label)[0] for name in (tenant, f"{tenant}-other"))
    Holds(store).place(HoldTarget.of_label("customer", tenant, tenant=tenant), reason="case 4711")
    store.delete(outside.id, 0)
    with pytest.raises(HeldByLegalHold):
        store.delete(inside.id, 0)


def test_placing_says_what_was_gone_already(store: CheckpointStore, tenant: str) -> None:
    gone, there = orders(store, 2, tenant=tenant)
    store.delete(gone.id, 0)
    placed = Holds(store).place(HoldTarget.of_tenant(tenant), reason="case 4711")
    assert (placed.kept, placed.already_deleted) == (1, (gone.id,))
    with pytest.raises(HeldByLegalHold):  # an erasure would take what a deletion has left
        require_not_held(store, [gone.id], reason="a wish")
    assert not is_deleted(store, there.id)


def test_who_where_when_and_why_are_on_record(store: CheckpointStore, tenant: str) -> None:
    holds = Holds(store)
    placed = holds.place(HoldTarget.of_tenant(tenant), reason="case 4711").hold
    assert (placed.placed_by, placed.reason, placed.released_at) == ("tester", "case 4711", None)
    released = holds.release(placed.id, reason="settled").hold
    assert released[:6] == (placed.id, placed.target, HoldState.RELEASED, "case 4711", "tester", placed.placed_at)
    assert (released.release_reason, released.released_by) == ("settled", "tester")
    assert placed.placed_at is not None
    assert released.released_at is not None
    assert released.released_at >= placed.placed_at
    assert holds.get(placed.id) == released
    assert placed.id not in [each.id for each in holds.list()]
    assert released in holds.list(released=True)
    phases = [each.checkpoint.phase for each in revisions(store, placed.id)]
    assert phases == ["placing", "placed", "releasing", "released"]
    assert holds.release(placed.id, reason="again").hold == released


def test_a_tenants_store_sees_and_places_its_own_holds_only(store: CheckpointStore, own: CheckpointStore, tenant: str) -> None:
    others = stream(store, 1, tenant=f"{tenant}-other")[0]
    foreign = Holds(store).place(HoldTarget.of_checkpoint(others.id), reason="case 1").hold
    mine = Holds(own).place(HoldTarget.of_tenant(tenant), reason="case 2").hold
    assert [each.id for each in Holds(own).list()] == [mine.id]
    for call in (lambda: Holds(own).get(foreign.id), lambda: Holds(own).place(HoldTarget.of_checkpoint(others.id), reason="x")):
        with pytest.raises(NotFound):
            call()
    with pytest.raises(NotFound):
        Holds(own).release(foreign.id, reason="x")
    with pytest.raises(InvalidRequest):
        Holds(own).place(HoldTarget.of_tenant(f"{tenant}-other"), reason="x")


def test_what_is_malformed_or_never_was_is_refused(store: CheckpointStore) -> None:
    holds = Holds(store)
    with nothing_written(store):
        for reason in ("", "two\nlines", "x" * 1001):
            with pytest.raises(InvalidRequest):
                holds.place(HoldTarget.of_run(RunId.new()), reason=reason)
        with pytest.raises(NotFound):
            holds.place(HoldTarget.of_checkpoint(CheckpointId.new()), reason="case 4711")
        with pytest.raises(NotFound):
            holds.release(CheckpointId.new(), reason="closed")
    made = stream(store, 1)[0]
    with pytest.raises(NotFound):
        holds.release(made.id, reason="closed")


def test_nobody_writes_or_deletes_holds_past_them(store: CheckpointStore, tenant: str) -> None:
    hold = Holds(store).place(HoldTarget.of_tenant(tenant), reason="case 4711").hold
    there = store.load(hold.id)
    register = store._deleter.register.id_of(0)
    with pytest.raises(InvalidRequest, match="own"):
        store.compare_and_swap(there.next({**there.payload, "phase": {"state": "released"}}), there.revision)
    with pytest.raises(InvalidRequest, match="own"):
        store.compare_and_swap(initial(tenant=TENANT), None)
    for each in (hold.id, register):
        with pytest.raises(InvalidRequest, match="record of who"):
            store.delete(each, store.load(each).revision)


def test_a_placing_that_was_interrupted_goes_on_with_the_same_id(
    store: CheckpointStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stream(store, 1, tenant=tenant)[0]
    holds, identity = _Holds(store), CheckpointId.new()
    with monkeypatch.context() as patched:
        patched.setattr(holds._register, "add", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            holds.place(HoldTarget.of_tenant(tenant), reason="case 4711", hold_id=identity)
    assert holds.get(identity).state is HoldState.PLACING
    placed = holds.place(HoldTarget.of_tenant(tenant), reason="case 4711", hold_id=identity)
    assert (placed.hold.state, placed.hold.id) == (HoldState.PLACED, identity)
    assert holds.place(HoldTarget.of_tenant(tenant), reason="case 4711", hold_id=identity) == placed
    with pytest.raises(InvalidRequest, match="another hold"):
        holds.place(HoldTarget.of_tenant(tenant), reason="another case", hold_id=identity)
    with monkeypatch.context() as patched:
        patched.setattr(holds._register, "remove", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            holds.release(identity, reason="closed")
    with pytest.raises(HeldByLegalHold):
        store.delete(made.id, 0)
    assert holds.release(identity, reason="closed").hold.state is HoldState.RELEASED
    store.delete(made.id, 0)
    with pytest.raises(InvalidRequest, match="released"):
        holds.place(HoldTarget.of_tenant(tenant), reason="case 4711", hold_id=identity)


def test_a_hold_that_is_released_while_it_is_placed_leaves_nothing_behind(
    store: CheckpointStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stream(store, 1, tenant=tenant)[0]
    holds, identity = _Holds(store), CheckpointId.new()
    add = holds._register.add

    def released_first(hold: Any) -> None:
        Holds(store).release(identity, reason="a mistake")
        add(hold)

    monkeypatch.setattr(holds._register, "add", released_first)
    with pytest.raises(Conflict):
        holds.place(HoldTarget.of_tenant(tenant), reason="case 4711", hold_id=identity)
    store.delete(made.id, 0)


def test_the_release_of_the_last_hold_makes_a_refused_deletion_due_again(store: CheckpointStore, own: CheckpointStore, tenant: str) -> None:
    refused, moved, erased, untouched = orders(own, 4, kind="other.thing")
    holds = Holds(store)
    first, second = (holds.place(HoldTarget.of_tenant(tenant), reason="case").hold.id for _ in range(2))
    for each in (refused, moved):
        with pytest.raises(HeldByLegalHold):
            own.delete(each.id, 0)
    with pytest.raises(HeldByLegalHold):
        require_not_held(own, [erased.id], wanted=Wanted.ERASE, reason="a wish")
    own.compare_and_swap(moved.next({"step": 1}), 0)
    assert {str(each.kept) for each in planned(own).kept} == {"held"}
    assert holds.release(first, reason="closed").requeued == ()
    assert ids(holds.release(second, reason="closed").requeued) == ids([refused, erased])
    plan = planned(own)
    assert [(each.checkpoint_id, each.rule) for each in plan.items] == [(refused.id, "(refused before)")]
    assert {each.checkpoint_id: str(each.kept) for each in plan.kept} == {
        moved.id: "moved on since it was refused",
        erased.id: "to be erased",
    }
    assert untouched.id not in ids([*plan.items, *plan.kept])


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt
