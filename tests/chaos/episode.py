"""One episode: workers write, things happen to them and to the log, then all is quiet and every answer is held against the log."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from eventlog import CheckpointError, CheckpointId
from eventlog.testing import (
    FileJournal,
    FinalLog,
    LogEntry,
    Outcome,
    RecordedHistory,
    Recorder,
    Removed,
    Summary,
    Verdict,
    check,
    log_of,
)
from eventlog.testing.history import WRITES, Operation
from eventlog.verification import verify
from tests.chaos.crew import Crew, Worker
from tests.chaos.grounds import Ground

WORKERS = 2
CHECKPOINTS = 8
_REST = (0.1, 2.5)  # seconds between one disturbance and the next


@dataclass(frozen=True)
class Episode:
    """What one was found to be."""

    number: int
    summary: Summary
    happened: Counter[str]
    problems: list[str] = field(default_factory=list)


def run(ground: Ground, *, number: int, seed: str, seconds: float, folder: Path) -> Episode:
    """Runs one and judges it. `folder` takes the histories and the workers' output; whoever calls removes it, or keeps it as evidence."""
    folder.mkdir(parents=True)
    rng = random.Random(f"{seed}/{ground.NAME}/{number}")
    checkpoints = [str(CheckpointId.new()) for _ in range(CHECKPOINTS)]
    crew = Crew(addresses=ground.addresses(WORKERS), folder=folder, checkpoints=checkpoints, rng=rng)
    try:
        crew.staff()
        crew.await_work()
        _disturb(ground, crew, rng, seconds)
        crew.finish()
    finally:
        crew.kill_all()
    settled = folder / "settled.jsonl"
    history = RecordedHistory([*crew.histories, settled], ended=crew.ended)
    with ground.opened() as store:
        with FileJournal.open(settled, session="afterwards") as journal:
            _settle(Recorder(store, journal), RecordedHistory(crew.histories, ended=crew.ended))
        log = log_of(store, checkpoints)
        found = check(history, log)
        verified = verify(store)
    problems = [*crew.failed, *_violations(found)]
    problems += [f"verify: {fault}" for fault in verified.faults]
    problems += _rebuilt(ground, log)
    return Episode(number, found.summary, crew.happened + ground.happened, problems)


def _disturb(ground: Ground, crew: Crew, rng: random.Random, seconds: float) -> None:
    ends = time.monotonic() + seconds
    own = ground.disturbances()
    names = ["kill", "stop", "stop for long", *own]
    weights = [3.0, 3.0, 0.3, *(weight for weight, _ in own.values())]
    sleeping: list[tuple[float, Worker]] = []
    while (now := time.monotonic()) < ends:
        for moment, worker in list(sleeping):
            if moment < now:
                crew.go_on(worker)
                sleeping.remove((moment, worker))
        crew.staff()
        (name,) = rng.choices(names, weights)
        if name == "kill":
            crew.kill_one()
        elif name.startswith("stop"):
            stopped = crew.stop_one()
            if stopped is not None:
                # the longer one outlasts the time-out of a transaction, and of every lock
                sleeping.append((now + (rng.uniform(16.0, 20.0) if "long" in name else rng.uniform(0.05, 3.0)), stopped))
        else:
            own[name][1](rng)
            ground.happened[name] += 1
        time.sleep(min(rng.uniform(*_REST), max(0.0, ends - time.monotonic())))


def _settle(store: Recorder, history: RecordedHistory) -> None:
    """Asks for every outcome that nobody knows."""
    for operation in _open(history):
        assert operation.event_id is not None
        try:
            store.resolve(operation.event_id)
        except CheckpointError as error:  # a broker that has just come back; the checker will know that it was not answered
            raise AssertionError(f"in quiet times a resolve could not be answered: {error}") from error


def _open(history: RecordedHistory) -> Iterator[Operation]:
    asked: set[str] = set()
    for operation in history:
        if operation.action in WRITES and operation.outcome in (Outcome.UNKNOWN, Outcome.PENDING) and operation.event_id not in asked:
            assert operation.event_id is not None
            asked.add(operation.event_id)
            yield operation


def _violations(found: Verdict) -> list[str]:
    return [str(found)] if found.found else []


def _rebuilt(ground: Ground, log: FinalLog) -> list[str]:
    """A projection made anew from what the log holds now says the same, or says that something is gone."""
    with ground.rebuilt() as store:
        again = log_of(store, log)
    problems: list[str] = []
    for checkpoint_id, entries in log.items():
        whole = {each.revision: each for each in entries if isinstance(each, LogEntry)}
        rest = [each for each in again[checkpoint_id] if isinstance(each, LogEntry)]
        gone = [each for each in again[checkpoint_id] if isinstance(each, Removed)]
        if any(whole.get(each.revision) != each for each in rest):
            problems.append(f"rebuilt: {checkpoint_id} has other revisions than before")
        if entries and (not rest or rest[-1] != entries[-1]):
            problems.append(f"rebuilt: the head of {checkpoint_id} is another")
        covered = {each.revision for each in rest} | {revision for each in gone for revision in range(each.first, each.last + 1)}
        if not covered >= whole.keys():
            problems.append(f"rebuilt: {checkpoint_id} lacks revisions without saying so: {sorted(whole.keys() - covered)[:10]}")
    return problems
