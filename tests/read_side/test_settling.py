"""Superseded events are kept against their successors: small, and exactly what they were."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from projections.errors import ProjectionDamaged
from projections.history import as_of, by_event_id, by_position, history, revision
from projections.settling import settle
from tests.read_side.samples import all_events, batch_of, batches, everything, growing, log, opened, row, settle_all

ID = row(1).checkpoint_id


@pytest.mark.parametrize("size", [1, 7, 200])
def test_every_event_of_a_growing_state_comes_back_as_it_was(size: int) -> None:
    rows = growing(100)
    with opened(None) as projection:
        for batch in batches(rows, size):
            projection.apply(batch)
            settle(projection)
        settle_all(projection)
        assert history(projection, ID) == rows
        assert history(projection, ID, after_revision=40, limit=3) == rows[41:44]
        for item in (rows[0], rows[30], rows[31], rows[32], rows[98], rows[99]):
            assert revision(projection, ID, item.revision) == item
            assert as_of(projection, ID, 0, item.offset + 1) == item
            assert by_event_id(projection, item.event_id) == item
            assert by_position(projection, 0, item.offset) == item
        assert [each.event for each in all_events(projection)] == [item.event for item in rows]
        head = projection.head(ID)
        assert head is not None
        assert head.event == rows[-1].event


def test_settled_or_not_all_answers_are_the_same(tmp_path: Path) -> None:
    rows = log(40, 40, event_size=300)
    with opened(tmp_path / "a.duckdb") as settled, opened(tmp_path / "b.duckdb") as unsettled:
        for batch in batches(rows, 97):
            settled.apply(batch)
            settle(settled)
            unsettled.apply(batch)
        assert everything(settled) == everything(unsettled)
        assert settled.query("SELECT count(*) FROM unsettled") == [(0,)]
        assert settled.unsettled_bytes == 0
        before = everything(settled)
    with opened(tmp_path / "a.duckdb") as settled:
        assert everything(settled) == before


def test_two_hundred_turns_take_less_than_twice_their_final_state(tmp_path: Path) -> None:
    rows = growing(200, turn=10_000)  # hex digits: zstd alone halves them
    with opened(tmp_path / "p.duckdb") as projection:
        for batch in batches(rows, 50):
            projection.apply(batch)
        settle_all(projection)
        projection.compact()
        assert history(projection, ID, after_revision=150, limit=30) == rows[151:181]
        ((superseded,),) = projection.query("SELECT sum(octet_length(event)) FROM superseded WHERE base IS NOT NULL")
        assert superseded < 200 * 600
    # Six of the 199 end a block and stand for themselves: 0.5 of 0.16 to 0.96 of the final state.
    blocks = sum(item.stored_size for item in rows if item.revision % 32 == 31)
    assert (tmp_path / "p.duckdb").stat().st_size < 0.6 * (rows[-1].stored_size + blocks) + (1 << 20)


def test_an_event_is_kept_against_its_successor_or_by_itself_at_the_end_of_a_block() -> None:
    with opened(None) as projection:
        projection.apply(batch_of(growing(100)))
        settle_all(projection)
        kept = projection.query("SELECT revision, base FROM superseded ORDER BY revision")
        assert kept == [(number, None if number % 32 == 31 else number + 1) for number in range(99)]


def test_what_has_nothing_in_common_with_its_successor_stands_for_itself() -> None:
    with opened(None) as projection:
        projection.apply(batch_of([row(1, number, offset=number, event_size=5_000) for number in range(5)]))
        settle_all(projection)
        assert projection.query("SELECT count(*), count(base) FROM superseded") == [(4, 0)]


def test_a_revision_that_a_repair_appended_again_is_read_in_either_place() -> None:
    rows = growing(5)
    again = rows[3]._replace(offset=9)
    with opened(None) as projection:
        projection.apply(batch_of(rows[:4]))
        settle_all(projection)
        projection.apply(batch_of([again]))
        settle_all(projection)
        projection.apply(batch_of([rows[4]._replace(offset=10)]))
        settle_all(projection)
        assert by_position(projection, 0, 3) == rows[3]
        assert by_position(projection, 0, 9) == again
        assert [item.offset for item in history(projection, ID)] == [0, 1, 2, 9, 10]


def test_a_revision_that_comes_late_does_not_hide_what_was_settled_before() -> None:
    rows = growing(4)
    late = rows[1]._replace(offset=7)
    with opened(None) as projection:
        projection.apply(batch_of(rows))
        settle_all(projection)
        projection.apply(batch_of([late]))
        settle_all(projection)
        assert [by_position(projection, 0, offset) for offset in range(4)] == rows
        assert by_position(projection, 0, 7) == late


def test_revisions_with_gaps_between_them_are_read_across_blocks() -> None:
    rows = [item._replace(revision=item.revision * 13) for item in growing(30)]
    with opened(None) as projection:
        projection.apply(batch_of(rows))
        settle_all(projection)
        assert history(projection, ID) == rows
        for item in random.Random(3).sample(rows, 10):
            assert revision(projection, ID, item.revision) == item


def test_large_states_are_settled_a_few_at_a_time() -> None:
    rows = growing(7, turn=1 << 20)
    with opened(None) as projection:
        projection.apply(batch_of(rows))
        transactions = 0
        while settle(projection):
            transactions += 1
        assert transactions > 1
        assert history(projection, ID) == rows
        ((kept,),) = projection.query("SELECT sum(octet_length(event)) FROM superseded")
        assert kept < 10_000


def test_an_event_that_cannot_be_opened_is_named_as_damage() -> None:
    with opened(None) as projection:
        projection.apply(batch_of(growing(5)))
        settle_all(projection)
        projection.query("UPDATE superseded SET event = 'nothing'::BLOB WHERE revision = 2 RETURNING 1")
        assert revision(projection, ID, 3) is not None
        for number in (0, 1, 2):
            with pytest.raises(ProjectionDamaged, match="0:2"):
                revision(projection, ID, number)
