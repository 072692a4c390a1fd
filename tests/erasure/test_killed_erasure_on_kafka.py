"""The same on Kafka, where the DELETED events and the keys are other processes' to see at every step of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from eventlog import Deleted, create_store, open_store
from eventlog.archive.checking import check_archive
from eventlog.erasure.erasing import erase
from eventlog.erasure.register import register_of
from eventlog.erasure.selection import Selection
from eventlog.erasure.steps import Step
from eventlog.privacy.providers.key_file import KeyFile
from eventlog.verification import verify
from tests.erasure.planting import SUBJECT, archived, plant, sealed_bodies, secrets, shown

REPOSITORY = Path(__file__).resolve().parents[2]
_ON_KAFKA = [step for step in Step if step not in {Step.LOG_EMPTIED, Step.LOG_REWRITTEN}]  # what the topic holds, compaction removes


@pytest.mark.parametrize("step", _ON_KAFKA, ids=lambda step: step.name.lower())
def test_an_erasure_on_kafka_killed_at_a_step_is_completed_by_the_next(broker: str, topic: str, tmp_path: Path, step: Step) -> None:
    state, kept_in = tmp_path / "state", tmp_path / "archive"
    address = f"kafka://{broker}/{topic}?state={state}"
    create_store(address, partitions=1, encryption=KeyFile(path=tmp_path / "key.json"))
    with open_store(address, actor="writer") as store:
        planted = plant(store)
        archive = archived(store, kept_in)
        wanted = secrets(store, planted) | sealed_bodies(store, planted)
        identity = store.log.identity.store_id
        store.list()
    command = [sys.executable, "-m", "tests.erasure.killed_process", address, step.name, "1"]
    process = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, check=False, timeout=60)
    assert process.returncode == -signal.SIGKILL
    register = register_of(state, identity)
    assert not [entry for entry in register.entries() if entry.kind == "certified"], "nothing is claimed"
    with open_store(address, actor="writer") as store:
        check_archive(archive)  # a segment is whole, with the bodies or without
        for each in planted.others:
            assert store.load(each.id).payload == each.payload
        certificate = erase(store, Selection.of_label(*SUBJECT), actor="dpo", reason="request 4711")
        assert certificate.revisions == 11
        assert not register.open_erasures()
        for each in planted.victims:
            with pytest.raises(Deleted):
                store.load(each.id)
        found = verify(store, archive=archive)
        assert found.is_clean, found.faults
    assert shown(state, wanted, tmp_path) == {}
    assert shown(kept_in, wanted, tmp_path) == {}
