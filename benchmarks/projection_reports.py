"""The projection's answers over a million and over ten million revisions: the same questions, ten times the log."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import duckdb

from benchmarks.bench import Bench, Caller, Stopwatch, standing
from benchmarks.kafka_events import checkpoint_id
from benchmarks.kafka_memory_process import peak_megabytes
from benchmarks.row import Row, Sample, Side
from projections import history, reports
from projections.engine import Projection

NAME = "projection-reports"
TITLE = "Reports over a million and ten million revisions"

_REVISIONS = 100  # of each checkpoint
_KINDS, _DAYS = 5, 100
_QUESTIONS = {
    "growth": "revisions by kind and day",
    "retention": "retention report",
    "point": "head of a checkpoint",
    "history": f"history of one checkpoint, {_REVISIONS} revisions",
}

# What a log of so many revisions leaves: every checkpoint has as many, in turns, spread over the days. As UUIDs `kafka_events` has its ids.
_REVISIONS_SQL = """
INSERT INTO revisions
SELECT
    0, i, i * ($milliseconds // $count), md5((i % $checkpoints)::VARCHAR)::UUID, i // $checkpoints, md5('event ' || i)::UUID,
    md5('run ' || (i % $checkpoints))::UUID, 'REVISION', 'default', 'bench.kind-' || (i % $checkpoints % $kinds), 1, 'ready', i, 'bench',
    '{}', '{}', 1000 + i % 1000, 1500 + i % 1000, 'digest'::BLOB, 'json', NULL, 'hash'::BLOB, 'hash'::BLOB
FROM range($count) AS numbers(i)
"""
_HEADS_SQL = """
INSERT INTO heads
SELECT
    checkpoint_id, partition, "offset", recorded_at, revision, event_id, run_id, type, tenant, kind, schema_version, phase, updated_at,
    actor, labels, usage, payload_size, stored_size, event_hash, NULL, 0
FROM revisions
WHERE revision = $last
"""


def run(bench: Bench) -> list[Row]:
    few, many = bench.count(1_000_000, 2_000), bench.count(10_000_000, 4_000)
    rows: list[Row] = []
    with ExitStack() as stack:
        projections = {count: stack.enter_context(_built(bench, stack.enter_context(bench.folder()), count)) for count in (few, many)}
        for name, what in _QUESTIONS.items():
            calls = bench.count(5 if name in ("growth", "retention") else 200, 2)
            callers: dict[str, Caller] = {_name(count): standing(_asked(name, each, count)) for count, each in projections.items()}
            sides = bench.interleave_calls(callers, calls, measure=Stopwatch.p50)
            rows.append(Row(f"{NAME}-{name}", f"{what}, p50", "ms", sides[_name(many)], sides[_name(few)], None))
        peak = Side("this process", (Sample(peak_megabytes()),))
    rows.append(Row(f"{NAME}-memory", "peak memory of all of them", "MB", peak, Side("DuckDB's limits", (Sample(2 * 256.0),)), None))
    return rows


def _name(count: int) -> str:
    return f"{count:,} revisions"


def _built(bench: Bench, folder: Path, count: int) -> Projection:
    """A closed projection, filled at once by SQL: ten million rows through `apply` would take a quarter of an hour."""
    started = time.perf_counter()
    projection = Projection(path=folder / "projection.duckdb", store_id="bench", partitions=1, keep_events=False)
    with projection:
        assert projection.path is not None
    with closing(duckdb.connect(str(folder / "projection.duckdb"))) as file:
        numbers = {"count": count, "checkpoints": count // _REVISIONS, "kinds": _KINDS, "milliseconds": _DAYS * 86_400_000}
        file.execute(_REVISIONS_SQL, numbers)
        file.execute(_HEADS_SQL, {"last": _REVISIONS - 1})
        file.execute("INSERT INTO positions VALUES (0, ?)", [count])
    bench.say(f"built {count:,} revisions in {time.perf_counter() - started:.0f} s")
    return projection


def _asked(name: str, projection: Projection, count: int) -> Callable[[], object]:
    if name in ("growth", "retention"):
        return partial(reports.run, projection, name)
    chance = random.Random(name)

    def point() -> object:
        identity = checkpoint_id(chance.randrange(count // _REVISIONS))
        return projection.heads([identity])[identity]

    def past() -> object:
        rows = history.history(projection, checkpoint_id(chance.randrange(count // _REVISIONS)), limit=1000)
        assert len(rows) == _REVISIONS
        return rows

    return point if name == "point" else past
