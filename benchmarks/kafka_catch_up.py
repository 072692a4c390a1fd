"""Kafka: a store with an empty state directory reads a topic into its projection, against a consumer that only reads."""

from __future__ import annotations

import time
from contextlib import closing

from benchmarks.bench import Bench
from benchmarks.kafka_bare import BareProducer, read_all
from benchmarks.kafka_events import events
from benchmarks.row import Row, Sample, Target
from benchmarks.stores import ACTOR, wait_until_current
from eventlog import open_store

NAME = "kafka-catch-up"
TITLE = "Kafka catch-up of the projection"

_REVISIONS = 4


def run(bench: Bench) -> list[Row]:
    checkpoints = bench.count(30_000, 500)
    topic = bench.kafka.topic("catch-up")
    with bench.folder() as folder:
        bench.kafka.store(topic, folder / "first")
        bench.say(f"writing {checkpoints * _REVISIONS} events")
        with closing(BareProducer(bench.kafka.servers, topic)) as producer:
            written = producer.write_all(events(bench.payloads, checkpoints=checkpoints, revisions=_REVISIONS))

        def ours() -> Sample:
            with bench.folder() as state:
                started = time.perf_counter()
                with open_store(bench.kafka.address(topic, state), actor=ACTOR) as store:
                    wait_until_current(store)
                    return Sample(written / (time.perf_counter() - started))

        def others() -> Sample:
            started = time.perf_counter()
            read_all(bench.kafka.servers, topic, written)
            return Sample(written / (time.perf_counter() - started))

        sides = bench.interleave({"projection": ours, "bare consumer": others})
    what = f"catch-up of the projection over {written} events, 1 KB"
    return [Row(NAME, what, "events/s", sides["projection"], sides["bare consumer"], Target("at least", 0.2, 0.35))]
