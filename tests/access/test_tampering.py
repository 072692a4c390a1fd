"""What somebody does to the access log behind the store's back is found by `verify`; what retention does is explained by its record."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eventlog import AccessDenied, CheckpointStore, InvalidRequest, create_store, open_store
from eventlog.embedded_files import ACCESS_FILE
from eventlog.findings import FaultKind
from eventlog.position import Position
from eventlog.privacy.access_retention import prune_accesses
from eventlog.verification import verify
from tests.access.samples import outcomes, somebody, trail
from tests.store.samples import stream
from tests.waiting import eventually

WITHOUT_TRIGGERS = "DROP TRIGGER accesses_are_not_changed; DROP TRIGGER accesses_are_not_removed;"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A store with accesses of two sessions on record, and their rows in its projection."""
    create_store(tmp_path / "store", access="strict")
    for actor in ("one", "two"):
        with open_store(tmp_path / "store", actor=actor) as store:
            last = stream(store, 3)[-1]
            for _ in range(3):
                store.load(last.id)
            assert trail(store)
    return tmp_path / "store"


def change(place: Path, script: str) -> None:
    connection = sqlite3.connect(place / ACCESS_FILE)
    connection.create_function("renamed", 1, lambda event: event.replace(b"one", b"eve"))
    connection.executescript(script)
    connection.close()


CLOSE_THE_GAP = """
DELETE FROM accesses WHERE position = 3;
UPDATE accesses SET position = -position WHERE position > 3;
UPDATE accesses SET position = -position - 1 WHERE position < 0;
"""
EXCHANGE = """
UPDATE accesses SET position = -1 WHERE position = 2;
UPDATE accesses SET position = 2 WHERE position = 3;
UPDATE accesses SET position = 3 WHERE position = -1;
"""
CUT_THE_BEGINNING = "DELETE FROM accesses WHERE position < 4; UPDATE meta SET value = '4' WHERE key = 'start';"

TAMPERED: dict[str, tuple[str, str]] = {
    "a record was changed": ("UPDATE accesses SET event = renamed(event) WHERE position = 2", "chain"),
    "a record was removed": ("DELETE FROM accesses WHERE position = 3", "missing"),
    "a record was removed and the gap closed": (CLOSE_THE_GAP, "behind number"),
    "two records were exchanged": (EXCHANGE, "behind number"),
    "the beginning was removed": (CUT_THE_BEGINNING, "no record says"),
    "a record was damaged": ("UPDATE accesses SET event = substr(event, 1, 20) WHERE position = 1", "decoded"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_what_was_done_to_the_access_log_is_found(place: Path, what: str) -> None:
    script, found = TAMPERED[what]
    with open_store(place) as store:
        assert verify(store).is_clean
    change(place, WITHOUT_TRIGGERS + script)
    with open_store(place) as store:
        faults = [fault for fault in verify(store).faults if fault.kind is FaultKind.ACCESS]
        assert any(found in fault.problem for fault in faults), faults


def test_the_file_itself_refuses_what_nobody_should_do(place: Path) -> None:
    for statement in ("UPDATE accesses SET recorded_at = 0", "DELETE FROM accesses WHERE position = 1"):
        with pytest.raises(sqlite3.IntegrityError):
            change(place, statement)


def test_an_edited_projection_is_found(place: Path) -> None:
    with open_store(place) as store:
        with store.catalog.projection().writing() as writer:
            writer.execute("UPDATE access SET hash = '\\x00'::BLOB WHERE \"offset\" = 2")
        assert [fault.position for fault in verify(store).faults] == ["0:2"]


def prune_all(store: CheckpointStore) -> tuple[int, Position]:
    assert prune_accesses(store, datetime(2020, 1, 1, tzinfo=UTC)).removed == 0
    pruned: list[tuple[int, Position]] = []

    def removed() -> bool:
        pruned.append(prune_accesses(store, datetime.now(UTC)))
        return pruned[-1][0] > 0

    eventually(removed)  # the log's clock may be some milliseconds ahead
    return pruned[-1]


def test_what_is_too_old_goes_and_that_it_went_is_on_record(store: CheckpointStore) -> None:
    old = stream(store, 2)[-1]
    assert len(trail(store, checkpoint=str(old.id))) == 2
    who = somebody("operator")
    removed, start = prune_all(store.for_principal(who))
    assert removed > 0
    assert trail(store, checkpoint=str(old.id)) == []  # in the projection too
    noted = [row for row in trail(store, subject=who.subject) if row["items"] == removed]
    assert [(row["action"], row["outcome"], row["position"]) for row in noted] == [("access_prune", "allowed", str(start))]
    assert verify(store).is_clean
    store.load(old.id)
    assert outcomes(store, checkpoint=str(old.id), action="load") == [("load", "allowed")]


def test_what_was_removed_is_in_no_file_any_more(place: Path) -> None:
    with open_store(place, actor="caretaker") as store:
        prune_all(store)
    assert b"one" not in b"".join(each.read_bytes() for each in place.glob(f"{ACCESS_FILE}*")).replace(b"none", b"")


def test_only_an_operator_prunes_and_only_where_something_is_recorded(place: Path, tmp_path: Path) -> None:
    with open_store(place) as store, pytest.raises(AccessDenied):
        prune_accesses(store.for_principal(somebody("auditor")), datetime.now(UTC) - timedelta(days=1))
    create_store(tmp_path / "off")
    with open_store(tmp_path / "off") as store, pytest.raises(InvalidRequest, match="records no accesses"):
        prune_accesses(store, datetime.now(UTC))
