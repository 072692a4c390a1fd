"""A forked child may not use its parent's store; the parent's goes on unharmed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from eventlog import CheckpointStore
from tests.store.samples import revisions, stream

REPOSITORY = Path(__file__).resolve().parents[2]

PROGRAM = """
import asyncio, os, sys, warnings
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
from eventlog import *
from eventlog.aio import AsyncCheckpointStore

store = open_store(sys.argv[2])
first = store.load(sys.argv[3])
if sys.argv[4] == "listed":
    store.list()
sys.stdout.flush()
child = os.fork()
if child == 0:
    calls = {
        "load": lambda: store.load(first.id),
        "compare_and_swap": lambda: store.compare_and_swap(first.next({"child": True}), first.revision),
        "history": lambda: list(store.history(first.id)),
        "position": lambda: store.position(),
        "resolve": lambda: store.resolve(first),
        "subscribe": lambda: list(store.subscribe(Position(), idle_timeout=0)),
        "list": lambda: store.list(),
        "async": lambda: asyncio.run(AsyncCheckpointStore(store).compare_and_swap(first.next({}), first.revision)),
    }
    for name, call in calls.items():
        try:
            call()
            print(name, "answered", flush=True)
        except CheckpointError as error:
            print(name, type(error).__name__, flush=True)
    if sys.argv[5] == "close":
        store.close()
    with open_store(sys.argv[2]) as own:
        own.compare_and_swap(own.load(first.id).next({"child": True}), first.revision)
    print("own", "committed", flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
loaded = store.load(first.id)
assert loaded.payload == {"child": True}
store.compare_and_swap(loaded.next({"parent": True}), loaded.revision)
store.list()
store.close()
print("parent", "committed", flush=True)
"""


@pytest.mark.parametrize("listed", ["listed", "not listed"])
@pytest.mark.parametrize("closing", ["close", "leave"])
def test_a_child_is_refused_and_may_open_its_own(store: CheckpointStore, directory: Path, listed: str, closing: str) -> None:
    # Once: once the parent has listed, close() in the child runs DuckDB without its threads and crashes; list() is a StorageError.
    first = stream(store, 1)[0]
    store.close()
    arguments = [sys.executable, "-c", PROGRAM, str(REPOSITORY), str(directory), first.id, listed, closing]
    child = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    answers = dict(line.split() for line in child.stdout.splitlines())
    assert child.returncode == 0, child.stdout + child.stderr
    refused = ("load", "compare_and_swap", "history", "position", "resolve", "subscribe", "list", "async")
    assert {name: answers.get(name) for name in refused} == dict.fromkeys(refused, "StoreClosed")
    assert (answers["own"], answers["parent"]) == ("committed", "committed")
    from eventlog import open_store

    with open_store(directory) as again:
        assert [each.checkpoint.payload for each in revisions(again, first.id)] == [first.payload, {"child": True}, {"parent": True}]
