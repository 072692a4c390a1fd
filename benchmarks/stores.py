"""Our store, made, opened and used as a user does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.bench import Stopwatch
from benchmarks.row import Sample
from eventlog import AsyncCheckpointStore, Checkpoint, CheckpointId, CheckpointStore, RunId, Unavailable, create_store, open_store
from eventlog.privacy.providers.key_file import KeyFile

KIND = "bench.agent"
ACTOR = "bench"


@contextmanager
def embedded_store(directory: Path, *, key_file: Path | None = None) -> Iterator[CheckpointStore]:
    """A new embedded store, encrypted if there is to be a key file."""
    create_store(directory, encryption=None if key_file is None else KeyFile(path=key_file))
    with open_store(directory, actor=ACTOR) as store:
        yield store


def successor_committer(store: CheckpointStore, state: dict[str, Any]) -> Callable[[], None]:
    """Starts a checkpoint; each call builds the successor of its latest revision and commits it."""
    checkpoint = Checkpoint.initial(CheckpointId.new(), RunId.new(), KIND, 1, state)
    store.compare_and_swap(checkpoint, None)

    def commit() -> None:
        nonlocal checkpoint
        following = checkpoint.next(state)
        store.compare_and_swap(following, checkpoint.revision)
        checkpoint = following

    return commit


async def async_callers(store: AsyncCheckpointStore, state: dict[str, Any], *, callers: int, commits: int) -> Sample:
    """Many callers on one event loop, each committing revision after revision of a checkpoint of its own."""
    firsts = [Checkpoint.initial(CheckpointId.new(), RunId.new(), KIND, 1, state) for _ in range(callers)]
    await asyncio.gather(*[store.compare_and_swap(first, None) for first in firsts])
    watch = Stopwatch()

    async def caller(checkpoint: Checkpoint) -> None:
        now = time.perf_counter()
        for _ in range(max(1, commits // callers)):
            following = checkpoint.next(state)
            await store.compare_and_swap(following, checkpoint.revision)
            checkpoint = following
            now = watch.lap(now)

    started = time.perf_counter()
    await asyncio.gather(*[caller(first) for first in firsts])
    watch.ran(time.perf_counter() - started)
    return watch.per_second()


def wait_until_current(store: CheckpointStore) -> None:
    """Returns when the projection holds the whole topic. A barrier gives up after 30 s; a long catch-up takes several."""
    while True:
        try:
            store.list(limit=1)
        except Unavailable:
            continue
        return
