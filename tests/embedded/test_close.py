"""Closing leaves no thread and no open file, whatever the store was doing."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from eventlog import CheckpointError, CheckpointStore, InvalidRequest, Position, Receipt, StoreClosed, open_store
from tests.store.samples import initial, outcome, stream

REPOSITORY = Path(__file__).resolve().parents[2]


def open_files(directory: Path) -> list[str]:
    found = []
    for each in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(each)
        except FileNotFoundError:
            continue
        if target.startswith(str(directory)):
            found.append(target)
    return found


def threads() -> set[str]:
    return {each.name for each in threading.enumerate()}


USES: dict[str, Callable[[CheckpointStore], object]] = {
    "nothing": lambda _: None,
    "writes": lambda store: stream(store, 5),
    "list": lambda store: (stream(store, 2), store.list()),
    "rebuild": lambda store: (stream(store, 2), store.list(), *map(store.catalog.rebuild, [None])),
    "subscribe": lambda store: (stream(store, 2), next(iter(store.subscribe(Position())))),
    "an error": lambda store: outcome(store, initial({1}), None),
}


@pytest.mark.parametrize("use", USES)
def test_nothing_is_left(directory: Path, use: str) -> None:
    before = threads()
    with open_store(directory) as store:
        USES[use](store)
        assert open_files(directory)
    assert open_files(directory) == []
    assert threads() <= before


def test_many_threads_connections_are_closed(directory: Path) -> None:
    with open_store(directory) as store:
        first = stream(store, 1)[0]
        workers = [threading.Thread(target=lambda: [store.load(first.id) for _ in range(50)]) for _ in range(8)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()
    assert open_files(directory) == []


def test_a_store_that_could_not_be_opened_leaves_nothing(directory: Path) -> None:
    with pytest.raises(InvalidRequest):
        open_store(directory, tenant="no tenant")
    assert open_files(directory) == []


@pytest.mark.parametrize("obstacle", ["snapshot.duckdb"])
def test_a_snapshot_that_cannot_be_written_does_not_keep_the_log_open(directory: Path, obstacle: str) -> None:
    # Once: when the projection's close raises, the log is never closed.
    store = open_store(directory)
    stream(store, 1)
    store.list()
    (directory / obstacle / "in the way").mkdir(parents=True)
    with contextlib.suppress(CheckpointError):
        store.close()
    assert open_files(directory) == []
    with pytest.raises(StoreClosed):
        store.position()


def test_writers_under_way_get_an_outcome_that_is_true(directory: Path) -> None:
    for _ in range(5):
        store = open_store(directory)
        answers: list[tuple[str, object]] = []

        def write(store: CheckpointStore = store, answers: list[tuple[str, object]] = answers) -> None:
            while True:
                first = initial()
                result = outcome(store, first, None)
                answers.append((first.id, result))
                if isinstance(result, StoreClosed):
                    return
                assert isinstance(result, Receipt)

        workers = [threading.Thread(target=write) for _ in range(6)]
        for each in workers:
            each.start()
        while len(answers) < 100:
            pass
        store.close()
        for each in workers:
            each.join(20)
            assert not each.is_alive()
        assert open_files(directory) == []
        with open_store(directory) as again:
            there = {each.checkpoint.id for each in again.subscribe(Position(), idle_timeout=0)}
        for checkpoint_id, result in answers:
            assert (checkpoint_id in there) == isinstance(result, Receipt)


READERS = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from eventlog import *
for _ in range(15):
    store = open_store(sys.argv[2])
    wrong = []
    began = threading.Semaphore(0)

    def read():
        try:
            while True:
                for _ in store.history(sys.argv[3]):
                    pass
                store.load(sys.argv[3])
                list(store.subscribe(Position(), idle_timeout=0))
                began.release()
        except StoreClosed:
            pass
        except BaseException as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=read) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        began.acquire()
    store.close()
    for each in threads:
        each.join(20)
        assert not each.is_alive()
    assert not wrong, wrong
    import os
    left = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]
    assert not [each for each in left if each.startswith(sys.argv[2])], left
"""


def test_readers_under_way_end_with_store_closed(directory: Path) -> None:
    # Once: connections are closed under their readers: StorageError, or a crash of the process, or one left open.
    with open_store(directory) as store:
        last = stream(store, 300)[-1]
    arguments = [sys.executable, "-X", "faulthandler", "-c", READERS, str(REPOSITORY), str(directory), last.id]
    child = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert child.returncode == 0, child.stderr[-2000:]
