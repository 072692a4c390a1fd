"""Connections to Kafka, with the guards that kafka-python 3.0.12 needs.

The version is exact because the guards reach into it. Each names the defect that it answers, and has a test that fails without it
(tests/kafka_log/test_client_guards.py).
"""

from __future__ import annotations

import contextlib
import functools
import socket
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.cluster import ClusterMetadata
from kafka.consumer.fetcher import Fetcher
from kafka.errors import KafkaError
from kafka.net.compat import KafkaNetClient
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from eventlog.address import KafkaAddress
from eventlog.errors import CheckpointError, ConfigurationError, InvalidRequest, Unavailable
from eventlog.kafka.boundaries import Boundary, passed
from eventlog.kafka.client_log import be_discreet
from eventlog.kafka.refusals import is_not_let_in, refusal
from eventlog.kafka.rights import Operation
from eventlog.kafka.security import SECURITY_SETTINGS, security

Client = TypeVar("Client")

GUARDED_VERSION = "3.0.12"

BOOTSTRAP_MS = 6_000  # an address that nobody answers at is reported within 10 s, topic check included
_LISTENS_SECONDS = 1.0
_RECONNECT_MS = 500  # the client's own bound, 30 s, would keep a store away from a broker that is back
_REFUSED_SECONDS = 0.1  # a refusal that is kept comes back at once, and the sender asks in a loop
_METADATA_MS = 2_000  # how late a reader may learn that its topic is another one now; the client's default is 5 min

# facts: retry_backoff 5 ms is the best p50 and p99 of 1, 2, 5 and 20; the default, 100, makes 10 transactions a second
_RETRY_BACKOFF_MS = 5
TRANSACTION_TIMEOUT_MS = 15_000  # what a dead writer can make readers wait
REQUEST_TIMEOUT_MS = 5_000
DELIVERY_TIMEOUT_MS = 10_000
_BATCH_BYTES = 1 << 20  # idempotence allows one batch in flight a partition: a group commit should be one
MOST_POLLED = 2_000  # records of one poll; also what one batch of the projection takes
_FETCH_BYTES = 16 << 20

CLIENT_SETTINGS = frozenset({"client_id"})
STORE_SETTINGS = frozenset({"state", "hold_ms", "access_retention_ms"})


class HonestConnections(KafkaConnectionManager):  # type: ignore[misc]
    """Defect F: a login or a certificate that is refused is tried again until the time-out, and why is not said then.

    A refusal is kept: whoever asks for that broker again is told of it at once, by this client. The next one asks anew.
    """

    def __init__(self, net: NetworkSelector, **configs: Any) -> None:
        super().__init__(net, **configs)
        self.last_failure: BaseException | None = None
        self._refused: dict[Any, BaseException] = {}

    def get_connection(self, node_id: Any, *arguments: Any, **options: Any) -> KafkaConnection:
        before = self._conns.get(node_id)
        connection = super().get_connection(node_id, *arguments, **options)
        if connection is not before:
            for future in (connection.init_future, connection.close_future):
                future.add_errback(functools.partial(self._failed, node_id))
        return connection

    def maybe_raise_auth_failure(self, node_id: Any) -> None:
        if (refused := self._refused.get(node_id)) is not None:
            raise refused
        super().maybe_raise_auth_failure(node_id)

    def _failed(self, node_id: Any, error: BaseException) -> None:
        self.last_failure = error
        if is_not_let_in(error):
            self._refused[node_id] = error


class PatientNetClient(KafkaNetClient):  # type: ignore[misc]
    """Defect C: a request whose coordinator cannot be reached at that moment is dropped instead of retried."""

    def __init__(self, **configs: Any) -> None:
        net = NetworkSelector(**configs)
        super().__init__(net=net, manager=HonestConnections(net, **configs))

    @property
    def last_failure(self) -> BaseException | None:
        """Why the last connection that failed did so."""
        found: BaseException | None = self._manager.last_failure
        return found

    def await_ready(self, node_id: int, timeout_ms: int = 30_000) -> bool:
        try:
            return bool(super().await_ready(node_id, timeout_ms=timeout_ms))
        except KafkaError as error:
            if is_not_let_in(error):
                time.sleep(_REFUSED_SECONDS)
            return False


class TransactionalProducer(KafkaProducer):  # type: ignore[misc]
    """A producer whose end is ours: the original's `__del__` silences its module's log for the whole process."""

    def __del__(self) -> None:
        pass


