"""The broker without Docker: what it promises to whoever starts, breaks and stops it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource

from eventlog.errors import CheckpointError, ConfigurationError, Unavailable
from eventlog.kafka.local import SINGLE_NODE, BrokerFailed, BrokerToolsMissing, LocalBroker, free_port, shared_settings
from eventlog.kafka.local_jars import jars, kafka_version, missing_tools
from eventlog.kafka.local_process import ProcessIdentity

REPOSITORY = Path(__file__).resolve().parents[2]
OwnBroker = Callable[..., LocalBroker]


def identity(broker: LocalBroker) -> ProcessIdentity:
    pid = broker.status().pid
    assert pid is not None
    found = ProcessIdentity.of(pid)
    assert found is not None
    return found


def make_topic(bootstrap: str, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}})
    finally:
        admin.close()


def send(bootstrap: str, topic: str, *values: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all")
    try:
        for value in values:
            producer.send(topic, value).get(timeout=30)
    finally:
        producer.close()


def read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest", enable_auto_commit=False)
    try:
        consumer.assign([TopicPartition(topic, 0)])
        seen: list[bytes] = []
        deadline = time.monotonic() + 30
        while len(seen) < count and time.monotonic() < deadline:
            for records in consumer.poll(timeout_ms=500).values():
                seen += [record.value for record in records]
        return seen
    finally:
        consumer.close()


@pytest.fixture(scope="module")
def standing(run_folder: Path) -> Iterator[LocalBroker]:
    """A running broker for the tests that leave it as it is."""
    with LocalBroker(directory=run_folder / f"standing-{uuid.uuid4().hex[:12]}", config={"num.io.threads": "2"}, fast_start=True) as broker:
        yield broker


# -- its life --------------------------------------------------------------------------------------------------


def test_a_started_broker_answers_and_a_stopped_one_leaves_no_process(own_broker: OwnBroker, tmp_path: Path) -> None:
    broker = own_broker(start=False, directory=tmp_path / "a folder")
    assert broker.status().running is False
    assert not broker.directory.exists(), "neither a constructor nor status() touches the disk"

    up = broker.up()

    assert (up.running, up.version, up.bootstrap) == (True, kafka_version(), f"127.0.0.1:{up.port}")
    assert up.since is not None
    process = identity(broker)
    admin = KafkaAdminClient(bootstrap_servers=up.bootstrap)
    assert [node["port"] for node in admin.describe_cluster()["brokers"]] == [up.port]
    admin.close()

    broker.down()

    assert not process.is_alive()
    down = broker.status()
    assert (down.running, down.pid, down.since, down.port) == (False, None, None, up.port)
    broker.down()  # nothing to do is no error


@pytest.mark.broker
def test_a_second_up_finds_the_running_broker(standing: LocalBroker) -> None:
    again = LocalBroker(directory=standing.directory, config={"num.io.threads": "2"})
    assert again.up() == standing.status()


def test_callers_that_start_one_broker_at_once_get_one_broker(own_broker: OwnBroker) -> None:
    broker = own_broker(start=False)
    pids: list[int | None] = []
    callers = [threading.Thread(target=lambda: pids.append(LocalBroker(directory=broker.directory).up().pid)) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(pids) == 3
    assert set(pids) == {broker.status().pid}


@pytest.mark.broker
def test_a_running_broker_is_not_taken_for_one_with_other_settings(standing: LocalBroker) -> None:
    with pytest.raises(ConfigurationError, match="other settings"):
        LocalBroker(directory=standing.directory).up()
    with pytest.raises(ConfigurationError, match="other settings"):
        LocalBroker(directory=standing.directory, config={"num.io.threads": "2"}, port=free_port()).up()
    assert standing.status().running


def test_a_killed_broker_comes_back_on_its_port_with_its_data(own_broker: OwnBroker, topic: str) -> None:
    broker = own_broker()
    before = broker.status()
    assert before.bootstrap is not None
    make_topic(before.bootstrap, topic)
    send(before.bootstrap, topic, b"acknowledged", b"too")
    process = identity(broker)

    broker.kill()
    assert not process.is_alive()
    assert broker.bootstrap == before.bootstrap
    after = broker.up()

    assert after.bootstrap == before.bootstrap
    assert after.pid != before.pid
    assert read(after.bootstrap, topic, 2) == [b"acknowledged", b"too"]


def test_a_restarted_broker_has_its_data(own_broker: OwnBroker, topic: str) -> None:
    broker = own_broker()
    make_topic(broker.bootstrap, topic)
    send(broker.bootstrap, topic, b"kept")
    assert broker.restart().running
    assert read(broker.bootstrap, topic, 1) == [b"kept"]


def test_a_paused_broker_is_silent_until_it_is_resumed_and_can_be_stopped(own_broker: OwnBroker, topic: str) -> None:
    broker = own_broker()
    make_topic(broker.bootstrap, topic)
    broker.pause()
    assert broker.status().running
    sent = threading.Event()

    def write() -> None:
        send(broker.bootstrap, topic, b"late")
        sent.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert not sent.wait(1.0)
    broker.resume()
    assert sent.wait(30)
    writer.join()

    broker.pause()
    process = identity(broker)
    began = time.monotonic()
    broker.down()
    assert not process.is_alive()
    assert time.monotonic() - began < 10, "a paused broker is woken to stop, not waited for"


def test_pausing_a_broker_that_is_down_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BrokerFailed, match="no broker runs here"):
        LocalBroker(directory=tmp_path).pause()


@pytest.mark.broker
def test_only_this_machine_reaches_the_broker(standing: LocalBroker) -> None:
    port = standing.status().port
    assert port is not None
    with pytest.raises(ConnectionRefusedError):  # another address of this machine
        socket.create_connection(("127.0.0.2", port), timeout=5)


# -- what must never be hit ------------------------------------------------------------------------------------


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def test_a_process_that_got_the_brokers_id_is_not_touched(tmp_path: Path, bystander: subprocess.Popen[bytes]) -> None:
    real = ProcessIdentity.of(bystander.pid)
    assert real is not None
    state = {"port": 20_001, "controller_port": 20_002, "version": kafka_version(), "since": "2026-01-01T00:00:00+00:00"}
    (tmp_path / "broker.json").write_text(json.dumps({**state, "pid": bystander.pid, "started": "another boot:1"}))
    broker = LocalBroker(directory=tmp_path)

    assert broker.status().running is False
    broker.kill()
    broker.down()
    with pytest.raises(BrokerFailed):
        broker.pause()

    assert real.is_alive()
    assert bystander.poll() is None


def test_a_process_is_told_from_the_next_one_with_its_id(bystander: subprocess.Popen[bytes]) -> None:
    real = ProcessIdentity.of(bystander.pid)
    assert real is not None
    assert real.is_alive()
    stranger = ProcessIdentity(bystander.pid, real.started + "0")
    assert not stranger.is_alive()
    assert not stranger.send(signal.SIGKILL)
    assert real.send(signal.SIGKILL)
    assert real.wait(10)
    assert not real.send(signal.SIGKILL)
    assert ProcessIdentity.of(2**22 + 1) is None


# -- what goes wrong at the start ------------------------------------------------------------------------------


def test_a_broker_that_cannot_start_says_why_and_leaves_no_process(own_broker: OwnBroker) -> None:
    broker = own_broker(start=False, config={"log.segment.bytes": "none"})
    with pytest.raises(BrokerFailed, match=r"log\.segment\.bytes") as failure:
        broker.up()
    assert str(broker.directory) in failure.value.hint
    assert broker.status().running is False


def test_a_port_in_use_is_named(own_broker: OwnBroker) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        broker = own_broker(start=False, port=taken.getsockname()[1])
        with pytest.raises(BrokerFailed, match="Address already in use"):
            broker.up()
    assert broker.status().running is False


def test_a_broker_that_lost_its_port_while_down_takes_another(own_broker: OwnBroker) -> None:
    broker = own_broker()
    before = broker.status().port
    broker.down()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", before))
        taken.listen()
        after = broker.up()
    assert after.running
    assert after.port != before


def test_a_format_that_was_killed_is_done_again(own_broker: OwnBroker) -> None:
    broker = own_broker(start=False)
    (broker.directory / "data.incomplete").mkdir(parents=True)
    (broker.directory / "data.incomplete" / "bootstrap.checkpoint").write_bytes(b"half")
    assert broker.up().running


def test_a_path_that_kafka_would_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="comma"):
        LocalBroker(directory=tmp_path / "a,b").up()


# -- its settings ----------------------------------------------------------------------------------------------


@pytest.mark.broker
def test_the_local_broker_differs_from_the_one_file_only_where_one_node_must(standing: LocalBroker) -> None:
    written = (standing.directory / "server.properties").read_text().splitlines()
    effective = dict(line.split("=", 1) for line in written if not line.startswith("#"))

    different = {name for name, value in effective.items() if shared_settings().get(name) != value}

    own = {"node.id", "listeners", "controller.quorum.voters", "log.dirs"}
    assert different == own | SINGLE_NODE.keys() | {"num.io.threads"}
    assert shared_settings().keys() <= effective.keys()


@pytest.mark.broker
def test_the_broker_knows_every_setting_of_the_file_and_runs_with_it(standing: LocalBroker) -> None:
    admin = KafkaAdminClient(bootstrap_servers=standing.bootstrap)
    try:
        answer = admin.describe_configs([ConfigResource("BROKER", "1")], config_filter="all")
    finally:
        admin.close()
    running = {name: found["value"] for name, found in answer["broker"]["1"].items()}
    wanted = {**shared_settings(), **SINGLE_NODE}
    assert {name: running.get(name, "a setting that this Kafka does not know") for name in wanted} == wanted


# -- its tools and its jars ------------------------------------------------------------------------------------


def test_missing_tools_are_named_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(BrokerToolsMissing) as refusal:
        LocalBroker(directory=tmp_path / "broker").up()
    assert refusal.value.missing == ("java", "mvn") == missing_tools()
    assert isinstance(refusal.value, CheckpointError)
    assert "openjdk-17" in refusal.value.hint
    assert "maven" in refusal.value.hint


FAKE_MAVEN = """#!/bin/sh
echo "$@" >> "{calls}"
for argument; do case "$argument" in -DoutputDirectory=*) folder="${{argument#*=}}";; esac; done
touch "$folder/kafka_half.jar"
{then}
touch "$folder/kafka_2.13-whole.jar"
"""


@pytest.fixture
def fake_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """A Maven that does as the test says, before an empty cache. Returns the file of its calls, one a line."""
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tools / "java").write_text("#!/bin/sh\n")
    (tools / "java").chmod(0o755)

    def install(then: str) -> Path:
        (tools / "mvn").write_text(FAKE_MAVEN.format(calls=tmp_path / "calls", then=then))
        (tools / "mvn").chmod(0o755)
        return tmp_path / "calls"

    return install


RESOLVE = [sys.executable, "-c", "from eventlog.kafka.local_jars import jars; print(jars())"]


@contextlib.contextmanager
def resolving() -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(RESOLVE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        yield process


def test_a_resolution_that_was_killed_leaves_no_half_cache(fake_maven: Callable[[str], Path], tmp_path: Path) -> None:
    calls = fake_maven("exec sleep 20")
    cache = tmp_path / "cache" / "eventlog-checkpoints"
    with resolving() as process:
        deadline = time.monotonic() + 30
        while not list(cache.glob("incomplete-*/kafka_half.jar")) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
    assert not list(cache.glob("kafka-*"))

    fake_maven("")
    folder = jars()

    assert sorted(path.name for path in folder.iterdir()) == ["kafka_2.13-whole.jar", "kafka_half.jar"]
    assert not list(cache.glob("incomplete-*"))
    assert len(calls.read_text().splitlines()) == 2
    assert jars() == folder
    assert len(calls.read_text().splitlines()) == 2, "a cached version is not resolved again"


def test_callers_that_need_the_jars_at_once_resolve_them_once(fake_maven: Callable[[str], Path]) -> None:
    calls = fake_maven("sleep 1")
    with resolving() as one, resolving() as other:
        answers = {process.communicate(timeout=60)[0] for process in (one, other)}
    assert len(answers) == 1
    assert len(calls.read_text().splitlines()) == 1


def test_a_resolution_that_fails_shows_mavens_words(fake_maven: Callable[[str], Path], tmp_path: Path) -> None:
    fake_maven("echo 'the line is down'; exit 1")
    with pytest.raises(Unavailable, match="the line is down"):
        jars()
    assert not list((tmp_path / "cache" / "eventlog-checkpoints").glob("kafka-*"))


def test_every_version_in_the_pom_is_exact() -> None:
    pom = (REPOSITORY / "compose" / "broker" / "pom.xml").read_text()
    versions = re.findall(r"<(?:kafka\.|log4j\.)?version>([^<]+)<", pom)
    assert len(versions) >= 5
    assert all(re.fullmatch(r"[0-9][0-9.]*|\$\{(kafka|log4j)\.version\}", version) for version in versions)
