"""Embedded: every revision of a checkpoint, oldest first, against a list of the saver's, newest first; payloads decoded."""

from __future__ import annotations

from functools import partial

from benchmarks import rival_saver
from benchmarks.bench import Bench
from benchmarks.embedded_load import Filled, filled, measured
from benchmarks.payloads import SIZES
from benchmarks.row import Row, Target

NAME = "embedded-history"
TITLE = "Embedded history of 200 revisions"

_REVISIONS = 200
_READS = {1: 50, 20: 20, 200: 4}


def run(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    revisions = bench.count(_REVISIONS, 10)
    for size in SIZES:
        bench.say(f"{size} KB")
        with filled(bench, bench.payloads.of(size), revisions) as both:
            others = None if both.saver is None else partial(both.saver.all, revisions)
            ours, other = measured(bench, "history", partial(_history, both), others, bench.count(_READS[size], 2))
        what = f"embedded history of {revisions}, {size} KB"
        rows.append(Row(f"{NAME}-{size}kb", what, "histories/s", ours, other, Target("at least", 1.0), rival_saver.MISSING))
    return rows


def _history(both: Filled) -> int:
    return len(list(both.store.history(both.identity)))
