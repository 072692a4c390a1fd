"""Agents that write to the same few checkpoints at once, lose, retry, read, and now and then do not get an answer."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from eventlog.checkpoint import Checkpoint
from eventlog.errors import CheckpointError, Conflict, Deleted, NotFound, OutcomeUnknown, Retry
from eventlog.ids import CheckpointId, EventId, RunId

# Seconds between some loads and their writes. Six writers on the store in memory, 60 turns: 0 to 26 conflicts without, 76 to 108 with it.
_THOUGHT = 0.001


class Workload:
    """A contended workload. The same seed makes the same choices; what comes of them is up to the scheduling.

    Arguments:
        seed: of all chance.
        checkpoints: how many the writers share; a deleted one is replaced.
        retries: whether an unclear event may be sent again.
        resolves: whether the store can be asked what became of one.
        deletes: whether one write in twenty is a deletion.
    """

    def __init__(self, *, seed: int, checkpoints: int, retries: bool = True, resolves: bool = True, deletes: bool = True) -> None:
        self.seed = seed
        self.ids = [CheckpointId.new() for _ in range(checkpoints)]  # all that were ever written to
        self._shared = list(self.ids)
        self._run_id = RunId.new()
        self._retries = retries
        self._resolves = resolves
        self._deletes = deletes

    def run(self, stores: Iterable[Any], *, turns: int) -> None:
        """So many turns of one writer for each store given, all at once. Raises what a store must not answer to any of this."""
        writers = list(enumerate(stores))
        with ThreadPoolExecutor(len(writers)) as pool:
            running = [pool.submit(self.write, store, random.Random(f"{self.seed} {number}"), turns=turns) for number, store in writers]
        for each in running:
            each.result()

    def write(self, store: Any, chance: random.Random, *, turns: int) -> None:
        """One writer."""
        for _ in range(turns):
            slot = chance.randrange(len(self._shared))
            try:
                self._turn(store, self._shared[slot], chance)
            except Deleted as error:
                self._replace(slot, error.checkpoint_id)
            except (Conflict, NotFound, OutcomeUnknown):
                continue  # another one was faster, or nobody can tell
            except CheckpointError as error:
                if error.retry is not Retry.BACKOFF:
                    raise

    def _turn(self, store: Any, checkpoint_id: CheckpointId, chance: random.Random) -> None:
        if chance.random() < 0.1:
            list(store.history(checkpoint_id))
        current = _load(store, checkpoint_id)
        if chance.random() < 0.3:
            time.sleep(_THOUGHT)
        if current is not None and self._deletes and chance.random() < 0.05:
            event = EventId.new()
            self._send(store, event, chance, lambda: store.delete(checkpoint_id, current.revision, event_id=event))
        else:
            payload = {"chance": chance.random()}
            if current is None:
                proposed = Checkpoint.initial(checkpoint_id, self._run_id, "test.workload", 1, payload)
            else:
                proposed = current.next(payload)
            expected = None if current is None else current.revision
            self._send(store, proposed, chance, lambda: store.compare_and_swap(proposed, expected))

    def _send(self, store: Any, event: Checkpoint | EventId, chance: random.Random, call: Callable[[], Any]) -> None:
        """If the outcome is unclear, the writer asks, or does it again, or leaves it there."""
        try:
            call()
        except OutcomeUnknown:
            choice = chance.random()
            if self._resolves and choice < 0.5:
                store.resolve(event)
            elif self._retries and choice < 0.8:
                call()

    def _replace(self, slot: int, deleted: str) -> None:
        if self._shared[slot] == deleted:  # of two that find it deleted the second may replace it again, which harms nobody
            fresh = CheckpointId.new()
            self.ids.append(fresh)
            self._shared[slot] = fresh


def _load(store: Any, checkpoint_id: CheckpointId) -> Checkpoint | None:
    """The current revision; None if there is none yet. Raises `Deleted`."""
    try:
        loaded: Checkpoint = store.load(checkpoint_id)
    except Deleted:
        raise
    except NotFound:
        return None
    return loaded
