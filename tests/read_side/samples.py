"""Rows that look like a log's, and the same ones every time."""

from __future__ import annotations

import hashlib
import random
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from projections.engine import Projection
from projections.rows import Batch, RevisionRow
from projections.settling import settle
from projections.stream import StreamRow, since

PARTITIONS = 4
START = 1_700_000_000_000  # milliseconds since 1970 UTC


def identifier(*parts: object) -> str:
    return str(uuid.UUID(hashlib.md5(repr(parts).encode()).hexdigest()))


def row(
    checkpoint: int = 0,
    revision: int = 0,
    *,
    offset: int = 0,
    partition: int = 0,
    recorded_at: int | None = None,
    event_type: str = "REVISION",
    tenant: str = "default",
    kind: str = "acme.order",
    phase: str | None = "ready",
    actor: str | None = "alice",
    labels: dict[str, str] | None = None,
    run: int | None = None,
    event_size: int = 64,
    checkpoint_id: str | None = None,
) -> RevisionRow:
    checkpoint_id = checkpoint_id or identifier("checkpoint", checkpoint)
    event = random.Random(f"{checkpoint_id}/{revision}").randbytes(event_size)
    time = START + offset * 1000 if recorded_at is None else recorded_at
    return RevisionRow(
        partition=partition,
        offset=offset,
        recorded_at=time,
        checkpoint_id=checkpoint_id,
        revision=revision,
        event_id=identifier("event", checkpoint_id, revision),
        run_id=identifier("run", checkpoint if run is None else run),
        type=event_type,
        tenant=tenant,
        kind=kind,
        schema_version=1,
        phase=phase,
        updated_at=time - 5,
        actor=actor,
        labels=labels or {},
        usage={"input_tokens": revision * 10, "turns": revision},
        payload_size=event_size * 2,
        stored_size=event_size,
        payload_digest=hashlib.sha256(event + b"payload").digest(),
        encoding="json+zstd",
        key_id=None,
        event_hash=hashlib.sha256(event).digest(),
        previous_hash=bytes(32),
        event=event,
    )


def log(checkpoints: int, revisions: int, *, seed: int = 7, event_size: int = 64) -> list[RevisionRow]:
    """A log of `checkpoints` x `revisions` rows over `PARTITIONS` partitions, interleaved, in an order of its own."""
    order = [checkpoint for checkpoint in range(checkpoints) for _ in range(revisions)]
    random.Random(seed).shuffle(order)
    next_revision: dict[int, int] = {}
    next_offset = dict.fromkeys(range(PARTITIONS), 0)
    rows = []
    for checkpoint in order:
        partition = checkpoint % PARTITIONS
        rows.append(
            row(
                checkpoint,
                next_revision.get(checkpoint, 0),
                partition=partition,
                offset=next_offset[partition],
                tenant=("default", "north", "south")[checkpoint % 3],
                phase=("ready", "in-flight")[checkpoint % 2],
                labels={"env": "prod", "team": str(checkpoint % 5)} if checkpoint % 2 else None,
                event_size=event_size,
            )
        )
        next_revision[checkpoint] = next_revision.get(checkpoint, 0) + 1
        next_offset[partition] += 1
    return rows


def batch_of(rows: Sequence[RevisionRow]) -> Batch:
    next_offsets: dict[int, int] = {}
    for item in rows:
        next_offsets[item.partition] = max(next_offsets.get(item.partition, 0), item.offset + 1)
    return Batch(next_offsets=next_offsets, rows=rows)


def batches(rows: Sequence[RevisionRow], size: int) -> Iterator[Batch]:
    for start in range(0, len(rows), size):
        yield batch_of(rows[start : start + size])


def opened(path: Path | None, *, store_id: str = "store-1", partitions: int = PARTITIONS, keep_events: bool = True) -> Projection:
    return Projection(path=path, store_id=store_id, partitions=partitions, keep_events=keep_events)


EVERYTHING = (
    'SELECT * FROM checkpoint_history ORDER BY partition, "offset"',
    "SELECT * FROM checkpoint_heads ORDER BY checkpoint_id",
    "SELECT * FROM checkpoint_gaps ORDER BY ALL",
    "SELECT * FROM quarantined_records ORDER BY ALL",
    "SELECT * FROM log_positions ORDER BY partition",
)


def everything(projection: Projection) -> list[object]:
    """Every answer that the projection can give, for comparing two of them."""
    heads = projection.heads([row[0] for row in projection.query("SELECT checkpoint_id::VARCHAR FROM heads")])
    return [*(projection.query(sql) for sql in EVERYTHING), dict(sorted(heads.items())), all_events(projection)]


def all_events(projection: Projection) -> list[StreamRow]:
    """Every event, in the order of the log."""
    found: list[StreamRow] = []
    for partition, end in sorted(projection.positions().items()):
        start = 0
        while page := since(projection, partition, start, end, 1000):
            found += page
            start = page[-1].offset + 1
    return found


def settle_all(projection: Projection) -> None:
    while settle(projection):
        pass


def growing(revisions: int, *, checkpoint: int = 1, turn: int = 1000, start: int = 0) -> list[RevisionRow]:
    """Revisions of a state that grows by `turn` bytes each and is written whole with every one, behind a header that is always new."""
    source = random.Random(checkpoint)
    said = source.randbytes(turn * revisions // 2).hex().encode()
    return [
        row(checkpoint, number, offset=start + number)._replace(event=event, stored_size=len(event))
        for number in range(revisions)
        if (event := source.randbytes(200) + b"[" + said[: turn * (number + 1)] + b"]")
    ]
