"""A backup has what was committed before it, whoever writes meanwhile; what is restored of it gives the same answers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from eventlog import ConfigurationError, Corrupted, Gap, InvalidRequest, KeysUnavailable, NoKeys, NotAStore, Position
from eventlog.address import KafkaAddress, parse_address
from eventlog.archive.anchors import take_anchor
from eventlog.archive.directory import Archive
from eventlog.archive.running import run_archive
from eventlog.backup.making import backup
from eventlog.backup.manifest import MANIFEST, read_backup
from eventlog.backup.restoring import restore
from eventlog.kafka.restoring import begin, finish, produce
from eventlog.verification import verify
from tests.archive.samples import grown
from tests.backup.conftest import Grounds, Opening
from tests.backup.samples import NO_REGISTER, answers, erased, events

REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_restored_store_has_the_same_events_in_the_same_order_and_gives_the_same_answers(grounds: Grounds, opening: Opening) -> None:
    store = opening(grounds.create())
    for _ in range(3):
        last = grown(store, 4)[-1]
    store.delete(last.id, last.revision)
    anchor = take_anchor(store.log)
    made = backup(store, grounds.folder / "backup")
    done = restore(grounds.folder / "backup", grounds.address("restored"), without_register=NO_REGISTER)
    restored = opening(grounds.address("restored"))
    assert events(restored) == events(store)
    assert answers(restored) == answers(store)
    found = verify(restored, anchor=anchor)
    assert (found.is_clean, found.anchored, made.manifest.events, done.recorded) == (True, 13, 13, True), found.faults
    assert (done.store_id == store.log.identity.store_id) == (grounds.kind == "embedded"), "a topic has an id of its own"
    grown(restored, 2)
    assert verify(restored).is_clean


def test_what_is_committed_before_a_backup_is_in_it_while_a_second_process_writes(grounds: Grounds, opening: Opening) -> None:
    address = grounds.create()
    store = opening(address)
    writer = f"{address.split('?')[0]}?state={grounds.folder / 'writer'}" if grounds.kind == "kafka" else address
    command = [sys.executable, "-m", "tests.backup.writing_process", writer]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
    acknowledged: list[tuple[str, int]] = []
    assert process.stdout is not None

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            checkpoint_id, revision = line.split()
            acknowledged.append((checkpoint_id, int(revision)))

    first_id, first_revision = process.stdout.readline().split()
    acknowledged.append((first_id, int(first_revision)))
    listener = threading.Thread(target=listen)
    listener.start()
    try:
        before: list[list[tuple[str, int]]] = []
        for number in range(3):
            before.append(list(acknowledged))
            backup(store, grounds.folder / f"backup-{number}")
        assert process.poll() is None
        assert len(acknowledged) > len(before[0]), "nobody wrote meanwhile"
    finally:
        process.kill()
        listener.join()
        process.wait()
        process.stdout.close()
    for number in (0, 2):
        restore(grounds.folder / f"backup-{number}", grounds.address(f"restored-{number}"), without_register=NO_REGISTER)
        restored = opening(grounds.address(f"restored-{number}"))
        there = {(each.checkpoint.id, each.checkpoint.revision) for each in restored.subscribe(Position(), idle_timeout=0)}
        assert set(before[number]) <= there
        assert len(there) == read_backup(grounds.folder / f"backup-{number}").manifest.events + 1  # and the record


def test_an_encrypted_store_is_backed_up_without_keys_and_restored_with_them(grounds: Grounds, opening: Opening) -> None:
    address = grounds.create(encrypted=True)
    with opening(address) as store:
        grown(store, 3)
        register = erased(store, grown(store, 2)[-1])
        expected = answers(store)
    keys = grounds.folder / "keys"
    backup(opening(address, keys=NoKeys()), grounds.folder / "backup", keys_to=keys)
    assert not [each for each in (grounds.folder / "backup").rglob("*") if "key" in each.name], "not even the wrapped ones"
    restore(grounds.folder / "backup", grounds.address("with"), keys_from=keys, erasure_register=register)
    assert answers(opening(grounds.address("with"))) == expected
    done = restore(grounds.folder / "backup", grounds.address("without"), erasure_register=register, keys=NoKeys(), keys_from=keys)
    restored = opening(grounds.address("without"), keys=NoKeys())
    assert (done.recorded, done.has_keys, len(restored.list().items)) == (False, True, 1)
    with pytest.raises(KeysUnavailable):
        restored.load(restored.list().items[0].id)
    with pytest.raises(ConfigurationError, match="recorded"):
        restore(grounds.folder / "backup", grounds.address("neither"), without_register=NO_REGISTER, keys=NoKeys())


def test_keys_can_be_left_out_or_lie_elsewhere(grounds: Grounds, opening: Opening) -> None:
    store = opening(grounds.create(encrypted=True))
    register = erased(store, grown(store, 1)[-1])
    grown(store, 3)
    with pytest.raises(InvalidRequest, match="keys_to: is not given"):
        backup(store, grounds.folder / "bare")
    with pytest.raises(InvalidRequest, match="in the backup's own directory"):
        backup(store, grounds.folder / "bare", keys_to=grounds.folder / "bare" / "keys")
    with pytest.raises(InvalidRequest, match="no keys to copy"):
        backup(store, grounds.folder / "bare", keys_to=grounds.folder / "safe", without=["keys"])
    made = backup(store, grounds.folder / "bare", without=["keys"])
    assert ("keys", "left out on request") in made.manifest.left_out
    done = restore(grounds.folder / "bare", grounds.address("bare-restored"), erasure_register=register)
    assert not done.has_keys
    restored = opening(grounds.address("bare-restored"), keys=NoKeys())
    assert (len(restored.list().items), verify(restored).sealed) == (1, 4), (
        "without keys nobody can tell an erased payload from a sealed one"
    )
    backup(store, grounds.folder / "whole", keys_to=grounds.folder / "safe")
    with pytest.raises(Corrupted, match="lie apart"):
        restore(grounds.folder / "whole", grounds.address("lost"), without_register=NO_REGISTER)
    restore(grounds.folder / "whole", grounds.address("found"), without_register=NO_REGISTER, keys_from=grounds.folder / "safe")
    assert answers(opening(grounds.address("found"))) == answers(store)


def test_a_place_that_is_taken_is_refused_and_left_alone(grounds: Grounds, opening: Opening, tmp_path: Path) -> None:
    store = opening(grounds.create())
    grown(store, 2)
    backup(store, grounds.folder / "backup")
    with pytest.raises(ConfigurationError, match="is there already"):
        backup(store, grounds.folder / "backup")
    before = events(store)
    with pytest.raises(ConfigurationError, match="already"):
        restore(grounds.folder / "backup", grounds.address("live"), without_register=NO_REGISTER)
    assert events(store) == before
    with pytest.raises(NotAStore, match="holds no backup"):
        restore(tmp_path / "nothing", grounds.address("restored"), without_register=NO_REGISTER)


def test_the_other_log_is_refused_by_name(grounds: Grounds, opening: Opening, tmp_path: Path) -> None:
    backup(opening(grounds.create()), grounds.folder / "backup")
    other = "kafka://localhost:1/never-asked" if grounds.kind == "embedded" else str(tmp_path / "other")
    with pytest.raises(InvalidRequest, match=f"of the kind {grounds.kind}"):
        restore(grounds.folder / "backup", other, without_register=NO_REGISTER)


def test_an_altered_a_missing_and_a_forged_file_are_named_and_nothing_is_restored(grounds: Grounds, opening: Opening) -> None:
    store = opening(grounds.create(encrypted=True))
    grown(store, 3)
    store.list()
    directory, keys = grounds.folder / "backup", grounds.folder / "keys"
    made = backup(store, directory, keys_to=keys)
    for file in made.manifest.files:
        path = made.path(file)
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(Corrupted, match="altered or damaged") as caught:
            restore(directory, grounds.address("restored"), without_register=NO_REGISTER, keys_from=keys)
        assert caught.value.place == str(path)
        path.write_bytes(content)
    manifest = directory / MANIFEST
    manifest.write_text(manifest.read_text().replace('"events": 3', '"events": 2'))
    with pytest.raises(Corrupted, match="does not say what was sealed"):
        restore(directory, grounds.address("restored"), without_register=NO_REGISTER, keys_from=keys)
    if grounds.kind == "embedded":
        assert not Path(grounds.address("restored")).exists()


def test_a_compacted_log_brings_its_archive(tmp_path: Path, opening: Opening) -> None:
    from eventlog.archive.compacting import compact

    grounds = Grounds("embedded", tmp_path, None)
    store = opening(grounds.create())
    grown(store, 6, size=4_000)
    archive = Archive(directory=tmp_path / "archive")
    run_archive(store, archive)
    compact(store, archive, hold_ms=0)
    expected = answers(store)
    backup(store, tmp_path / "backup")
    archive.directory.rename(tmp_path / "gone")
    with pytest.raises(Corrupted, match="bodies of this log are in it only"):
        backup(store, tmp_path / "another")
    assert not (tmp_path / "another").exists()
    restore(tmp_path / "backup", tmp_path / "restored", without_register=NO_REGISTER)
    restored = opening(str(tmp_path / "restored"))
    assert answers(restored) == expected
    found = verify(restored, archive=Archive(directory=tmp_path / "restored" / "archive"))
    assert (found.is_clean, found.archived) == (True, 6)


def test_an_empty_store_can_be_backed_up_and_restored(grounds: Grounds, opening: Opening) -> None:
    backup(opening(grounds.create()), grounds.folder / "backup")
    restore(grounds.folder / "backup", grounds.address("restored"), without_register=NO_REGISTER)
    assert events(opening(grounds.address("restored"))) == []


def test_a_killed_restore_of_a_topic_opens_nowhere_and_is_started_again_from_nothing(tmp_path: Path, broker: str, opening: Opening) -> None:
    grounds = Grounds("kafka", tmp_path, broker)
    store = opening(grounds.create(encrypted=True, access="strict"))
    grown(store, 3)
    keys, address = tmp_path / "keys", grounds.address("restored")
    backup(store, tmp_path / "backup", keys_to=keys)
    command = [sys.executable, "-m", "tests.backup.killed_restore", str(tmp_path / "backup"), str(keys), address]
    killed = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, check=False)
    assert killed.returncode == -signal.SIGKILL
    for each in (address, f"{address.split('?')[0]}?state={tmp_path / 'other'}"):
        with pytest.raises(ConfigurationError, match="is being restored"):
            opening(each)
    restore(tmp_path / "backup", address, without_register=NO_REGISTER, keys_from=keys)
    restored = opening(address)
    assert (events(restored), answers(restored)) == (events(store), answers(store))


def test_what_compaction_had_taken_before_a_backup_is_the_same_gap_after_a_restore(tmp_path: Path, broker: str, opening: Opening) -> None:
    grounds = Grounds("kafka", tmp_path, broker)
    source = opening(grounds.create("source"))
    last = grown(source, 5)[-1]
    grown(source, 1)
    records = [record for batch, _ in source.log.read(Position()) for record in batch]
    day_ago = int(time.time() * 1000) - 86_400_000
    left = [each._replace(recorded_at=day_ago) for each in records if each.key != last.id.encode() or records.index(each) >= 3]
    name = f"{grounds.address('live')}&hold_ms=1000"
    address = parse_address(name)
    assert isinstance(address, KafkaAddress)
    state = begin(address, partitions=2, encrypted=False)  # a topic as a compaction leaves it
    produce(address, state.topic_id, [left])
    finish(address, state)
    live = opening(name)
    grown(live, 1)  # the log's clock is what it appends
    assert live.catalog.has_gaps()
    backup(live, tmp_path / "backup")
    restored_name = f"{grounds.address('restored')}&hold_ms=1000"
    restore(tmp_path / "backup", restored_name, without_register=NO_REGISTER)
    restored = opening(restored_name)
    assert [each for each in restored.history(last.id) if isinstance(each, Gap)] == [
        each for each in live.history(last.id) if isinstance(each, Gap)
    ]
    assert (events(restored), answers(restored)) == (events(live), answers(live))
    assert verify(restored).is_clean
