"""Embedded: one caller commits revision after revision of one checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from typing import Any

from benchmarks import floor, rival_plain, rival_saver
from benchmarks.bench import Bench, Caller
from benchmarks.payloads import SIZES
from benchmarks.row import Row, Side, Target
from benchmarks.stores import embedded_store, successor_committer
from eventlog import CheckpointId

NAME = "embedded-commit"
TITLE = "Embedded compare-and-swap, one caller"

_OURS = "compare_and_swap"
_COMMITS = {1: 4_000, 20: 1_500, 200: 400}
_SAVER = {1: Target("at least", 0.9, 1.1), 20: Target("at least", 0.9, 1.1), 200: Target("at least", 1.0, 1.1)}
_PLAIN = {1: Target("at least", 0.75), 20: Target("at least", 0.9), 200: Target("at least", 1.4)}


def run(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    for size in SIZES:
        bench.say(f"{size} KB")
        state = bench.payloads.of(size)
        callers: dict[str, Caller] = {
            _OURS: partial(_ours, bench, state),
            rival_plain.NAME: partial(_plain, bench, state),
            floor.NAME: partial(_floor, bench, state),
        }
        if rival_saver.MISSING is None:
            callers[rival_saver.NAME] = partial(_saver, bench, state)
        sides = bench.interleave_calls(callers, bench.count(_COMMITS[size], 20))
        rows += [
            _row(size, "saver", sides, rival_saver.NAME, _SAVER[size], rival_saver.MISSING),
            _row(size, "plain", sides, rival_plain.NAME, _PLAIN[size]),
            _row(size, "floor", sides, floor.NAME, None),
        ]
    return rows


def _row(size: int, key: str, sides: dict[str, Side], other: str, target: Target | None, missing: str | None = None) -> Row:
    what = f"embedded commit, one caller, {size} KB"
    return Row(f"{NAME}-{size}kb-{key}", what, "commits/s", sides[_OURS], sides.get(other, Side(other)), target, missing)


@contextmanager
def _ours(bench: Bench, state: dict[str, Any]) -> Iterator[Callable[[], object]]:
    """The store's own interface, the building of each successor included."""
    with bench.folder() as folder, embedded_store(folder / "store") as store:
        yield successor_committer(store, state)


@contextmanager
def _saver(bench: Bench, state: dict[str, Any]) -> Iterator[Callable[[], object]]:
    with bench.folder() as folder, closing(rival_saver.Saver(folder)) as saver:
        saver.put(state)
        yield partial(saver.put, state)


@contextmanager
def _plain(bench: Bench, state: dict[str, Any]) -> Iterator[Callable[[], object]]:
    checkpoint_id = str(CheckpointId.new())
    with bench.folder() as folder, closing(rival_plain.Plain(folder)) as plain:
        plain.swap(checkpoint_id, None, state)
        revisions = count()
        yield lambda: plain.swap(checkpoint_id, next(revisions), state)


@contextmanager
def _floor(bench: Bench, state: dict[str, Any]) -> Iterator[Callable[[], object]]:
    with bench.folder() as folder, closing(floor.Floor(folder)) as file:
        file.append(state)
        yield partial(file.append, state)
