"""The topic: made only on request, and checked exactly whenever a store opens.

A wrong cleanup policy or retention eats data silently, so that nothing about it is assumed: every difference is listed and the store
refuses to start.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Protocol

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource
from kafka.errors import KafkaError, TopicAlreadyExistsError, TopicAuthorizationFailedError

from eventlog.address import KafkaAddress
from eventlog.errors import ConfigurationError, InvalidRequest, NotAStore
from eventlog.kafka.client import admin, translated
from eventlog.kafka.refusals import missing
from eventlog.kafka.rights import Operation, Resource, Right

DAY_MS = 86_400_000
HOLD_MS = 7 * DAY_MS  # how long every revision surely stays in the topic: the audit hold
MAX_EVENT_BYTES = 8 << 20
_BATCH_OVERHEAD = 256 << 10  # what a batch adds around one event of the largest size
MAX_PARTITIONS = 1_000
MAX_REPLICATION = 10
_MAY_NOT_DESCRIBE = TopicAuthorizationFailedError.errno
RESTORING = str(0x45564C4F47525354)  # "EVLOGRST" as min.compaction.lag.ms: a backup is being restored into the topic, see `restoring.py`


def partition_of(checkpoint_id: str, partitions: int) -> int:
    """Where a checkpoint's events belong, for ever: CRC-32 of its key, modulo the partition count, which never changes."""
    return zlib.crc32(checkpoint_id.encode()) % partitions


