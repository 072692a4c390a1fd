"""Kafka when something went wrong: a partition taken over, an unclear outcome settled, the first commit after the broker's return."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench, Stopwatch
from benchmarks.kafka_bare import BareProducer
from benchmarks.row import NotMeasured, Row, Sample, Side, Target
from benchmarks.stores import ACTOR, KIND, successor_committer
from eventlog import (
    Checkpoint,
    CheckpointError,
    CheckpointId,
    CheckpointStore,
    OutcomeUnknown,
    RunId,
    Unavailable,
    create_store,
    open_store,
)
from eventlog.kafka.local import LocalBroker, missing_tools

NAME = "kafka-trouble"
TITLE = "Kafka: take-over, unclear outcomes, the broker's return"

_TAKEOVERS = 20
_UNCLEAR = 50
_RETURNS = 5
_RETURN_LIMIT = 3.0  # seconds
_HURRY = 0.0005  # seconds: nobody is answered within this


def run(bench: Bench) -> list[Row]:
    state = bench.payloads.of(1)
    with bench.folder() as folder:
        bench.say("take-over")
        sides = bench.interleave(
            {"take-over": partial(_take_over, bench, folder, state), "init_transactions alone": partial(_bare, bench, folder)}
        )
        bench.say("unclear outcomes")
        settled = bench.interleave({"resolve": partial(_settle, bench, folder, state)})["resolve"]
        bench.say("the broker's return")
        back = Side("first commit", tuple(_return(folder / f"own-{number}", state) for number in range(bench.count(_RETURNS, 1))))
    what = "Kafka take-over of a partition from an idle owner, first commit included, p50"
    return [
        Row(f"{NAME}-takeover", what, "ms", sides["take-over"], sides["init_transactions alone"]),
        Row(f"{NAME}-settle", "Kafka unclear outcome settled by resolve, p50", "ms", settled, Side("no peer can tell")),
        Row(
            f"{NAME}-return",
            "Kafka, from the broker's answer after kill -9 to the next commit",
            "s",
            back,
            Side("limit", tuple(Sample(_RETURN_LIMIT) for _ in back.samples)),
            Target("at most", 1.0),
        ),
    ]


def _take_over(bench: Bench, folder: Path, state: dict[str, Any]) -> Sample:
    """Each store takes the partition from the one before, which lives on."""
    topic = bench.kafka.topic("takeover")
    bench.kafka.store(topic, folder / topic / "0")
    watch = Stopwatch()
    with ExitStack() as stack:
        for number in range(bench.count(_TAKEOVERS, 2)):
            store = stack.enter_context(open_store(bench.kafka.address(topic, folder / topic / str(number)), actor=ACTOR))
            store.position()
            first = Checkpoint.initial(CheckpointId.new(), RunId.new(), KIND, 1, state)
            started = time.perf_counter()
            store.compare_and_swap(first, None)
            watch.lap(started)
    return watch.p50()


def _bare(bench: Bench, folder: Path) -> Sample:
    del folder
    watch = Stopwatch()
    topic = bench.kafka.topic("takeover-bare")
    with ExitStack() as stack:
        for _ in range(bench.count(_TAKEOVERS, 2)):
            started = time.perf_counter()
            producer = BareProducer(bench.kafka.servers, topic)
            watch.lap(started)
            stack.callback(producer.close)
    return watch.p50()


def _settle(bench: Bench, folder: Path, state: dict[str, Any]) -> Sample:
    """Writes that nobody waits for, each asked about at once."""
    topic = bench.kafka.topic("settle")
    address = bench.kafka.store(topic, folder / topic)
    watch = Stopwatch()
    wanted = bench.count(_UNCLEAR, 3)
    with open_store(address, actor=ACTOR) as store:
        successor_committer(store, state)()
        unclear = 0
        for _ in range(20 * wanted):
            unclear += _unclear(store, state, watch)
            if unclear == wanted:
                return watch.p50()
    raise NotMeasured(f"only {unclear} of {wanted} writes had an unclear outcome")


def _unclear(store: CheckpointStore, state: dict[str, Any], watch: Stopwatch) -> bool:
    checkpoint = Checkpoint.initial(CheckpointId.new(), RunId.new(), KIND, 1, state)
    try:
        store.compare_and_swap(checkpoint, None, timeout=_HURRY)
    except OutcomeUnknown:
        started = time.perf_counter()
        store.resolve(checkpoint)
        watch.lap(started)
        return True
    except Unavailable:  # not even sent within that time: nothing is unclear
        return False
    return False


def _return(directory: Path, state: dict[str, Any]) -> Sample:
    """A caller that never gives up, over a kill."""
    missing = missing_tools()
    if missing:
        raise NotMeasured(f"{' and '.join(missing)} not found")
    broker = LocalBroker(directory=directory / "broker")
    try:
        broker.up()
        address = f"kafka://{broker.bootstrap}/return?state={directory / 'state'}"
        create_store(address, partitions=1)
        with open_store(address, actor=ACTOR, timeout=5) as store:
            commit = successor_committer(store, state)
            commit()
            broker.kill()
            committed: list[float] = []
            writer = threading.Thread(target=_until_committed, args=(store, state, committed))
            writer.start()
            broker.up()
            back = time.perf_counter()
            writer.join()
            return Sample(max(0.0, committed[0] - back))
    finally:
        broker.kill()


def _until_committed(store: CheckpointStore, state: dict[str, Any], committed: list[float]) -> None:
    while not committed:
        try:
            store.compare_and_swap(Checkpoint.initial(CheckpointId.new(), RunId.new(), KIND, 1, state), None)
        except CheckpointError:
            continue
        committed.append(time.perf_counter())
