"""A broker on which everything is short: what Kafka does after a day or a week, it does here within seconds.

The cleaner never rests, idle producers are forgotten after 2 s and idle transactional ids after 4, so that every test of this folder runs
under all of that. One broker serves all of them, and all of pytest-xdist's workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eventlog import CheckpointStore, create_store, open_store
from eventlog.kafka.local import LocalBroker
from tests.faults.topic.topics import Topic

PRODUCER_SECONDS = 2.0
TRANSACTIONAL_ID_SECONDS = 4.0
SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.initial.task.delay.ms": "100",
    "producer.id.expiration.ms": str(int(PRODUCER_SECONDS * 1000)),
    "producer.id.expiration.check.interval.ms": "200",
    "transactional.id.expiration.ms": str(int(TRANSACTIONAL_ID_SECONDS * 1000)),
    "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}

OpenTopic = Callable[..., CheckpointStore]


@pytest.fixture(scope="session")
def restless(run_folder: Path) -> LocalBroker:
    """The broker. Shared: name your own topics, do not stop it; the run's watchdog does."""
    shared = LocalBroker(directory=run_folder / "restless", fast_start=True, config=SETTINGS)
    shared.up()
    return shared


@pytest.fixture
def made(restless: LocalBroker, topic: str) -> Topic:
    """A new topic with a hold of one second and two partitions, properly made."""
    new = Topic(broker=restless, name=topic, partitions=2, hold_ms=1_000)
    create_store(new.address, partitions=new.partitions)
    return new


@pytest.fixture
def opening(made: Topic, tmp_path: Path) -> Iterator[OpenTopic]:
    """Opens the topic once more, with a projection of its own unless `state` names one."""
    stores: list[CheckpointStore] = []

    def open_once_more(state: str | None = None, **arguments: float) -> CheckpointStore:
        directory = tmp_path / (state or f"state-{len(stores)}")
        stores.append(open_store(f"{made.address}&state={directory}", **arguments))  # type: ignore[arg-type]
        return stores[-1]

    yield open_once_more
    for store in stores:
        store.close()