class Spec(Protocol):
    """The settings that a topic must have."""

    def settings(self, replication: int) -> dict[str, str]:
        """As Kafka names and spells them."""
        ...


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """The settings that a log's topic must have. Times are in milliseconds."""

    hold_ms: int = HOLD_MS
    max_event_bytes: int = MAX_EVENT_BYTES
    delete_retention_ms: int = DAY_MS

    @classmethod
    def of(cls, address: KafkaAddress) -> TopicSpec:
        """What the topic of an address must be. Raises `InvalidRequest`."""
        hold = address.settings.get("hold_ms", str(HOLD_MS))
        if not (hold.isascii() and hold.isdigit() and len(hold) <= 15):
            raise InvalidRequest("address", f"hold_ms is {hold!r}, not a number of milliseconds")
        return cls(hold_ms=int(hold))

    @property
    def compacted_within_ms(self) -> int:
        """After how long a superseded record has to be taken: `max.compaction.lag.ms`."""
        return 2 * self.hold_ms

    def settings(self, replication: int) -> dict[str, str]:
        """As Kafka names and spells them."""
        return {
            "cleanup.policy": "compact",
            "message.timestamp.type": "LogAppendTime",
            "min.compaction.lag.ms": str(self.hold_ms),
            "max.compaction.lag.ms": str(self.compacted_within_ms),
            "delete.retention.ms": str(self.delete_retention_ms),
            "min.insync.replicas": "2" if replication >= 3 else "1",
            "unclean.leader.election.enable": "false",
            "max.message.bytes": str(self.max_event_bytes + _BATCH_OVERHEAD),
        }


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as it is."""

    cluster_id: str
    topic_id: str
    partitions: int
    replication: int
    settings: dict[str, str]
    verifies_transactions: str | None  # transaction.partition.verification.enable of the brokers, when they tell


def create_topic(
    address: KafkaAddress,
    *,
    spec: Spec | None = None,
    partitions: int = 4,
    replication: int | None = None,
    if_it_exists: str = "Open it, or choose another name.",
) -> None:
    """Makes a topic: a log's, unless another `spec` is given. `if_it_exists`: what a person should do then.

    Raises `ConfigurationError` (it exists), `InvalidRequest`, `MissingRight`, `Unavailable`.
    """
    if type(partitions) is not int or not 1 <= partitions <= MAX_PARTITIONS:
        raise InvalidRequest("partitions", f"{partitions!r} is not within 1 to {MAX_PARTITIONS}")
    if replication is not None and (type(replication) is not int or not 1 <= replication <= MAX_REPLICATION):
        raise InvalidRequest("replication", f"{replication!r} is not within 1 to {MAX_REPLICATION}")
    client = admin(address)
    try:
        with translated(address, Operation.CREATE):
            copies = replication or (3 if len(client.describe_cluster()["brokers"]) >= 3 else 1)
            wanted = {
                "num_partitions": partitions,
                "replication_factor": copies,
                "configs": (spec or TopicSpec.of(address)).settings(copies),
            }
            try:
                client.create_topics({address.topic: wanted}, timeout_ms=10_000)
            except TopicAlreadyExistsError as error:
                raise ConfigurationError(f"{address} already exists", hint=if_it_exists) from error
            except TopicAuthorizationFailedError:
                raise
            except KafkaError as error:
                raise ConfigurationError(
                    f"{address} cannot be made: {error}", hint="Check the replication and the broker's limits."
                ) from error
            client.wait_for_topics([address.topic], timeout_ms=10_000)
    finally:
        client.close()


def describe(client: KafkaAdminClient, address: KafkaAddress) -> TopicState:
    """The topic as it is. Raises `NotAStore` when there is none, `MissingRight` when this client may not know."""
    topic = client.describe_topics([address.topic])[0]
    if topic["error_code"] == _MAY_NOT_DESCRIBE:
        # Before anything else: of a topic that this client may not see Kafka does not say whether there is one.
        raise missing(address, Right(Resource.TOPIC, address.topic, Operation.DESCRIBE))
    if topic["error_code"] == 3 or not topic["partitions"]:
        raise NotAStore(f"{address}: there is no such topic", hint="Make it with `eventlog init`, or correct the name.")
    if topic["error_code"] != 0:
        raise ConfigurationError(
            f"{address} cannot be described (Kafka's error {topic['error_code']})", hint="Ask again; if it stays, look at the broker."
        )
    controller = str(topic["partitions"][0]["leader_id"])
    told = client.describe_configs([ConfigResource("TOPIC", address.topic), ConfigResource("BROKER", controller)], config_filter="all")
    settings = _values(told, "topic", address.topic)
    if not settings:  # the client hides the error code of a resource that may not be read
        raise missing(address, Right(Resource.TOPIC, address.topic, Operation.DESCRIBE_CONFIGS))
    return TopicState(
        cluster_id=str(client.describe_cluster()["cluster_id"]),
        topic_id=str(topic["topic_id"]),
        partitions=len(topic["partitions"]),
        replication=len(topic["partitions"][0]["replica_nodes"]),
        settings=settings,
        verifies_transactions=_values(told, "broker", controller).get("transaction.partition.verification.enable"),
    )


def may_describe(client: KafkaAdminClient, address: KafkaAddress) -> bool:
    """Whether a topic may be seen; True also when nobody can say now."""
    try:
        return bool(client.describe_topics([address.topic])[0]["error_code"] != _MAY_NOT_DESCRIBE)
    except KafkaError:
        return True


def differences(state: TopicState, spec: Spec) -> list[str]:
    """What is not as it must be, one line each."""
    found = [
        f"{name} is {state.settings.get(name, 'not set')}; it must be {value}"
        for name, value in spec.settings(state.replication).items()
        if not _holds(name, state.settings.get(name), value)
    ]
    if state.verifies_transactions == "false":
        found.append("transaction.partition.verification.enable is false on the broker; it must be true")
    return found


def is_restoring(state: TopicState) -> bool:
    """Whether a topic bears the mark of a restore that has not ended."""
    return state.settings.get("min.compaction.lag.ms") == RESTORING


def _holds(name: str, actual: str | None, wanted: str) -> bool:
    """Exact, but for min.insync.replicas and delete.retention.ms, of which more is as good."""
    if actual is None:
        return False
    if name in {"min.insync.replicas", "delete.retention.ms"}:
        return actual.isdigit() and int(actual) >= int(wanted)
    return actual == wanted


def _values(told: dict[str, Any], kind: str, name: str) -> dict[str, str]:
    return {key: entry["value"] for key, entry in told.get(kind, {}).get(name, {}).items()}
