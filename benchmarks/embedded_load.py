"""Embedded: the latest revision of one checkpoint, loaded again and again; payloads decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Any, NamedTuple

from benchmarks import rival_saver
from benchmarks.bench import Bench, Caller, standing
from benchmarks.payloads import SIZES
from benchmarks.row import Row, Side, Target
from benchmarks.stores import KIND, embedded_store
from eventlog import Checkpoint, CheckpointId, CheckpointStore, RunId

NAME = "embedded-load"
TITLE = "Embedded load of the latest revision"

_LOADS = {1: 20_000, 20: 10_000, 200: 2_000}
_REVISIONS = 50


class Filled(NamedTuple):
    """Both stores with the same revisions of one state."""

    store: CheckpointStore
    identity: CheckpointId
    saver: rival_saver.Saver | None


def run(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    for size in SIZES:
        bench.say(f"{size} KB")
        loads = bench.count(_LOADS[size], 50)
        with filled(bench, bench.payloads.of(size), _REVISIONS) as (store, identity, saver):
            ours, other = measured(bench, "load", partial(store.load, identity), None if saver is None else saver.get, loads)
        what = f"embedded load of the latest, hot, {size} KB"
        rows.append(Row(f"{NAME}-{size}kb", what, "loads/s", ours, other, Target("at least", 1.0), rival_saver.MISSING))
    return rows


@contextmanager
def filled(bench: Bench, state: dict[str, Any], revisions: int) -> Iterator[Filled]:
    """Both stores, filled through their own interfaces."""
    with ExitStack() as stack:
        store = stack.enter_context(embedded_store(stack.enter_context(bench.folder()) / "store"))
        checkpoint = Checkpoint.initial(CheckpointId.new(), RunId.new(), KIND, 1, state)
        store.compare_and_swap(checkpoint, None)
        for revision in range(revisions - 1):
            checkpoint = checkpoint.next(state)
            store.compare_and_swap(checkpoint, revision)
        saver = None
        if rival_saver.MISSING is None:
            saver = stack.enter_context(closing(rival_saver.Saver(stack.enter_context(bench.folder()))))
            for _ in range(revisions):
                saver.put(state)
        yield Filled(store, checkpoint.id, saver)


def measured(bench: Bench, name: str, ours: Callable[[], object], other: Callable[[], object] | None, calls: int) -> tuple[Side, Side]:
    """Our calls and the other store's, interleaved."""
    callers: dict[str, Caller] = {name: standing(ours)}
    if other is not None:
        callers[rival_saver.NAME] = standing(other)
    sides = bench.interleave_calls(callers, calls)
    return sides[name], sides.get(rival_saver.NAME, Side(rival_saver.NAME))
