"""What the brokers say of a topic beside its settings: copies that are behind, and transactions that hold readers up."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from eventlog.address import KafkaAddress
from eventlog.diagnosis.check import Check, State, lasting
from eventlog.kafka.client import TRANSACTION_TIMEOUT_MS, admin, translated
from eventlog.kafka.offsets import Offsets

_NO_LEADER = -1
# A writer's transaction takes milliseconds, and the broker ends one of a writer that died within its time-out, looking every 10 s.
OLDEST_TRANSACTION = TRANSACTION_TIMEOUT_MS / 1000 + 15.0  # seconds


def replicas(address: KafkaAddress) -> Check:
    """Whether every copy of every partition is up to date. Raises `Unavailable`."""
    client = admin(address)
    try:
        with translated(address):
            (topic,) = client.describe_topics([address.topic])
    finally:
        client.close()
    return of_partitions(topic["partitions"])


def of_partitions(partitions: Sequence[Mapping[str, Any]]) -> Check:
    """What their description says."""
    leaderless = sorted(each["partition_index"] for each in partitions if each["leader_id"] == _NO_LEADER)
    if leaderless:
        advice = "Bring the brokers back that hold their copies; until then nothing of these partitions can be read or written."
        return Check("replicas", State.FAIL, f"no leader for partitions {_listed(leaderless)}", advice)
    behind = sorted(each["partition_index"] for each in partitions if len(each["isr_nodes"]) < len(each["replica_nodes"]))
    copies = len(partitions[0]["replica_nodes"])
    if behind:
        advice = "A broker is down or too slow. Another one lost may stop every write: bring it back before any maintenance."
        return Check("replicas", State.WARN, f"copies are missing or behind in partitions {_listed(behind)} of {len(partitions)}", advice)
    return Check("replicas", State.OK, f"{copies} in sync" if copies > 1 else "one copy only: what the broker's disk loses is lost")


def transactions(address: KafkaAddress, partitions: int) -> Check:
    """Whether somebody holds a transaction open, behind which nothing can be read."""
    offsets = Offsets(address=address, partitions=partitions)
    try:
        found = {number: offsets.open_transaction(number) for number in range(partitions)}
    finally:
        offsets.close()
    now = time.time()
    old = {number: each for number, each in found.items() if each is not None and now - each.written_at / 1000 > OLDEST_TRANSACTION}
    if not old:
        return Check("transactions", State.OK, "none is held open")
    number, oldest = min(old.items(), key=lambda each: each[1].written_at)
    advice = (
        "No writer of this library leaves one: somebody else writes to the topic. Restrict write access by ACLs;"
        " `kafka-transactions.sh abort` ends the transaction."
    )
    detail = f"producer {oldest.producer_id} has held one open in partition {number} for {lasting(now - oldest.written_at / 1000)}"
    return Check("transactions", State.FAIL, f"{detail}; {len(old)} partitions are held up", advice)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")
