"""Embedded: the latest revision of one checkpoint, loaded again and again; payloads decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

from benchmarks.bench import Bench, standing
from benchmarks.payloads import SIZES
from benchmarks.peers import PEERS
from benchmarks.peers.peer import Peer, Session, opened
from benchmarks.row import Row, Side, Target
from benchmarks.stores import KIND, embedded_store
from eventlog import Checkpoint, CheckpointId, CheckpointStore, RunId

NAME = "embedded-load"
TITLE = "Embedded load of the latest revision"

_LOADS = {1: 20_000, 20: 10_000, 200: 2_000}
_REVISIONS = 50


class Filled(NamedTuple):
    """All stores with the same revisions of one state, under the same id."""

    store: CheckpointStore
    identity: CheckpointId
    peers: dict[type[Peer], Session]


def run(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    for size in SIZES:
        bench.say(f"{size} KB")
        loads = bench.count(_LOADS[size], 50)
        with filled(bench, bench.payloads.of(size), _REVISIONS) as all_filled:
            ours = partial(all_filled.store.load, all_filled.identity)
            others = {kind: partial(session.load, str(all_filled.identity)) for kind, session in all_filled.peers.items()}
            rows += compared(bench, f"{NAME}-{size}kb", f"embedded load of the latest, hot, {size} KB", "loads/s", ours, others, loads)
    return rows


@contextmanager
def filled(bench: Bench, state: dict[str, Any], revisions: int) -> Iterator[Filled]:
    """All stores, filled through their own interfaces."""
    with ExitStack() as stack:
        store = stack.enter_context(embedded_store(stack.enter_context(bench.folder()) / "store"))
        checkpoint = Checkpoint.initial(CheckpointId.new(), RunId.new(), KIND, 1, state)
        store.compare_and_swap(checkpoint, None)
        for revision in range(revisions - 1):
            checkpoint = checkpoint.next(state)
            store.compare_and_swap(checkpoint, revision)
        peers: dict[type[Peer], Session] = {}
        for kind in PEERS:
            if kind.missing() is None:
                peer = stack.enter_context(opened(kind, stack.enter_context(bench.folder()) / "peer"))
                session = peers[kind] = stack.enter_context(peer.session())
                for revision in range(revisions):
                    session.commit(str(checkpoint.id), revision - 1 if revision else None, state)
        yield Filled(store, checkpoint.id, peers)


def compared(
    bench: Bench,
    key: str,
    what: str,
    unit: str,
    ours: Callable[[], object],
    others: Mapping[type[Peer], Callable[[], object]],
    calls: int,
) -> list[Row]:
    """A row against each peer. The target is that of the saver: to be no slower."""
    name = what.partition(",")[0]
    sides = bench.interleave_calls({name: standing(ours), **{kind.NAME: standing(call) for kind, call in others.items()}}, calls)
    return [
        Row(
            key if kind.KEY == "saver" else f"{key}-{kind.KEY}",
            what,
            unit,
            sides[name],
            sides.get(kind.NAME, Side(kind.NAME)),
            Target("at least", 1.0) if kind.KEY == "saver" else None,
            kind.missing(),
        )
        for kind in PEERS
    ]
