"""Has a topic compacted now."""

from __future__ import annotations

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource

from eventlog.kafka.local import LocalBroker
from tests.faults.kafka.workload import Writing
from tests.waiting import eventually

HOLD_MS = 100
_SETTINGS = {
    "min.compaction.lag.ms": str(HOLD_MS),
    "max.compaction.lag.ms": str(2 * HOLD_MS),
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
}


def compact(broker: LocalBroker, topic: str, end: int, writing: Writing, filler: str) -> None:
    """Returns once partition 0 is cleaned up to offset `end`.

    A segment is rolled by what is appended to it, and the active one is never cleaned: so the checkpoint `filler` is written on and on.
    """
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        admin.alter_configs([ConfigResource("TOPIC", topic, configs=_SETTINGS)])
    finally:
        admin.close()

    def cleaned() -> bool:
        writing.commit(filler)
        return _cleaned_up_to(broker, topic) >= end

    eventually(cleaned, seconds=90)


def _cleaned_up_to(broker: LocalBroker, topic: str) -> int:
    """As the cleaner notes it: a version, a count, then topic, partition and the first offset that is not cleaned, one a line."""
    try:
        lines = (broker.data / "cleaner-offset-checkpoint").read_text().splitlines()[2:]
    except FileNotFoundError:
        return 0
    return next((int(line.split()[2]) for line in lines if line.split()[:2] == [topic, "0"]), 0)
