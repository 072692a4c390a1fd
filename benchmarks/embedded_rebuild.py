"""Embedded: the projection made anew from the log, in seconds per million events, against only reading the log."""

from __future__ import annotations

import time

from benchmarks.bench import Bench
from benchmarks.row import Row, Sample
from benchmarks.stores import ACTOR, KIND
from eventlog import Checkpoint, CheckpointError, CheckpointId, Position, RunId, create_store, open_store

NAME = "embedded-rebuild"
TITLE = "Embedded rebuild of the projection"

_REVISIONS, _AT_ONCE = 20, 1_000


def run(bench: Bench) -> list[Row]:
    checkpoints = bench.count(10_000, 100)
    count = checkpoints * _REVISIONS
    with bench.folder() as folder:
        create_store(folder / "store")
        with open_store(folder / "store", actor=ACTOR) as store:
            bench.say(f"writing {count:,} events")
            states = [bench.payloads.of(1, variant=variant) for variant in range(97)]
            current = [Checkpoint.initial(CheckpointId.new(), RunId.new(), KIND, 1, states[0]) for _ in range(checkpoints)]
            for revision in range(_REVISIONS):
                for start in range(0, checkpoints, _AT_ONCE):
                    some = current[start : start + _AT_ONCE]
                    outcomes = store.compare_and_swap_many([(each, revision - 1 if revision else None) for each in some])
                    refused = next((outcome for outcome in outcomes if isinstance(outcome, CheckpointError)), None)
                    if refused is not None:
                        raise refused
                current = [each.next(states[(number + revision) % 97]) for number, each in enumerate(current)]

            def rebuilt() -> Sample:
                started = time.perf_counter()
                store.catalog.rebuild()
                return _per_million(started, count)

            def read() -> Sample:
                started = time.perf_counter()
                seen = sum(len(records) for records, _ in store.log.read(Position()))
                assert seen == count
                return _per_million(started, count)

            sides = bench.interleave({"rebuild": rebuilt, "reading the log": read}, warm_up=0)
    return [
        Row(NAME, f"rebuild of the projection from {count:,} events, 1 KB", "s per million", sides["rebuild"], sides["reading the log"])
    ]


def _per_million(started: float, count: int) -> Sample:
    return Sample((time.perf_counter() - started) * 1_000_000 / count)
