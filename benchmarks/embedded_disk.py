"""Embedded: bytes on disk of one transcript that grows by a kilobyte a step, each step a revision with the whole transcript."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import orjson

from benchmarks import rival_saver
from benchmarks.bench import Bench
from benchmarks.row import Row, Sample, Side, Target
from benchmarks.stores import ACTOR, KIND
from eventlog import Checkpoint, CheckpointId, RunId, create_store, open_store

NAME = "embedded-disk"
TITLE = "Embedded bytes on disk of a growing transcript"

_STEPS = 200
_MEGABYTE = 1_000_000


def run(bench: Bench) -> list[Row]:
    states = bench.payloads.growing(bench.count(_STEPS, 20))
    written = Side("JSON written", (Sample(sum(len(orjson.dumps(state)) for state in states) / _MEGABYTE),))
    with bench.folder() as folder:
        live, closed = _ours(folder / "store", states)
    with bench.folder() as folder:
        saver = Side(rival_saver.NAME, (Sample(_saver(folder, states)),) if rival_saver.MISSING is None else ())
    what = f"bytes on disk, {len(states)} steps growing 1 KB each"
    target = Target("at most", 0.2)
    at_rest = Side("log, checkpointed", (Sample(closed),))
    return [
        Row(f"{NAME}-live", f"{what}, while open", "MB", Side("log with its journal", (Sample(live),)), written, target),
        Row(f"{NAME}-closed", f"{what}, closed", "MB", at_rest, written, target),
        Row(f"{NAME}-saver", f"{what}, closed", "MB", at_rest, saver, None, rival_saver.MISSING),
    ]


def _ours(directory: Path, states: list[dict[str, Any]]) -> tuple[float, float]:
    create_store(directory)
    with open_store(directory, actor=ACTOR) as store:
        checkpoint = Checkpoint.initial(CheckpointId.new(), RunId.new(), KIND, 1, states[0])
        store.compare_and_swap(checkpoint, None)
        for revision, state in enumerate(states[1:]):
            checkpoint = checkpoint.next(state)
            store.compare_and_swap(checkpoint, revision)
        live = _megabytes(directory)
    return live, _megabytes(directory)


def _saver(directory: Path, states: list[dict[str, Any]]) -> float:
    with closing(rival_saver.Saver(directory)) as saver:
        for state in states:
            saver.put(state)
    return _megabytes(directory)


def _megabytes(directory: Path) -> float:
    return sum(path.stat().st_size for path in directory.iterdir() if path.is_file()) / _MEGABYTE
