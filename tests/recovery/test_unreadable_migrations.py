"""A revision that cannot be read is named by a migration, and by its undo; the others go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog import Checkpoint, create_store, open_store
from eventlog.recovery import Refusal, Selection, plan_migration, plan_undo, run_migration, undo_migration
from tests.embedded.test_damaged_file import with_event
from tests.embedded.test_newer_schema import FINGERPRINT, add_foreign_event
from tests.recovery.migration_samples import orders, stored
from tests.store.samples import initial


@pytest.fixture
def three(tmp_path: Path) -> list[Checkpoint]:
    """A good one, one whose payload is damaged, one behind which a newer version has written."""
    create_store(tmp_path / "store")
    with open_store(tmp_path / "store") as store:
        return [stored(store, initial({"price": price})) for price in (1111, 2222, 3333)]


def test_what_cannot_be_read_is_named_and_the_others_go_on(three: list[Checkpoint], tmp_path: Path) -> None:
    good, damaged, newer = three
    with_event(tmp_path / "store", damaged, {b"2222": b"2223"})
    add_foreign_event(tmp_path / "store", newer, bytes.fromhex("c301" + FINGERPRINT) + b"who knows")
    with open_store(tmp_path / "store") as store:
        named = Selection(ids=[each.id for each in three])
        planned = plan_migration(store, orders(), named)
        listed = plan_migration(store, orders())  # nobody knows of what kind the damaged one was: no list has it, doctor does
        assert [each.checkpoint_id for each in listed.refused] == [newer.id]
        report = run_migration(store, orders(), named)
        assert planned == report
        assert {each.checkpoint_id: each.why for each in report.refused} == dict.fromkeys((damaged.id, newer.id), Refusal.UNREADABLE)
        assert store.load(good.id).payload["cents"] == 111100


def test_an_undo_that_cannot_read_the_history_names_the_checkpoint(three: list[Checkpoint], tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        run_migration(store, orders())
    with_event(tmp_path / "store", three[1], {b"2222": b"2223"})
    with open_store(tmp_path / "store") as store:
        planned = plan_undo(store, orders())
        report = undo_migration(store, orders())
        assert planned == report
        assert [(each.checkpoint_id, each.why) for each in report.refused] == [(three[1].id, Refusal.UNREADABLE)]
        assert report.moves.total() == 2
