"""Kafka: many waiting callers of one process, against bare transactions of a thousand, and four partitions against one."""

from __future__ import annotations

import asyncio
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmarks.bench import Bench, Contestant, Stopwatch
from benchmarks.kafka_bare import EVENTS_A_TRANSACTION, BareProducer
from benchmarks.kafka_events import events
from benchmarks.row import Row, Sample, Target
from benchmarks.stores import ACTOR, async_callers
from eventlog import open_async_store

NAME = "kafka-callers"
TITLE = "Kafka compare-and-swap, many callers"

_MANY, _SOME = 1_000, 100
_BARE = f"bare transactions of {EVENTS_A_TRANSACTION}"


def run(bench: Bench) -> list[Row]:
    commits = bench.count(20_000, 1_000)
    with bench.folder() as folder:
        bare_topic = bench.kafka.topic("callers-bare")
        bench.kafka.store(bare_topic, folder / "bare")
        pairs = list(events(bench.payloads, checkpoints=EVENTS_A_TRANSACTION, revisions=1))
        with closing(BareProducer(bench.kafka.servers, bare_topic)) as bare:

            def others() -> Sample:
                watch = Stopwatch()
                watch.repeat(partial(bare.transaction, pairs), commits // EVENTS_A_TRANSACTION)
                sample = watch.per_second()
                return Sample(sample.value * EVENTS_A_TRANSACTION, sample.latency)

            bench.say(f"{_MANY} callers")
            many: dict[str, Contestant] = {f"{_MANY} async callers": partial(_ours, bench, folder, 1, _MANY, commits), _BARE: others}
            of_many = bench.interleave(many, warm_up=2)
        bench.say(f"{_SOME} callers")
        some: dict[str, Contestant] = {
            f"{count} partition{'s' * (count > 1)}": partial(_ours, bench, folder, count, _SOME, commits // 2) for count in (1, 4)
        }
        of_some = bench.interleave(some, warm_up=2)
    return [
        Row(
            f"{NAME}-{_MANY}",
            f"Kafka commit, {_MANY} waiting callers, 1 partition, 1 KB",
            "commits/s",
            of_many[f"{_MANY} async callers"],
            of_many[_BARE],
            Target("at least", 0.4),
        ),
        Row(
            f"{NAME}-4-partitions",
            f"Kafka commit, {_SOME} callers, 4 partitions in one process, 1 KB",
            "commits/s",
            of_some["4 partitions"],
            of_some["1 partition"],
            Target("at least", 0.7),
        ),
    ]


def _ours(bench: Bench, folder: Path, partitions: int, callers: int, commits: int) -> Sample:
    topic = bench.kafka.topic("callers")
    address = bench.kafka.store(topic, folder / topic, partitions=partitions)

    async def main() -> Sample:
        async with await open_async_store(address, actor=ACTOR) as store:
            return await async_callers(store, bench.payloads.of(1), callers=callers, commits=commits)

    return asyncio.run(main())
