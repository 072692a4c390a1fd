"""Each check of `doctor` fails or warns when its thing is wrong, says what to do, and is content otherwise."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from eventlog import Principal, create_store, doctor, open_store
from eventlog.address import parse_address
from eventlog.diagnosis import kept, machine
from eventlog.diagnosis import store as state_of
from eventlog.diagnosis.check import Check, State
from eventlog.doctor import examine
from eventlog.kafka import examination
from eventlog.kafka.client import discard, producer
from eventlog.privacy.providers.key_file import KeyFile
from tests.cli.command_line import environment, inside
from tests.recovery.left_runs import LeftRun
from tests.recovery.samples import Outside
from tests.store.conftest import shared_with_state
from tests.store.samples import stream
from tests.waiting import eventually

Usage = namedtuple("Usage", "total used free")  # as shutil has it


def checks(address: str | Path) -> dict[str, Check]:
    found = {each.check: each for each in examine(str(address))}
    for each in found.values():
        assert bool(each.advice) == (each.state is not State.OK), each
    return found


def wrong(check: Check, state: State, *words: str) -> None:
    """It says so, with these words in what it says or advises."""
    assert check.state is state, check
    for word in words:
        assert word in check.detail + check.advice, check


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    create_store(tmp_path / "store")
    with open_store(tmp_path / "store") as store:
        stream(store, 3)
        store.list()
    return tmp_path / "store"


def test_it_is_content_with_a_sound_store_of_either_kind(fresh_address: str, kind: str) -> None:
    with open_store(fresh_address) as store:
        stream(store, 3)
    found = checks(fresh_address)
    assert [each for each in found.values() if each.state is not State.OK] == []
    common = {
        "versions",
        "open files",
        "disk",
        "file system",
        "open",
        "encryption",
        "log",
        "projection",
        "quarantine",
        "gaps",
        "clock",
        "runs",
        "archive",
        "access",
    }
    own = {"topic", "replicas", "transactions"} if kind == "kafka" else {"permissions", "write-ahead log", "snapshot"}
    assert found.keys() == common | own


# -- the machine -----------------------------------------------------------------------------------------------


@contextmanager
def limited_to(files: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_too_few_open_files_are_a_warning() -> None:
    with limited_to(machine.LEAST_OPEN_FILES - 1):
        wrong(machine.open_files(), State.WARN, "ulimit -n")
    with limited_to(machine.LEAST_OPEN_FILES):
        assert machine.open_files().state is State.OK


def test_a_directory_on_a_networks_file_system_fails(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    lines = ["22 1 8:1 / / rw - ext4 /dev/sda1 rw", f"40 22 0:45 / {tmp_path.resolve()} rw,relatime shared:7 - nfs4 server:/export rw"]
    mounts.write_text("\n".join(lines))
    monkeypatch.setattr(machine, "MOUNTS", mounts)
    wrong(checks(directory)["file system"], State.FAIL, "nfs4", "Move the directory")
    assert machine.file_system_of(Path("/")) == "ext4"
    monkeypatch.setattr(machine, "MOUNTS", tmp_path / "missing")
    assert machine.file_system(directory).state is State.OK


def test_a_disk_that_is_almost_full_is_a_warning(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100 << 30, 99 << 30, 1 << 30))
    wrong(checks(directory)["disk"], State.WARN, "1.0 GB of 100 GB", "Free some space")


def test_another_version_of_the_client_is_refused_by_name() -> None:
    program = """
import importlib.metadata as metadata
known = metadata.version
metadata.version = lambda name: "9.9.9" if name == "kafka-python" else known(name)
from eventlog.doctor import examine
for each in examine("kafka://localhost:1/orders"):
    print(each.check, each.state, each.detail, each.advice)
