"""One cluster for all tests of this folder, a topic for each, and a look at what each leaves behind."""

from __future__ import annotations

import gc
import logging
import os
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog import create_store
from tests.faults.cluster.cluster import Cluster
from tests.waiting import eventually

# kafka-python leaves the socket of a connection that was still being made when its client ended to the garbage collector.
UNFINISHED = r"ignore:unclosed <socket.*laddr=\('127\.0\.0\.1', \d+\), raddr=\('127\.0\.0\.1', \d+\)>:ResourceWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings(UNFINISHED))
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("cluster"))  # three brokers are started once, in one worker


@pytest.fixture(scope="session")
def cluster(run_folder: Path) -> Iterator[Cluster]:
    """Three brokers that answer. A test may do to them what it likes; `address` sees to it that the next one finds them well."""
    made = Cluster(run_folder)
    try:
        made.up()
        made.make_transaction_log()
        yield made
    finally:
        made.close()


@pytest.fixture
def topic_name(cluster: Cluster) -> Iterator[str]:
    """A topic of one partition, whose leader is not the coordinator of its transactions: they can be cut off one by one."""
    while True:
        name = f"orders-{uuid.uuid4().hex[:8]}"
        create_store(f"kafka://{cluster.servers}/{name}", partitions=1)
        if cluster.leader(name) != cluster.coordinator(f"{name}-writer-0"):
            break
    yield name
    cluster.heal(name)


@pytest.fixture
def address(cluster: Cluster, topic_name: str) -> str:
    return f"kafka://{cluster.servers}/{topic_name}"


@pytest.fixture(autouse=True)
def _the_client_is_quiet() -> Iterator[None]:
    """It logs each broken connection with its traceback, which keeps that connection's socket alive as long as pytest keeps the log."""
    logger = logging.getLogger("kafka")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    yield
    logger.setLevel(level)


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Neither a thread nor a socket, once faults are over and stores are closed."""
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster")  # what it needs is not this test's
    before, sockets = set(threading.enumerate()), _sockets()
    yield
    eventually(lambda: not (set(threading.enumerate()) - before))
    eventually(lambda: _sockets() <= sockets)


def _sockets() -> int:
    gc.collect()  # kafka-python leaves the socket of a refused connection to it
    links = (os.readlink(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{each}"))
    return sum(each.startswith("socket:") for each in links)