def _contains_abort_marker(_: Any, batch: Any) -> bool:
    """Defect E: an empty control batch, as a fence leaves it behind after cleaning, stops a read_committed reader for ever."""
    if not batch.is_control_batch:
        return False
    record = next(batch, None)
    return bool(record is not None and record.abort)


def _answers_before_the_end(receive: Callable[[Any], tuple[bytes, Any]]) -> Callable[[Any], tuple[bytes, Any]]:
    """Defect G: an answer that arrives together with the connection's end is thrown away, as is the one to a wrong password."""

    def sock_recv(transport: Any) -> tuple[bytes, Any]:
        ended = transport.__dict__.pop("_ended_with", None)
        if ended is not None:
            return b"", ended
        data, error = receive(transport)
        if data and error is not None:
            transport._ended_with = error
            return data, None
        return data, error

    return sock_recv


def install_guards() -> None:
    """Patches what no option reaches, and keeps payloads and passwords out of the client's log.

    Raises `ConfigurationError` with any other version of the client.
    """
    found = version("kafka-python")
    if found != GUARDED_VERSION:
        raise ConfigurationError(
            f"kafka-python {found} is installed where {GUARDED_VERSION} is needed",
            hint="The guards against that version's defects are not known to work with another. Install the exact version.",
        )
    Fetcher.PartitionRecords._contains_abort_marker = _contains_abort_marker
    for transport in (KafkaTCPTransport, KafkaSSLTransport):
        transport._sock_recv = _answers_before_the_end(transport.__dict__["_sock_recv"])
    be_discreet()


def client_settings(address: KafkaAddress) -> dict[str, Any]:
    """What every client of an address is made with.

    Raises `InvalidRequest` for a setting that is not known, or wrong; `ConfigurationError` for a file that a setting names.
    """
    settings: dict[str, Any] = {
        "bootstrap_servers": list(address.servers),
        "bootstrap_timeout_ms": BOOTSTRAP_MS,
        "reconnect_backoff_max_ms": _RECONNECT_MS,
    }
    known = SECURITY_SETTINGS | CLIENT_SETTINGS | STORE_SETTINGS
    unknown = next((name for name in address.settings if name not in known), None)
    if unknown is not None:
        raise InvalidRequest("address", f"unknown setting {unknown!r}", hint=f"Known are {', '.join(sorted(known))}.")
    settings |= {name: value for name, value in address.settings.items() if name in CLIENT_SETTINGS}
    return settings | security(address.settings)


def admin(address: KafkaAddress, **overrides: Any) -> KafkaAdminClient:
    """A client for topics, settings and offsets. It does not survive a broker's restart: make a new one after an error."""
    return _connected(KafkaAdminClient, address, **{"request_timeout_ms": REQUEST_TIMEOUT_MS, **overrides})


def consumer(address: KafkaAddress, *, isolation: str = "read_committed") -> KafkaConsumer:
    """A consumer without a group: it is told where to read, and says so when that place does not exist."""
    return _connected(
        KafkaConsumer,
        address,
        group_id=None,
        isolation_level=isolation,
        auto_offset_reset="none",
        enable_auto_commit=False,
        allow_auto_create_topics=False,
        max_poll_records=MOST_POLLED,
        fetch_max_bytes=_FETCH_BYTES,
        max_partition_fetch_bytes=_FETCH_BYTES,
        fetch_max_wait_ms=500,
        retry_backoff_ms=20,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        metadata_max_age_ms=_METADATA_MS,
    )


def producer(address: KafkaAddress, *, transactional_id: str, max_event_bytes: int, **overrides: Any) -> TransactionalProducer:
    """A transactional producer, not yet initialised. `overrides` are for tests."""
    settings: dict[str, Any] = {
        "transactional_id": transactional_id,
        "transaction_timeout_ms": TRANSACTION_TIMEOUT_MS,
        "acks": "all",
        "retry_backoff_ms": _RETRY_BACKOFF_MS,
        "request_timeout_ms": REQUEST_TIMEOUT_MS,
        "delivery_timeout_ms": DELIVERY_TIMEOUT_MS,
        "max_block_ms": 10_000,
        "batch_size": _BATCH_BYTES,
        "max_request_size": max_event_bytes + (1 << 16),
        "compression_type": "zstd",
        "allow_auto_create_topics": False,
    }
    return _connected(TransactionalProducer, address, **{**settings, **overrides})