"""
    run = subprocess.run([sys.executable, "-c", program], env=environment(), capture_output=True, text=True, timeout=60, check=True)
    assert "topic fail kafka-python 9.9.9 is installed where 3.0.12 is needed" in run.stdout
    assert "Install the exact version" in run.stdout


# -- a directory -----------------------------------------------------------------------------------------------


def test_a_directory_that_everybody_may_write_is_a_warning(directory: Path) -> None:
    directory.chmod(0o777)
    wrong(checks(directory)["permissions"], State.WARN, "chmod o-w")


def test_a_file_that_may_not_be_written_fails(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked of the system: who runs the tests may be root, whom no mode keeps out."""
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "log.sqlite3" and allowed(path, mode))
    wrong(checks(directory)["permissions"], State.FAIL, "log.sqlite3", "Give user")


def test_a_write_ahead_log_that_grows_is_a_warning(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(directory) as store:
        stream(store, 2)
        monkeypatch.setattr(doctor, "LARGEST_WAL_BYTES", 1)
        wrong(checks(directory)["write-ahead log"], State.WARN, "close long subscriptions")


def test_a_key_file_that_others_may_read_fails_with_the_command_that_helps(tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    create_store(tmp_path / "store", encryption=KeyFile(path=key))
    assert checks(tmp_path / "store")["encryption"].state is State.OK
    key.chmod(0o644)
    wrong(checks(tmp_path / "store")["open"], State.FAIL, "0644", f"chmod 600 {key}")


def test_keys_that_are_older_than_the_log_fail_and_erased_ones_are_not_missed(tmp_path: Path) -> None:
    """As when only the log was put back, or only an old copy of the keys was there."""
    store, key = tmp_path / "store", tmp_path / "key.json"
    create_store(store, encryption=KeyFile(path=key))
    with open_store(store) as opened:
        ended = stream(opened, 1)[-1]
        stream(opened, 2)
        opened.delete(ended.id, 0)
    earlier = (store / "keys.sqlite").read_bytes()
    with open_store(store) as opened:
        lost = stream(opened, 2)[-1]
        assert opened.keys is not None
        opened.keys.table.destroy(ended.id)  # as an erasure does, behind the end of the checkpoint
    assert checks(store)["encryption"].state is State.OK
    for each in store.glob("keys.sqlite*"):
        each.unlink()
    (store / "keys.sqlite").write_bytes(earlier)
    (store / "keys.sqlite").chmod(0o600)
    wrong(checks(store)["encryption"], State.FAIL, "1 checkpoints have lost theirs", lost.id, "Restore a copy of the wrapped keys")


def test_an_access_log_that_grows_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_store(tmp_path / "store", access="strict")
    assert checks(tmp_path / "store")["access"].state is State.OK
    monkeypatch.setattr(kept, "LARGEST_ACCESS_BYTES", 1)
    wrong(checks(tmp_path / "store")["access"], State.WARN, "mode strict", "eventlog access prune --older-than")
    assert inside("access", "prune", "--older-than", "400d", "--store", tmp_path / "store").code == 0, "what is advised can be typed"


def test_an_archive_that_is_gone_or_another_stores_fails(directory: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    assert inside("archive", "run", "--to", archive, "--store", directory).code == 0
    assert checks(directory)["archive"].state is State.OK
    create_store(tmp_path / "other")
    with open_store(tmp_path / "other") as other:
        stream(other, 1)
    shutil.copy(directory / "archive.json", tmp_path / "other")
    wrong(checks(tmp_path / "other")["archive"], State.FAIL, "is the archive of store", "an archive directory of its own")
    archive.rename(tmp_path / "elsewhere")
    wrong(checks(directory)["archive"], State.FAIL, "holds no archive", "eventlog archive run --to")


def test_who_may_not_look_the_store_over_is_told_so(tmp_path: Path) -> None:
    create_store(tmp_path / "store")
    found = list(examine(str(tmp_path / "store"), principal=Principal("rita", None, ["reader"])))
    wrong(found[-1], State.FAIL, "rita may not doctor")
    assert found[-1].check == "access"


def test_a_snapshot_that_was_left_behind_is_a_warning(directory: Path) -> None:
    assert checks(directory)["snapshot"].state is State.OK
    old = time.time() - state_of.OLDEST_SNAPSHOT - 3_600
    os.utime(directory / "snapshot.duckdb", (old, old))
    wrong(state_of.snapshot(directory), State.WARN, "7 days old", "Restart the process")
    for each in directory.glob("log.sqlite3*"):
        os.utime(each, (old - 10, old - 10))
    assert state_of.snapshot(directory).state is State.OK, "nothing has changed since"


# -- an open store ---------------------------------------------------------------------------------------------


class Earlier(datetime):
    """A clock that is an hour behind."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return super().now(tz) - timedelta(hours=1)


class DaysLater(datetime):
    """A clock that is two days ahead."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return super().now(tz) + timedelta(days=2)


def test_an_event_of_the_future_is_a_warning_about_clocks(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_of, "datetime", Earlier)
    wrong(checks(directory)["clock"], State.WARN, "60 minutes from now", "NTP")


def test_a_store_without_events_has_no_clock_to_compare(tmp_path: Path) -> None:
    create_store(tmp_path)
    assert checks(tmp_path)["clock"].state is State.OK


def test_a_run_that_nobody_resumes_is_a_warning_after_a_day(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(directory) as store:
        waiting = LeftRun(store, Outside(tmp_path / "outside"), "waiting")
        monkeypatch.setattr(state_of, "datetime", DaysLater)
        assert state_of.runs(store) == Check("runs", State.OK, "0 in flight, 1 waiting"), waiting.id
        left = LeftRun(store, Outside(tmp_path / "outside"), "turn")
    wrong(checks(directory)["runs"], State.WARN, "1 in flight, 1 waiting", left.id, "eventlog recovery list --older-than 24h")
    assert inside("recovery", "list", "--older-than", "24h", "--store", directory).code == 0, "what is advised can be typed"
    monkeypatch.setattr(state_of, "datetime", datetime)
    assert checks(directory)["runs"].state is State.OK


# -- the brokers -----------------------------------------------------------------------------------------------


def partition(number: int, *, leader: int = 1, in_sync: int = 3) -> dict[str, Any]:
    return {"partition_index": number, "leader_id": leader, "replica_nodes": [1, 2, 3], "isr_nodes": [1, 2, 3][:in_sync]}


def test_a_copy_that_is_behind_is_a_warning_and_a_partition_without_leader_fails() -> None:
    assert examination.of_partitions([partition(0), partition(1)]).state is State.OK
    wrong(examination.of_partitions([partition(0), partition(1, in_sync=2)]), State.WARN, "partitions 1 of 2", "bring it back")
    wrong(examination.of_partitions([partition(0, leader=-1, in_sync=0), partition(1)]), State.FAIL, "no leader for partitions 0")


@pytest.mark.parametrize("kind", [pytest.param("kafka", marks=pytest.mark.broker)], indirect=True)
def test_a_transaction_that_somebody_holds_open_fails(fresh_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = parse_address(shared_with_state(fresh_address, tmp_path / "doctor"))
    foreign = producer(where, transactional_id="somebody-else", max_event_bytes=1 << 20)  # type: ignore[arg-type]
    try:
        foreign.init_transactions()
        foreign.begin_transaction()
        foreign.send(where.topic, key=b"x", value=b"x", partition=1).get(timeout=10)  # type: ignore[union-attr]
        assert examination.transactions(where, 2).state is State.OK, "it has only begun"  # type: ignore[arg-type]
        monkeypatch.setattr(examination, "OLDEST_TRANSACTION", 0.0)
        eventually(lambda: examination.transactions(where, 2).state is State.FAIL)  # type: ignore[arg-type]
        wrong(examination.transactions(where, 2), State.FAIL, "in partition 1", "kafka-transactions.sh")  # type: ignore[arg-type]
        foreign.abort_transaction()
        assert examination.transactions(where, 2).state is State.OK  # type: ignore[arg-type]
    finally:
        discard(foreign)


def test_all_that_is_found_comes_as_json_and_a_failure_ends_with_1(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = inside("doctor", "--store", directory, "--format", "json").json()
    assert all(each.keys() == {"check", "state", "detail", "advice"} for each in sound)
    monkeypatch.setattr(state_of, "datetime", Earlier)
    assert inside("doctor", "--store", directory).code == 0, "a warning is no failure"
    monkeypatch.setattr(machine, "file_system_of", lambda _: "nfs4")
    assert inside("doctor", "--store", directory).code == 1
