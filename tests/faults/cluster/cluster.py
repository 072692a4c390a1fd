"""Three brokers without Docker, set up as compose/docker-compose.yml has them, each behind a proxy of its own.

Every process is broker and controller at once. Clients see the proxies alone (the listener HOST, advertised at the proxy's port); brokers
talk to one another past them, and so do the questions that a cluster asks about itself.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource
from kafka.errors import KafkaError

from eventlog.address import KafkaAddress
from eventlog.errors import Unavailable
from eventlog.kafka.client import admin, discard, producer
from eventlog.kafka.local import SINGLE_NODE, LocalBroker, free_port, shared_settings
from eventlog.kafka.local_settings import new_cluster_id
from tests.faults.cluster.proxy import HOST, KafkaProxy, ProxyLoop
from tests.waiting import eventually

T = TypeVar("T")

NODES = (1, 2, 3)
_IN_SYNC_SECONDS = 60.0
# A killed broker is missed after this long. Kafka's default is 9 s; less than 2 s takes a busy machine for a dead broker.
_SESSION_MS = "2000"
_TRANSACTION_LOG = "__transaction_state"


class Cluster:
    """Brokers 1 to 3, and their proxies, both by node id. Made in one folder, directly under the run's (see the tests' watchdog)."""

    def __init__(self, run_folder: Path) -> None:
        name = f"cluster-{uuid.uuid4().hex[:8]}"
        cluster_id = new_cluster_id()
        ports = _different_ports(4 * len(NODES))
        inner, controller, outer, front = (dict(zip(NODES, ports[start::4], strict=True)) for start in range(4))
        self._loop = ProxyLoop()
        self.proxies = {node: KafkaProxy(self._loop, outer[node], front[node]) for node in NODES}
        self.brokers: dict[int, LocalBroker] = {}
        for node in NODES:
            settings = {
                **{name: value for name, value in shared_settings().items() if name in SINGLE_NODE},
                "node.id": str(node),
                "listeners": f"PLAINTEXT://{HOST}:{inner[node]},CONTROLLER://{HOST}:{controller[node]},HOST://{HOST}:{outer[node]}",
                "advertised.listeners": f"PLAINTEXT://{HOST}:{inner[node]},HOST://{HOST}:{front[node]}",
                "controller.quorum.voters": ",".join(f"{each}@{HOST}:{controller[each]}" for each in NODES),
                "broker.session.timeout.ms": _SESSION_MS,
                "broker.heartbeat.interval.ms": "400",
                "auto.leader.rebalance.enable": "false",  # a test says who leads; a rebalance every five minutes would say otherwise
            }
            self.brokers[node] = LocalBroker(
                directory=run_folder / f"{name}-{node}",
                port=inner[node],
                config=settings,
                heap="256m",
                fast_start=True,
                cluster_id=cluster_id,
            )

    @property
    def servers(self) -> str:
        """What clients are given: every proxy."""
        return ",".join(f"{HOST}:{proxy.port}" for proxy in self.proxies.values())

    def up(self) -> None:
        """Starts what does not run. All at once: none answers before two of three are there."""
        with ThreadPoolExecutor(len(NODES)) as pool:
            list(pool.map(lambda broker: broker.up(timeout=120), self.brokers.values()))

    def make_transaction_log(self) -> None:
        """Kafka makes it for the first one who asks for a transaction."""
        first = producer(KafkaAddress(self._running(), topic=""), transactional_id="first", max_event_bytes=1)
        try:
            first.init_transactions()
        finally:
            discard(first)

    def close(self) -> None:
        """Ends every process and every thread."""
        for broker in self.brokers.values():
            broker.kill()
        for proxy in self.proxies.values():
            proxy.close()
        self._loop.close()

    def heal(self, *topics: str) -> None:
        """Ends every fault, and returns when every broker is back with every copy of these topics and of the transaction log."""
        for proxy in self.proxies.values():
            proxy.restore()
        for broker in self.brokers.values():
            if broker.status().running:
                broker.resume()
        if len(self._running()) < len(NODES):
            self.up()
        for topic in (*topics, _TRANSACTION_LOG):
            eventually(lambda topic=topic: self._is_whole(topic), seconds=_IN_SYNC_SECONDS)  # type: ignore[misc]

    # -- who is who -----------------------------------------------------------------------------------------------

    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads a partition; -1 while there is none."""
        return int(self._partition(topic, partition)["leader_id"])

    def followers(self, topic: str, partition: int = 0) -> list[int]:
        """The nodes that have a copy and do not lead."""
        there = self._partition(topic, partition)
        return [int(node) for node in there["replica_nodes"] if node != there["leader_id"]]

    def in_sync(self, topic: str, partition: int = 0) -> list[int]:
        """The nodes whose copy counts."""
        return [int(node) for node in self._partition(topic, partition)["isr_nodes"]]

    def coordinator(self, transactional_id: str) -> int:
        """The node that coordinates the transactions of an id: the leader of its partition of the transaction log."""
        partitions = self._ask(lambda client: client.describe_topics([_TRANSACTION_LOG]))[0]["partitions"]
        number = _java_hash(transactional_id) % len(partitions)
        return int(next(each["leader_id"] for each in partitions if each["partition_index"] == number))

    def controller(self) -> int:
        """The node whose controller is the active one."""
        told = self._ask(lambda client: client.describe_metadata_quorum())
        return int(told["topics"][0]["partitions"][0]["leader_id"])

    def set_topic(self, topic: str, **settings: str) -> None:
        """Changes a topic's settings; underscores stand for dots."""
        wanted = {name.replace("_", "."): value for name, value in settings.items()}
        self._ask(lambda client: client.alter_configs([ConfigResource("TOPIC", topic, configs=wanted)]))

    def _partition(self, topic: str, partition: int) -> dict[str, Any]:
        partitions = self._ask(lambda client: client.describe_topics([topic]))[0]["partitions"]
        return next(each for each in partitions if each["partition_index"] == partition)

    def _is_whole(self, topic: str) -> bool:
        described = self._ask(lambda client: client.describe_topics([topic]))[0]
        return all(len(each["isr_nodes"]) == len(NODES) and each["leader_id"] > 0 for each in described["partitions"])

    def _ask(self, question: Callable[[KafkaAdminClient], T]) -> T:
        """Asks whichever broker runs; one that is about to die makes it ask again."""
        answers: list[T] = []

        def answered() -> bool:
            with contextlib.suppress(KafkaError, Unavailable), self._admin() as client:
                answers.append(question(client))
            return bool(answers)

        eventually(answered)
        return answers[0]

    def _running(self) -> tuple[str, ...]:
        return tuple(broker.bootstrap for broker in self.brokers.values() if broker.status().running)

    @contextlib.contextmanager
    def _admin(self) -> Iterator[KafkaAdminClient]:
        client = admin(KafkaAddress(self._running(), topic=""), bootstrap_timeout_ms=4_000, request_timeout_ms=4_000)
        try:
            yield client
        finally:
            client.close()


def _different_ports(count: int) -> list[int]:
    ports: list[int] = []
    while len(ports) < count:
        port = free_port()
        if port not in ports:
            ports.append(port)
    return ports


def _java_hash(text: str) -> int:
    """The magnitude of `String.hashCode`, as Kafka takes it for a transactional id."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return min(value, 2**32 - value) % 2**31  # of the lowest number: 0
