"""Applying batches: all or nothing, once, and never backwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from projections.errors import InvalidBatch, ProjectionError
from projections.heads import list_heads
from projections.history import gaps, history
from projections.rows import Batch, GapRow, QuarantineRow
from tests.read_side.samples import batch_of, batches, everything, identifier, log, opened, row


def test_a_batch_is_there_with_its_positions_after_reopening(tmp_path: Path) -> None:
    rows = log(30, 4)
    with opened(tmp_path / "p.duckdb") as projection:
        for batch in batches(rows, 17):
            projection.apply(batch)
        before = everything(projection)
    with opened(tmp_path / "p.duckdb") as projection:
        assert everything(projection) == before
        assert sum(projection.positions().values()) == len(rows)
        first = rows[0].checkpoint_id
        assert history(projection, first) == [item for item in rows if item.checkpoint_id == first]


def test_a_head_is_the_latest_revision_with_its_event(tmp_path: Path) -> None:
    rows = log(30, 4)
    with opened(tmp_path / "p.duckdb") as projection:
        projection.apply(batch_of(rows))
        latest = {item.checkpoint_id: item for item in rows}
        heads = projection.heads(list(latest))
        assert len(heads) == 30
        for checkpoint_id, item in latest.items():
            head = heads[checkpoint_id]
            assert (head.revision, head.offset, head.event, head.usage) == (3, item.offset, item.event, item.usage)
            assert (head.event_id, head.run_id, head.event_hash) == (item.event_id, item.run_id, item.event_hash)
            assert projection.head(checkpoint_id) == head
        assert projection.head(identifier("nobody")) is None
        assert projection.heads(list(latest), events=False)[rows[0].checkpoint_id].event is None


def test_replay_is_harmless(tmp_path: Path) -> None:
    rows = log(20, 5)
    with opened(tmp_path / "p.duckdb") as projection:
        for batch in batches(rows, 13):
            projection.apply(batch)
        before = everything(projection)
        for size in (13, 40, 1000):
            for batch in batches(rows, size):
                projection.apply(batch)
        assert everything(projection) == before


def test_two_builds_with_different_batch_sizes_answer_alike(tmp_path: Path) -> None:
    rows = log(40, 5)
    with opened(tmp_path / "a.duckdb") as one, opened(tmp_path / "b.duckdb") as other:
        for batch in batches(rows, 7):
            one.apply(batch)
        for batch in batches(rows, 90):
            other.apply(batch)
        assert everything(one) == everything(other)


def test_a_head_never_goes_back_to_an_older_revision() -> None:
    with opened(None) as projection:
        projection.apply(batch_of([row(1, 0, offset=0), row(1, 1, offset=1), row(1, 2, offset=2)]))
        projection.apply(batch_of([row(1, 1, offset=3)]))
        head = projection.head(row(1).checkpoint_id)
        assert head is not None
        assert (head.revision, head.offset) == (2, 2)
        assert projection.positions()[0] == 4


def test_a_revision_that_a_repair_appended_again_moves_the_head_to_the_newer_record() -> None:
    with opened(None) as projection:
        projection.apply(batch_of([row(1, 0, offset=0)]))
        projection.apply(batch_of([row(1, 0, offset=5)]))
        head = projection.head(row(1).checkpoint_id)
        assert head is not None
        assert head.offset == 5
        assert [item.offset for item in history(projection, row(1).checkpoint_id)] == [5]


def test_embedded_no_event_bytes_are_kept() -> None:
    with opened(None, keep_events=False) as projection:
        projection.apply(batch_of([row(1)]))
        head = projection.head(row(1).checkpoint_id)
        assert head is not None
        assert head.event is None
        projection.apply(batch_of([row(1, 1, offset=1)]))
        assert [item.event for item in history(projection, row(1).checkpoint_id)] == [None, None]
        assert projection.query("SELECT (SELECT count(event) FROM heads), (SELECT count(*) FROM unsettled)") == [(0, 0)]


@pytest.mark.parametrize(
    "bad",
    [
        row(2, offset=1, checkpoint_id="not a uuid"),
        row(2, offset=1)._replace(tenant=None),  # type: ignore[arg-type]
        row(2, offset=1)._replace(revision=2**63),
        row(2, offset=1)._replace(partition=3),
        row(2, offset=1)._replace(event_hash="text ü"),  # type: ignore[arg-type]
    ],
)
def test_a_batch_that_fails_leaves_nothing_and_the_projection_usable(tmp_path: Path, bad: object) -> None:
    with opened(tmp_path / "p.duckdb") as projection:
        projection.apply(batch_of([row(1)]))
        before = everything(projection)
        with pytest.raises(InvalidBatch):
            projection.apply(Batch({0: 2}, rows=[row(1, 1, offset=1), bad]))  # type: ignore[list-item]
        assert everything(projection) == before
        assert projection.query("SELECT count(*) FROM revisions") == [(1,)]
        projection.apply(batch_of([row(1, 1, offset=1)]))
    with opened(tmp_path / "p.duckdb") as projection:
        assert projection.positions()[0] == 2


def test_a_failure_after_the_heads_were_written_leaves_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "p.duckdb") as projection:
        projection.apply(batch_of([row(1)]))
        before = everything(projection)
        broken = GapRow(0, 1, "not a uuid", 0, 1, "compaction")
        with pytest.raises(InvalidBatch):
            projection.apply(Batch({0: 2}, rows=[row(1, 1, offset=1)], gaps=[broken]))
        assert everything(projection) == before
        projection.apply(Batch({0: 2}, rows=[row(1, 1, offset=1)]))
        assert projection.positions()[0] == 2


def test_an_interrupt_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    class Interrupting(list[GapRow]):
        def __iter__(self):  # type: ignore[no-untyped-def]
            self.asked = getattr(self, "asked", 0) + 1
            if self.asked > 1:  # the first pass only checks
                raise KeyboardInterrupt
            return super().__iter__()

    with opened(tmp_path / "p.duckdb") as projection:
        with pytest.raises(KeyboardInterrupt):
            projection.apply(Batch({0: 1}, rows=[row(1)], gaps=Interrupting()))
        assert projection.head(row(1).checkpoint_id) is None
        projection.apply(batch_of([row(1)]))
        assert projection.head(row(1).checkpoint_id) is not None


def test_a_position_moves_without_rows_too() -> None:
    with opened(None) as projection:
        projection.apply(Batch({0: 7, 3: 2}))
        projection.apply(Batch({0: 5}))
        assert projection.positions() == {0: 7, 1: 0, 2: 0, 3: 2}


def test_a_partition_that_does_not_exist_is_refused() -> None:
    with opened(None) as projection, pytest.raises(InvalidBatch, match="partition 9"):
        projection.apply(Batch({9: 1}))


def test_gaps_and_quarantine_are_kept_once() -> None:
    a, b = row(1).checkpoint_id, row(2).checkpoint_id
    batch = Batch(
        {0: 9},
        rows=[row(1, 4, offset=3)],
        gaps=[GapRow(0, 3, a, 0, 3, "compaction")],
        quarantined=[QuarantineRow(0, 4, 1, b, "unknown schema", b"k", b"v"), QuarantineRow(0, 5, 1, None, "no key", None, b"v")],
    )
    with opened(None) as projection:
        projection.apply(batch)
        projection.apply(batch)
        assert gaps(projection, a) == [GapRow(0, 3, a, 0, 3, "compaction")]
        assert projection.quarantined_ids() == {b}
        assert projection.query("SELECT count(*) FROM quarantine") == [(2,)]


def test_quarantine_blocks_until_a_repair_and_survives_reopening(tmp_path: Path) -> None:
    key = row(1).checkpoint_id
    bad = QuarantineRow(0, 1, 1, key, "foreign writer", None, None)
    with opened(tmp_path / "p.duckdb") as projection:
        projection.apply(Batch({0: 2}, rows=[row(1)], quarantined=[bad]))
        head = projection.head(key)
        assert head is not None
        assert head.quarantined
        assert list_heads(projection)[0].quarantined
    with opened(tmp_path / "p.duckdb") as projection:
        assert projection.quarantined_ids() == {key}
        projection.apply(Batch({0: 3}, rows=[row(1, 0, offset=2)], released=[key]))
        assert projection.quarantined_ids() == set()
        assert projection.sql("SELECT blocks FROM quarantined_records").rows == [(False,)]
        assert projection.sql("SELECT quarantined FROM checkpoint_heads").rows == [(False,)]


def test_a_record_behind_the_repair_in_the_same_batch_stays_quarantined() -> None:
    key = row(1).checkpoint_id
    records = [QuarantineRow(0, offset, 1, key, "foreign writer", None, None) for offset in (1, 3)]
    with opened(None) as projection:
        projection.apply(Batch({0: 4}, rows=[row(1), row(1, 0, offset=2)], quarantined=records, released=[key]))
        assert projection.quarantined_ids() == {key}
        assert projection.query('SELECT "offset", released FROM quarantine ORDER BY 1') == [(1, True), (3, False)]


def test_a_replayed_release_does_not_release_a_later_record() -> None:
    key = row(1).checkpoint_id
    release = Batch({0: 2}, released=[key])
    with opened(None) as projection:
        projection.apply(Batch({0: 1}, quarantined=[QuarantineRow(0, 0, 1, key, "bad", None, None)]))
        projection.apply(release)
        projection.apply(Batch({0: 3}, quarantined=[QuarantineRow(0, 2, 1, key, "bad again", None, None)]))
        projection.apply(release)
        assert projection.quarantined_ids() == {key}


def test_labels_and_usage_come_back_as_they_were() -> None:
    labels = {"": "", 'quote"': "back\\slash", "new\nline": "ünï", "nul\0": "\0", "emoji🙂": "🙂", "a,b": "{}:'"}
    usage = {"input_tokens": 2**63 - 1, "negative": -1, 'odd"': 0}
    with opened(None) as projection:
        item = row(1, labels=labels)._replace(usage=usage)
        projection.apply(batch_of([item]))
        assert history(projection, item.checkpoint_id)[0].labels == labels
        assert list_heads(projection)[0].labels == labels
        head = projection.head(item.checkpoint_id)
        assert head is not None
        assert head.usage == usage == history(projection, item.checkpoint_id)[0].usage
        assert projection.sql("SELECT labels, usage FROM checkpoint_heads").rows == [(labels, usage)]


def test_a_closed_projection_says_so(tmp_path: Path) -> None:
    projection = opened(tmp_path / "p.duckdb").open()
    projection.apply(batch_of([row(1)]))
    projection.close()
    projection.close()
    for use in (projection.positions, lambda: projection.apply(batch_of([row(2)])), projection.checkpoint):
        with pytest.raises(ProjectionError, match="not open"):
            use()
