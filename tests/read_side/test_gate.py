"""Many readers at a time, or one change of the file under them, which no stream of readers can keep waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from projections.gate import Gate
from tests.waiting import eventually


class Inside(threading.Thread):
    """Goes in, says so, and stays until it is let go."""

    def __init__(self, door: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__(daemon=True)
        self._door = door
        self.in_there = threading.Event()
        self.may_leave = threading.Event()
        self.start()

    def run(self) -> None:
        with self._door():
            self.in_there.set()
            assert self.may_leave.wait(60)

    def leave(self) -> None:
        self.may_leave.set()
        self.join(60)


def test_readers_are_inside_together_and_whoever_changes_the_file_is_alone() -> None:
    gate = Gate()
    readers = [Inside(gate.shared) for _ in range(3)]
    assert all(each.in_there.wait(60) for each in readers)
    changer = Inside(gate.exclusive)
    eventually(lambda: gate._exclusive, seconds=60)
    for each in readers[:2]:
        each.leave()
    assert not changer.in_there.is_set()
    readers[2].leave()
    assert changer.in_there.wait(60)
    changer.leave()


def test_a_new_reader_waits_for_whoever_has_come_before_it_to_change_the_file() -> None:
    gate = Gate()
    reader = Inside(gate.shared)
    assert reader.in_there.wait(60)
    changer = Inside(gate.exclusive)
    eventually(lambda: gate._exclusive, seconds=60)  # it waits for the reader from here on
    late = Inside(gate.shared)
    assert not late.in_there.wait(0.2), "it has overtaken whoever was there before it"
    reader.leave()
    assert changer.in_there.wait(60)
    assert not late.in_there.is_set()
    changer.leave()
    assert late.in_there.wait(60)
    late.leave()


def test_a_reader_may_enter_again_while_somebody_waits_to_be_alone() -> None:
    gate = Gate()
    with gate.shared():
        changer = Inside(gate.exclusive)
        eventually(lambda: gate._exclusive, seconds=60)
        with gate.shared():
            assert not changer.in_there.is_set()
    assert changer.in_there.wait(60)
    changer.leave()
