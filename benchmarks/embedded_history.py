"""Embedded: every revision of a checkpoint, payloads decoded; oldest first, but for the savers, which list the newest first."""

from __future__ import annotations

from functools import partial

from benchmarks.bench import Bench
from benchmarks.embedded_load import Filled, compared, filled
from benchmarks.payloads import SIZES
from benchmarks.row import Row

NAME = "embedded-history"
TITLE = "Embedded history of 200 revisions"

_REVISIONS = 200
_READS = {1: 50, 20: 20, 200: 4}


def run(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    revisions = bench.count(_REVISIONS, 10)
    for size in SIZES:
        bench.say(f"{size} KB")
        with filled(bench, bench.payloads.of(size), revisions) as stores:
            others = {kind: partial(session.history, str(stores.identity)) for kind, session in stores.peers.items()}
            what = f"embedded history of {revisions}, {size} KB"
            calls = bench.count(_READS[size], 2)
            rows += compared(bench, f"{NAME}-{size}kb", what, "histories/s", partial(_history, stores), others, calls)
    return rows


def _history(stores: Filled) -> int:
    return len(list(stores.store.history(stores.identity)))
