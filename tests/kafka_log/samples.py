"""Events as somebody else could put them into the topic, and checkpoints to put there properly."""

from __future__ import annotations

from typing import Any

from kafka import KafkaProducer

from eventlog import Checkpoint, CheckpointId, RunId, codec
from eventlog.event import GENESIS
from eventlog.kafka.topic import partition_of
from eventlog.proposing import propose

PARTITIONS = 2


def initial(payload: Any = None, *, kind: str = "test.order", partition: int | None = None) -> Checkpoint:
    """Revision 0 of a new checkpoint, of a certain partition if that matters."""
    identity = CheckpointId.new()
    while partition is not None and partition_of(identity, PARTITIONS) != partition:
        identity = CheckpointId.new()
    return Checkpoint.initial(identity, RunId.new(), kind, 1, {"phase": "ready"} if payload is None else payload)


def event_of(checkpoint: Checkpoint, previous_hash: bytes = GENESIS, expected: int | None = None) -> bytes:
    """The exact bytes of an event, as a writer that asks nobody would make them."""
    proposal = propose(checkpoint, expected, actor="somebody else", max_event_bytes=1 << 23)
    return codec.finish(proposal.draft, previous_hash)[0]


def write_foreign(broker: str, topic: str, *records: tuple[int, bytes | None, bytes | None]) -> None:
    """Sends (partition, key, value) outside of any transaction, past the writer's fence."""
    producer = KafkaProducer(bootstrap_servers=broker, acks="all")
    try:
        for partition, key, value in records:
            producer.send(topic, key=key, value=value, partition=partition).get(timeout=10)
    finally:
        producer.close(timeout=5)
