"""Embedded: one caller commits revision after revision of one checkpoint, to a store in clear text and to an encrypted one, in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from benchmarks.bench import Bench, Stopwatch
from benchmarks.payloads import SIZES
from benchmarks.row import Row, Target
from benchmarks.stores import embedded_store, successor_committer

NAME = "embedded-encryption"
TITLE = "An encrypted commit against one in clear text"

_SEALED, _CLEAR = "encrypted", "in clear text"
_COMMITS = {1: 4_000, 20: 2_500, 200: 600}
_TARGETS = {20: Target("at most", 1.15)}


def run(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    for size in SIZES:
        bench.say(f"{size} KB")
        state = bench.payloads.of(size)
        callers = {name: partial(_committing, bench, state, encrypted=name == _SEALED) for name in (_SEALED, _CLEAR)}
        sides = bench.interleave_calls(callers, bench.count(_COMMITS[size], 20), measure=Stopwatch.p50)
        what = f"embedded commit, encrypted, {size} KB"
        rows.append(Row(f"{NAME}-{size}kb", what, "ms", sides[_SEALED], sides[_CLEAR], _TARGETS.get(size)))
    return rows


@contextmanager
def _committing(bench: Bench, state: dict[str, Any], *, encrypted: bool) -> Iterator[Callable[[], object]]:
    with bench.folder() as folder, embedded_store(folder / "store", key_file=folder / "key.json" if encrypted else None) as store:
        yield successor_committer(store, state)
