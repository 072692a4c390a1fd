"""Kafka's projection: bytes on disk of one transcript that grows turn by turn, every revision of it readable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from benchmarks.bench import Bench
from benchmarks.row import Row, Sample, Side, Target
from benchmarks.stores import ACTOR, KIND
from eventlog import Checkpoint, CheckpointId, RunId
from eventlog.codec import finish
from eventlog.event import GENESIS
from eventlog.interpreting import head_of_row, interpret
from eventlog.log import Record
from eventlog.proposing import propose
from projections.engine import Projection
from projections.history import history
from projections.rows import Batch
from projections.space import tidy

NAME = "projection-disk"
TITLE = "Bytes on disk of the projection of a growing transcript"

_TURNS, _KILOBYTES = 200, 10
_BATCH = 5  # turns between two writes of the projection
_LIMIT = 8 << 20
_MEGABYTE = 1_000_000


def run(bench: Bench) -> list[Row]:
    states = bench.payloads.growing(bench.count(_TURNS, 20), kilobytes=_KILOBYTES)
    final = Side("final state as JSON", (Sample(len(orjson.dumps(states[-1])) / _MEGABYTE),))
    with bench.folder() as folder:
        kept = Side("projection, closed", (Sample(_kept(folder / "projection.duckdb", list(_records(states))) / _MEGABYTE),))
    what = f"projection of {len(states)} turns growing {_KILOBYTES} KB each"
    return [Row(NAME, what, "MB", kept, final, Target("at most", 2.0))]


def _records(states: list[dict[str, Any]]) -> Iterator[Record]:
    """The events as a topic has them."""
    checkpoint = Checkpoint.initial(CheckpointId.new(), RunId.new(), KIND, 1, states[0])
    previous = GENESIS
    for number, state in enumerate(states):
        checkpoint = checkpoint.next(state) if number else checkpoint
        expected = number - 1 if number else None
        proposal = propose(checkpoint, expected, actor=ACTOR, max_event_bytes=_LIMIT, compress_from=_LIMIT)
        event, previous = finish(proposal.draft, previous)
        yield Record(0, number, number, checkpoint.id.encode(), event)


def _kept(path: Path, records: list[Record]) -> int:
    with Projection(path=path, store_id="bench", partitions=1, keep_events=True) as projection:
        for start in range(0, len(records), _BATCH):
            some = records[start : start + _BATCH]
            found = interpret(
                some,
                heads_of=lambda ids: {key: head_of_row(row) for key, row in projection.heads(ids, events=False).items()},
                blocked={},
                keep_events=True,
                compacted_before=0,
            )
            projection.apply(Batch({0: some[-1].offset + 1}, found.rows))
        tidy(projection, seconds=3600)
        rows = history(projection, found.rows[0].checkpoint_id, limit=1000)
        assert [row.event for row in rows] == [record.value for record in records]
    return path.stat().st_size
