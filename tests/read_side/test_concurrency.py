"""Readers in other threads see whole batches, also while the file is exchanged under them."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from projections.engine import Projection
from projections.errors import ProjectionError
from projections.heads import list_heads
from projections.history import history
from projections.rows import Batch, QuarantineRow
from tests.read_side.samples import batch_of, batches, everything, log, opened, row

READERS = 8


def read_throughout(question: Callable[[random.Random], None], change: Callable[[], None]) -> int:
    """Ask from eight threads while `change` runs; return how often it was asked. An error in any thread is raised here."""
    changed = threading.Event()
    asked = threading.Barrier(READERS + 1)

    def reader(seed: int) -> int:
        chance, count = random.Random(seed), 0
        try:
            question(chance)
        finally:
            asked.wait()
        while not changed.is_set():
            question(chance)
            count += 1
        return count

    with ThreadPoolExecutor(READERS) as pool:
        futures = [pool.submit(reader, seed) for seed in range(READERS)]
        asked.wait()
        try:
            change()
        finally:
            changed.set()
        return sum(future.result() for future in futures)


def test_eight_threads_reading_while_applying_get_no_wrong_answer(tmp_path: Path) -> None:
    rows = log(200, 10)
    of_checkpoint = {key: [item for item in rows if item.checkpoint_id == key] for key in {item.checkpoint_id for item in rows}}
    ids = sorted(of_checkpoint)
    with opened(tmp_path / "p.duckdb") as projection:
        projection.apply(batch_of(rows[:50]))

        def question(chance: random.Random) -> None:
            key = chance.choice(ids)
            kind = chance.randrange(4)
            if kind == 0:
                head = projection.head(key)
                if head is not None:
                    item = of_checkpoint[key][head.revision]
                    assert (head.event, head.offset, head.checkpoint_id) == (item.event, item.offset, key)
            elif kind == 1:
                for found, head in projection.heads(chance.sample(ids, 30)).items():
                    assert head.event == of_checkpoint[found][head.revision].event
            elif kind == 2:
                found_rows = history(projection, key)
                assert found_rows == of_checkpoint[key][: len(found_rows)]
            else:
                reached = "(SELECT sum(next_offset) FROM positions)"
                assert projection.query(f"SELECT count(*) = {reached} FROM revisions") == [(True,)]

        def change() -> None:
            for batch in batches(rows, 50):
                projection.apply(batch)

        assert read_throughout(question, change) > READERS


def test_a_rebuilt_projection_takes_over_while_eight_threads_read(tmp_path: Path) -> None:
    rows = log(100, 5)
    with opened(tmp_path / "p.duckdb") as projection:
        for batch in batches(rows, 100):
            projection.apply(batch)
        before = everything(projection)
        ids = sorted({item.checkpoint_id for item in rows})

        def question(chance: random.Random) -> None:
            head = projection.head(chance.choice(ids))
            assert head is not None
            assert head.revision == 4
            assert len(list_heads(projection, limit=1000)) == 100

        def change() -> None:
            for attempt in range(5):
                rebuilt = opened(tmp_path / f"rebuild-{attempt}.duckdb").open()
                for batch in batches(rows, 60):
                    rebuilt.apply(batch)
                projection.replace_with(rebuilt)

        assert read_throughout(question, change) > READERS
        assert everything(projection) == before
        assert not list(tmp_path.glob("rebuild-*.duckdb"))
        projection.apply(Batch({0: 1000}, rows=[row(7777, offset=999)]))
    with opened(tmp_path / "p.duckdb") as projection:
        assert projection.positions()[0] == 1000


def test_nothing_of_the_old_file_returns_after_a_swap(tmp_path: Path) -> None:
    with opened(tmp_path / "p.duckdb") as projection:
        projection.apply(batch_of([row(1), row(2, offset=1)]))
        (tmp_path / "p.duckdb.wal.recovery").write_bytes(b"left by a crash")
        rebuilt = opened(tmp_path / "new.duckdb").open()
        rebuilt.apply(batch_of([row(3)]))
        projection.replace_with(rebuilt)
        assert [head.checkpoint_id for head in list_heads(projection)] == [row(3).checkpoint_id]
        assert not (tmp_path / "p.duckdb.wal.recovery").exists()
    with opened(tmp_path / "p.duckdb") as projection:
        assert projection.positions() == {0: 1, 1: 0, 2: 0, 3: 0}


def test_quarantine_is_that_of_the_new_file_after_a_swap(tmp_path: Path) -> None:
    with opened(tmp_path / "p.duckdb") as projection:
        projection.apply(Batch({0: 1}, quarantined=[QuarantineRow(0, 0, 1, row(1).checkpoint_id, "bad", None, None)]))
        projection.replace_with(opened(tmp_path / "new.duckdb").open())
        assert projection.quarantined_ids() == set()


def test_a_projection_of_another_log_cannot_take_over(tmp_path: Path) -> None:
    with opened(tmp_path / "p.duckdb") as projection, opened(tmp_path / "q.duckdb", store_id="store-2") as other:
        with pytest.raises(ProjectionError, match="same log"):
            projection.replace_with(other)
        assert projection.positions() == other.positions()


def test_close_waits_for_a_running_read_and_ends_the_rest(tmp_path: Path) -> None:
    projection = opened(tmp_path / "p.duckdb").open()
    inside, leave = threading.Event(), threading.Event()

    def hold() -> object:
        with projection.cursor() as cursor:
            inside.set()
            leave.wait()
            return cursor.fetch("SELECT 42")

    with ThreadPoolExecutor(2) as pool:
        holding = pool.submit(hold)
        inside.wait()
        closing = pool.submit(projection.close)
        assert not closing.done()
        leave.set()
        assert holding.result() == [(42,)]
        closing.result()
    with pytest.raises(ProjectionError, match="not open"):
        projection.positions()


def test_threads_that_ended_leave_no_cursor_behind() -> None:
    with opened(None) as projection:
        for _ in range(20):
            thread = threading.Thread(target=projection.positions)
            thread.start()
            thread.join()
        assert connections(projection) < 5


def connections(projection: Projection) -> int:
    count: int = projection.query("SELECT count FROM duckdb_connection_count()")[0][0]
    return count
