"""A cold head through DuckDB: any checkpoint of many, none of which is held in memory; payload decoded."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.bench import Bench, Caller, Stopwatch
from benchmarks.kafka_events import checkpoint_id, events
from benchmarks.row import Row, Target
from eventlog import Checkpoint
from eventlog.codec import decode
from eventlog.event import to_checkpoint
from projections.engine import Projection
from projections.rows import Batch, RevisionRow

NAME = "projection-load"
TITLE = "Load of a cold head through DuckDB"

_BATCH = 5_000


def run(bench: Bench) -> list[Row]:
    few, many = bench.count(10_000, 500), bench.count(1_000_000, 5_000)
    loads = bench.count(1_000, 50)
    with ExitStack() as stack:
        callers: dict[str, Caller] = {}
        for count in (few, many):
            bench.say(f"building {count:,} checkpoints")
            projection = stack.enter_context(_built(bench, stack.enter_context(bench.folder()), count))
            callers[_name(count)] = partial(_load, projection, count, loads)
        sides = bench.interleave_calls(callers, loads, measure=Stopwatch.p50)
    what = "load through DuckDB, cold head, 1 KB, p50"
    return [Row(NAME, what, "ms", sides[_name(many)], sides[_name(few)], Target("at most", 2.0))]


def _name(count: int) -> str:
    return f"{count:,} checkpoints"


def _built(bench: Bench, folder: Path, count: int) -> Projection:
    """A closed projection of `count` heads, all with the same event: a projection does not look inside."""
    _, event = next(events(bench.payloads, checkpoints=1, revisions=1))
    projection = Projection(path=folder / "projection.duckdb", store_id="bench", partitions=1, keep_events=True)
    with projection:
        started = time.perf_counter()
        rows: list[RevisionRow] = []
        for row in _rows(event, count):
            rows.append(row)
            if len(rows) == _BATCH:
                projection.apply(Batch({0: row.offset + 1}, rows))
                rows = []
        if rows:
            projection.apply(Batch({0: count}, rows))
        bench.say(f"built at {count / (time.perf_counter() - started):,.0f} rows/s")
    return projection


def _rows(event: bytes, count: int) -> Iterator[RevisionRow]:
    decoded = decode(event)
    header = decoded.header
    for offset in range(count):
        yield RevisionRow(
            partition=0,
            offset=offset,
            recorded_at=header.updated_at + offset,
            checkpoint_id=checkpoint_id(offset),
            revision=0,
            event_id=checkpoint_id(-offset),
            run_id=header.run_id,
            type=header.type,
            tenant=header.tenant,
            kind=header.kind,
            schema_version=header.schema_version,
            phase=header.phase,
            updated_at=header.updated_at,
            actor=header.actor,
            labels=header.labels,
            usage=header.usage,
            payload_size=header.payload_size,
            stored_size=len(event),
            payload_digest=header.payload_digest,
            encoding=header.encoding,
            key_id=None,
            event_hash=decoded.hash,
            previous_hash=header.previous_hash,
            event=event,
        )


@contextmanager
def _load(projection: Projection, count: int, loads: int) -> Iterator[Callable[[], object]]:
    """Loads another checkpoint at every call."""
    numbers = iter(random.sample(range(count), loads))

    def load() -> Checkpoint:
        identity = checkpoint_id(next(numbers))
        head = projection.heads([identity])[identity]
        assert head.event is not None
        event = decode(head.event)
        return to_checkpoint(event.header, event.json_text())

    yield load
