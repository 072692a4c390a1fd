"""Runifold's checkpoints keep id, run, revision, kind and payload; a file that is not Runifold's is refused by name."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eventlog import (
    CheckpointError,
    CheckpointStore,
    ConfigurationError,
    EventType,
    HistoryRemoved,
    InvalidRequest,
    SchemaMismatch,
    create_store,
    open_store,
)
from eventlog.importing import import_runifold
from tests.cli.command_line import eventlog
from tests.cli.command_line import new_store as embedded_store

ID = "0197a0b0-0000-7000-8000-00000000000{}"
RUN = "0197a0b0-0000-7000-8000-0000000000aa"


def _record(number: int = 1, **changes: Any) -> dict[str, Any]:
    fields = {
        "id": ID.format(number),
        "revision": 3,
        "run_id": RUN,
        "kind": "runifold.agent",
        "schema_version": 1,
        "payload": {"phase": {"state": "turn_in_flight", "turn": 2}},
        "updated_at_ms": 1_750_000_000_000,
    }
    return {**fields, **changes}


def _file(path: Path, rows: list[tuple[Any, Any, str]], *, version: int = 2) -> Path:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE runifold_checkpoints (checkpoint_id TEXT PRIMARY KEY, revision INTEGER, record_json TEXT)")
        connection.executemany("INSERT INTO runifold_checkpoints VALUES (?, ?, ?)", rows)
        connection.execute(f"PRAGMA user_version = {version}")
    return path


def _row(record: dict[str, Any]) -> tuple[Any, Any, str]:
    return record["id"], min(record["revision"], 2**63 - 1), json.dumps(record)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CheckpointStore]:
    create_store(tmp_path / "plain-store")
    with open_store(tmp_path / "plain-store") as store:
        yield store


@pytest.mark.shared_data
def test_the_sample_is_imported_once_and_keeps_everything(address: str, shared_data: Path) -> None:
    sample = shared_data / "runifold-sample.sqlite3"
    with open_store(address) as store:
        first, second = import_runifold(store, sample), import_runifold(store, sample)
        assert (first.imported, first.already_there, first.rejected) == (4, 0, [])
        assert (second.imported, second.already_there, second.rejected) == (0, 4, [])
        with closing(sqlite3.connect(f"file:{sample}?mode=ro", uri=True)) as connection:
            for identity, revision, text in connection.execute("SELECT * FROM runifold_checkpoints"):
                record, found = json.loads(text), store.load_revision(identity)
                one = found.checkpoint
                assert (one.revision, one.run_id, one.kind, one.schema_version) == (
                    revision, record["run_id"], record["kind"], record["schema_version"],
                )  # fmt: skip
                assert one.payload == record["payload"]
                assert one.phase == record["payload"]["phase"]["state"]
                assert found.type is EventType.IMPORTED
                assert int(one.updated_at.timestamp() * 1000) == record["updated_at_ms"]
        assert len(store.list(labels={"imported_from": "runifold"}).items) == 4


def test_an_imported_stream_goes_on_and_what_was_before_it_is_a_gap(store: CheckpointStore, tmp_path: Path) -> None:
    import_runifold(store, _file(tmp_path / "r.sqlite3", [_row(_record())]))
    loaded = store.load(ID.format(1))
    assert store.compare_and_swap(loaded.next({"phase": "ready"}), 3).revision == 4
    with pytest.raises(HistoryRemoved):
        store.load(ID.format(1), revision=2)
    assert import_runifold(store, tmp_path / "r.sqlite3").already_there == 1


def test_large_integers_and_odd_json_are_kept_exactly(store: CheckpointStore, tmp_path: Path) -> None:
    payloads: list[Any] = [2**64 - 1, -(2**63), None, 1e308, "\u0000 \U0001f600", {"": [[], {}]}, [True, 0, -0.0]]
    rows = [_row(_record(number, payload=payload)) for number, payload in enumerate(payloads)]
    assert import_runifold(store, _file(tmp_path / "r.sqlite3", rows)).imported == len(payloads)
    assert [store.load(ID.format(number)).payload for number in range(len(payloads))] == payloads


REFUSED: list[tuple[dict[str, Any] | str, str]] = [
    (_record(kind=""), "kind"),
    (_record(kind="has space"), "kind"),
    (_record(schema_version=0), "schema_version"),
    (_record(schema_version=2**31), "schema_version"),
    (_record(revision=2**63), "revision"),
    (_record(revision=1.5), "revision"),
    (_record(run_id="nonsense"), "run_id"),
    (_record(updated_at_ms=2**64 - 1), "updated_at_ms"),
    ({name: value for name, value in _record().items() if name != "payload"}, "payload"),
    ("{", "not JSON"),
    ("[]", "object"),
    ('{"id": NaN}', "NaN"),
    ('{"id": 1, "id": 2}', "twice"),
    (json.dumps(_record(payload=0)).replace('"payload": 0', '"payload": 1e999'), "beyond"),
]


@pytest.mark.parametrize(("record", "words"), REFUSED, ids=range(len(REFUSED)))
def test_a_row_that_cannot_be_held_is_reported_and_the_others_come(
    store: CheckpointStore, tmp_path: Path, record: dict[str, Any] | str, words: str
) -> None:
    text = record if isinstance(record, str) else json.dumps(record)
    revision = record["revision"] if isinstance(record, dict) and isinstance(record["revision"], int) else 3
    rows = [(ID.format(1), min(revision, 2**63 - 1), text), _row(_record(2))]
    summary = import_runifold(store, _file(tmp_path / "r.sqlite3", rows))
    assert summary.imported == 1
    assert [row.checkpoint_id for row in summary.rejected] == [ID.format(1)]
    assert words in summary.rejected[0].reason


def test_columns_that_contradict_the_record_are_reported(store: CheckpointStore, tmp_path: Path) -> None:
    rows = [(ID.format(1), 4, json.dumps(_record())), (ID.format(2), 3, json.dumps(_record(3)))]
    summary = import_runifold(store, _file(tmp_path / "r.sqlite3", rows))
    assert (summary.imported, len(summary.rejected)) == (0, 2)


def test_a_checkpoint_that_has_moved_on_in_runifold_is_reported_not_overwritten(store: CheckpointStore, tmp_path: Path) -> None:
    import_runifold(store, _file(tmp_path / "old.sqlite3", [_row(_record())]))
    summary = import_runifold(store, _file(tmp_path / "new.sqlite3", [_row(_record(revision=9))]))
    assert [row.revision for row in summary.rejected] == [9]
    assert store.load(ID.format(1)).revision == 3


def test_files_that_are_not_runifolds_are_refused_by_name(store: CheckpointStore, tmp_path: Path) -> None:
    text = tmp_path / "text.sqlite3"
    text.write_text("not a database, but long enough to be looked at " * 100)
    other = tmp_path / "other.sqlite3"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE other (x)")
    newer = _file(tmp_path / "newer.sqlite3", [], version=3)
    for path, error in (
        (text, ConfigurationError),
        (other, ConfigurationError),
        (newer, SchemaMismatch),
        (tmp_path / "no", InvalidRequest),
    ):
        with pytest.raises(error, match=path.name) as caught:
            import_runifold(store, path)
        assert isinstance(caught.value, CheckpointError)


def test_the_file_is_only_read_also_while_runifold_writes(store: CheckpointStore, tmp_path: Path) -> None:
    path = _file(tmp_path / "r.sqlite3", [_row(_record(number)) for number in range(5)])
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM runifold_checkpoints")
        before = path.read_bytes()
        assert import_runifold(store, path).imported == 5
        assert path.read_bytes() == before
        writer.execute("ROLLBACK")


def test_the_command_reports_and_ends_with_1_when_a_row_was_refused(tmp_path: Path) -> None:
    store = embedded_store(tmp_path)
    file = _file(tmp_path / "r.sqlite3", [_row(_record(1)), _row(_record(2, kind=""))])
    run = eventlog("import", "runifold", file, "--store", store, "--format", "json")
    assert run.code == 1
    document = json.loads(run.out)
    assert (document["imported"], [row["checkpoint_id"] for row in document["rejected"]]) == (1, [ID.format(2)])
    shutil.copy(Path(__file__), tmp_path / "text.sqlite3")
    assert eventlog("import", "runifold", tmp_path / "text.sqlite3", "--store", store).code == 15
