"""Policies, and moments at which something is due."""

from __future__ import annotations

import time
from typing import Any

from eventlog import Checkpoint, CheckpointStore, Deleted
from eventlog.retention import Plan, Policy, plan_retention
from tests.store.samples import initial

SECOND = 1_000
ALL = b"""
[[rule]]
name = "all orders"
kind = "acme.*"
older_than = "1s"
"""


def soon() -> int:
    """A moment at which what was just written is older than a second; the log's clock is not far behind."""
    return time.time_ns() // 1_000_000 + 5 * SECOND


def planned(store: CheckpointStore, policy: bytes = ALL, **options: Any) -> Plan:
    """A plan in which everything that was just written is older than a second."""
    return plan_retention(store, Policy.parse(policy), **{"now": soon(), **options})


def orders(store: CheckpointStore, number: int, **fields: Any) -> list[Checkpoint]:
    """So many committed checkpoints of the store's tenant."""
    made = [initial(**{"tenant": store.tenant or "default", **fields}) for _ in range(number)]
    for outcome in store.compare_and_swap_many([(each, None) for each in made]):
        assert not isinstance(outcome, Exception), outcome
    return made


def ids(items: Any) -> list[str]:
    """Of checkpoints or of a plan's items, in order."""
    return sorted(str(getattr(each, "checkpoint_id", None) or each.id) for each in items)


def is_deleted(store: CheckpointStore, checkpoint_id: str) -> bool:
    try:
        store.load(checkpoint_id)
    except Deleted:
        return True
    return False
