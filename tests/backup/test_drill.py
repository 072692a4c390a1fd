"""A drill says whether a backup would give the store back, and leaves nothing behind."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from eventlog import ConfigurationError, NoKeys
from eventlog.backup.drill import drill
from eventlog.backup.making import backup
from tests.archive.samples import grown, noise, tampering
from tests.backup.conftest import Grounds, Opening
from tests.store.samples import initial


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_drill_of_a_good_backup_finds_it_the_same_and_leaves_nothing(
    grounds: Grounds, opening: Opening, tmp_path: Path, encrypted: bool
) -> None:
    store = opening(grounds.create(encrypted=encrypted))
    grown(store, 4)
    grown(store, 2)
    keys = grounds.folder / "keys" if encrypted else None
    backup(store, grounds.folder / "backup", keys_to=keys)
    grown(store, 3)
    (tmp_path / "aside").mkdir()
    found = drill(grounds.folder / "backup", store, grounds.address("live"), keys_from=keys, aside=tmp_path / "aside")
    assert found.is_clean, found.differences
    assert (found.events, found.live_events, found.checkpoints, found.payloads) == (6, 6, 2, 6)
    assert list((tmp_path / "aside").iterdir()) == []
    if grounds.broker is not None:
        admin = KafkaAdminClient(bootstrap_servers=grounds.broker)
        assert [each for each in admin.list_topics() if f"{grounds.folder.name}-live.drill" in each] == []
        admin.close()
    if encrypted:
        found = drill(grounds.folder / "backup", store, grounds.address("live"), keys=NoKeys())
        assert (found.is_clean, found.payloads) == (True, 0)


def test_a_drill_names_the_file_that_is_damaged(grounds: Grounds, opening: Opening) -> None:
    store = opening(grounds.create())
    grown(store, 4)
    made = backup(store, grounds.folder / "backup")
    path = made.path(made.manifest.files[0])
    path.write_bytes(path.read_bytes() + b"!")
    found = drill(grounds.folder / "backup", store, grounds.address("live"))
    assert (found.is_clean, found.difference_count) == (False, 1)
    assert str(path) in found.differences[0]


def test_a_drill_notices_a_live_store_that_is_another_now(tmp_path: Path, opening: Opening) -> None:
    grounds = Grounds("embedded", tmp_path, None)
    with opening(grounds.create()) as store:
        grown(store, 4)
        backup(store, tmp_path / "backup")
    with tampering(tmp_path / "live") as connection:
        connection.execute("DELETE FROM events WHERE position = 2")
    found = drill(tmp_path / "backup", opening(grounds.address("live")), grounds.address("live"))
    assert found.differences == ["1 events of the backup are not in partition 0 of the live store"]


def test_a_drill_notices_a_live_event_that_the_backup_lacks(tmp_path: Path, opening: Opening) -> None:
    grounds = Grounds("embedded", tmp_path, None)
    with opening(grounds.create()) as store:
        grown(store, 2)
        backup(store, tmp_path / "backup")
    stranger = initial({"said": noise("stranger", 100)})
    with opening(grounds.create("other")) as other:
        other.compare_and_swap(stranger, None)
    with closing(sqlite3.connect(tmp_path / "other" / "log.sqlite3")) as source:
        event = source.execute("SELECT event FROM events").fetchone()[0]
    with tampering(tmp_path / "live") as connection:
        connection.execute("UPDATE events SET event = ?, checkpoint_id = ?, revision = 0 WHERE position = 1", (event, stranger.id))
    found = drill(tmp_path / "backup", opening(grounds.address("live")), grounds.address("live"))
    assert found.difference_count >= 2
    assert f"of checkpoint {stranger.id} at 0:1 of the live store is not in the backup" in found.differences[0]


def test_a_backup_of_another_store_is_refused(tmp_path: Path, opening: Opening) -> None:
    grounds = Grounds("embedded", tmp_path, None)
    backup(opening(grounds.create()), tmp_path / "backup")
    with pytest.raises(ConfigurationError, match="not of"):
        drill(tmp_path / "backup", opening(grounds.create("other")), grounds.address("other"))
