"""Embedded: one caller commits revision after revision of one checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from typing import Any

from benchmarks.bench import Bench, Caller
from benchmarks.payloads import SIZES
from benchmarks.peers import PEERS, floor
from benchmarks.peers.peer import Peer, opened
from benchmarks.row import Row, Side, Target
from benchmarks.stores import embedded_store, successor_committer
from eventlog import CheckpointId

NAME = "embedded-commit"
TITLE = "Embedded compare-and-swap, one caller"

_OURS = "compare_and_swap"
_COMMITS = {1: 4_000, 20: 1_500, 200: 400}
_TARGETS = {
    "saver": {1: Target("at least", 0.9, 1.1), 20: Target("at least", 0.9, 1.1), 200: Target("at least", 1.0, 1.1)},
    "plain": {1: Target("at least", 0.75), 20: Target("at least", 0.9), 200: Target("at least", 1.4)},
}


def run(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    for size in SIZES:
        bench.say(f"{size} KB")
        state = bench.payloads.of(size)
        callers: dict[str, Caller] = {_OURS: partial(_ours, bench, state), floor.NAME: partial(_floor, bench, state)}
        callers |= {peer.NAME: partial(_peer, bench, peer, state) for peer in PEERS if peer.missing() is None}
        sides = bench.interleave_calls(callers, bench.count(_COMMITS[size], 20))
        rows += [_row(size, peer.KEY, sides, peer.NAME, _TARGETS.get(peer.KEY, {}).get(size), peer.missing()) for peer in PEERS]
        rows.append(_row(size, "floor", sides, floor.NAME, None, None))
    return rows


def _row(size: int, key: str, sides: dict[str, Side], other: str, target: Target | None, missing: str | None) -> Row:
    what = f"embedded commit, one caller, {size} KB"
    return Row(f"{NAME}-{size}kb-{key}", what, "commits/s", sides[_OURS], sides.get(other, Side(other)), target, missing)


@contextmanager
def _ours(bench: Bench, state: dict[str, Any]) -> Iterator[Callable[[], object]]:
    """The store's own interface, the building of each successor included."""
    with bench.folder() as folder, embedded_store(folder / "store") as store:
        yield successor_committer(store, state)


@contextmanager
def _peer(bench: Bench, kind: type[Peer], state: dict[str, Any]) -> Iterator[Callable[[], object]]:
    stream = str(CheckpointId.new())
    with bench.folder() as folder, opened(kind, folder / "peer") as peer, peer.session() as session:
        session.commit(stream, None, state)
        revisions = count()
        yield lambda: session.commit(stream, next(revisions), state)


@contextmanager
def _floor(bench: Bench, state: dict[str, Any]) -> Iterator[Callable[[], object]]:
    with bench.folder() as folder, closing(floor.Floor(folder)) as file:
        file.append(state)
        yield partial(file.append, state)
