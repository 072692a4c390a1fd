"""An erasure that is killed at any step claims nothing, breaks nothing, and is completed by starting it again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from eventlog import open_store
from eventlog.archive.anchors import take_anchor
from eventlog.archive.checking import check_archive
from eventlog.erasure.erasing import erase
from eventlog.erasure.register import register_of
from eventlog.erasure.selection import Selection
from eventlog.erasure.steps import Step
from eventlog.verification import verify
from tests.erasure.planting import SUBJECT, archived, plant, sealed_bodies, secrets, shown

REPOSITORY = Path(__file__).resolve().parents[2]
_ENCRYPTED_ONLY = {Step.KEYS_DESTROYED}


@pytest.mark.parametrize("step", Step, ids=lambda step: step.name.lower())
def test_an_erasure_killed_at_a_step_is_completed_by_the_next(tmp_path: Path, directory: Path, step: Step, encrypted: bool) -> None:
    if step in _ENCRYPTED_ONLY and not encrypted:
        pytest.skip("there are no keys to destroy in clear text")
    archive_directory = tmp_path / "archive"
    with open_store(directory, actor="writer") as store:
        planted = plant(store)
        archive = archived(store, archive_directory)
        wanted = secrets(store, planted) | sealed_bodies(store, planted)
        anchor = take_anchor(store.log)
        store.list()
    command = [sys.executable, "-m", "tests.erasure.killed_process", str(directory), step.name, "1"]
    process = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, check=False, timeout=60)
    assert process.returncode == -signal.SIGKILL
    register = register_of(directory, anchor.store_id)
    assert not [entry for entry in register.entries() if entry.kind == "certified"], "nothing is claimed"
    with open_store(directory, actor="writer") as store:
        check_archive(archive)  # a segment is whole, with the bodies or without
        for each in planted.others:
            assert store.load(each.id).payload == each.payload
        certificate = erase(store, Selection.of_label(*SUBJECT), actor="dpo", reason="request 4711")
        assert certificate.revisions == 11
        assert shown(tmp_path / "store", wanted, tmp_path) == {}
        assert shown(archive_directory, wanted, tmp_path) == {}
        found = verify(store, archive=archive, anchor=anchor)
        assert found.is_clean, found.faults
        assert not register.open_erasures()
    assert {each.suffix for each in (archive_directory / "0").iterdir()} == {".parquet", ".json"}
    assert shown(tmp_path / "store", wanted, tmp_path) == {}
