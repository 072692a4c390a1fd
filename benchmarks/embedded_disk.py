"""Embedded: bytes on disk of one transcript that grows by a kilobyte a step, each step a revision with the whole transcript."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from benchmarks.bench import Bench
from benchmarks.peers import PEERS
from benchmarks.peers.peer import Peer, opened
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
    what = f"bytes on disk, {len(states)} steps growing 1 KB each"
    target = Target("at most", 0.2)
    at_rest = Side("log, checkpointed", (Sample(closed),))
    return [
        Row(f"{NAME}-live", f"{what}, while open", "MB", Side("log with its journal", (Sample(live),)), written, target),
        Row(f"{NAME}-closed", f"{what}, closed", "MB", at_rest, written, target),
        *(Row(f"{NAME}-{kind.KEY}", f"{what}, closed", "MB", at_rest, _peer(bench, kind, states), None, kind.missing()) for kind in PEERS),
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


def _peer(bench: Bench, kind: type[Peer], states: list[dict[str, Any]]) -> Side:
    """As it is while its server runs; a database that is a file, once it is closed."""
    if kind.missing() is not None:
        return Side(kind.NAME)
    stream = str(CheckpointId.new())
    with bench.folder() as folder:
        with opened(kind, folder / "peer") as peer, peer.session() as session:
            for revision, state in enumerate(states):
                session.commit(stream, revision - 1 if revision else None, state)
            running = peer.bytes_on_disk()
        size = peer.bytes_on_disk() if kind.EMBEDDED else running
    return Side(kind.NAME, (Sample(size / _MEGABYTE),))


def _megabytes(directory: Path) -> float:
    return sum(path.stat().st_size for path in directory.iterdir() if path.is_file()) / _MEGABYTE
