"""What a store consists of besides its log comes back with it: accesses, legal holds, and who restored it."""

from __future__ import annotations

import pytest

from eventlog import AccessDenied, CheckpointStore, HeldByLegalHold, Principal
from eventlog.backup.drill import drill
from eventlog.backup.making import backup
from eventlog.backup.restoring import restore
from eventlog.position import Position
from eventlog.privacy.access_event import decode
from eventlog.privacy.store import PrincipalStore
from eventlog.retention import Holds, HoldTarget
from eventlog.verification import verify
from tests.archive.samples import grown
from tests.backup.conftest import Grounds, Opening
from tests.backup.samples import NO_REGISTER


def accesses(store: CheckpointStore) -> list[tuple[int, bytes]]:
    assert store.recorder is not None
    store.recorder.flush()
    return [(each.recorded_at, each.value) for records, _ in store.recorder.log.read(Position()) for each in records]


@pytest.mark.parametrize("mode", ["strict", "buffered"])
def test_the_accesses_come_back_in_their_mode_and_go_on_with_the_restore(grounds: Grounds, opening: Opening, mode: str) -> None:
    store = opening(grounds.create(access=mode))
    last = grown(store, 3)[-1]
    store.list()
    backup(store, grounds.folder / "backup")
    before = accesses(store)
    who = Principal("olga", None, ["operator"])
    restore(grounds.folder / "backup", grounds.address("restored"), without_register=NO_REGISTER, principal=who)
    restored = opening(grounds.address("restored"))
    assert isinstance(restored, PrincipalStore)
    assert restored.recorder is not None
    assert restored.recorder.mode == mode
    after = accesses(restored)
    assert after[: len(before)] == before
    (recorded, *_) = (decode(value).event for _, value in after[len(before) :])
    assert (recorded.subject, recorded.action, recorded.reason) == ("olga", "restore", NO_REGISTER)
    assert restored.load(last.id) == last
    found = verify(restored)
    assert found.is_clean, found.faults
    assert found.accesses > len(before)
    assert [row for row in restored.catalog.report("access", {"checkpoint": str(last.id)}).rows if "compare_and_swap" in row]


def test_a_store_whose_accesses_were_left_out_begins_a_new_record_of_them(grounds: Grounds, opening: Opening) -> None:
    store = opening(grounds.create(access="strict"))
    grown(store, 2)
    store.list()
    store.catalog.report("access", {})
    made = backup(store, grounds.folder / "backup", without=["access"])
    assert ("access", "left out on request") in made.manifest.left_out
    restore(grounds.folder / "backup", grounds.address("restored"), without_register=NO_REGISTER)
    restored = opening(grounds.address("restored"))
    assert [decode(value).event.action for _, value in accesses(restored)][:1] == ["restore"]
    assert verify(restored).is_clean


def test_backup_and_drill_are_on_record_and_an_operators(grounds: Grounds, opening: Opening) -> None:
    store = opening(grounds.create(access="strict"))
    grown(store, 2)
    reader, operator = (store.for_principal(Principal(f"a-{role}", None, [role])) for role in ("reader", "operator"))
    with pytest.raises(AccessDenied):
        backup(reader, grounds.folder / "backup")
    backup(operator, grounds.folder / "backup")
    with pytest.raises(AccessDenied):
        drill(grounds.folder / "backup", reader, grounds.address("live"))
    assert drill(grounds.folder / "backup", operator, grounds.address("live")).is_clean
    who = Principal("a-reader", None, ["reader"])
    with pytest.raises(AccessDenied):
        restore(grounds.folder / "backup", grounds.address("restored"), without_register=NO_REGISTER, principal=who)
    told = [decode(value).event for _, value in accesses(store)]
    assert [(each.subject, each.action, each.outcome.value) for each in told if each.action.startswith("backup")] == [
        ("a-reader", "backup", "refused"),
        ("a-operator", "backup", "allowed"),
        ("a-reader", "backup_drill", "refused"),
        ("a-operator", "backup_drill", "allowed"),
    ]


def test_a_legal_hold_holds_in_the_restored_store(grounds: Grounds, opening: Opening) -> None:
    store = opening(grounds.create())
    held, free = grown(store, 2)[-1], grown(store, 2)[-1]
    hold = Holds(store).place(HoldTarget.of_checkpoint(held.id), reason="case 4711").hold
    backup(store, grounds.folder / "backup")
    restore(grounds.folder / "backup", grounds.address("restored"), without_register=NO_REGISTER)
    restored = opening(grounds.address("restored"))
    with pytest.raises(HeldByLegalHold) as refused:
        restored.delete(held.id, held.revision)
    assert refused.value.holds == (hold.id,)
    restored.delete(free.id, free.revision)
    Holds(restored).release(hold.id, reason="closed")
    restored.delete(held.id, held.revision)
