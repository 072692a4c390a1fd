"""list: every filter, the past, and pages that hold still."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eventlog import Checkpoint, CheckpointId, CheckpointStore, CheckpointSummary, InvalidRequest, Position, open_store
from tests.store.samples import initial, numbered, stream


def kind_of_its_own() -> str:
    return f"list.k{CheckpointId.new()}"


def ids(items: Sequence[CheckpointSummary]) -> list[str]:
    return [each.id for each in items]


def test_a_summary_has_everything_but_the_payload(store: CheckpointStore) -> None:
    kind = kind_of_its_own()
    first = initial({"a": 1}, kind=kind, labels={"env": "prod"}, usage={"turns": 1}, phase="ready", schema_version=3)
    store.compare_and_swap(first, None)
    second = first.next({"a": 22}, phase="done")
    receipt = store.compare_and_swap(second, 0)
    page = store.list(kind=kind)
    assert page.items == (
        CheckpointSummary(
            second.id,
            1,
            second.event_id,
            second.run_id,
            "default",
            kind,
            3,
            "done",
            {"env": "prod"},
            {"turns": 1},
            "tester",
            second.updated_at,
            receipt.recorded_at,
            len(b'{"a":22}'),
            receipt.position,
            False,
        ),
    )
    assert page.next is None
    assert page.position.covers(receipt.position)


@pytest.fixture
def three(store: CheckpointStore) -> tuple[str, list[Checkpoint]]:
    kind = kind_of_its_own()
    written = [
        initial(kind=kind, tenant="north", phase="ready", labels={"env": "prod", "team": "a"}),
        initial(kind=kind, tenant="north", phase="done", labels={"env": "prod", "team": "b"}),
        initial(kind=kind, tenant="south", phase="ready", labels={"env": "test"}),
    ]
    store.compare_and_swap_many([(each, None) for each in written])
    return kind, written


FILTERS: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [0, 1, 2]),
    ({"tenant": "north"}, [0, 1]),
    ({"tenant": "west"}, []),
    ({"phase": "ready"}, [0, 2]),
    ({"phase": "ready", "tenant": "north"}, [0]),
    ({"labels": {"env": "prod"}}, [0, 1]),
    ({"labels": {"env": "prod", "team": "b"}}, [1]),
    ({"labels": {"env": "prod", "team": "c"}}, []),
    ({"labels": {"team": "prod"}}, []),
    ({"labels": {}}, [0, 1, 2]),
    ({"older_than": datetime(2000, 1, 1, tzinfo=UTC)}, []),
    ({"newer_than": datetime(2000, 1, 1, tzinfo=UTC)}, [0, 1, 2]),
    ({"older_than": datetime(2200, 1, 1, tzinfo=UTC)}, [0, 1, 2]),
    ({"newer_than": datetime(2200, 1, 1, tzinfo=UTC)}, []),
]


@pytest.mark.parametrize(("filters", "wanted"), FILTERS, ids=str)
def test_every_filter_filters(
    store: CheckpointStore, three: tuple[str, list[Checkpoint]], filters: dict[str, Any], wanted: list[int]
) -> None:
    kind, written = three
    expected = sorted(written[number].id for number in wanted)
    assert ids(store.list(kind=kind, **filters).items) == expected
    assert ids(store.list(kind=kind, at=store.position(), **filters).items) == expected


def test_by_run(store: CheckpointStore, three: tuple[str, list[Checkpoint]]) -> None:
    _, written = three
    assert ids(store.list(run_id=written[1].run_id).items) == [written[1].id]
    assert ids(store.list(run_id=written[1].run_id.upper()).items) == [written[1].id]


def test_a_filter_is_of_the_latest_revision(store: CheckpointStore, three: tuple[str, list[Checkpoint]]) -> None:
    kind, written = three
    then = store.position()
    store.compare_and_swap(written[0].next({}, phase="done", labels={}), 0)
    assert ids(store.list(kind=kind, phase="ready").items) == [written[2].id]
    assert ids(store.list(kind=kind, labels={"env": "prod"}).items) == [written[1].id]
    assert ids(store.list(kind=kind, phase="ready", at=then).items) == sorted([written[0].id, written[2].id])


def test_the_deleted_are_left_out_unless_asked_for(store: CheckpointStore, three: tuple[str, list[Checkpoint]]) -> None:
    kind, written = three
    then = store.position()
    store.delete(written[0].id, 0)
    assert ids(store.list(kind=kind).items) == sorted(each.id for each in written[1:])
    everything = store.list(kind=kind, include_deleted=True).items
    assert ids(everything) == sorted(each.id for each in written)
    assert [each.id for each in everything if each.deleted] == [written[0].id]
    assert ids(store.list(kind=kind, at=then).items) == sorted(each.id for each in written)


def test_an_imported_one_is_listed(store: CheckpointStore) -> None:
    kind = kind_of_its_own()
    moved = numbered(initial(kind=kind), 9)
    store.import_revision(moved)
    (item,) = store.list(kind=kind).items
    assert (item.id, item.revision) == (moved.id, 9)


def test_what_was_acknowledged_is_in_the_next_list(store: CheckpointStore) -> None:
    kind = kind_of_its_own()
    for number in range(5):
        stream(store, 1, kind=kind)
        assert len(store.list(kind=kind).items) == number + 1


def test_pages_give_each_exactly_once_whatever_changes_meanwhile(store: CheckpointStore) -> None:
    kind = kind_of_its_own()
    written = [initial(kind=kind) for _ in range(25)]
    store.compare_and_swap_many([(each, None) for each in written])
    seen: list[str] = []
    after = None
    while True:
        page = store.list(kind=kind, after=after, limit=7)
        seen += ids(page.items)
        assert len(page.items) == 7 or page.next is None
        if page.next is None:
            break
        after = page.next
        for each in written[:3]:
            latest = store.load(each.id)
            store.compare_and_swap(latest.next({}), latest.revision)
    assert seen == sorted(each.id for each in written)


def test_pages_of_one_moment(store: CheckpointStore) -> None:
    kind = kind_of_its_own()
    written = [stream(store, 1, kind=kind)[0] for _ in range(5)]
    page = store.list(kind=kind, limit=2)
    stream(store, 1, kind=kind)
    store.compare_and_swap(written[-1].next({}), 0)
    rest = store.list(kind=kind, after=page.next, at=page.position, limit=10)
    assert rest.position == page.position
    assert [(each.id, each.revision) for each in [*page.items, *rest.items]] == [(each, 0) for each in sorted(each.id for each in written)]


def test_an_exact_page_is_the_last(store: CheckpointStore) -> None:
    kind = kind_of_its_own()
    for _ in range(3):
        stream(store, 1, kind=kind)
    assert store.list(kind=kind, limit=3).next is None
    assert store.list(kind=kind, limit=2).next is not None


@pytest.mark.parametrize("limit", [1, 999, 1000])
def test_every_allowed_limit_works(store: CheckpointStore, limit: int) -> None:
    # Once: 1000 is refused: the catalog asks the projection for one more, which is over its limit.
    kind = kind_of_its_own()
    stream(store, 1, kind=kind)
    assert len(store.list(kind=kind, limit=limit).items) == 1
    assert len(store.list(kind=kind, limit=limit, at=store.position()).items) == 1


def test_an_empty_store(fresh_address: str) -> None:
    with open_store(fresh_address) as store:
        page = store.list()
        assert (page.items, page.next) == ((), None)
        assert store.list(at=page.position).items == ()
        assert store.list(at=store.position()).items == ()


WRONG: list[dict[str, Any]] = [
    {"limit": 0},
    {"limit": 1001},
    {"limit": -1},
    {"limit": True},
    {"limit": "7"},
    {"kind": 5},
    {"tenant": ["north"]},
    {"phase": True},
    {"labels": "env=prod"},
    {"labels": {"env": 1}},
    {"labels": [("env", "prod")]},
    {"run_id": "no id"},
    {"after": "no id"},
    {"older_than": datetime(2030, 1, 1)},
    {"include_deleted": "yes"},
    {"at": Position(((0, 10**12), (1, 10**12)))},
]


@pytest.mark.parametrize("arguments", WRONG, ids=str)
def test_a_filter_that_cannot_be_is_refused(store: CheckpointStore, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        store.list(**arguments)


@pytest.mark.parametrize("arguments", [{"older_than": 5}, {"newer_than": "now"}, {"at": "now"}], ids=str)
def test_what_is_no_time_is_refused(store: CheckpointStore, arguments: dict[str, Any]) -> None:
    # Once: AttributeError: ... has no attribute 'tzinfo'
    with pytest.raises(InvalidRequest):
        store.list(**arguments)


def test_an_unknown_filter_is_refused(store: CheckpointStore) -> None:
    """langgraphjs#1591: a filter that silently does nothing."""
    with pytest.raises(TypeError, match="status"):
        store.list(status="ready")  # type: ignore[call-arg]


def test_age_is_by_the_logs_clock_not_the_writers(store: CheckpointStore) -> None:
    kind = kind_of_its_own()
    old = initial(kind=kind).model_copy(update={"updated_at": datetime(1999, 1, 1, tzinfo=UTC)})
    receipt = store.compare_and_swap(old, None)
    assert ids(store.list(kind=kind, older_than=datetime(2001, 1, 1, tzinfo=UTC)).items) == []
    assert ids(store.list(kind=kind, newer_than=receipt.recorded_at - timedelta(seconds=1)).items) == [old.id]