def plain_producer(address: KafkaAddress) -> TransactionalProducer:
    """An idempotent producer without transactions, for logs that have no owner. End it by `discard`, after any doubt too."""
    return _connected(
        TransactionalProducer,
        address,
        acks="all",
        enable_idempotence=True,
        retry_backoff_ms=_RETRY_BACKOFF_MS,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
        max_block_ms=10_000,
        batch_size=_BATCH_BYTES,
        compression_type="zstd",
        allow_auto_create_topics=False,
        metadata_max_age_ms=_METADATA_MS,
    )


def _connected(make: Callable[..., Client], address: KafkaAddress, **settings: Any) -> Client:
    """A client; one that cannot be made leaves no thread, which its own constructor would."""
    inner: list[PatientNetClient] = []

    def remember(**configs: Any) -> PatientNetClient:
        inner.append(PatientNetClient(**configs))
        return inner[-1]

    try:
        with translated(address):
            return make(**{**client_settings(address), "kafka_client": remember, **settings})
    except BaseException as error:
        for each in inner:
            each.close()
            each._net.stop()
        told = inner[-1].last_failure if inner and isinstance(error, Unavailable) else None
        if told is None or not _somebody_listens(address):
            raise
        raise Unavailable(
            str(address),
            f"the servers take the connection and give no answer: {told}",
            hint="Check security_protocol: it must be the listener's, and is PLAINTEXT unless the address says otherwise.",
        ) from error.__cause__


def _somebody_listens(address: KafkaAddress) -> bool:
    """Whether any server takes a connection, whatever it speaks."""
    for server in address.servers:
        host, _, port = server.rpartition(":")
        with contextlib.suppress(OSError):
            socket.create_connection((host.strip("[]"), int(port)), timeout=_LISTENS_SECONDS).close()
            return True
    return False


def begin_commit(producer: TransactionalProducer, answered: Callable[[Exception | None], None]) -> Any:
    """Asks for the commit of the open transaction, and returns the client's result without waiting for it.

    `commit_transaction()` would wait without a bound (defect D); these are its two steps. `answered` is called in the client's thread, once
    the result is known, with the error if there is one. Raises `KafkaError` when the client knows already that the transaction is lost.
    """
    result = producer._transaction_manager.begin_commit()
    done = result.done

    def tell(error: Exception | None = None) -> None:
        passed(Boundary.COMMIT_ANSWERED)
        done(error=error)
        answered(error)

    result.done = tell
    producer._sender.wakeup()
    return result


def discard(producer: TransactionalProducer, *, timeout: float = 5.0) -> None:
    """Ends a producer without waiting for anything it still wants to send; its open transaction is left to the next owner.

    `close()` is not used: with unacknowledged batches it raises and leaves its thread running.
    """
    producer._unregister_cleanup()
    producer._sender.force_close()
    producer._sender.wakeup()
    producer._sender.join(timeout)
    if producer._metrics:
        producer._metrics.close()
    producer._closed = True


def require_topic(metadata: ClusterMetadata, address: KafkaAddress, topic_id: str) -> None:
    """Raises `ConfigurationError` when a client's metadata say that the topic of this name is not the one of this id any more.

    Kafka's requests to read and to write that this client speaks name a topic by its name alone, so that nobody else would notice.
    """
    found = metadata.topic_id(address.topic)
    if found is not None and found.int and str(found) != topic_id:
        raise ConfigurationError(
            f"{address} was deleted and made again: this store follows the topic {topic_id}, that name now belongs to {found}",
            hint="Find out who did it and what was lost. The new topic needs a projection of its own: another ?state=DIR.",
        )


@contextlib.contextmanager
def translated(address: KafkaAddress, operation: Operation = Operation.DESCRIBE, *, transactional_id: str = "") -> Iterator[None]:
    """The client's errors in the store's own words. The arguments say which right is missing when Kafka says that one is: see `refusal`."""
    try:
        yield
    except CheckpointError:
        raise
    except KafkaError as error:
        raise refusal(address, error, operation=operation, transactional_id=transactional_id) or unavailable(address, error) from error
    except (OSError, AssertionError, ValueError) as error:  # the client checks its arguments and files with these
        raise ConfigurationError(f"{address}: {error}", hint="Check the address and its security settings.") from error


def unavailable(address: KafkaAddress, error: Exception) -> Unavailable:
    """An `Unavailable` that names the servers, whatever the client said."""
    told, name = str(error), type(error).__name__
    return Unavailable(str(address), told if told.startswith(name) else f"{name}: {told}".removesuffix(": "))


install_guards()
