"""The run of an event loop: the same names, the same promises; cancelled is as dead."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from eventlog import AsyncCheckpointStore, CheckpointStore, Conflict, InvalidRequest
from eventlog.recovery import (
    AgentRun,
    AmbiguousResume,
    AsyncAgentRun,
    AsyncClaims,
    AsyncEffectStore,
    AsyncTurn,
    AsyncWorkflowBranch,
    AsyncWorkflowBranches,
    AsyncWorkflowRun,
    AsyncWorkflowStep,
    Claims,
    EffectClass,
    EffectStore,
    ReadyForTurn,
    RetryInFlight,
    Settlement,
    StillInFlight,
    Turn,
    WorkflowBranch,
    WorkflowBranches,
    WorkflowRun,
    WorkflowStep,
)
from tests.recovery.samples import AGENT, DEFINITION, MODEL, Outside
from tests.store.samples import nothing_written

IDENTITY: dict[str, Any] = {"agent": AGENT, "model": MODEL, "definition_version": DEFINITION}


TWINS = [
    (AgentRun, AsyncAgentRun),
    (Turn, AsyncTurn),
    (EffectStore, AsyncEffectStore),
    (WorkflowRun, AsyncWorkflowRun),
    (WorkflowStep, AsyncWorkflowStep),
    (WorkflowBranch, AsyncWorkflowBranch),
    (WorkflowBranches, AsyncWorkflowBranches),
    (Claims, AsyncClaims),
]


@pytest.mark.parametrize(("sync", "aio"), TWINS)
def test_both_have_the_same_names_and_arguments(sync: type, aio: type) -> None:
    def public(cls: type) -> dict[str, Any]:
        return {name: getattr(cls, name) for name in vars(cls) if not name.startswith("_")}

    ours, theirs = public(sync), public(aio)
    assert sorted(ours) == sorted(theirs)
    for name, value in ours.items():
        if callable(value):
            here, there = inspect.signature(value).parameters, inspect.signature(theirs[name]).parameters
            assert list(here) == list(there), name
            assert [each.default for each in here.values()] == [each.default for each in there.values()], name
            assert [each.kind for each in here.values()] == [each.kind for each in there.values()], name


def on_a_loop(store: CheckpointStore, work: Callable[[AsyncCheckpointStore, AsyncEffectStore], Awaitable[None]]) -> None:
    async def main() -> None:
        aio = AsyncCheckpointStore(store)
        await work(aio, AsyncEffectStore(aio))

    asyncio.run(asyncio.wait_for(main(), 60))


async def begun(aio: AsyncCheckpointStore, effects: AsyncEffectStore) -> AsyncAgentRun:
    return await AsyncAgentRun.start(aio, state={"messages": []}, effects=effects, **IDENTITY)


def test_a_run_from_start_to_end_with_both_kinds_of_handlers(store: CheckpointStore, tmp_path: Path) -> None:
    outside = Outside(tmp_path / "outside")

    async def charge(order: dict[str, int]) -> dict[str, int]:
        await asyncio.sleep(0)
        return {"charge": outside.call("charge"), **order}

    def look_up(order: dict[str, int]) -> int:
        outside.call("look_up")
        return order["order"]

    async def work(aio: AsyncCheckpointStore, effects: AsyncEffectStore) -> None:
        run = await begun(aio, effects)
        key = f"order-{run.checkpoint_id}"
        async with run.turn() as turn:
            assert (await aio.load(run.checkpoint_id)).phase == "turn_in_flight"
            await turn.spend(tokens=812)
            for _ in range(2):
                charged = await turn.effect("charge", {"order": 7}, charge, effect_class=EffectClass.IDEMPOTENT_WRITE, idempotency_key=key)
                assert charged == {"charge": 1, "order": 7}
            assert await turn.effect("look_up", {"order": 7}, look_up, effect_class=EffectClass.READ_ONLY) == 7
            await turn.commit(state={"messages": ["charged"]})
        await run.complete({"answer": "done"})
        again = await AsyncAgentRun.resume(aio, run.checkpoint_id, **IDENTITY)
        assert (again.response, again.state, again.usage) == ({"answer": "done"}, {"messages": ["charged"]}, run.usage)
        effect = await effects.load("charge", key)
        assert effect is not None
        assert await effects.identity() == EffectStore(store).identity()

    on_a_loop(store, work)
    assert outside.calls() == ["charge", "look_up"]


def test_effects_of_one_turn_run_at_the_same_time(store: CheckpointStore) -> None:
    async def work(aio: AsyncCheckpointStore, effects: AsyncEffectStore) -> None:
        run = await begun(aio, effects)
        together = asyncio.Barrier(5)

        async def meet(number: int) -> int:
            await together.wait()
            return number

        async with run.turn() as turn:
            answers = await asyncio.gather(*[turn.effect("meet", each, meet, effect_class=EffectClass.READ_ONLY) for each in range(5)])
            assert answers == list(range(5))
            await turn.commit(state=answers)
        assert run.usage["tool_calls"] == 5

    on_a_loop(store, work)


def test_a_turn_does_not_end_while_an_effect_of_it_is_running(store: CheckpointStore) -> None:
    async def work(aio: AsyncCheckpointStore, effects: AsyncEffectStore) -> None:
        run = await begun(aio, effects)
        running, go_on = asyncio.Event(), asyncio.Event()

        async def slow(_: Any) -> int:
            running.set()
            await go_on.wait()
            return 1

        async with run.turn() as turn:
            call = asyncio.create_task(turn.effect("slow", 1, slow, effect_class=EffectClass.READ_ONLY, idempotency_key=run.checkpoint_id))
            await running.wait()
            with pytest.raises(StillInFlight, match=r"slow .* still running"):
                await turn.commit(state={})
            with pytest.raises(InvalidRequest, match="is running in this body already"):
                await turn.effect("slow", 1, slow, effect_class=EffectClass.READ_ONLY, idempotency_key=run.checkpoint_id)
            go_on.set()
            await call
            await turn.commit(state={})

    on_a_loop(store, work)


@pytest.mark.parametrize("where", ["in the body", "in an effect"])
def test_a_cancelled_turn_stays_in_flight(store: CheckpointStore, where: str) -> None:
    async def work(aio: AsyncCheckpointStore, effects: AsyncEffectStore) -> None:
        run = await begun(aio, effects)
        there = asyncio.Event()

        async def forever(_: Any = None) -> None:
            there.set()
            await asyncio.Event().wait()

        async def turn_() -> None:
            async with run.turn() as turn:
                if where == "in the body":
                    await forever()
                await turn.effect("send", 1, forever, effect_class=EffectClass.NON_IDEMPOTENT_WRITE)

        task = asyncio.create_task(turn_())
        await there.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(AmbiguousResume) as found:
            await AsyncAgentRun.resume(aio, run.checkpoint_id, **IDENTITY)
        assert [each.state for each in found.value.effects] == ([] if where == "in the body" else ["started"])
        again = await AsyncAgentRun.resume(aio, run.checkpoint_id, policy=RetryInFlight(effects=effects), **IDENTITY)
        async with again.turn() as turn:
            if where == "in an effect":
                with pytest.raises(StillInFlight, match="send"):
                    await turn.commit(state={})
                await effects.settle("send", f"{run.checkpoint_id}/turn-1/1", Settlement.not_executed(), reason="seen")
            await turn.commit(state={})

    on_a_loop(store, work)


def test_cancelled_at_any_await_of_a_turn_the_run_goes_on_knowing_where_it_is(store: CheckpointStore) -> None:
    """A task is cancelled after 0, 1, 2, ... of its steps; whatever it was in, the same run object or a new one goes on without a guess."""

    async def work(aio: AsyncCheckpointStore, effects: AsyncEffectStore) -> None:
        for stops in range(12):
            run = await begun(aio, effects)

            async def turn_(run: AsyncAgentRun = run) -> None:
                async with run.turn() as turn:
                    await turn.spend(tokens=1)
                    await turn.commit(state="done")

            task = asyncio.create_task(turn_())
            for _ in range(stops):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            try:
                await run.complete("done")  # settles first whatever was unclear
                assert run.state in ("done", {"messages": []})
            except StillInFlight:
                again = await AsyncAgentRun.resume(aio, run.checkpoint_id, policy=RetryInFlight(effects=effects), **IDENTITY)
                async with again.turn() as turn:
                    assert turn.attempt == 2
                    await turn.commit(state="done")
                await again.complete("done")
            stored = await AsyncAgentRun.resume(aio, run.checkpoint_id, **IDENTITY)
            assert stored.response == "done"

    on_a_loop(store, work)


def test_another_writer_is_a_conflict(store: CheckpointStore) -> None:
    async def work(aio: AsyncCheckpointStore, effects: AsyncEffectStore) -> None:
        run = await begun(aio, effects)
        other = await AsyncAgentRun.resume(aio, run.checkpoint_id, **IDENTITY)
        async with other.turn() as turn:
            await turn.commit(state="other")
        with pytest.raises(Conflict):
            async with run.turn():
                raise AssertionError
        assert other.phase == ReadyForTurn()

    on_a_loop(store, work)


def test_the_other_kind_of_store_is_refused_by_name(store: CheckpointStore) -> None:
    async def work(aio: AsyncCheckpointStore, effects: AsyncEffectStore) -> None:
        with nothing_written(store):
            for call in (
                lambda: AgentRun.start(aio, state={}, **IDENTITY),  # type: ignore[arg-type]
                lambda: EffectStore(aio),
                lambda: AsyncEffectStore(store),
            ):
                with pytest.raises(InvalidRequest, match=r"^store: must be an? "):
                    call()
            with pytest.raises(InvalidRequest, match=r"^store: must be an AsyncCheckpointStore"):
                await AsyncAgentRun.start(store, state={}, **IDENTITY)  # type: ignore[arg-type]
            with pytest.raises(InvalidRequest, match=r"^effects: .* both be async"):
                AgentRun.start(store, state={}, effects=effects, **IDENTITY)  # type: ignore[arg-type]

    on_a_loop(store, work)
