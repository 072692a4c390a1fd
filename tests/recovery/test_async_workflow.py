"""The workflow's run of an event loop: the same promises; its branches are tasks, and cancelled is as dead."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eventlog import AsyncCheckpointStore, CheckpointStore, InvalidRequest
from eventlog.recovery import (
    AmbiguousResume,
    AsyncClaims,
    AsyncEffectStore,
    AsyncWorkflowRun,
    BranchCancelled,
    Claims,
    EffectClass,
    NotWaiting,
    Parallel,
    Race,
    RetryInFlight,
    WaitForSignal,
    WaitForTimer,
    WorkflowRun,
    send_signal,
    send_signal_async,
)
from tests.store.samples import nothing_written

NAMES = [f"b{number}" for number in range(5)]
IDENTITY: dict[str, Any] = {
    "workflow": "order",
    "version": 2,
    "layout": ["validate", Parallel("fanout", NAMES), Race("quote", ["a", "b"]), WaitForSignal("ok"), WaitForTimer("cool")],
}
PAST = datetime(2020, 1, 1, tzinfo=UTC)


def on_a_loop(store: CheckpointStore, work: Callable[[AsyncCheckpointStore, AsyncEffectStore], Awaitable[None]]) -> None:
    async def main() -> None:
        aio = AsyncCheckpointStore(store)
        await work(aio, AsyncEffectStore(aio))

    asyncio.run(asyncio.wait_for(main(), 60))


async def validated(aio: AsyncCheckpointStore, effects: AsyncEffectStore) -> AsyncWorkflowRun:
    flow = await AsyncWorkflowRun.start(aio, value=7, effects=effects, **IDENTITY)
    async with flow.step("validate") as step:
        assert (await aio.load(flow.checkpoint_id)).phase == "step_in_flight"
        await step.spend(tokens=5)
        await step.commit(output={"valid": True})
    return flow


def test_sending_a_signal_has_the_same_arguments() -> None:
    def arguments(function: Callable[..., Any]) -> list[Any]:
        return [(each.name, each.kind, each.default) for each in inspect.signature(function).parameters.values()]

    assert arguments(send_signal) == arguments(send_signal_async)


def test_branches_are_tasks_with_one_writer(store: CheckpointStore) -> None:
    async def work(aio: AsyncCheckpointStore, effects: AsyncEffectStore) -> None:
        flow = await validated(aio, effects)
        together = asyncio.Barrier(len(NAMES))

        async def upper(name: str) -> str:
            await together.wait()  # all are in flight at the same time
            return name.upper()

        async with flow.parallel("fanout") as fanout:

            async def run(name: str) -> None:
                async with fanout.branch(name) as branch:
                    key = f"{flow.checkpoint_id}-{name}"
                    how = EffectClass.NON_IDEMPOTENT_WRITE
                    await branch.commit(output=await branch.effect("upper", name, upper, effect_class=how, idempotency_key=key))

            await asyncio.gather(*(run(name) for name in fanout.remaining))
        assert flow.outputs["fanout"] == {name: {"state": "completed", "output": name.upper()} for name in NAMES}
        async with flow.race("quote") as race, race.branch("a") as a:
            async with race.branch("b") as b:
                await b.commit(output=39)
            with pytest.raises(BranchCancelled):
                await a.commit(output=41)
        assert flow.winner("quote") == "b"
        assert await flow.wait_for_signal("ok") is False
        await flow.signal("ok", 1, signal_id="s")
        with pytest.raises(NotWaiting):
            await send_signal_async(aio, flow.checkpoint_id, "ok", 2)
        assert await flow.wait_for_signal("ok") is True
        assert await flow.wait_for_timer("cool", until=PAST) is True
        await flow.complete("done")
        assert (await AsyncWorkflowRun.resume(aio, flow.checkpoint_id, **IDENTITY)).response == "done"
        assert flow.usage["steps"] == 3 + len(NAMES)

    on_a_loop(store, work)


def test_a_cancelled_task_leaves_its_branch_in_flight_and_no_other(store: CheckpointStore) -> None:
    async def work(aio: AsyncCheckpointStore, effects: AsyncEffectStore) -> None:
        flow = await validated(aio, effects)
        fanout = flow.parallel("fanout")
        in_body = asyncio.Event()

        async def hangs() -> None:
            async with fanout.branch("b0"):
                in_body.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(hangs())
        await in_body.wait()
        async with fanout.branch("b1") as branch:
            await branch.commit(output=1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(AmbiguousResume, match="in flight in branch b0 of fanout"):
            await AsyncWorkflowRun.resume(aio, flow.checkpoint_id, **IDENTITY)
        again = await AsyncWorkflowRun.resume(aio, flow.checkpoint_id, policy=RetryInFlight(effects=effects), **IDENTITY)
        async with again.parallel("fanout") as rest:
            assert rest.remaining == ["b0", "b2", "b3", "b4"]
            for name in rest.remaining:
                async with rest.branch(name) as branch:
                    await branch.commit(output=branch.attempt)
        assert [again.outputs["fanout"][name]["output"] for name in ("b0", "b2")] == [2, 1]

    on_a_loop(store, work)


def test_a_run_is_claimed_and_given_back_on_a_loop(store: CheckpointStore) -> None:
    async def work(aio: AsyncCheckpointStore, effects: AsyncEffectStore) -> None:
        flow = await validated(aio, effects)
        claims = AsyncClaims(aio, owner="worker-1", lease=timedelta(hours=1))
        claim = await claims.claim(flow.checkpoint_id)
        owned = await AsyncWorkflowRun.resume(aio, flow.checkpoint_id, claim=claim, **IDENTITY)
        await owned.renew()
        await owned.release()
        second = await claims.claim(flow.checkpoint_id)
        await claims.renew(second)
        await claims.release(second)
        assert (await aio.load(flow.checkpoint_id)).payload["fencing_token"] == 2
        named = f"order-{flow.checkpoint_id}"
        other = await AsyncWorkflowRun.start(aio, workflow=named, version=1, layout=["a"], value=1)
        found = await claims.next_claimable(workflow=named)
        assert found is not None
        assert found.checkpoint_id == other.checkpoint_id

    on_a_loop(store, work)


def test_the_other_kind_of_store_is_refused(store: CheckpointStore) -> None:
    async def work(aio: AsyncCheckpointStore, _: AsyncEffectStore) -> None:
        calls: list[Callable[[], Any]] = [
            lambda: WorkflowRun.start(aio, value=1, **IDENTITY),  # type: ignore[arg-type]
            lambda: Claims(aio, owner="w"),
            lambda: AsyncClaims(store, owner="w"),
        ]
        with nothing_written(store):
            for call in calls:
                with pytest.raises(InvalidRequest, match="CheckpointStore"):
                    call()
            with pytest.raises(InvalidRequest, match="AsyncCheckpointStore"):
                await AsyncWorkflowRun.start(store, value=1, **IDENTITY)  # type: ignore[arg-type]

    on_a_loop(store, work)
