"""Any fault at any time, for as long as EVENTLOG_CHAOS_MINUTES says: EVENTLOG_CHAOS_SEED chooses which."""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from eventlog.testing import RecordedHistory
from tests.faults.cluster.cluster import Cluster
from tests.faults.cluster.fault import cluster_faults
from tests.faults.cluster.load import Load, judge
from tests.faults.cluster.load_process import LoadProcess
from tests.waiting import eventually

MINUTES = float(os.environ.get("EVENTLOG_CHAOS_MINUTES", "0"))
SEED = int(os.environ.get("EVENTLOG_CHAOS_SEED", "1"))
LONGEST_SECONDS = 20.0  # of a fault: beyond every time-out, the transactions' included
BACK_SECONDS = 90.0


@pytest.mark.skipif(MINUTES == 0, reason="runs for EVENTLOG_CHAOS_MINUTES")
def test_three_brokers_disturbed_at_random_lose_nothing_and_answer_everybody(
    cluster: Cluster, topic_name: str, address: str, tmp_path: Path
) -> None:
    sys.stdout.write(f"seed {SEED}\n")
    chosen = random.Random(SEED)
    faults = cluster_faults(cluster, topic_name, SEED)
    happened: Counter[str] = Counter()
    slowest = 0.0
    until = time.monotonic() + 60 * MINUTES
    load = Load(f"{address}?state={tmp_path / 'state-0'}")
    try:
        with LoadProcess(f"{address}?state={tmp_path / 'state-1'}", load.shared, tmp_path / "journal-1") as other:
            while time.monotonic() < until:
                load.go_on(chosen.randrange(5, 50))
                fault = chosen.choice(faults)
                fault.begin()
                ends = time.monotonic() + chosen.uniform(0.1, LONGEST_SECONDS)
                eventually(lambda ends=ends: time.monotonic() > ends)  # type: ignore[misc]
                fault.end()
                slowest = max(slowest, load.resumed(time.monotonic(), seconds=BACK_SECONDS)[1])
                happened[fault.name] += 1
                cluster.heal(topic_name)
    finally:
        load.end()
    summary = judge([*load.operations, *RecordedHistory([other.journal])], address, tmp_path / "judge")
    sys.stdout.write(f"{dict(happened)}\nslowest return {slowest:.1f} s; {summary}\n")
    load.check_answers()
    summary.require(committed=20, conflicts=1, sessions=2)
