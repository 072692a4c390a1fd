"""Promise 9: the projection can be deleted at any time and rebuilt from the log to the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eventlog import CheckpointStore, open_store
from tests.store.samples import initial, numbered, stream

VIEWS = ("checkpoint_history", "checkpoint_heads", "checkpoint_gaps", "quarantined_records", "log_positions")


def answers(store: CheckpointStore) -> list[Any]:
    return [store.list(include_deleted=True), *(store.catalog.sql(f"SELECT * FROM {view} ORDER BY ALL") for view in VIEWS)]


def filled(store: CheckpointStore) -> None:
    for number in range(5):
        stream(store, number + 1, labels={"n": str(number)}, usage={"turns": number}, phase="ready")
    store.delete(stream(store, 2)[0].id, 1)
    store.import_revision(numbered(initial(), 7))


def remove(directory: Path, *patterns: str) -> None:
    found = [path for pattern in patterns for path in directory.glob(pattern)]
    assert found
    for path in found:
        path.unlink()


@pytest.mark.parametrize(
    "patterns", [("projection*",), ("projection*", "snapshot*"), ("snapshot*",), ("*.wal", "*.lock", "projection.duckdb")]
)
def test_deleted_while_closed_it_comes_back_the_same(directory: Path, patterns: tuple[str, ...]) -> None:
    with open_store(directory) as store:
        filled(store)
        before = answers(store)
    remove(directory, *patterns)
    with open_store(directory) as store:
        assert answers(store) == before


def test_rebuilt_while_open_it_is_the_same(store: CheckpointStore) -> None:
    filled(store)
    before = answers(store)
    seen: list[int] = []
    store.catalog.rebuild(seen.append)
    assert answers(store) == before
    assert sum(seen) == len(before[1].rows)
    stream(store, 1)
    assert len(store.catalog.sql("SELECT * FROM checkpoint_history").rows) == len(before[1].rows) + 1


def test_what_was_built_step_by_step_equals_what_is_rebuilt_at_once(store: CheckpointStore) -> None:
    for number in range(6):
        written = stream(store, 1 + number % 3)
        store.list()
        store.compare_and_swap(written[-1].next({}), written[-1].revision)
    before = answers(store)
    store.catalog.rebuild()
    assert answers(store) == before


def test_loads_and_writes_never_need_it(directory: Path) -> None:
    (directory / "projection.duckdb").mkdir()
    with open_store(directory) as store:
        last = stream(store, 3)[-1]
        assert store.load(last.id) == last
        assert len(list(store.history(last.id))) == 3
