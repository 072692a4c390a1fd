"""backup, backup drill, backup list and restore on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.backup.manifest import read_backup
from tests.cli.command_line import inside, new_store, put


@pytest.fixture
def store(tmp_path: Path) -> Path:
    address = new_store(tmp_path)
    put(address, {"n": 0}, "--kind", "acme.order")
    return address


def test_the_walk_from_a_backup_to_a_restored_store(store: Path, tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    made = inside("backup", backups / "monday", "--store", store, "--format", "json").json()
    assert (made["events"], made["position"], made["encrypted"]) == (1, "0:1", False)
    assert "the erasure register" in made["left_out"]
    put(store, {"n": 1}, "--kind", "acme.order")
    assert inside("backup", "run", backups / "tuesday", "--store", store).out.startswith("Backed up 2 events, up to 0:2")
    (backups / "wednesday.0123456789abcdef.part").mkdir()
    listed = inside("backup", "list", backups, "--format", "json").json()
    assert [(Path(each["directory"]).name, each["events"]) for each in listed] == [("monday", 1), ("tuesday", 2)]
    drilled = inside("backup", "drill", backups / "monday", "--store", store, "--format", "json").json()
    assert (drilled["same"], drilled["events"], drilled["payloads"], drilled["differences"]) == (True, 1, 1, [])
    reason = "--without-erasure-register=nothing was ever erased"
    restored = inside("restore", backups / "monday", "--store", tmp_path / "restored", reason, "--actor", "ada", "--format", "json").json()
    assert (restored["events"], restored["recorded"], restored["erasures_applied"]) == (1, True, None)
    assert inside("verify", "--store", tmp_path / "restored").out.startswith("clean: 2 events")


def test_what_is_wrong_with_it_is_said(store: Path, tmp_path: Path) -> None:
    inside("backup", tmp_path / "backup", "--store", store)
    assert inside("backup", tmp_path / "backup", "--store", store).code == 15
    assert inside("backup", tmp_path / "other", "--store", store, "--without", "log").code == 6
    run = inside("restore", tmp_path / "backup", "--store", tmp_path / "restored")
    assert (run.code, "--without-erasure-register" in run.err) == (6, True)
    assert inside("restore", tmp_path / "nothing", "--store", tmp_path / "restored", "--without-erasure-register", "x").code == 15
    backup = read_backup(tmp_path / "backup")
    path = backup.path(backup.manifest.files[0])
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    run = inside("restore", tmp_path / "backup", "--store", tmp_path / "restored", "--without-erasure-register", "x")
    assert (run.code, path.name in run.err) == (13, True)
    run = inside("backup", "drill", tmp_path / "backup", "--store", store)
    assert (run.code, run.out.startswith("1 DIFFERENCES")) == (1, True)


def test_an_encrypted_store_needs_no_keys_to_be_backed_up(tmp_path: Path) -> None:
    address = tmp_path / "store"
    key = tmp_path / "key.json"
    assert inside("init", "--store", address, "--encrypt", "--key-file", key).code == 0
    put(address, {"n": 0}, "--kind", "acme.order")
    key.rename(tmp_path / "away.json")
    assert inside("backup", tmp_path / "backup", "--store", address).code == 6, "nothing says where the wrapped keys go"
    made = inside("backup", tmp_path / "backup", "--keys-to", tmp_path / "keys", "--store", address, "--format", "json").json()
    assert made["encrypted"]
    restoring = (
        "restore",
        tmp_path / "backup",
        "--store",
        tmp_path / "restored",
        "--without-erasure-register",
        "none",
        "--keys-from",
        tmp_path / "keys",
    )
    assert inside(*restoring).code == 20
    assert inside("backup", "drill", tmp_path / "backup", "--store", address, "--without-keys").code == 0
    (tmp_path / "away.json").rename(key)
    assert inside(*restoring).code == 0
    assert inside("backup", tmp_path / "bare", "--store", address, "--without-keys", "--format", "json").json()["left_out"]["keys"]
