"""The order in which things are done, apart from how they are waited for: one procedure, driven by a thread or by an event loop.

A procedure is a generator. It yields what is to be done outside, and gets back the answer or the error, so that the order of write and
call (the whole point of this library) stands in one place for both kinds of store:

    def example(store: Store, checkpoint: Checkpoint) -> Steps[Any]:
        yield Commit(store, checkpoint, None, Boundary.AGENT_CREATED)
        return (yield Call(handler, {"order": 7}))

    drive(example(...))                  # a CheckpointStore, a plain function
    await drive_async(example(...))      # an AsyncCheckpointStore; the function may be async
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from eventlog.aio import AsyncCheckpointStore
from eventlog.checkpoint import Checkpoint
from eventlog.errors import InvalidRequest
from eventlog.recovery.boundaries import Boundary
from eventlog.store import CheckpointStore

if TYPE_CHECKING:
    from eventlog.recovery.stream import RunStream

Store = CheckpointStore | AsyncCheckpointStore
Handler = Callable[[Any], Any]  # gets the effect's input; may be async under an AsyncAgentRun
Result = TypeVar("Result")


class Load(NamedTuple):
    """Answered by the checkpoint."""

    store: Store
    checkpoint_id: str


class Commit(NamedTuple):
    """Answered once the revision is durable."""

    store: Store
    checkpoint: Checkpoint
    expected: int | None
    boundary: Boundary
    migrates: bool = False  # whether it may change kind and schema version


class Advance(NamedTuple):
    """Commits the next revision of a run, alone among those who write through this `RunStream`."""

    stream: RunStream[Any]
    change: Callable[[Any], Any]  # pure: from the record to the next one
    boundary: Boundary
    spent: Mapping[str, int] = {}
    reading: Mapping[str, int] = {}


class Settle(NamedTuple):
    """Finds out what became of a run's last write, if that is unclear."""

    stream: RunStream[Any]


class Call(NamedTuple):
    """Answered by what the function returns."""

    function: Handler
    argument: Any


Step = Load | Commit | Advance | Settle | Call
Steps = Generator[Step, Any, Result]


def drive(steps: Steps[Result]) -> Result:
    """Runs a procedure in this thread."""
    try:
        step = next(steps)
        while True:
            try:
                answer = perform(step)
            except BaseException as error:  # noqa: BLE001 - the procedure's to deal with
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result


async def drive_async(steps: Steps[Result]) -> Result:
    """Runs a procedure on this event loop."""
    try:
        step = next(steps)
        while True:
            try:
                answer = await perform_async(step)
            except BaseException as error:  # noqa: BLE001 - the procedure's to deal with
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result


def perform(step: Step) -> Any:
    """Does one step; waits for it."""
    if isinstance(step, Advance | Settle):
        with step.stream.lock:
            return drive(_of_stream(step))
    if isinstance(step, Call):
        return _called(step)
    return _asked(step)


async def perform_async(step: Step) -> Any:
    """Does one step; a plain function is called in a thread, so that it does not hold the loop."""
    if isinstance(step, Advance | Settle):
        async with step.stream.lock:
            return await drive_async(_of_stream(step))
    if isinstance(step, Call):
        if inspect.iscoroutinefunction(step.function):
            return await step.function(step.argument)
        answer = await asyncio.to_thread(step.function, step.argument)
        return await answer if inspect.isawaitable(answer) else answer
    return await _asked(step)


def is_async(store: object) -> bool:
    """Whether a store's calls are to be awaited."""
    return inspect.iscoroutinefunction(getattr(store, "compare_and_swap", None))


def check_store(name: str, store: object, *, wants_async: bool) -> None:
    """Raises `InvalidRequest` for the other kind of store, or none."""
    if not hasattr(store, "compare_and_swap") or is_async(store) is not wants_async:
        wanted = "an AsyncCheckpointStore" if wants_async else "a CheckpointStore"
        raise InvalidRequest(name, f"must be {wanted}, not {type(store).__name__}")


def check_handler(name: str, function: object, store: Store) -> None:
    """Raises `InvalidRequest` before anything is written for a handler that could not be called."""
    if not callable(function):
        raise InvalidRequest(name, f"must be a function of one argument, not {type(function).__name__}")
    if inspect.iscoroutinefunction(function) and not is_async(store):
        raise InvalidRequest(name, "is async, and this run is not", hint="Use AsyncAgentRun with a store of open_async_store().")


def _asked(step: Commit | Load) -> Any:
    """What the store says, or will."""
    store: Any = step.store
    if isinstance(step, Load):
        return store.load(step.checkpoint_id)
    return (store.migrate_revision if step.migrates else store.compare_and_swap)(step.checkpoint, step.expected)


def _of_stream(step: Advance | Settle) -> Steps[None]:
    if isinstance(step, Settle):
        return step.stream.settle()
    return step.stream.advance(step.change, step.boundary, step.spent, step.reading)


def _called(step: Call) -> Any:
    answer = step.function(step.argument)
    if inspect.iscoroutine(answer):
        answer.close()
        raise InvalidRequest("handler", "returned a coroutine, and this run is not async")
    return answer
