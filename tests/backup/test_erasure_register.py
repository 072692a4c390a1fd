"""Nothing comes back by a restore that was erased after the backup, unless somebody has said so by name."""

from __future__ import annotations

import pytest

from eventlog import CheckpointStore, Deleted, InvalidRequest
from eventlog.backup.making import backup
from eventlog.backup.record import restores_of
from eventlog.backup.restoring import restore
from tests.archive.samples import grown
from tests.backup.conftest import Grounds, Opening
from tests.backup.samples import NO_REGISTER


def test_without_the_register_a_restore_is_refused_unless_forced_which_is_recorded(grounds: Grounds, opening: Opening) -> None:
    store = opening(grounds.create())
    grown(store, 2)
    made = backup(store, grounds.folder / "backup")
    with pytest.raises(InvalidRequest, match="erasure register"):
        restore(grounds.folder / "backup", grounds.address("restored"))
    with pytest.raises(InvalidRequest, match="both"):
        restore(grounds.folder / "backup", grounds.address("restored"), register=lambda _: 0, without_register=NO_REGISTER)
    with pytest.raises(InvalidRequest, match="no reason"):
        restore(grounds.folder / "backup", grounds.address("restored"), without_register=" ")
    restore(grounds.folder / "backup", grounds.address("restored"), without_register=NO_REGISTER, actor="ada")
    restored = opening(grounds.address("restored"))
    (recorded,) = restores_of(restored)
    assert recorded.actor == "ada"
    assert recorded.checkpoint.payload == {
        "backup_id": made.manifest.backup_id,
        "store_id": store.log.identity.store_id,
        "position": str(made.manifest.anchor.position),
        "events": 2,
        "taken_at": made.manifest.taken_at,
        "erasures_applied": None,
        "without_erasure_register": NO_REGISTER,
    }
    backup(restored, grounds.folder / "second")
    restore(grounds.folder / "second", grounds.address("again"), register=lambda _: 0)
    again = restores_of(opening(grounds.address("again")))
    assert [each.checkpoint.payload["erasures_applied"] for each in again] == [None, 0]


def test_the_register_is_applied_before_anybody_can_open_the_store(grounds: Grounds, opening: Opening) -> None:
    store = opening(grounds.create())
    erased, kept = grown(store, 2)[-1], grown(store, 2)[-1]
    backup(store, grounds.folder / "backup")
    seen: list[int] = []

    def register(restored: CheckpointStore) -> int:
        if grounds.kind == "embedded":
            assert not (grounds.folder / "restored").exists()
        seen.append(len(restored.list().items))
        restored.delete(erased.id, erased.revision)
        return 1

    done = restore(grounds.folder / "backup", grounds.address("restored"), register=register)
    assert (done.erasures, seen) == (1, [2])
    restored = opening(grounds.address("restored"))
    with pytest.raises(Deleted):
        restored.load(erased.id)
    assert restored.load(kept.id) == kept
    assert restores_of(restored)[0].checkpoint.payload["erasures_applied"] == 1


def test_a_register_that_fails_leaves_no_store(grounds: Grounds, opening: Opening) -> None:
    backup(opening(grounds.create()), grounds.folder / "backup")

    def register(_: CheckpointStore) -> int:
        raise RuntimeError("the register cannot be read")

    with pytest.raises(RuntimeError):
        restore(grounds.folder / "backup", grounds.address("restored"), register=register)
    if grounds.kind == "embedded":
        assert sorted(each.name for each in grounds.folder.iterdir() if each.is_dir()) == ["backup", "live"]
