"""The past of a checkpoint, and which position a time means."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from projections.engine import Projection
from projections.errors import InvalidQuery, PastGone
from projections.history import as_of, by_event_id, by_position, gaps, history, position_at, revision
from projections.rows import Batch, GapRow, QuarantineRow, RevisionRow
from tests.read_side.samples import START, batch_of, batches, identifier, log, opened, row

ID = row(1).checkpoint_id


@pytest.fixture
def projection() -> Iterator[Projection]:
    with opened(None) as opened_one:
        yield opened_one


def test_every_revision_comes_back_as_it_went_in(projection: Projection) -> None:
    rows = log(20, 12)
    for batch in batches(rows, 50):
        projection.apply(batch)
    for key in {item.checkpoint_id for item in rows}:
        expected = [item for item in rows if item.checkpoint_id == key]
        assert history(projection, key) == expected
        paged: list[RevisionRow] = []
        while page := history(projection, key, after_revision=len(paged) - 1, limit=5):
            paged += page
        assert paged == expected
        for item in expected:
            assert revision(projection, key, item.revision) == item
            assert by_event_id(projection, item.event_id) == item
            assert by_position(projection, item.partition, item.offset) == item
        assert revision(projection, key, 12) is None
    assert by_event_id(projection, identifier("nothing")) is None
    assert by_position(projection, 0, 10_000) is None


def test_at_a_position_only_what_lies_below_counts(projection: Projection) -> None:
    projection.apply(batch_of([row(1, number, offset=number * 2) for number in range(5)]))
    for offset in range(9):
        expected = [row(1, number, offset=number * 2) for number in range(5) if number * 2 < offset]
        assert history(projection, ID, at={0: offset, 1: 0, 2: 0, 3: 0}) == expected
        assert as_of(projection, ID, 0, offset) == (expected[-1] if expected else None)


def test_a_position_inside_a_gap_is_refused_by_name(projection: Projection) -> None:
    gap = GapRow(0, 9, ID, 1, 3, "compaction")
    projection.apply(Batch({0: 20}, rows=[row(1), row(1, 4, offset=9)], gaps=[gap]))
    assert as_of(projection, ID, 0, 0) is None
    for offset in (1, 5, 9):
        with pytest.raises(PastGone, match="revisions 1 to 3 are gone by compaction"):
            as_of(projection, ID, 0, offset)
    found = as_of(projection, ID, 0, 10)
    assert found is not None
    assert found.revision == 4
    assert gaps(projection, ID) == [gap]
    with pytest.raises(PastGone):
        revision(projection, ID, 2)
    assert [item.revision for item in history(projection, ID)] == [0, 4]


def test_a_time_means_the_position_that_the_logs_clock_gives(projection: Projection) -> None:
    times = [10, 30, 20, 30, 50, 40]  # the broker's clock went back twice
    rows = [row(number, offset=number * 3, recorded_at=START + time) for number, time in enumerate(times)]
    projection.apply(Batch({0: 20, 1: 7}, rows=rows))
    clock = [max(times[: number + 1]) for number in range(len(times))]
    for time in range(0, 60, 5):
        later = [number * 3 for number, now in enumerate(clock) if now > time]
        assert position_at(projection, START + time) == {0: later[0] if later else 20, 1: 7, 2: 0, 3: 0}


def test_a_quarantined_record_moves_the_clock_too(projection: Projection) -> None:
    bad = QuarantineRow(0, 1, START + 100, None, "bad", None, None)
    projection.apply(Batch({0: 3}, rows=[row(1, recorded_at=START), row(2, offset=2, recorded_at=START + 10)], quarantined=[bad]))
    assert position_at(projection, START + 50)[0] == 1


@pytest.mark.parametrize("bad", ["", "x", ID.upper(), "{" + ID + "}"])
def test_an_id_that_is_no_lower_case_uuid_is_refused(projection: Projection, bad: str) -> None:
    for ask in (lambda: history(projection, bad), lambda: by_event_id(projection, bad), lambda: as_of(projection, bad, 0, 1)):
        with pytest.raises(InvalidQuery, match="UUID"):
            ask()


def test_numbers_are_numbers(projection: Projection) -> None:
    with pytest.raises(InvalidQuery, match="time"):
        position_at(projection, "2026-01-01")  # type: ignore[arg-type]
    with pytest.raises(InvalidQuery, match="limit"):
        history(projection, ID, limit=1002)
