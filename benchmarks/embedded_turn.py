"""Embedded: a turn of an agent's run without effects, against the two bare commits that it consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from benchmarks.bench import Bench, Caller, Stopwatch
from benchmarks.payloads import SIZES
from benchmarks.row import Row, Target
from benchmarks.stores import embedded_store, successor_committer
from eventlog.recovery import AgentRun, Model

NAME = "embedded-turn"
TITLE = "Embedded, a turn of an agent without effects"

_OURS = "turn"
_BARE = "two compare_and_swap"
_TURNS = {1: 2_000, 20: 800, 200: 200}


def run(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    for size in SIZES:
        bench.say(f"{size} KB")
        state = bench.payloads.of(size)
        callers: dict[str, Caller] = {_OURS: partial(_turn, bench, state), _BARE: partial(_bare, bench, state)}
        sides = bench.interleave_calls(callers, bench.count(_TURNS[size], 20), measure=Stopwatch.p50)
        target = Target("at most", 1.3)
        rows.append(Row(f"{NAME}-{size}kb", f"embedded turn, {size} KB", "ms p50", sides[_OURS], sides[_BARE], target))
    return rows


@contextmanager
def _turn(bench: Bench, state: dict[str, Any]) -> Iterator[Callable[[], object]]:
    with bench.folder() as folder, embedded_store(folder / "store") as store:
        agent = AgentRun.start(store, agent="bench", model=Model("bench", "bench"), definition_version=1, state=state)

        def turn() -> None:
            with agent.turn() as begun:
                begun.commit(state=state)

        yield turn


@contextmanager
def _bare(bench: Bench, state: dict[str, Any]) -> Iterator[Callable[[], object]]:
    with bench.folder() as folder, embedded_store(folder / "store") as store:
        commit = successor_committer(store, state)

        def twice() -> None:
            commit()
            commit()

        yield twice
