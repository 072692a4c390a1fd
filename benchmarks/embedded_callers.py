"""Embedded: many callers at once, each with a checkpoint of its own, against one caller, and against peers with as many."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from benchmarks.bench import Bench, Contestant, Stopwatch
from benchmarks.peers import PEERS
from benchmarks.peers.peer import Peer, opened
from benchmarks.row import Row, Sample, Side, Target
from benchmarks.stores import ACTOR, async_callers, embedded_store, successor_committer
from eventlog import CheckpointId, create_store, open_async_store

NAME = "embedded-callers"
TITLE = "Embedded compare-and-swap, many callers"

_ONE = "one caller"
_PEERS_CALLERS = (16, 100)
_TARGETS: dict[str, Target | None] = {
    "16 threads": Target("at least", 1.8),
    "16 async callers": Target("at least", 2.5),
    "100 async callers": Target("at least", 3.0),
    "1000 async callers": None,
}


def run(bench: Bench) -> list[Row]:
    state = bench.payloads.of(1)
    commits = bench.count(8_000, 200)
    contestants: dict[str, Contestant] = {
        _ONE: partial(_threads, bench, state, 1, commits // 2),
        "16 threads": partial(_threads, bench, state, 16, commits),
        "16 async callers": partial(_async, bench, state, 16, commits),
        "100 async callers": partial(_async, bench, state, 100, commits),
        "1000 async callers": partial(_async, bench, state, 1_000, commits),
    }
    measured = [(peer, callers) for peer in PEERS for callers in _PEERS_CALLERS]
    contestants |= {
        _name(peer, callers): partial(_peer, bench, peer, state, callers, commits // 2)
        for peer, callers in measured
        if peer.missing() is None
    }
    sides = bench.interleave(contestants)
    rows = [
        Row(f"{NAME}-{name.replace(' ', '-')}", f"embedded commit, {name}, 1 KB", "commits/s", sides[name], sides[_ONE], target)
        for name, target in _TARGETS.items()
    ]
    for peer, callers in measured:
        other = sides.get(_name(peer, callers), Side(_name(peer, callers)))
        what = f"embedded commit, {callers} async callers, 1 KB"
        ours = sides[f"{callers} async callers"]
        rows.append(Row(f"{NAME}-{callers}-{peer.KEY}", what, "commits/s", ours, other, None, peer.missing()))
    return rows


def _name(peer: type[Peer], callers: int) -> str:
    return f"{peer.NAME}, {callers} callers"


def _peer(bench: Bench, kind: type[Peer], state: dict[str, Any], callers: int, commits: int) -> Sample:
    with bench.folder() as folder, opened(kind, folder / "peer") as peer:
        return peer.many_callers([str(CheckpointId.new()) for _ in range(callers)], state, commits)


def _threads(bench: Bench, state: dict[str, Any], callers: int, commits: int) -> Sample:
    with bench.folder() as folder, embedded_store(folder / "store") as store:
        commit = [successor_committer(store, state) for _ in range(callers)]
        watch = Stopwatch()
        if callers == 1:
            watch.repeat(commit[0], commits)
            return watch.per_second()
        watch.at_once(commit, commits // callers)
        return watch.per_second()


def _async(bench: Bench, state: dict[str, Any], callers: int, commits: int) -> Sample:
    async def main() -> Sample:
        async with await open_async_store(folder / "store", actor=ACTOR) as store:
            return await async_callers(store, state, callers=callers, commits=commits)

    with bench.folder() as folder:
        create_store(folder / "store")
        return asyncio.run(main())
