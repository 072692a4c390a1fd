"""Every defect of kafka-python 3.0.12 that the store is guarded against (docs/decisions.md, "Guards"), and that the guard is what helps."""

from __future__ import annotations

import contextlib
import gc
import logging
import socket
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import kafka.producer.kafka as producer_module
import pytest
from kafka.consumer.fetcher import Fetcher
from kafka.errors import KafkaError
from kafka.net.compat import KafkaNetClient
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaTCPTransport

from eventlog import ConfigurationError, InvalidRequest, Unavailable, open_store
from eventlog.address import KafkaAddress, parse_address
from eventlog.kafka import client


def kafka_threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if "kafka" in thread.name}


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Something that accepts connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield listener.getsockname()[1]


@pytest.fixture
def dead_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def kafka_address(text: str) -> KafkaAddress:
    address = parse_address(text)
    assert isinstance(address, KafkaAddress)
    return address


class TestRequestsAreNotDropped:
    """Defect C: `await_ready` raises, and the sender then forgets the request that it held."""

    def test_an_unready_coordinator_is_a_reason_to_retry(self, dead_port: int) -> None:
        guarded = client.PatientNetClient(bootstrap_servers=f"127.0.0.1:{dead_port}")
        try:
            assert guarded.await_ready(1, timeout_ms=50) is False
        finally:
            guarded.close()

    def test_the_original_raises(self, dead_port: int) -> None:
        original = KafkaNetClient(bootstrap_servers=f"127.0.0.1:{dead_port}")
        try:
            with pytest.raises(KafkaError):
                original.await_ready(1, timeout_ms=50)
        finally:
            original.close()

    def test_every_connection_is_a_guarded_one(self, broker: str) -> None:
        address = kafka_address(f"kafka://{broker}/any")
        made = [client.admin(address), client.consumer(address)]
        for each in made:
            assert type(each._client) is client.PatientNetClient
            each.close()
        producer = client.producer(address, transactional_id="guards", max_event_bytes=1000)
        assert type(producer._sender._client) is client.PatientNetClient
        client.discard(producer)


class EmptyControlBatch:
    """What cleaning leaves of a marker whose transaction is gone."""

    is_control_batch = True

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        raise StopIteration


class TestReadersSurviveEmptyControlBatches:
    """Defect E: the reader fails once, then spins for ever without reading on."""

    def test_an_empty_control_batch_is_no_abort_marker(self) -> None:
        assert Fetcher.PartitionRecords._contains_abort_marker(SimpleNamespace(), EmptyControlBatch()) is False

    def test_an_abort_marker_still_is_one(self) -> None:
        batch = SimpleNamespace(is_control_batch=True, abort=True)
        marker = type("Batch", (), {"is_control_batch": True, "__next__": lambda self: batch, "__iter__": lambda self: self})()  # noqa: ARG005
        assert Fetcher.PartitionRecords._contains_abort_marker(SimpleNamespace(), marker) is True
        batch.abort = False
        assert Fetcher.PartitionRecords._contains_abort_marker(SimpleNamespace(), marker) is False


class TestProducersEnd:
    def test_a_discarded_producer_leaves_no_thread_even_with_records_unsent(self, broker: str, topic: str) -> None:
        before = kafka_threads()
        producer = client.producer(kafka_address(f"kafka://{broker}/{topic}"), transactional_id=topic, max_event_bytes=1000)
        producer.init_transactions()
        client.discard(producer)
        assert kafka_threads() == before

    def test_a_forgotten_producer_does_not_silence_the_clients_log(self, broker: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(producer_module, "log", logging.getLogger("kafka.producer.kafka"))  # another test's may have done it
        producer = client.producer(kafka_address(f"kafka://{broker}/{topic}"), transactional_id=topic, max_event_bytes=1000)
        client.discard(producer)
        del producer
        gc.collect()
        assert type(producer_module.log).__name__ == "Logger"


class TestUnreachable:
    def test_nobody_there_is_told_in_time_naming_the_address(self, dead_port: int) -> None:
        assert "take the connection" not in self.refused(dead_port)

    def test_somebody_else_there_is_told_in_time_naming_the_address(self, silent_port: int) -> None:
        self.refused(silent_port)

    def refused(self, port: int) -> str:
        before = kafka_threads()
        started = time.monotonic()
        with pytest.raises(Unavailable, match=f"127.0.0.1:{port}") as caught:
            open_store(f"kafka://127.0.0.1:{port}/orders")
        assert time.monotonic() - started < 10
        assert caught.value.__cause__ is not None
        assert kafka_threads() == before, "the constructor's own threads were left running"
        return str(caught.value)


@pytest.mark.parametrize("raised", [OSError("no such file"), AssertionError("security_protocol"), ValueError("no number")], ids=repr)
def test_what_the_client_refuses_of_its_settings_is_a_configuration_error(raised: Exception) -> None:
    address = kafka_address("kafka://127.0.0.1:9092/orders")
    with pytest.raises(ConfigurationError, match="127.0.0.1:9092.*" + str(raised)), client.translated(address):
        raise raised


def test_an_answer_that_arrives_with_the_end_of_the_connection_is_read() -> None:
    """Defect G: a broker that refuses a login answers and hangs up."""
    ours, theirs = socket.socketpair()
    with contextlib.closing(NetworkSelector()) as net, ours:
        theirs.sendall(b"answer")
        theirs.close()
        ours.setblocking(False)
        transport = KafkaTCPTransport(net, ours, host="broker")
        assert transport._sock_recv() == (b"answer", None)
        data, error = transport._sock_recv()
        assert data == b""
        assert isinstance(error, KafkaError)


def test_another_version_of_the_client_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "version", lambda _: "3.0.13")
    with pytest.raises(ConfigurationError, match=r"3\.0\.13.*3\.0\.12"):
        client.install_guards()


def test_an_unknown_setting_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match="'acks'"):
        client.client_settings(kafka_address("kafka://127.0.0.1:9092/orders?acks=1"))


def test_security_settings_pass_through() -> None:
    settings = client.client_settings(
        kafka_address("kafka://127.0.0.1:9092/orders?security_protocol=SASL_SSL&sasl_mechanism=PLAIN&ssl_check_hostname=false&state=/tmp/x")
    )
    assert settings["security_protocol"] == "SASL_SSL"
    assert settings["sasl_mechanism"] == "PLAIN"
    assert settings["ssl_context"].check_hostname is False
    assert "state" not in settings
