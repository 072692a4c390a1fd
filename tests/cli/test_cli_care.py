"""verify, rebuild and doctor: what is wrong is found, named, and told apart."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from eventlog import Position, open_store
from eventlog.embedded_files import checksum
from eventlog.findings import FaultKind, Verification
from eventlog.verification import verify
from tests.cli.command_line import inside, new_store, put


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two checkpoints of three revisions each; positions 0 to 5, the first checkpoint's at 0, 2 and 4."""
    address = new_store(tmp_path)
    ids = [put(address, {"n": 0, "text": "x" * 3000}, "--kind", "acme.order")["id"] for _ in range(2)]
    for revision in (1, 2):
        for each in ids:
            put(address, {"n": revision}, "--id", each, "--expect", str(revision - 1))
    return address


def _verified(store: Path) -> Verification:
    with open_store(store) as opened:
        return verify(opened)


def _tamper(store: Path, statement: str, *values: object) -> None:
    """Changes the log as somebody would who knows about the rows' checksums."""
    with closing(sqlite3.connect(store / "log.sqlite3", isolation_level=None)) as connection:
        assert connection.execute(statement, values).rowcount == 1
        columns = "position, checkpoint_id, revision, recorded_at, event"
        for row in connection.execute(f"SELECT {columns} FROM events").fetchall():
            connection.execute("UPDATE events SET checksum = ? WHERE position = ?", (checksum(*row), row[0]))


def _event(store: Path, position: int) -> bytes:
    with closing(sqlite3.connect(store / "log.sqlite3")) as connection:
        event: bytes = connection.execute("SELECT event FROM events WHERE position = ?", (position,)).fetchone()[0]
    return event


def _change(store: Path, position: int, change: Callable[[bytes], bytes]) -> None:
    _tamper(store, "UPDATE events SET event = ? WHERE position = ?", change(_event(store, position)), position)


def test_an_untouched_store_is_clean_and_everything_was_counted(store: Path) -> None:
    found = _verified(store)
    assert found.is_clean
    assert (found.events, found.checkpoints, found.position) == (6, 2, Position(((0, 6),)))
    document = inside("verify", "--store", store, "--format", "json").json()
    assert (document["clean"], document["events"], document["faults"]) == (True, 6, [])


def test_a_changed_payload_is_found_and_ends_with_1(store: Path) -> None:
    _change(store, 2, lambda event: event[:-1] + bytes([event[-1] ^ 1]))
    found = _verified(store)
    assert [(fault.position, fault.kind) for fault in found.faults] == [("0:2", FaultKind.WRONG_DIGEST)]
    run = inside("verify", "--store", store)
    assert run.code == 1
    assert "0:2" in run.out
    assert "wrong digest" in run.out


def test_a_changed_header_breaks_the_chain_behind_it(store: Path) -> None:
    _change(store, 0, lambda event: event.replace(b"acme.order", b"acme.0rder"))
    found = _verified(store)
    assert found.fault_counts[FaultKind.BROKEN_RULE] == 1
    assert found.fault_counts[FaultKind.BEHIND_A_FAULT] == 1
    assert next(fault.position for fault in found.faults if fault.kind is FaultKind.BROKEN_RULE) == "0:2"


def test_a_flipped_bit_is_found_by_the_rows_checksum(store: Path) -> None:
    with closing(sqlite3.connect(store / "log.sqlite3", isolation_level=None)) as connection:
        event = _event(store, 4)
        connection.execute("UPDATE events SET event = ? WHERE position = 4", (event[:40] + bytes([event[40] ^ 1]) + event[41:],))
    found = _verified(store)
    assert [(fault.position, fault.kind) for fault in found.faults] == [("0:4", FaultKind.UNREADABLE)]


def test_a_removed_revision_is_found(store: Path) -> None:
    _tamper(store, "DELETE FROM events WHERE position = 2")
    found = _verified(store)
    assert found.first_of_each_kind()[0].kind is FaultKind.BROKEN_RULE
    assert "revision 2 after revision 0" in found.first_of_each_kind()[0].problem


def test_a_record_under_a_wrong_key_is_found(store: Path) -> None:
    _tamper(store, "UPDATE events SET checkpoint_id = '0197a0b0-0000-7000-8000-000000000001' WHERE position = 4")
    assert FaultKind.WRONG_KEY in _verified(store).fault_counts


def test_bytes_that_are_no_event_are_found(store: Path) -> None:
    _tamper(store, "UPDATE events SET event = ? WHERE position = 5", b"\xc3\x01rubbish")
    found = _verified(store)
    assert ("0:5", FaultKind.UNREADABLE) in [(fault.position, fault.kind) for fault in found.faults]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE heads SET revision = 1",
        "DELETE FROM heads",
        "UPDATE revisions SET event_hash = '\\x00'::BLOB WHERE \"offset\" = 3",
        'DELETE FROM revisions WHERE "offset" = 3',
    ],
)
def test_a_projection_that_says_something_else_is_found_and_rebuilt(store: Path, statement: str) -> None:
    assert inside("list", "--store", store).code == 0
    with duckdb.connect(str(store / "projection.duckdb")) as connection:
        connection.execute(statement)
    assert set(_verified(store).fault_counts) == {FaultKind.PROJECTION}
    assert inside("rebuild", "--store", store).out == "Rebuilt the projection from 6 events.\n"
    assert _verified(store).is_clean


def test_doctor_is_content_with_a_sound_store(store: Path) -> None:
    checks = inside("doctor", "--store", store, "--format", "json").json()
    assert {"versions", "permissions", "disk", "write-ahead log", "open", "log", "projection", "quarantine", "gaps"} <= {
        check["check"] for check in checks
    }
    assert not [check for check in checks if check["state"] == "fail"]
    assert all(bool(check["advice"]) == (check["state"] != "ok") for check in checks)


def test_doctor_fails_on_a_foreign_record_and_says_what_to_do(store: Path) -> None:
    _change(store, 0, lambda event: event.replace(b"acme.order", b"acme.0rder"))
    inside("rebuild", "--store", store)
    run = inside("doctor", "--store", store)
    assert run.code == 1
    assert "ACL" in run.out


def test_doctor_says_what_is_wrong_with_an_address(tmp_path: Path) -> None:
    for address in (tmp_path / "missing", tmp_path):
        run = inside("doctor", "--store", address)
        assert run.code == 1
        assert "eventlog init" in run.out


def test_doctor_tells_that_another_process_has_the_projection(store: Path) -> None:
    with open_store(store) as other:
        other.catalog.projection()
        checks = inside("doctor", "--store", store, "--format", "json").json()
    assert next(check["state"] for check in checks if check["check"] == "projection") == "warn"
