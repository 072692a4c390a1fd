"""What one writer does: everything that the store offers, at random, and every answer goes into the history."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from uuid import UUID, uuid5

from eventlog import Checkpoint, CheckpointError, CheckpointId, Conflict, NotFound, OutcomeUnknown, Position, RunId
from eventlog.testing import Recorder

KIND = "chaos.agent"
DELETABLE = 4  # every fourth checkpoint may be deleted
_RUNS = UUID("6f1c5a64-9f3a-4c8e-9f44-5c2f0c6f7a10")
_PAUSE = 0.03  # after an error, seconds: a log that is out of reach answers at once, and thousands of such answers prove nothing

# How often, in a hundred operations. Writes on what is known to be old, and the same event sent again, are what others get wrong.
_WEIGHTS = {
    "commit": 44,
    "commit_stale": 6,
    "commit_again": 9,
    "commit_many": 6,
    "load": 12,
    "load_local": 7,
    "load_revision": 4,
    "history": 3,
    "list": 2,
    "resolve": 6,
    "delete": 1,
}


class Writer:
    """One thread of a worker. It remembers what it was told, as an application would, and now and then acts on what is out of date.

    Arguments:
        checkpoints: shared with every other writer of the episode.
        hurried: the time-outs of its writes, in seconds, are drawn from these.
    """

    def __init__(self, *, store: Recorder, checkpoints: list[str], rng: random.Random, name: str, hurried: tuple[float, ...]) -> None:
        self._store = store
        self._checkpoints = [CheckpointId(each) for each in checkpoints]
        self._rng = rng
        self._name = name
        self._timeouts = hurried
        self._labels = {"episode": checkpoints[0]}
        self._known: dict[str, Checkpoint] = {}
        self._older: dict[str, Checkpoint] = {}
        self._last: tuple[Checkpoint, int | None] | None = None
        self._unclear: list[Checkpoint] = []
        self._turn = 0

    def run(self, stopped: Callable[[], bool]) -> None:
        """Goes on until it is stopped. Only errors of the store's own tree are expected."""
        names, weights = list(_WEIGHTS), list(_WEIGHTS.values())
        while not stopped():
            (name,) = self._rng.choices(names, weights)
            try:
                getattr(self, f"_{name}")(self._rng.choice(self._checkpoints))
            except Conflict as error:
                self._read(error.checkpoint_id)
            except NotFound as error:  # or deleted
                self._known.pop(error.checkpoint_id or "", None)
            except CheckpointError:
                time.sleep(_PAUSE)

    # -- writing --------------------------------------------------------------------------------------------------

    def _commit(self, checkpoint_id: CheckpointId) -> None:
        self._swap(*self._proposal(checkpoint_id))

    def _commit_stale(self, checkpoint_id: CheckpointId) -> None:
        old = self._older.get(checkpoint_id)
        if old is None:
            return self._commit(checkpoint_id)
        return self._swap(old.next(self._payload()), old.revision)

    def _commit_again(self, _: CheckpointId) -> None:
        if self._last is not None:
            self._swap(*self._last)

    def _commit_many(self, _: CheckpointId) -> None:
        chosen = self._rng.sample(self._checkpoints, min(3, len(self._checkpoints)))
        proposals = [self._proposal(each) for each in chosen]
        outcomes = self._store.compare_and_swap_many(proposals, timeout=self._rng.choice(self._timeouts))
        for (checkpoint, _expected), outcome in zip(proposals, outcomes, strict=True):
            if isinstance(outcome, OutcomeUnknown):
                self._unclear.append(checkpoint)
            elif not isinstance(outcome, CheckpointError):
                self._learnt(checkpoint)

    def _delete(self, checkpoint_id: CheckpointId) -> None:
        known = self._known.get(checkpoint_id)
        if known is not None and self._checkpoints.index(checkpoint_id) % DELETABLE == 0:
            self._store.delete(checkpoint_id, known.revision, timeout=self._rng.choice(self._timeouts))

    def _swap(self, checkpoint: Checkpoint, expected: int | None) -> None:
        self._last = checkpoint, expected
        try:
            self._store.compare_and_swap(checkpoint, expected, timeout=self._rng.choice(self._timeouts))
        except OutcomeUnknown:
            self._unclear.append(checkpoint)
            raise
        self._learnt(checkpoint)

    def _resolve(self, _: CheckpointId) -> None:
        if self._unclear:
            checkpoint = self._unclear.pop(self._rng.randrange(len(self._unclear)))
            try:
                receipt = self._store.resolve(checkpoint if self._rng.random() < 0.5 else checkpoint.event_id)
            except CheckpointError:
                self._unclear.append(checkpoint)
                raise
            if receipt is not None:
                self._learnt(checkpoint)

    # -- reading --------------------------------------------------------------------------------------------------

    def _load(self, checkpoint_id: CheckpointId) -> None:
        self._read(checkpoint_id)

    def _load_local(self, checkpoint_id: CheckpointId) -> None:
        self._store.load(checkpoint_id, at_least=Position())

    def _load_revision(self, checkpoint_id: CheckpointId) -> None:
        known = self._known.get(checkpoint_id)
        self._store.load(checkpoint_id, revision=0 if known is None else self._rng.randint(0, known.revision))

    def _history(self, checkpoint_id: CheckpointId) -> None:
        for _ in self._store.history(checkpoint_id):
            pass

    def _list(self, _: CheckpointId) -> None:
        self._store.list(kind=KIND, labels=self._labels, limit=50)  # of this episode alone: nothing else is in its history

    def _read(self, checkpoint_id: str | None) -> None:
        if checkpoint_id is not None:
            try:
                self._learnt(self._store.load(checkpoint_id))
            except CheckpointError:
                self._known.pop(checkpoint_id, None)

    # -- what it knows --------------------------------------------------------------------------------------------

    def _proposal(self, checkpoint_id: CheckpointId) -> tuple[Checkpoint, int | None]:
        known = self._known.get(checkpoint_id)
        if known is None:
            run_id = RunId(uuid5(_RUNS, checkpoint_id))
            return Checkpoint.initial(checkpoint_id, run_id, KIND, 1, self._payload(), labels=self._labels), None
        return known.next(self._payload()), known.revision

    def _learnt(self, checkpoint: Checkpoint) -> None:
        before = self._known.get(checkpoint.id)
        if before is None or before.revision < checkpoint.revision:
            self._known[checkpoint.id] = checkpoint
            if before is not None:
                self._older[checkpoint.id] = before

    def _payload(self) -> dict[str, object]:
        """Small as a rule; sometimes of many pages."""
        self._turn += 1
        size = self._rng.choices((0, 3_000, 40_000, 300_000), (90, 8, 1.8, 0.2))[0]
        filling = self._rng.randbytes(size // 2).hex()
        return {"phase": {"state": "turn_in_flight"}, "writer": self._name, "turn": self._turn, "filling": filling}
