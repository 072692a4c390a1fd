"""The register outlives backups: whatever copy of a store is put back, what was erased stays erased."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from eventlog import ConfigurationError, Corrupted, Deleted, NotFound, open_store
from eventlog.erasure.applying import apply_register, is_behind, require_register
from eventlog.erasure.erasing import erase
from eventlog.erasure.register import register_of
from eventlog.erasure.selection import Selection
from eventlog.findings import FaultKind
from eventlog.verification import verify
from tests.erasure.planting import SUBJECT, archived, plant, sealed_bodies, secrets, shown
from tests.store.samples import initial

SUBJECTS = Selection.of_label(*SUBJECT)


def copy_of(directory: Path, target: Path) -> Path:
    """As a backup has it: everything but the register and the certificates."""
    shutil.copytree(directory, target, ignore=shutil.ignore_patterns("erasures*", "certificates", "*.lock"))
    return target


def put_back(backup: Path, directory: Path) -> None:
    """The register stays where it is."""
    for each in directory.iterdir():
        if each.is_file() and not each.name.startswith("erasures"):
            each.unlink()
    for each in backup.iterdir():
        shutil.copy(each, directory / each.name)


def test_an_older_backup_that_is_put_back_brings_nothing_back(tmp_path: Path, directory: Path) -> None:
    with open_store(directory) as store:
        planted = plant(store)
        wanted = secrets(store, planted) | sealed_bodies(store, planted)
        store.list()
    backup = copy_of(directory, tmp_path / "backup")
    with open_store(directory) as store:
        erase(store, SUBJECTS, actor="dpo", reason="request 4711")
    put_back(backup, directory)
    assert shown(directory, wanted, tmp_path), "it is all there again"
    with open_store(directory) as store:  # and gone before anybody reads
        assert shown(directory, wanted, tmp_path) == {}
        for each in planted.victims:
            with pytest.raises(Deleted):
                store.load(each.id)
        assert not is_behind(store)
        for each in planted.others:
            assert store.load(each.id).payload == each.payload
        found = verify(store)
        assert found.is_clean, found.faults
        assert found.erased == 11


def test_an_id_that_an_older_backup_does_not_know_does_not_begin_again(tmp_path: Path, directory: Path) -> None:
    with open_store(directory) as store:
        store.compare_and_swap(initial({"n": 1}), None)
    backup = copy_of(directory, tmp_path / "backup")
    late = initial({"n": 2})
    with open_store(directory) as store:
        store.compare_and_swap(late, None)
        erase(store, Selection.of_checkpoints(late.id), actor="dpo", reason="request")
        assert store.compare_and_swap(late, None).duplicate, "a retry still gets its receipt"
    put_back(backup, directory)
    with open_store(directory) as store:
        assert apply_register(store).present == 0
        for again in (late, late.model_copy(update={"revision": 7})):
            with pytest.raises(Deleted) as refused:
                store.compare_and_swap(again, None) if again.revision == 0 else store.import_revision(again)
            assert refused.value.last_revision == 1
        with pytest.raises(NotFound):
            store.load(late.id)


def test_a_register_that_is_missing_or_changed_is_noticed(directory: Path) -> None:
    with open_store(directory) as store:
        planted = plant(store)
        for each in planted.victims:
            erase(store, Selection.of_checkpoints(each.id), actor="dpo", reason="request")
        register = require_register(store)
        text = register.path.read_text()
        lines = text.splitlines(keepends=True)
        assert len(lines) == 6
        register.path.write_text("".join(lines[:2]))
        with pytest.raises(ConfigurationError, match="an older one"):
            require_register(store)
        first = json.loads(lines[0])
        first["checkpoints"] = {}
        register.path.write_text("".join([json.dumps(first) + "\n", *lines[1:]]))
        with pytest.raises(Corrupted, match="line 1"):
            require_register(store)
        register.path.write_text(text + '{"half')
        assert len(require_register(store).entries()) == 6, "what a killed process left of a line is none"


def test_the_register_holds_ids_and_hashes_only(directory: Path) -> None:
    with open_store(directory) as store:
        planted = plant(store)
        erase(store, SUBJECTS, actor="dpo-name", reason="a telling reason")
        text = register_of(directory, store.log.identity.store_id).path.read_text()
    assert all(each.id in text for each in planted.victims)
    for each in ("dpo-name", "telling", SUBJECT[1], "acme.order"):
        assert each not in text


def test_what_the_log_notes_survives_a_kill_before_the_register_knows(directory: Path) -> None:
    with open_store(directory) as store:
        planted = plant(store)
        erase(store, Selection.of_checkpoints(planted.victims[0].id), actor="dpo", reason="request")
    with sqlite3.connect(directory / "log.sqlite3") as connection:
        assert connection.execute("SELECT value FROM meta WHERE key = 'erasures'").fetchone() == ("1",)


def test_an_older_copy_of_the_archive_brings_nothing_back(tmp_path: Path, directory: Path) -> None:
    with open_store(directory) as store:
        planted = plant(store)
        archive = archived(store, tmp_path / "archive")
        wanted = secrets(store, planted) | sealed_bodies(store, planted)
        shutil.copytree(archive.directory, tmp_path / "older")
        erase(store, SUBJECTS, actor="dpo", reason="request 4711")
        shutil.rmtree(archive.directory)
        shutil.copytree(tmp_path / "older", archive.directory)
        store.catalog.rebuild(archive=archive)
        assert shown(directory, wanted, tmp_path) == {}
        faults = verify(store, archive=archive).fault_counts
        assert faults[FaultKind.ARCHIVE] == 1, "it is named"
        assert apply_register(store).emptied == 11
        assert shown(archive.directory, wanted, tmp_path) == {}
        assert verify(store, archive=archive).is_clean
