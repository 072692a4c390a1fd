"""The async store: the same names, the same answers, many tasks, cancelled callers, one event loop after another."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from eventlog import (
    AsyncCheckpointStore,
    Checkpoint,
    CheckpointError,
    CheckpointStore,
    Conflict,
    InvalidRequest,
    NotFound,
    Receipt,
    open_async_store,
    open_store,
)
from tests.store.samples import UNUSED_ID, described, initial, revisions, stream

OF_THE_PACKAGE = {"entrusted", "require_payloads"}  # what is done to the whole of a store is not done on a loop
NEVER_WAITS = {"for_principal"}


def public(cls: type) -> dict[str, Any]:
    return {name: value for name, value in vars(cls).items() if not name.startswith("_") and name not in OF_THE_PACKAGE}


def test_both_stores_have_the_same_names_and_arguments() -> None:
    sync, aio = public(CheckpointStore), public(AsyncCheckpointStore)
    assert sorted(sync) == sorted([*aio, "forget"])  # for the package itself: an erasure is not asynchronous
    for name in aio:
        if inspect.isfunction(sync[name]):
            here, there = inspect.signature(sync[name]), inspect.signature(aio[name])
            assert list(here.parameters.values()) == list(there.parameters.values()), name
            if name in NEVER_WAITS:
                continue
            returns = (
                here.return_annotation.replace("Iterator", "AsyncIterator") if name in {"history", "subscribe"} else here.return_annotation
            )
            assert there.return_annotation == returns, name
            assert inspect.iscoroutinefunction(aio[name]) or inspect.isasyncgenfunction(aio[name]), name


@pytest.fixture
def aio(store: CheckpointStore) -> AsyncCheckpointStore:
    return AsyncCheckpointStore(store)


async def collected(iterator: Any) -> list[Any]:
    return [each async for each in iterator]


def test_the_same_calls_give_the_same_answers(store: CheckpointStore, aio: AsyncCheckpointStore) -> None:
    async def run() -> None:
        before = store.position()
        first = initial(kind=f"aio.k{UNUSED_ID}")
        receipt = await aio.compare_and_swap(first, None)
        assert await aio.compare_and_swap(first, None) == receipt._replace(duplicate=True)
        second = first.next({"step": 1})
        outcomes = await aio.compare_and_swap_many([(second, 0), (first.next({"late": True}), 0), (initial({1}), None)])
        assert [type(each).__name__ for each in outcomes] == ["Receipt", "Conflict", "InvalidPayload"]
        assert await aio.load(first.id) == store.load(first.id) == second
        assert await aio.load(first.id, revision=0) == first
        assert await aio.load_revision(first.id) == store.load_revision(first.id)
        assert await collected(aio.history(first.id)) == revisions(store, first.id)
        assert await aio.resolve(first) == await aio.resolve(first.event_id) == receipt
        assert (await aio.list(kind=first.kind, run_id=first.run_id)).items == store.list(kind=first.kind, run_id=first.run_id).items
        assert await aio.position() == store.position()
        assert await aio.position_at(receipt.recorded_at) == store.position_at(receipt.recorded_at)
        assert (await aio.delete(first.id, 1)).revision == 2
        moved = initial()
        assert (await aio.import_revision(moved)).revision == 0
        events = await collected(aio.subscribe(before, idle_timeout=0))
        assert [each.checkpoint.revision for each in events if each.checkpoint.id == first.id] == [0, 1, 2]
        assert [each.checkpoint.id for each in events if each.checkpoint.id != first.id] == [
            moved.id
        ]  # partitions have no order among them

    asyncio.run(run())


FAILING: dict[str, Callable[[Any, Checkpoint], Any]] = {
    "absent": lambda store, _: store.load(UNUSED_ID),
    "no id": lambda store, _: store.load("no id"),
    "conflict": lambda store, known: store.compare_and_swap(known, 7),
    "not JSON": lambda store, known: store.compare_and_swap(known.next({1, 2}), 0),
    "empty": lambda store, _: store.compare_and_swap_many([]),
    "deleted twice": lambda store, _: store.delete(UNUSED_ID, 0),
    "limit": lambda store, _: store.list(limit=0),
}


@pytest.mark.parametrize("name", FAILING)
def test_the_same_calls_fail_alike(store: CheckpointStore, aio: AsyncCheckpointStore, name: str) -> None:
    known = stream(store, 2)[-1].model_copy(update={"event_id": initial().event_id})

    async def failing() -> CheckpointError:
        call: Awaitable[Any] = FAILING[name](aio, known)
        with pytest.raises(CheckpointError) as caught:
            await call
        return caught.value

    with pytest.raises(CheckpointError) as caught:
        FAILING[name](store, known)
    assert described(asyncio.run(failing())) == described(caught.value)


def test_a_hundred_tasks_each_get_their_own_outcome(store: CheckpointStore, aio: AsyncCheckpointStore) -> None:
    mine = [initial({"task": number}) for number in range(100)]
    contested = stream(store, 1)[0]
    rivals = [contested.next({"task": number}) for number in range(100)]

    async def task(number: int) -> tuple[Receipt, Receipt | CheckpointError]:
        receipt = await aio.compare_and_swap(mine[number], None)
        (raced,) = await aio.compare_and_swap_many([(rivals[number], 0)])
        assert await aio.load(mine[number].id) == mine[number]
        return receipt, raced

    async def run() -> list[tuple[Receipt, Receipt | CheckpointError]]:
        return await asyncio.gather(*map(task, range(100)))

    answers = asyncio.run(run())
    assert [receipt.event_id for receipt, _ in answers] == [each.event_id for each in mine]
    winners = [number for number, (_, raced) in enumerate(answers) if isinstance(raced, Receipt)]
    assert len(winners) == 1
    assert all(isinstance(raced, Conflict) for number, (_, raced) in enumerate(answers) if number not in winners)
    assert store.load(contested.id) == rivals[winners[0]]


def test_a_cancelled_caller_harms_no_other(store: CheckpointStore, aio: AsyncCheckpointStore) -> None:
    written = [initial({"task": number}) for number in range(30)]

    async def run() -> list[Any]:
        tasks = [asyncio.create_task(aio.compare_and_swap(each, None)) for each in written]
        await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    answers = asyncio.run(run())
    for number, (checkpoint, answer) in enumerate(zip(written, answers, strict=True)):
        if isinstance(answer, Receipt):
            assert store.load(checkpoint.id) == checkpoint
        else:
            assert number % 3 == 0
            assert isinstance(answer, asyncio.CancelledError)


def test_one_event_loop_after_another(store: CheckpointStore, aio: AsyncCheckpointStore) -> None:
    for number in range(3):
        first = initial({"loop": number})
        assert asyncio.run(_commit(aio, first)).revision == 0
        assert store.load(first.id) == first


async def _commit(aio: AsyncCheckpointStore, checkpoint: Checkpoint) -> Receipt:
    return await asyncio.wait_for(aio.compare_and_swap(checkpoint, None), 20)


def test_open_and_close(fresh_address: str) -> None:
    async def run() -> Checkpoint:
        async with await open_async_store(fresh_address, actor="x") as aio:
            first = initial()
            await aio.compare_and_swap(first, None)
            return first

    first = asyncio.run(run())
    with open_store(fresh_address) as store:
        assert store.load(first.id) == first


def test_a_subscription_that_is_cancelled_ends(fresh_address: str) -> None:
    async def run() -> None:
        async with await open_async_store(fresh_address) as aio:
            follower = asyncio.create_task(collected(aio.subscribe(await aio.position())))
            await asyncio.sleep(0.1)
            follower.cancel()
            with pytest.raises(asyncio.CancelledError):
                await follower
            assert (await aio.compare_and_swap(initial(), None)).revision == 0

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_subscription_can_be_left(aio: AsyncCheckpointStore, store: CheckpointStore) -> None:
    async def run() -> Checkpoint:
        position = await aio.position()
        first = initial()
        await aio.compare_and_swap(first, None)
        async for each in aio.subscribe(position):
            return each.checkpoint
        raise AssertionError

    assert store.load((checkpoint := asyncio.run(run())).id) == checkpoint


def test_an_iterable_of_revisions_is_enough(aio: AsyncCheckpointStore) -> None:
    def pairs() -> Iterator[tuple[Checkpoint, None]]:
        for _ in range(3):
            yield initial(), None

    assert [type(each) for each in asyncio.run(aio.compare_and_swap_many(pairs()))] == [Receipt] * 3


def test_errors_are_the_stores_own(aio: AsyncCheckpointStore) -> None:
    async def run() -> None:
        with pytest.raises(NotFound):
            await collected(aio.history(UNUSED_ID))
        with pytest.raises(InvalidRequest):
            await collected(aio.history("no id"))

    asyncio.run(run())
