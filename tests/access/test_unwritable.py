"""Strict, and the access log cannot be written: nothing is handed out, nothing is done, and it goes on once it can be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from eventlog import AccessDenied, AuditUnavailable, Checkpoint, CheckpointStore, Position, create_store, open_async_store, open_store
from eventlog.privacy.recorder import MOST_BUFFERED
from tests.access.samples import somebody, trail
from tests.conftest import OwnBroker
from tests.embedded.test_full_disk import filled, small_disk
from tests.store.samples import initial, stream

__all__ = ["small_disk"]

READS: dict[str, Callable[[CheckpointStore, Checkpoint], object]] = {
    "load": lambda store, known: store.load(known.id),
    "load_revision": lambda store, known: store.load_revision(known.id),
    "history": lambda store, known: store.history(known.id),
    "list": lambda store, known: store.list(kind=known.kind),
    "subscribe": lambda store, _known: next(store.subscribe(Position(), idle_timeout=0)),
    "resolve": lambda store, known: store.resolve(known),
    "report": lambda store, _known: store.catalog.report("retention", {}),
    "sql": lambda store, _known: store.catalog.sql("SELECT 1"),
    "absent": lambda store, _known: store.load(initial().id),
}
WRITES: dict[str, Callable[[CheckpointStore, Checkpoint], object]] = {
    "compare_and_swap": lambda store, known: store.compare_and_swap(known.next({"step": "unrecorded"}), known.revision),
    "compare_and_swap_many": lambda store, _known: store.compare_and_swap_many([(initial(), None)]),
    "import": lambda store, _known: store.import_revision(initial()),
    "delete": lambda store, known: store.delete(known.id, known.revision),
}


@pytest.fixture
def full(small_disk: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A store whose access log, and nothing else, lies on a small disk; and that disk."""
    create_store(tmp_path / "store", access="strict")
    for each in (tmp_path / "store").glob("access*"):
        (small_disk / each.name).write_bytes(each.read_bytes())
        each.unlink()
        each.symlink_to(small_disk / each.name)
    return tmp_path / "store", small_disk


def test_with_a_full_disk_nothing_is_handed_out_and_nothing_is_written(full: tuple[Path, Path]) -> None:
    place, disk = full
    with open_store(place, actor="root") as store:
        last = stream(store, 2)[-1]
        list(store.subscribe(Position(), idle_timeout=0))
        store.list()
        filler = filled(disk)
        assert_nothing_is_done(store, last)
        end = store.position()
        with pytest.raises(AuditUnavailable):
            store.for_principal(somebody("auditor")).load(last.id)  # not even a refusal is told that nobody will know of
        filler.unlink()
        assert store.load(last.id) == last
        assert store.position() == end
        assert [row["outcome"] for row in trail(store, checkpoint=str(last.id))].count("allowed") >= 2


def assert_nothing_is_done(store: CheckpointStore, last: Checkpoint) -> None:
    before = store.position()
    fill(store, last)
    for name, call in {**READS, **WRITES}.items():
        with pytest.raises(AuditUnavailable) as refused:
            call(store, last)
        assert refused.value.hint, name
    assert store.position() == before


def fill(store: CheckpointStore, last: Checkpoint) -> None:
    """SQLite may still have room in its journal for some records."""
    for _ in range(20_000):
        try:
            store.load(last.id)
        except AuditUnavailable:
            return
    raise AssertionError("the disk did not become full")


def test_with_asyncio_it_is_the_same(full: tuple[Path, Path]) -> None:
    place, disk = full

    async def main() -> None:
        async with await open_async_store(place, actor="root") as store:
            first = initial()
            await store.compare_and_swap(first, None)
            filler = await asyncio.to_thread(filled, disk)
            for _ in range(20_000):
                try:
                    await store.load(first.id)
                except AuditUnavailable:
                    break
            found = await asyncio.gather(*(store.load(first.id) for _ in range(5)), return_exceptions=True)
            assert {type(each) for each in found} == {AuditUnavailable}
            with pytest.raises(AuditUnavailable):
                await store.compare_and_swap(first.next({"step": 1}), 0)
            filler.unlink()
            assert await store.load(first.id) == first

    asyncio.run(main())


def test_buffered_a_full_disk_stops_the_store_when_the_bound_is_reached(full: tuple[Path, Path]) -> None:
    place, disk = full
    create_store(place.parent / "buffered", access="buffered")
    (place.parent / "buffered" / "access.sqlite3").write_bytes((disk / "access.sqlite3").read_bytes())
    (disk / "access.sqlite3").unlink()
    (disk / "access.sqlite3").write_bytes((place.parent / "buffered" / "access.sqlite3").read_bytes())
    (place.parent / "buffered" / "access.sqlite3").unlink()
    (place.parent / "buffered" / "access.sqlite3").symlink_to(disk / "access.sqlite3")
    store = open_store(place.parent / "buffered", actor="root")
    last = stream(store, 1)[-1]
    assert store.recorder is not None
    store.recorder.flush()
    filler = filled(disk)
    handed, refused = 0, False
    for _ in range(200 * MOST_BUFFERED):
        try:
            store.load(last.id)
            handed += 1
        except AuditUnavailable:
            refused = True
            break
    assert refused
    filler.unlink()
    store.close()
    with open_store(place.parent / "buffered", actor="again") as again:
        assert sum(row["action"] == "load" and row["outcome"] == "allowed" for row in trail(again, subject="root")) == handed


def test_a_broker_that_is_gone_and_a_topic_that_is_gone(own_broker: OwnBroker, tmp_path: Path) -> None:
    from kafka import KafkaAdminClient

    running = own_broker()
    address = f"kafka://{running.bootstrap}/strict?state={tmp_path}"
    create_store(address, partitions=1, access="strict")
    with open_store(address, actor="root", timeout=3) as store:
        last = stream(store, 2)[-1]
        assert store.load(last.id, at_least=Position()) == last
        admin = KafkaAdminClient(bootstrap_servers=running.bootstrap)
        admin.delete_topics(["strict.access"])
        admin.close()
        before = store.position()
        for call in (lambda: store.load(last.id), lambda: store.compare_and_swap(last.next({"step": 2}), 1)):
            with pytest.raises(AuditUnavailable):
                call()
        assert store.position() == before
        running.kill()
        with pytest.raises(AuditUnavailable):
            store.load(last.id, at_least=Position())  # what this process has in memory is not handed out either
        with pytest.raises((AuditUnavailable, AccessDenied)):
            store.for_principal(somebody("auditor")).load(last.id)
