"""Kafka: how much memory a process needs over a million checkpoints, one that catches up and one that writes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench
from benchmarks.kafka_bare import BareProducer
from benchmarks.kafka_events import events
from benchmarks.row import Row, Sample, Side, Target

NAME = "kafka-memory"
TITLE = "Memory of a writer over a million checkpoints"

_LIMIT_MB = 600.0


def run(bench: Bench) -> list[Row]:
    checkpoints, writes = bench.count(1_000_000, 2_000), bench.count(20_000, 200)
    topic = bench.kafka.topic("memory")
    with bench.folder() as folder:
        address = bench.kafka.store(topic, folder / "state")
        started = time.perf_counter()
        with closing(BareProducer(bench.kafka.servers, topic)) as producer:
            producer.write_all(events(bench.payloads, checkpoints=checkpoints, revisions=1))
        bench.say(f"wrote {checkpoints:,} events in {time.perf_counter() - started:.0f} s")
        reader = _child(address, checkpoints, 0)
        bench.say(f"a process caught up in {reader['seconds']:.0f} s, {reader['peak_mb']:.0f} MB")
        writer = _child(address, checkpoints, writes)
        bench.say(f"a process loaded and wrote {writes:,} scattered ones in {writer['seconds']:.0f} s, {writer['peak_mb']:.0f} MB")
    limit = Side("limit", (Sample(_LIMIT_MB),))
    over = f"peak memory over {checkpoints:,} checkpoints"
    return [
        Row(f"{NAME}-writer", f"{over}, writer", "MB", Side("writer", (Sample(writer["peak_mb"]),)), limit, Target("at most", 1.0)),
        Row(f"{NAME}-catch-up", f"{over}, while catching up", "MB", Side("reader", (Sample(reader["peak_mb"]),)), limit, None),
    ]


def _child(address: str, checkpoints: int, writes: int) -> dict[str, Any]:
    """A process of its own, so that nothing of this one counts."""
    command = [sys.executable, "-m", "benchmarks.kafka_memory_process", address, str(checkpoints), str(writes)]
    run = subprocess.run(command, cwd=Path(__file__).resolve().parents[1], stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(run.stdout)
    return found
