"""Threads that take turns: blocking code of the product, stopped wherever it waits until the scheduler lets it go on.

Only one thread runs at any time, so that a run is the same each time it is repeated.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from eventlog.errors import CheckpointError

Result = TypeVar("Result")

BLOCKING = frozenset({"take", "catch_up"})  # of what the writer gives to its pool: these wait for the broker or the tail


class Cancelled(BaseException):
    """The process that the task belongs to was killed."""


class Task:
    """One call. If it may wait, it has a thread of its own, which runs only between `resume()` and the next `pause()` inside it."""

    running: Task | None = None  # the one that has the turn; None: the scheduler

    def __init__(self, work: Callable[..., object], arguments: tuple[object, ...]) -> None:
        self.future: Future[Any] = Future()
        self.interruption: BaseException | None = None  # raised where it waits, the next time it is resumed
        self._work = work
        self._arguments = arguments
        self._blocks = getattr(work, "__name__", "") in BLOCKING
        self._go = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._until: Callable[[], bool] = lambda: True
        self._done = False

    @property
    def started(self) -> bool:
        return self._thread is not None

    @property
    def can_go_on(self) -> bool:
        return self.interruption is not None or self._until()

    def resume(self) -> bool:
        """Lets it run until it waits or ends; whether it has ended."""
        if not self._blocks:
            self._run()
            return True
        if self._thread is None:
            self._thread = threading.Thread(target=self._run_in_turn, daemon=True)
            self._thread.start()
        Task.running = self
        self._go.release()
        self._back.acquire()
        Task.running = None
        if self._done:
            self._thread.join()
        return self._done

    def kill(self) -> None:
        """Ends it where it waits."""
        while self._thread is not None and not self._done:
            self.interruption = Cancelled()
            self.resume()

    def pause(self, until: Callable[[], bool]) -> None:
        self._until = until
        self._back.release()
        self._go.acquire()
        interruption, self.interruption = self.interruption, None
        if interruption is not None:
            raise interruption

    def _run(self) -> None:
        try:
            self.future.set_result(self._work(*self._arguments))
        except BaseException as error:  # noqa: BLE001 - told to whoever waits for it
            self.future.set_exception(error)

    def _run_in_turn(self) -> None:
        self._go.acquire()
        self._run()
        self._done = True
        self._back.release()


def pause(until: Callable[[], bool] = lambda: True) -> None:
    """Gives the turn back to the scheduler. Called inside a task that may wait. `until`: when it makes sense to go on."""
    assert Task.running is not None, "the scheduler itself would wait for ever"
    Task.running.pause(until)


class Pool:
    """Stands for an executor: keeps what it is given until the scheduler runs it."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    def submit(self, work: Callable[..., Result], *arguments: object) -> Future[Result]:
        self.tasks.append(Task(work, arguments))
        return self.tasks[-1].future

    def run_next(self) -> bool:
        """Gives the turn to the first task that can go on; whether there is one. What is no error of the store's own is raised."""
        task = next((each for each in self.tasks if each.can_go_on), None)
        if task is None:
            return False
        if task.resume():
            self.tasks.remove(task)
            error = task.future.exception()
            if error is not None and not isinstance(error, CheckpointError | Cancelled):
                raise error
        return True

    def kill(self) -> None:
        for task in self.tasks:
            task.kill()
        self.tasks.clear()


class TurnCondition:
    """Stands for a `threading.Condition` where threads take turns: nothing can be changed meanwhile, and waiting gives the turn back."""

    def __init__(self) -> None:
        self._notified = 0

    def __enter__(self) -> TurnCondition:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - who waits too long is interrupted by the scheduler
        before = self._notified
        pause(until=lambda: self._notified != before)
        return True

    def notify_all(self) -> None:
        self._notified += 1
