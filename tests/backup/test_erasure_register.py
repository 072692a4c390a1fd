"""Nothing comes back by a restore that was erased after the backup, unless somebody has said so by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from eventlog import CheckpointStore, ConfigurationError, Corrupted, Deleted, InvalidRequest
from eventlog.backup.drill import drill
from eventlog.backup.making import backup
from eventlog.backup.record import RESTORES, restores_of
from eventlog.backup.restoring import restore
from eventlog.erasure.applying import require_register
from eventlog.kafka.log import KafkaLog
from eventlog.kafka.tail import read_until
from eventlog.verification import verify
from tests.archive.samples import grown
from tests.backup.conftest import Grounds, Opening
from tests.backup.samples import NO_REGISTER, erased
from tests.erasure.planting import plant, sealed_bodies, secrets, shown


def test_without_the_register_a_restore_is_refused_unless_forced_which_is_recorded(grounds: Grounds, opening: Opening) -> None:
    store = opening(grounds.create())
    last = grown(store, 2)[-1]
    made = backup(store, grounds.folder / "backup")
    register = erased(store, last)
    with pytest.raises(InvalidRequest, match="erasure register"):
        restore(grounds.folder / "backup", grounds.address("restored"))
    with pytest.raises(InvalidRequest, match="both"):
        restore(grounds.folder / "backup", grounds.address("restored"), erasure_register=register, without_register=NO_REGISTER)
    with pytest.raises(InvalidRequest, match="without_register"):
        restore(grounds.folder / "backup", grounds.address("restored"), without_register=" ")
    restore(grounds.folder / "backup", grounds.address("restored"), without_register="lost in the fire", actor="ada")
    restored = opening(grounds.address("restored"))
    assert restored.load(last.id) == last, "it is back, and the store says why"
    (recorded,) = restores_of(restored)
    assert recorded.actor == "ada"
    assert recorded.checkpoint.payload == {
        "backup_id": made.manifest.backup_id,
        "store_id": store.log.identity.store_id,
        "position": str(made.manifest.anchor.position),
        "events": 2,
        "taken_at": made.manifest.taken_at,
        "erasures_applied": None,
        "without_erasure_register": "lost in the fire",
    }
    with pytest.raises(InvalidRequest, match="a record of who did what"):
        restored.delete(RESTORES, 0)
    backup(restored, grounds.folder / "second")
    restore(grounds.folder / "second", grounds.address("again"), erasure_register=erased(restored, last))
    again = restores_of(opening(grounds.address("again")))
    assert [each.checkpoint.payload["erasures_applied"] for each in again] == [None, 1]


@pytest.mark.parametrize("encrypted", [False, True], ids=["in clear text", "encrypted"])
def test_what_was_erased_after_a_backup_is_in_no_file_of_what_is_restored_from_it(
    grounds: Grounds, opening: Opening, tmp_path: Path, encrypted: bool
) -> None:
    store = opening(grounds.create(encrypted=encrypted))
    planted = plant(store)
    wanted = secrets(store, planted) | sealed_bodies(store, planted)
    keys = grounds.folder / "keys" if encrypted else None
    backup(store, grounds.folder / "backup", keys_to=keys)
    late = grown(store, 1)[-1]
    register = erased(store, late, *planted.victims)
    done = restore(grounds.folder / "backup", grounds.address("restored"), erasure_register=register, keys_from=keys)
    assert done.erasures is not None
    assert (done.erasures.registered, done.erasures.present) == (4, 3)
    restored = opening(grounds.address("restored"))
    for each in planted.victims:
        with pytest.raises(Deleted):
            restored.load(each.id)
    with pytest.raises(Deleted):
        restored.compare_and_swap(late, None)  # an id that the backup did not know begins no more
    for each in planted.others:
        assert restored.load(each.id).payload == each.payload
    found = verify(restored)
    assert (found.is_clean, found.erased) == (True, 11), found.faults
    assert set(require_register(restored).erased()) == {late.id, *(each.id for each in planted.victims)}
    if grounds.broker is None:
        assert (grounds.folder / "restored" / "certificates").is_dir()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert shown(restored.log.directory, wanted, scratch) == {}
    gone = [each.id for each in planted.victims]
    assert in_the_topics(store, wanted, gone) or grounds.broker is None, "the original topic still holds them"
    assert in_the_topics(restored, wanted, gone) == []
    erased(restored, planted.others[0])
    assert [each.kind for each in require_register(restored).entries()][-2:] == ["erased", "certified"]


def in_the_topics(store: CheckpointStore, wanted: dict[str, bytes], gone: Sequence[str]) -> list[str]:
    """Which of these the topics of a store hold, as the broker hands them out; an embedded store has none."""
    if not isinstance(store.log, KafkaLog):
        return []
    log = store.log
    ends = log._offsets.last_stable(timeout=30)
    values = [each.value or b"" for records, _ in read_until(log.address, log.topic_id, dict.fromkeys(ends, 0), ends) for each in records]
    assert values
    wrapped = [] if store.keys is None else list(log.open_keys().values_left(gone))
    return [name for name, secret in wanted.items() if any(secret in value for value in values)] + wrapped


def test_a_register_that_is_older_than_the_backup_cut_changed_or_another_stores_is_refused(
    tmp_path: Path, grounds: Grounds, opening: Opening
) -> None:
    store = opening(grounds.create())
    register = erased(store, grown(store, 1)[-1])
    older = tmp_path / "older.jsonl"
    shutil.copy(register, older)
    erased(store, grown(store, 1)[-1])
    backup(store, grounds.folder / "backup")

    def refused(path: Path, error: type[Exception], match: str) -> None:
        with pytest.raises(error, match=match):
            restore(grounds.folder / "backup", grounds.address("restored"), erasure_register=path)

    refused(older, ConfigurationError, "not a continuation")
    refused(tmp_path / "nothing.jsonl", InvalidRequest, "missing")
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(register.read_bytes()[:-9])
    refused(cut, InvalidRequest, "was cut")
    lines = register.read_text().splitlines(keepends=True)
    first = json.loads(lines[0])
    changed = tmp_path / "changed.jsonl"
    changed.write_text("".join([json.dumps({**first, "checkpoints": {}}) + "\n", *lines[1:]]))
    refused(changed, Corrupted, "line 1")
    other = opening(grounds.create("other"))
    refused(erased(other, grown(other, 1)[-1]), Corrupted, "another store")
    restore(grounds.folder / "backup", grounds.address("restored"), erasure_register=register)


def test_a_drill_tries_the_live_stores_register_too(grounds: Grounds, opening: Opening) -> None:
    store = opening(grounds.create())
    gone = grown(store, 3)[-1]
    grown(store, 2)
    backup(store, grounds.folder / "backup")
    erased(store, gone)
    found = drill(grounds.folder / "backup", store, grounds.address("live"))
    assert found.is_clean, found.differences
    assert (found.events, found.erased_since, found.erased_again, found.payloads) == (5, 3, 1, 2)
