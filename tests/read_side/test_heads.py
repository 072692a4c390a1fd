"""Lists: filters, pages, and the past."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from projections.engine import Projection
from projections.errors import InvalidQuery, PastGone
from projections.heads import HeadSummary, list_heads
from projections.rows import Batch, GapRow, RevisionRow
from tests.read_side.samples import PARTITIONS, START, batch_of, batches, log, opened, row


@pytest.fixture
def projection() -> Iterator[Projection]:
    with opened(None) as opened_one:
        yield opened_one


def pages(projection: Projection, limit: int, **arguments: Any) -> Iterator[HeadSummary]:
    after = None
    while page := list_heads(projection, after=after, limit=limit, **arguments):
        yield from page
        after = page[-1].checkpoint_id


def test_each_filter_finds_what_a_plain_loop_finds(projection: Projection) -> None:
    rows = log(60, 3)
    projection.apply(batch_of(rows))
    latest = {item.checkpoint_id: item for item in rows}.values()
    middle = sorted(item.recorded_at for item in latest)[30]
    cases: tuple[tuple[dict[str, Any], Callable[[RevisionRow], bool]], ...] = (
        ({"tenant": "north"}, lambda item: item.tenant == "north"),
        ({"phase": "in-flight"}, lambda item: item.phase == "in-flight"),
        ({"kind": "acme.order"}, lambda item: item.kind == "acme.order"),
        ({"kind": "acme"}, lambda item: item.kind == "acme"),
        ({"labels": {"team": "3"}}, lambda item: item.labels.get("team") == "3"),
        ({"labels": {"team": "3", "env": "prod"}}, lambda item: item.labels.get("team") == "3"),
        ({"labels": {"team": "3", "env": "test"}}, lambda item: item.labels.get("env") == "test"),
        ({"run_id": rows[0].run_id}, lambda item: item.run_id == rows[0].run_id),
        ({"older_than": middle}, lambda item: item.recorded_at < middle),
        ({"newer_than": middle}, lambda item: item.recorded_at > middle),
        ({"tenant": "north", "phase": "ready"}, lambda item: item.tenant == "north" and item.phase == "ready"),
    )
    for filters, holds in cases:
        expected = sorted(item.checkpoint_id for item in latest if holds(item))
        for at in (None, projection.positions()):
            found = list_heads(projection, limit=1000, at=at, **filters)
            assert [head.checkpoint_id for head in found] == expected, filters


def test_the_list_of_now_and_of_the_position_now_are_the_same(projection: Projection) -> None:
    projection.apply(batch_of(log(60, 3)))
    assert list_heads(projection, limit=1000, at=projection.positions()) == list_heads(projection, limit=1000)


def test_at_a_past_position_the_list_is_what_it_was(projection: Projection) -> None:
    rows = log(40, 4)
    remembered = []
    for batch in batches(rows, 20):
        projection.apply(batch)
        remembered.append((projection.positions(), list_heads(projection, limit=1000)))
    for at, answer in remembered:
        assert list_heads(projection, limit=1000, at=at) == answer
        assert list(pages(projection, 7, at=at)) == answer


def test_the_deleted_are_left_out_unless_asked_for(projection: Projection) -> None:
    projection.apply(batch_of([row(1), row(2, offset=1), row(2, 1, offset=2, event_type="DELETED", phase=None)]))
    for at in (None, projection.positions()):
        assert [head.checkpoint_id for head in list_heads(projection, at=at)] == [row(1).checkpoint_id]
        with_deleted = list_heads(projection, include_deleted=True, at=at)
        assert {head.checkpoint_id: head.deleted for head in with_deleted} == {row(1).checkpoint_id: False, row(2).checkpoint_id: True}
    assert len(list_heads(projection, at={**projection.positions(), 0: 2})) == 2


def test_paging_shows_what_is_there_throughout_exactly_once(projection: Projection) -> None:
    rows = log(50, 1)
    projection.apply(batch_of(rows))
    offset = dict(projection.positions())
    seen = []
    for number, head in enumerate(pages(projection, 3)):
        seen.append(head.checkpoint_id)
        changes = [row(number, 1, partition=number % PARTITIONS, offset=offset[number % PARTITIONS])]
        offset[number % PARTITIONS] += 1
        changes.append(row(1000 + number, 0, partition=0, offset=offset[0]))
        offset[0] += 1
        projection.apply(batch_of(changes))
    assert len(seen) == len(set(seen))
    assert {item.checkpoint_id for item in rows} <= set(seen)


@pytest.mark.parametrize("text", ["' OR 1=1 --", "'; DROP TABLE heads; --", "%", "_", '"', "\\", "\0", "$tenant", "{}"])
def test_a_filter_value_is_only_a_value(projection: Projection, text: str) -> None:
    hostile = row(2, offset=1, tenant=text, kind=text, phase=text, labels={text: text})
    projection.apply(batch_of([row(1, labels={"a": "b"}), hostile]))
    filters: list[dict[str, Any]] = [{"tenant": text}, {"kind": text}, {"phase": text}, {"labels": {text: text}}]
    for one in filters:
        for at in (None, projection.positions()):
            assert [head.checkpoint_id for head in list_heads(projection, at=at, **one)] == [hostile.checkpoint_id]
    assert list_heads(projection, labels={text: "b"}) == []
    assert len(list_heads(projection)) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"colour": "blue"},
        {"tenant": 5},
        {"labels": {"a": 1}},
        {"labels": "a=b"},
        {"older_than": "yesterday"},
        {"newer_than": True},
        {"include_deleted": "no"},
        {"run_id": "not a uuid"},
        {"after": "' OR 1=1"},
        {"limit": 0},
        {"limit": 1002},
        {"limit": True},
        {"at": {0: 0}},
        {"at": {0: 99, 1: 0, 2: 0, 3: 0}},
        {"at": {0: -1, 1: 0, 2: 0, 3: 0}},
    ],
)
def test_what_cannot_be_asked_is_refused_never_ignored(projection: Projection, wrong: dict[str, Any]) -> None:
    projection.apply(batch_of([row(1)]))
    with pytest.raises(InvalidQuery, match=next(iter(wrong)).replace("colour", "unknown filter 'colour'")):
        list_heads(projection, **wrong)


def test_a_list_of_a_position_inside_a_gap_is_refused_by_name(projection: Projection) -> None:
    key = row(1).checkpoint_id
    gap = GapRow(0, 9, key, 1, 3, "compaction")
    projection.apply(Batch({0: 20}, rows=[row(1), row(2, offset=5, tenant="north"), row(1, 4, offset=9)], gaps=[gap]))

    def at(offset: int) -> dict[int, int]:
        return {0: offset, 1: 0, 2: 0, 3: 0}

    for offset in (1, 6, 9):
        with pytest.raises(PastGone) as caught:
            list_heads(projection, at=at(offset))
        assert (caught.value.checkpoint_id, caught.value.first_revision, caught.value.last_revision) == (key, 1, 3)
    assert list_heads(projection, at=at(0)) == []  # before the revision that precedes the gap: known
    assert len(list_heads(projection, at=at(10))) == 2
    assert len(list_heads(projection, at=at(6), tenant="north")) == 1  # another tenant's gap is not this one's


def test_what_was_imported_did_not_exist_here_before(projection: Projection) -> None:
    gap = GapRow(0, 3, row(1).checkpoint_id, 0, 6, "import")
    projection.apply(Batch({0: 4}, rows=[row(1, 7, offset=3, event_type="IMPORTED")], gaps=[gap]))
    assert list_heads(projection, at={0: 3, 1: 0, 2: 0, 3: 0}) == []


def test_summaries_carry_what_a_list_shows(projection: Projection) -> None:
    projection.apply(batch_of([row(1, 0, labels={"a": "b"}, event_size=10)]))
    (head,) = list_heads(projection)
    assert (head.labels, head.usage, head.recorded_at, head.updated_at) == ({"a": "b"}, {"input_tokens": 0, "turns": 0}, START, START - 5)
    assert (head.payload_size, head.stored_size, head.actor, head.deleted, head.quarantined) == (20, 10, "alice", False, False)
