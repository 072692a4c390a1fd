"""Group commit by itself: who writes for whom, whose failure reaches whom, and that nobody is left waiting."""

from __future__ import annotations

import linecache
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from eventlog import group_commit
from eventlog.group_commit import GroupCommit

REPOSITORY = Path(__file__).resolve().parents[2]
SECONDS = 20.0


class Held:
    """A write that waits to be let go, and says which items came together."""

    def __init__(self, *, fail: Callable[[Sequence[int]], BaseException | None] = lambda _: None) -> None:
        self.rounds: list[list[int]] = []
        self.entered = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.fail = fail

    def __call__(self, items: Sequence[int]) -> Sequence[int]:
        self.rounds.append(list(items))
        self.entered.release()
        assert self.go.acquire(timeout=SECONDS)
        failure = self.fail(items)
        if failure is not None:
            raise failure
        return [item * 10 for item in items]


class Caller(threading.Thread):
    """A thread that submits, and keeps what it got."""

    def __init__(self, group: GroupCommit[int, int], *items: int) -> None:
        super().__init__(daemon=True)
        self.group, self.items = group, items
        self.results: Sequence[int] | None = None
        self.failure: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.results = self.group.submit(self.items)
        except BaseException as error:  # noqa: BLE001 - it is what the test looks at
            self.failure = error

    def done(self) -> None:
        self.join(SECONDS)
        assert not self.is_alive(), "left waiting for ever"


def queued(group: GroupCommit[int, int], count: int) -> None:
    deadline = time.monotonic() + SECONDS
    while len(group._queue) < count:
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def test_a_lone_caller_writes_by_itself() -> None:
    seen: list[tuple[list[int], int]] = []

    def write(items: Sequence[int]) -> Sequence[int]:
        seen.append((list(items), threading.get_ident()))
        return list(items)

    group = GroupCommit[int, int](write)
    assert group.submit([1, 2]) == [1, 2]
    assert group.submit([3]) == [3]
    assert seen == [([1, 2], threading.get_ident()), ([3], threading.get_ident())]
    assert group.idle


def test_those_who_wait_are_written_together_and_get_their_own() -> None:
    write = Held()
    group = GroupCommit[int, int](write)
    leader = Caller(group, 1)
    assert write.entered.acquire(timeout=SECONDS)
    assert not group.idle
    followers = []
    for number, items in enumerate(((2,), (3, 4), (5,))):
        followers.append(Caller(group, *items))
        queued(group, number + 1)
    write.go.release(2)
    for each in (leader, *followers):
        each.done()
    assert write.rounds == [[1], [2, 3, 4, 5]]
    assert [list(each.results or ()) for each in (leader, *followers)] == [[10], [20], [30, 40], [50]]


def test_a_round_takes_no_more_than_the_limit_and_splits_nobody() -> None:
    write = Held()
    group = GroupCommit[int, int](write, most=3)
    callers = [Caller(group, 0)]
    assert write.entered.acquire(timeout=SECONDS)
    for number, items in enumerate(((1, 2), (3, 4), (5,), (6, 7, 8, 9, 10), (11,))):
        callers.append(Caller(group, *items))
        queued(group, number + 1)
    write.go.release(10)
    for each in callers:
        each.done()
    assert write.rounds == [[0], [1, 2], [3, 4, 5], [6, 7, 8, 9, 10], [11]]


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failure_reaches_its_own_round_only(failing: int) -> None:
    write = Held(fail=lambda items: ValueError(str(items)) if failing in items else None)
    group = GroupCommit[int, int](write)
    leader = Caller(group, 1)
    assert write.entered.acquire(timeout=SECONDS)
    followers = [Caller(group, 2), Caller(group, 3)]
    queued(group, 2)
    write.go.release(2)
    for each in (leader, *followers):
        each.done()
    assert isinstance(leader.failure, ValueError) == (failing == 1)
    assert [isinstance(each.failure, ValueError) for each in followers] == [failing == 2] * 2
    later = Caller(group, 4)
    write.go.release()
    later.done()
    assert later.results == [40]


def test_the_lead_is_handed_over_and_nobody_starves() -> None:
    """The first leader gets its answer although others keep coming."""
    write = Held()
    group = GroupCommit[int, int](write, most=1)
    callers = [Caller(group, 0)]
    assert write.entered.acquire(timeout=SECONDS)
    for number in range(1, 31):
        callers.append(Caller(group, number))
        queued(group, number)
    write.go.release(12)
    callers[0].done()
    assert any(each.is_alive() for each in callers)
    write.go.release(30)
    for each in callers:
        each.done()
        assert each.results == [each.items[0] * 10]


