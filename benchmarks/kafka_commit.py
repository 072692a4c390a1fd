"""Kafka: one caller commits revision after revision, against a bare transaction of the same bytes."""

from __future__ import annotations

from contextlib import closing
from itertools import cycle

from benchmarks.bench import Bench, Caller, Stopwatch, standing
from benchmarks.kafka_bare import BareProducer
from benchmarks.kafka_events import events
from benchmarks.row import Row, Target
from benchmarks.stores import ACTOR, successor_committer
from eventlog import open_store

NAME = "kafka-commit"
TITLE = "Kafka compare-and-swap, one caller"

_OURS, _BARE = "compare_and_swap", "bare transaction"
_COMMITS = 500
_WARM_UP_ROUNDS = 4  # of both: a cold JVM takes 13 ms where a warm one takes 2.3 (facts)


def run(bench: Bench) -> list[Row]:
    commits = bench.count(_COMMITS, 20)
    topic, bare_topic = bench.kafka.topic("commit"), bench.kafka.topic("commit-bare")
    pairs = cycle(events(bench.payloads, checkpoints=1, revisions=100))
    with bench.folder() as folder:
        address = bench.kafka.store(topic, folder / "ours")
        bench.kafka.store(bare_topic, folder / "bare")
        with open_store(address, actor=ACTOR) as store, closing(BareProducer(bench.kafka.servers, bare_topic)) as bare:
            callers: dict[str, Caller] = {
                _OURS: standing(successor_committer(store, bench.payloads.of(1))),
                _BARE: standing(lambda: bare.transaction([next(pairs)])),
            }
            sides = bench.interleave_calls(callers, commits, measure=Stopwatch.p50, warm_up=_WARM_UP_ROUNDS)
    return [Row(NAME, "Kafka commit, one caller, 1 KB, p50", "ms", sides[_OURS], sides[_BARE], Target("at most", 1.6))]
