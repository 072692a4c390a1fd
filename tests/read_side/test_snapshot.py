"""What a notebook or a second process opens while the owner goes on writing."""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import pytest

from projections.errors import ProjectionError
from projections.snapshot import private_copy, snapshot
from tests.read_side.samples import batch_of, batches, everything, log, opened, row


def test_a_snapshot_answers_like_the_projection_it_was_taken_of(tmp_path: Path) -> None:
    with opened(tmp_path / "it's p.duckdb") as projection:
        projection.apply(batch_of(log(50, 4)))
        snapshot(projection, tmp_path / "snap.duckdb")
        snapshot(projection, tmp_path / "snap.duckdb")
        before = everything(projection)
        projection.apply(batch_of([row(999, offset=900)]))
        copy = private_copy(tmp_path / "snap.duckdb", tmp_path / "mine")
        with opened(copy) as mine:
            assert everything(mine) == before
            mine.apply(batch_of([row(999, offset=900)]))
            assert everything(mine) == everything(projection)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"it's p.duckdb", "it's p.duckdb.lock", "snap.duckdb", "mine"}
    assert not list((tmp_path / "mine").glob("*.copying"))


def test_a_notebook_may_open_it_with_plain_duckdb(tmp_path: Path) -> None:
    with opened(tmp_path / "p.duckdb") as projection:
        projection.apply(batch_of(log(50, 4)))
        snapshot(projection, tmp_path / "snap.duckdb")
        with duckdb.connect(str(tmp_path / "snap.duckdb"), read_only=True) as notebook:
            assert notebook.execute("SELECT count(*) FROM checkpoint_history").fetchall() == [(200,)]
            compression = (
                "SELECT DISTINCT compression FROM pragma_storage_info('heads') WHERE column_name = 'event' AND segment_type = 'BLOB'"
            )
            assert notebook.execute(compression).fetchall() == [("Uncompressed",)]


def test_a_snapshot_taken_while_batches_are_applied_is_of_one_moment(tmp_path: Path) -> None:
    rows = log(300, 8)
    with opened(tmp_path / "p.duckdb") as projection:
        taken = threading.Event()

        def apply_until_taken() -> None:
            for batch in batches(rows, 40):
                projection.apply(batch)
                if taken.is_set():
                    return

        writing = threading.Thread(target=apply_until_taken)
        writing.start()
        for number in range(3):
            snapshot(projection, tmp_path / f"snap-{number}.duckdb")
        taken.set()
        writing.join()
        for number in range(3):
            with opened(tmp_path / f"snap-{number}.duckdb") as copy:
                positions = copy.positions()
                expected = sorted((item.partition, item.offset) for item in rows if item.offset < positions[item.partition])
                assert sorted(copy.query('SELECT partition, "offset" FROM revisions')) == expected
                assert copy.query("SELECT count(*) FROM heads") == copy.query("SELECT count(DISTINCT checkpoint_id) FROM revisions")


def test_what_a_killed_snapshot_left_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "p.duckdb.snapshot").write_bytes(b"half a file")
    (tmp_path / "p.duckdb.snapshot.wal").write_bytes(b"half a log")
    with opened(tmp_path / "p.duckdb") as projection:
        projection.apply(batch_of([row(1)]))
        snapshot(projection, tmp_path / "snap.duckdb")
    with opened(tmp_path / "snap.duckdb") as copy:
        assert copy.head(row(1).checkpoint_id) is not None


def test_a_projection_in_memory_has_no_snapshot(tmp_path: Path) -> None:
    with opened(None) as projection, pytest.raises(ProjectionError, match="memory"):
        snapshot(projection, tmp_path / "snap.duckdb")