def test_try_submit_does_nothing_while_another_writes_and_serves_who_came_meanwhile() -> None:
    write = Held()
    group = GroupCommit[int, int](write)
    leader = Caller(group, 1)
    assert write.entered.acquire(timeout=SECONDS)
    assert group.try_submit([2], lambda items: list(items)) is None
    write.go.release()
    leader.done()
    assert group.try_submit([2], lambda _: None) is None
    assert group.idle
    followers: list[Caller] = []

    def attempt(items: Sequence[int]) -> Sequence[int]:
        followers.append(Caller(group, 7))
        queued(group, 1)
        return items

    write.go.release()
    assert group.try_submit([2], attempt) == [2]
    followers[0].done()
    assert followers[0].results == [70]
    with pytest.raises(ZeroDivisionError):
        group.try_submit([2], lambda _: [1 // 0])
    assert group.idle


INTERRUPTED = """
import os, signal, sys, threading, time
sys.path.insert(0, sys.argv[1])
from eventlog.group_commit import GroupCommit

entered, go = threading.Event(), threading.Event()
rounds = []

def write(items):
    rounds.append(list(items))
    entered.set()
    assert go.wait(20)
    return list(items)

group = GroupCommit(write, most=int(sys.argv[3]))
leader = threading.Thread(target=group.submit, args=([1],))
leader.start()
entered.wait(20)
before = int(sys.argv[2])
for number in range(before):
    threading.Thread(target=group.submit, args=([100 + number],), daemon=True).start()
    while len(group._queue) < number + 1:
        time.sleep(0.001)
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    group.submit([2])
except KeyboardInterrupt:
    print("interrupted")
follower = threading.Thread(target=group.submit, args=([3],))
follower.start()
while len(group._queue) < before + 2:
    time.sleep(0.001)
go.set()
leader.join(20)
follower.join(20)
assert not leader.is_alive() and not follower.is_alive(), "left waiting for ever"
while not group.idle:
    time.sleep(0.001)
print(rounds)
"""


@pytest.mark.parametrize("before", [0, 7, 8, 9])
def test_an_interrupted_follower_stops_nobody(before: int) -> None:
    """Wherever in line it stood: also where the lead would have been handed to it."""
    arguments = [sys.executable, "-c", INTERRUPTED, str(REPOSITORY), str(before), "1"]
    child = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert child.returncode == 0, child.stderr
    others = "".join(f"[{100 + number}], " for number in range(before))
    assert child.stdout.splitlines() == ["interrupted", f"[[1], {others}[2], [3]]"]


class Interrupt(BaseException):
    pass


def interrupted_at(line: int, call: Callable[[], object]) -> bool:
    """Makes the call, interrupted before its n-th line of group_commit.py, as Ctrl-C may; whether it came so far."""
    left = line

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename != group_commit.__file__:
            return None
        # A trace function can also strike between the end of a `with` and the release of its lock; Ctrl-C cannot (CPython looks for signals
        # after the call that releases).
        if event == "line" and not linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip().startswith("with "):
            left -= 1
            if left == 0:
                raise Interrupt
        return trace

    sys.settrace(trace)
    try:
        call()
    except Interrupt:
        return True
    finally:
        sys.settrace(None)
    return left <= 0


def leading_interrupted_at(line: int, *, lone: bool) -> bool | None:
    """Whether a leader interrupted there leaves others waiting; None when it has fewer lines."""
    followers: list[Caller] = []

    def write(items: Sequence[int]) -> Sequence[int]:
        if 1 in items and not lone:
            followers.append(Caller(group, 2))
            queued(group, 1)
        return list(items)

    group = GroupCommit[int, int](write)
    interrupted = interrupted_at(line, lambda: group.submit([1]))
    followers.append(Caller(group, 3))
    for each in followers:
        each.join(0.5 if interrupted else SECONDS)
    return any(each.is_alive() for each in followers) if interrupted else None


@pytest.mark.parametrize("lone", [True, False], ids=["alone", "with followers"])
def test_a_leader_interrupted_at_any_line_leaves_nobody_waiting(lone: bool) -> None:
    stuck, line = [], 1
    while (left_waiting := leading_interrupted_at(line, lone=lone)) is not None:
        if left_waiting:
            stuck.append(line)
        line += 1
    assert line > 5
    assert stuck == [], f"interrupted before these of {line} lines, it leaves others waiting for ever"


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_no_wake_up_is_lost(most: int) -> None:
    written: list[int] = []

    def write(items: Sequence[int]) -> Sequence[int]:
        written.extend(items)
        time.sleep(0.0001)  # lets the others come, as a disk does
        return [item + 1 for item in items]

    group = GroupCommit[int, int](write, most=most)
    wrong: list[int] = []

    def work(number: int) -> None:
        for turn in range(150):
            items = [number * 1_000_000 + turn * 10 + each for each in range(1 + turn % 3)]
            if list(group.submit(items)) != [item + 1 for item in items]:
                wrong.append(turn)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(16)]
    for each in threads:
        each.start()
    deadline = time.monotonic() + 60
    for each in threads:
        each.join(max(0.0, deadline - time.monotonic()))
    assert not any(each.is_alive() for each in threads), "left waiting for ever"
    assert wrong == []
    assert len(written) == len(set(written)) == 16 * 50 * (1 + 2 + 3)
    assert group.idle
