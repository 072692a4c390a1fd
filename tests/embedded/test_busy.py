"""Another process that holds the log: waited for as long as the caller allows, then `Busy`, and nothing written."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eventlog import Busy, CheckpointError, CheckpointStore, Receipt, open_async_store
from eventlog.aio import AsyncCheckpointStore
from tests.store.samples import initial, stream


@pytest.fixture
def held(directory: Path) -> Iterator[Callable[[], None]]:
    """The write lock, held by somebody else until `held()` is called."""
    connection = sqlite3.connect(directory / "log.sqlite3", isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")

    def release() -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")

    yield release
    release()
    connection.close()


def test_a_writer_waits_for_another_process(store: CheckpointStore, held: Callable[[], None]) -> None:
    first = initial()
    results: list[Receipt] = []
    writer = threading.Thread(target=lambda: results.append(store.compare_and_swap(first, None)))
    writer.start()
    time.sleep(0.1)
    assert results == []
    held()
    writer.join(20)
    assert results[0].revision == 0
    assert store.load(first.id) == first


def test_reads_go_on_meanwhile(store: CheckpointStore, directory: Path) -> None:
    last = stream(store, 3)[-1]
    connection = sqlite3.connect(directory / "log.sqlite3", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    assert store.load(last.id) == last
    assert len(store.list().items) == 1
    assert len(list(store.history(last.id))) == 3
    connection.close()


def test_the_callers_time_limit_holds(store: CheckpointStore, held: Callable[[], None]) -> None:
    # Once: `timeout` is ignored; the call takes 30 s.
    begun = time.monotonic()
    first = initial()
    releasing = threading.Timer(8, held)
    releasing.start()
    with pytest.raises(CheckpointError):
        store.compare_and_swap(first, None, timeout=0.3)
    took = time.monotonic() - begun
    releasing.cancel()
    held()
    assert took < 5
    assert store.resolve(first) is None


def test_the_loop_goes_on_while_another_process_holds_the_log(store: CheckpointStore, held: Callable[[], None]) -> None:
    aio = AsyncCheckpointStore(store)

    async def run() -> list[Receipt]:
        tasks = [asyncio.create_task(aio.compare_and_swap(initial(), None)) for _ in range(5)]
        begun = time.monotonic()
        for _ in range(10):
            await asyncio.sleep(0.01)
        assert time.monotonic() - begun < 2
        assert not any(each.done() for each in tasks)
        held()
        return await asyncio.wait_for(asyncio.gather(*tasks), 20)

    assert [each.revision for each in asyncio.run(run())] == [0] * 5


def test_a_loop_that_was_given_up_does_not_block_the_next(store: CheckpointStore, held: Callable[[], None]) -> None:
    # Once: asyncio.run cancels the flush's task at its end; its callback then raises CancelledError, and every later call waits for ever.
    aio = AsyncCheckpointStore(store)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(aio.compare_and_swap(initial(), None), 0.2)
        threading.Timer(0.2, held).start()

    async def again() -> Receipt:
        return await asyncio.wait_for(aio.compare_and_swap(initial(), None), 10)

    asyncio.run(give_up())
    assert asyncio.run(again()).revision == 0


def test_busy_says_that_nothing_was_written(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from eventlog import embedded, open_store

    monkeypatch.setattr(embedded, "BUSY_SECONDS", 0.2)
    with open_store(directory) as store:
        connection = sqlite3.connect(directory / "log.sqlite3", isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        first = initial()
        with pytest.raises(Busy, match="nothing was written") as caught:
            store.compare_and_swap(first, None, timeout=0.2)
        assert caught.value.retry.value == "backoff"
        connection.close()
        store.compare_and_swap(first, None)
        assert store.load(first.id) == first


def test_an_async_store_closes_with_calls_under_way(directory: Path) -> None:
    async def run() -> None:
        aio = await open_async_store(directory)
        tasks = [asyncio.create_task(aio.compare_and_swap(initial(), None)) for _ in range(20)]
        await asyncio.sleep(0)
        await aio.close()
        for each in await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20):
            assert isinstance(each, Receipt | CheckpointError)

    asyncio.run(run())
