"""A store that is closed leaves nothing behind: no thread, no descriptor, no caller that waits."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from eventlog import CheckpointStore, OutcomeUnknown, Overloaded, StoreClosed, Unavailable, open_store
from eventlog.kafka import waiting
from tests.kafka_log.conftest import OpenStore
from tests.kafka_log.samples import initial
from tests.waiting import eventually


def descriptors() -> set[str]:
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"{each.name} {os.readlink(each)}")
        except OSError:
            continue
    return found


def test_close_leaves_no_thread_and_no_descriptor(opening: OpenStore) -> None:
    opening().close()  # whatever is made once a process
    threads, files = set(threading.enumerate()), descriptors()
    store = opening()
    checkpoint = initial()
    store.compare_and_swap(checkpoint, None)
    store.load(checkpoint.id)
    store.list()
    store.close()
    store.close()
    assert set(threading.enumerate()) <= threads
    eventually(lambda: descriptors() <= files)


def test_a_closed_store_says_so(opening: OpenStore) -> None:
    store = opening()
    checkpoint = initial()
    store.compare_and_swap(checkpoint, None)
    store.close()
    for call in (
        lambda: store.compare_and_swap(checkpoint.next({}), 0),
        lambda: store.load(checkpoint.id),
        lambda: store.list(),
        lambda: store.position(),
    ):
        with pytest.raises(StoreClosed):
            call()


def test_callers_that_wait_while_the_store_closes_get_an_honest_answer(opening: OpenStore) -> None:
    store = opening()
    told: list[object] = []

    def write() -> None:
        try:
            while True:
                checkpoint = initial()
                told.append((checkpoint.id, store.compare_and_swap(checkpoint, None)))
        except StoreClosed as error:
            told.append(error)

    writers = [threading.Thread(target=write) for _ in range(8)]
    for writer in writers:
        writer.start()
    eventually(lambda: len(told) > 20)
    store.close()
    for writer in writers:
        writer.join(20)
        assert not writer.is_alive()
    again = opening()
    for each in told:
        if isinstance(each, tuple):
            assert again.load(each[0]).revision == 0


def test_a_store_whose_tail_dies_says_so_loudly(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = initial()
    store.compare_and_swap(checkpoint, None)

    def broken(*_: object) -> None:
        raise RuntimeError("the tail broke")

    monkeypatch.setattr(store.log._tail, "_sink", broken)  # type: ignore[attr-defined]
    with pytest.raises(OutcomeUnknown, match="the tail broke"):
        store.compare_and_swap(checkpoint.next({}), 0, timeout=20)
    with pytest.raises(StoreClosed, match="the tail broke"):
        store.load(checkpoint.id)
    with pytest.raises(StoreClosed, match="the tail broke"):
        store.compare_and_swap(checkpoint.next({}), 0)


def test_the_queue_before_the_log_is_bounded(opening: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MOST_WAITING", 5)
    store = opening()
    store.compare_and_swap(initial(), None)
    partition_writers = store.log.writer.writers  # type: ignore[attr-defined]
    for writer in partition_writers:
        monkeypatch.setattr(writer, "_begin", lambda now: False)  # noqa: ARG005 - nothing gets through
    told: list[BaseException] = []

    def write(timeout: float) -> None:
        try:
            store.compare_and_swap(initial(), None, timeout=timeout)
        except (Overloaded, Unavailable, StoreClosed) as error:
            told.append(error)

    held = [threading.Thread(target=write, args=(60,)) for _ in range(5)]
    for writer in held:
        writer.start()
    eventually(lambda: sum(len(writer.queue) for writer in partition_writers) == 5)
    write(0.1)
    assert isinstance(told[0], Overloaded)
    assert told[0].limit == 5
    store.close()
    for writer in held:
        writer.join(20)
    assert len(told) == 6


def test_opening_and_closing_many_times_is_harmless(address: str, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    for number in range(5):
        with open_store(f"{address}?state={tmp_path / 'again'}") as store:
            store.compare_and_swap(initial({"number": number}), None)
    assert set(threading.enumerate()) <= before
