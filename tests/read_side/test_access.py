"""Rows of an access log: taken in once, with progress of their own, beside the batches of the checkpoint log."""

from __future__ import annotations

import threading
from pathlib import Path

from projections.access import AccessBatch, apply_accesses, hashes, progress, retain
from projections.engine import Projection
from projections.rows import AccessRow
from projections.settling import settle
from tests.read_side.samples import batches, growing, identifier, opened


def access(offset: int) -> AccessRow:
    checkpoint = identifier("checkpoint", offset % 3)
    return AccessRow(
        0, offset, 1_700_000_000_000 + offset, "zoe", "reader", "north", "load", "allowed", checkpoint, offset, None, None, None, 1,
        "0:7", None, None, "session", offset, bytes([offset % 256]) * 32,
    )  # fmt: skip


def offsets(projection: Projection) -> list[int]:
    return [row[0] for row in projection.query('SELECT "offset" FROM access ORDER BY "offset"')]


def test_the_same_batch_again_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "p.duckdb") as projection:
        assert progress(projection) is None
        batch = AccessBatch("one", {0: 5}, [access(number) for number in range(5)])
        apply_accesses(projection, batch)
        apply_accesses(projection, batch)
        apply_accesses(projection, AccessBatch("one", {0: 7}, [access(number) for number in range(3, 7)]))
        assert offsets(projection) == list(range(7))
        found = progress(projection)
        assert found is not None
        assert (found.log_id, found.next_offsets) == ("one", {0: 7})
        assert hashes(projection, 0, 2, 3) == {2: bytes([2]) * 32, 3: bytes([3]) * 32}
    with opened(tmp_path / "p.duckdb") as projection:
        assert offsets(projection) == list(range(7))


def test_what_retention_has_removed_goes(tmp_path: Path) -> None:
    with opened(tmp_path / "p.duckdb") as projection:
        apply_accesses(projection, AccessBatch("one", {0: 9}, [access(number) for number in range(9)]))
        retain(projection, {0: 4})
        assert offsets(projection) == [4, 5, 6, 7, 8]


def test_it_does_not_disturb_whoever_applies_and_settles(tmp_path: Path) -> None:
    # Once: "connection is busy with another call", for what is counted after a batch used the writer's connection.
    with opened(tmp_path / "p.duckdb", keep_events=True) as projection:
        failures: list[BaseException] = []

        def follow() -> None:
            try:
                for number in range(150):
                    apply_accesses(projection, AccessBatch("one", {0: number + 1}, [access(number)]))
            except BaseException as error:
                failures.append(error)
                raise

        thread = threading.Thread(target=follow)
        thread.start()
        for batch in batches(growing(100, checkpoint=7), 1):
            projection.apply(batch)
            settle(projection)
        thread.join()
        assert failures == []
        assert offsets(projection) == list(range(150))
