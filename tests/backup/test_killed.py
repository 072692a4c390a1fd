"""Whoever backs up or restores may be killed at any instruction: no half backup and no half store has a name, and both start again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eventlog import create_store, open_store
from eventlog.backup.making import backup
from eventlog.backup.manifest import backups_in, read_backup
from eventlog.backup.restoring import restore
from eventlog.errors import CheckpointError
from eventlog.verification import verify
from tests.backup.samples import NO_REGISTER

REPOSITORY = Path(__file__).resolve().parents[2]
KILLS = 8


def test_a_backup_or_restore_killed_at_random_has_no_name_and_starts_again(tmp_path: Path) -> None:
    chance = random.Random(11)
    create_store(tmp_path / "store")
    last = 0
    for _ in range(KILLS):
        command = [sys.executable, "-m", "tests.backup.killed_process", str(tmp_path / "store"), str(tmp_path), str(last)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
        assert process.stdout is not None
        last = int(process.stdout.readline())
        time.sleep(chance.uniform(0, 0.6))
        process.send_signal(signal.SIGKILL)
        last = max([last, *map(int, process.stdout.read().split())]) + 1
        process.wait()
        process.stdout.close()
        for each in backups_in(tmp_path):
            assert not isinstance(each, CheckpointError), each
            each.check_files()
        for folder in tmp_path.glob("restored-*"):
            if not folder.name.endswith(".part"):
                with open_store(folder) as restored:
                    found = verify(restored)
                    number = folder.name.removeprefix("restored-")
                    assert found.is_clean, found.faults
                    assert found.events == read_backup(tmp_path / f"backup-{number}").manifest.events + 1
    dead = sorted(tmp_path.glob("*.part"))
    for left in dead:  # whatever was left is removed by the next one of that name, and that one succeeds
        name = left.name.rsplit(".", 2)[0]
        if name.startswith("backup"):
            with open_store(tmp_path / "store") as store:
                backup(store, tmp_path / name)
        else:
            restore(tmp_path / name.replace("restored", "backup"), tmp_path / name, without_register=NO_REGISTER)
    assert list(tmp_path.glob("*.part")) == []


def test_a_draft_that_somebody_is_at_work_in_is_left_alone(tmp_path: Path) -> None:
    from eventlog.backup.draft import draft_of

    with draft_of(tmp_path / "backup") as first:
        (first / "file").write_text("mine")
        with pytest.raises(RuntimeError), draft_of(tmp_path / "backup"):
            raise RuntimeError("given up")
        assert [each.name for each in tmp_path.iterdir()] == [first.name]
    assert (tmp_path / "backup" / "file").read_text() == "mine"
    assert [each.name for each in tmp_path.iterdir()] == ["backup"]
