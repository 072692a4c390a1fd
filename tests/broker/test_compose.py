"""docker-compose.yml, held to what it says without a container engine: the image's own code merges its settings, processes run them."""

from __future__ import annotations

import os
import re
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaTimeoutError

from eventlog.kafka.local import SINGLE_NODE, LocalBroker, free_port, shared_settings
from eventlog.kafka.local_jars import jars, java, kafka_version
from eventlog.kafka.topic import TopicSpec

COMPOSE = Path(__file__).resolve().parents[2] / "compose"
BROKERS = ("kafka-1", "kafka-2", "kafka-3")
# What may differ from one broker to the next. Everything else comes from server.properties.
OWN_SETTINGS = {"node.id", "listeners", "advertised.listeners", "controller.quorum.voters", "log.dirs"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((COMPOSE / "docker-compose.yml").read_text())
    return loaded


def environment_settings(service: Mapping[str, Any]) -> dict[str, str]:
    """The broker settings that a service's environment stands for, by the image's naming rule."""
    names = {name: value for name, value in service["environment"].items() if name.startswith("KAFKA_")}
    return {name.removeprefix("KAFKA_").lower().replace("_", "."): str(value) for name, value in names.items()}


def addresses(listeners: str) -> dict[str, tuple[str, int]]:
    found = re.findall(r"(\w+)://([^:,]*):(\d+)", listeners)
    return {name: (host, int(port)) for name, host, port in found}


def topic_arguments(compose: Mapping[str, Any]) -> dict[str, list[str]]:
    arguments: dict[str, list[str]] = {}
    for argument in compose["services"]["topic"]["command"]:
        name, _, value = argument.removeprefix("--").partition("=")
        arguments.setdefault(name, []).append(value)
    return arguments


def topic_settings(compose: Mapping[str, Any]) -> dict[str, str]:
    return dict(setting.split("=", 1) for setting in topic_arguments(compose)["config"])


# -- the file --------------------------------------------------------------------------------------------------


def test_every_brokers_image_is_the_version_that_the_local_broker_runs(compose: dict[str, Any]) -> None:
    assert {compose["services"][name]["image"] for name in (*BROKERS, "topic")} == {f"apache/kafka:{kafka_version()}"}


@pytest.mark.parametrize("name", BROKERS)
def test_a_broker_takes_everything_but_its_own_from_the_one_file(compose: dict[str, Any], name: str) -> None:
    service = compose["services"][name]
    assert environment_settings(service).keys() == OWN_SETTINGS
    mounts = [volume.split(":") for volume in service["volumes"]]
    assert ["./broker/server.properties", "/mnt/shared/config/server.properties", "ro"] in mounts
    assert (COMPOSE / "broker" / "server.properties").is_file()
    assert [name, environment_settings(service)["log.dirs"]] in mounts
    assert name in compose["volumes"]
    assert service["healthcheck"]["test"]


def test_the_brokers_form_one_quorum_with_no_address_twice(compose: dict[str, Any]) -> None:
    services = [compose["services"][name] for name in BROKERS]
    settings = [environment_settings(service) for service in services]

    assert len({service["environment"]["CLUSTER_ID"] for service in services}) == 1
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", services[0]["environment"]["CLUSTER_ID"])
    assert [own["node.id"] for own in settings] == ["1", "2", "3"]
    voters = ",".join(f"{n}@{name}:9093" for n, name in enumerate(BROKERS, 1))
    assert {own["controller.quorum.voters"] for own in settings} == {voters}

    published = [port for service in services for port in service["ports"]]
    assert len(set(published)) == len(BROKERS)
    for name, service, own in zip(BROKERS, services, settings, strict=True):
        listening, advertised = addresses(own["listeners"]), addresses(own["advertised.listeners"])
        assert listening.keys() == {"PLAINTEXT", "CONTROLLER", "HOST"}
        assert len({port for _, port in listening.values()}) == 3
        assert advertised["PLAINTEXT"] == (name, listening["PLAINTEXT"][1])
        host, port = advertised["HOST"]
        assert port == listening["HOST"][1]
        assert service["ports"] == [f"{host}:{port}:{port}"]
        assert host == "127.0.0.1", "the brokers know no passwords: this machine only"
        assert service["hostname"] == name


def test_the_topic_is_made_when_all_brokers_are_healthy(compose: dict[str, Any]) -> None:
    topic = compose["services"]["topic"]
    assert topic["depends_on"] == {name: {"condition": "service_healthy"} for name in BROKERS}
    assert topic["restart"] == "no"
    arguments = topic_arguments(compose)
    assert arguments["topic"] == ["checkpoints"]
    assert arguments["replication-factor"] == [shared_settings()["default.replication.factor"]]


def test_the_topic_agrees_with_the_brokers_file(compose: dict[str, Any]) -> None:
    topic, broker = topic_settings(compose), shared_settings()
    assert topic["max.message.bytes"] == broker["message.max.bytes"]
    assert int(broker["replica.fetch.max.bytes"]) >= int(topic["max.message.bytes"])
    assert topic["min.insync.replicas"] == broker["min.insync.replicas"]
    assert topic["message.timestamp.type"] == broker["log.message.timestamp.type"]
    assert topic["unclean.leader.election.enable"] == broker["unclean.leader.election.enable"]
    assert int(topic["min.compaction.lag.ms"]) < int(topic["max.compaction.lag.ms"])
    assert int(topic["delete.retention.ms"]) >= int(broker["producer.id.expiration.ms"])


def test_the_topic_of_compose_has_the_settings_that_the_code_demands(compose: dict[str, Any]) -> None:
    assert topic_arguments(compose)["partitions"] == ["4"]
    assert topic_settings(compose) == TopicSpec().settings(replication=3)


# -- the image's code on these files ---------------------------------------------------------------------------


@pytest.mark.broker
def test_the_image_adds_a_brokers_own_settings_to_the_file(compose: dict[str, Any], tmp_path: Path) -> None:
    """Runs what the image runs at its start: it merges the mounted file with the environment, and formats the data directory."""
    service = compose["services"]["kafka-2"]
    environment = {name: str(value) for name, value in service["environment"].items()}
    for folder in ("default", "final"):
        (tmp_path / folder).mkdir()
    folders = {"default": tmp_path / "default", "mounted": COMPOSE / "broker", "final": tmp_path / "final"}
    arguments = [argument for name, folder in folders.items() for argument in (f"--{name}-configs-dir", str(folder))]
    run = subprocess.run(
        [java(), "-cp", f"{jars()}/*", "kafka.docker.KafkaDockerWrapper", "setup", *arguments],
        env={"PATH": os.environ["PATH"], **environment, "KAFKA_LOG_DIRS": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    final = (tmp_path / "final" / "server.properties").read_text().splitlines()
    merged = dict(line.split("=", 1) for line in final if line and not line.startswith("#"))
    assert merged == {**shared_settings(), **environment_settings(service), "log.dirs": str(tmp_path / "data")}
    assert (tmp_path / "data" / "meta.properties").is_file()


@pytest.fixture
def three_brokers(compose: dict[str, Any], run_folder: Path) -> Iterator[list[LocalBroker]]:
    """The brokers of the file as processes: addresses and folders are of this machine, all else is the file's."""
    ports = [(free_port(), free_port()) for _ in BROKERS]
    environment = compose["services"]["kafka-1"]["environment"]
    common = {name: shared_settings()[name] for name in SINGLE_NODE if name in shared_settings()}
    common |= {"broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "2000"}  # Kafka's own, as in the containers
    common["controller.quorum.voters"] = ",".join(f"{n}@127.0.0.1:{controller}" for n, (_, controller) in enumerate(ports, 1))
    run = uuid.uuid4().hex[:12]
    brokers = [
        LocalBroker(
            directory=run_folder / f"compose-{run}-{n}",
            port=port,
            cluster_id=environment["CLUSTER_ID"],
            fast_start=True,
            heap="256m",
            config={**common, "node.id": str(n), "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}"},
        )
        for n, (port, controller) in enumerate(ports, 1)
    ]
    # None answers before two are there.
    with ThreadPoolExecutor(len(brokers)) as pool:
        try:
            list(pool.map(LocalBroker.up, brokers))
            yield brokers
        finally:
            list(pool.map(LocalBroker.kill, brokers))


def transactional_producer(bootstrap: list[str]) -> KafkaProducer:
    """One that is ready. The client loses its first request when the coordinator is the broker that just died, so another one is tried."""
    deadline = time.monotonic() + 120
    while True:
        producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", transactional_id=f"writer-{uuid.uuid4()}", max_block_ms=5000)
        try:
            producer.init_transactions()
        except KafkaTimeoutError:
            producer.close(timeout=1)
            if time.monotonic() > deadline:
                raise
        else:
            return producer


@pytest.mark.broker
def test_the_three_brokers_acknowledge_on_two_copies_and_go_on_without_one(
    compose: dict[str, Any], three_brokers: list[LocalBroker]
) -> None:
    everyone = [broker.bootstrap for broker in three_brokers]
    admin = KafkaAdminClient(bootstrap_servers=everyone)
    try:
        made = {"num_partitions": 4, "replication_factor": 3, "configs": topic_settings(compose)}
        admin.create_topics({"checkpoints": made})
        deadline = time.monotonic() + 60
        # Any broker may be asked, and one that has not heard of the topic yet says so.
        while len(partitions := [entry for topic in admin.describe_topics(["checkpoints"]) for entry in topic["partitions"]]) < 4:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        admin.close()
    partition = next(entry for entry in partitions if entry["partition_index"] == 0)
    assert len(partition["replica_nodes"]) == 3

    def commit(value: bytes) -> None:
        producer = transactional_producer(everyone)
        try:
            producer.begin_transaction()
            producer.send("checkpoints", key=b"key", value=value, partition=0).get(timeout=60)
            producer.commit_transaction()
        finally:
            producer.close(timeout=10)

    commit(b"three copies")
    three_brokers[partition["leader_id"] - 1].kill()
    commit(b"two copies")

    consumer = KafkaConsumer(
        bootstrap_servers=everyone, group_id=None, auto_offset_reset="earliest", enable_auto_commit=False, isolation_level="read_committed"
    )
    try:
        consumer.assign([TopicPartition("checkpoints", 0)])
        seen: list[bytes] = []
        deadline = time.monotonic() + 60
        while len(seen) < 2 and time.monotonic() < deadline:
            seen += [record.value for records in consumer.poll(timeout_ms=500).values() for record in records]
    finally:
        consumer.close()
    assert seen == [b"three copies", b"two copies"]
