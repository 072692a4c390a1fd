"""The topic of wrapped data keys, `<topic>.keys`: made with the store, checked like the log's own; a store that has one is encrypted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from eventlog.address import KafkaAddress
from eventlog.errors import ConfigurationError, NotAStore
from eventlog.kafka.access import access_address, create_access_topic
from eventlog.kafka.client import admin, translated
from eventlog.kafka.keys import KafkaKeys
from eventlog.kafka.topic import DAY_MS, TopicSpec, TopicState, create_topic, describe, differences
from eventlog.privacy.access_log import AccessMode
from eventlog.privacy.data_keys import PROBE, put_probe
from eventlog.privacy.providers.provider import KeyProvider

HOUR_MS = 3_600_000
SUFFIX = ".keys"


@dataclass(frozen=True, slots=True)
class KeysTopicSpec:
    """Compacted, and soon: the bytes of a key that was destroyed are gone an hour and a run of the cleaner later."""

    def settings(self, replication: int) -> dict[str, str]:
        """See `Spec.settings`."""
        return {
            "cleanup.policy": "compact",
            "message.timestamp.type": "LogAppendTime",
            "min.compaction.lag.ms": "0",
            "max.compaction.lag.ms": str(HOUR_MS),
            "delete.retention.ms": str(DAY_MS),  # readers begin at the start each time, and take no day for it
            "min.insync.replicas": "2" if replication >= 3 else "1",
            "unclean.leader.election.enable": "false",
        }


def keys_address(address: KafkaAddress) -> KafkaAddress:
    """The address of a log's keys."""
    return replace(address, topic=address.topic + SUFFIX)


def create_topics(
    address: KafkaAddress,
    *,
    partitions: int,
    replication: int | None,
    encryption: KeyProvider | None,
    access: AccessMode = AccessMode.OFF,
) -> None:
    """Makes a store on Kafka: its topic, and before that those of its keys and of its accesses, as far as it is to have them.

    In this order: a log without a topic of keys is one in clear text, and one without a topic of accesses records none. What a process that
    died in between has left, the next one uses.
    Raises `ConfigurationError` when the log exists, or keys of one that does not any more; `InvalidRequest`, `Unavailable`,
    `KeysUnavailable`.
    """
    where = keys_address(address)
    with _asking(address) as state_of:
        if state_of(address) is not None:
            raise ConfigurationError(f"{address} already exists", hint="Open it, or choose another name.")
        there = state_of(where)
        if there is not None and (encryption is None or _holds_keys(where, there)):
            raise _left(where)
        if access is AccessMode.OFF and state_of(access_address(address)) is not None:
            raise _left(access_address(address))
    if encryption is not None:
        if there is None:
            create_topic(where, spec=KeysTopicSpec(), partitions=1, replication=replication)
            with _asking(address) as state_of:
                there = state_of(where)
        assert there is not None
        encryption.create()
        with closing(_opened(where, there)) as table:
            table.remember(encryption.source)
            put_probe(table, encryption)
    if access is not AccessMode.OFF:
        create_access_topic(address, mode=access, replication=replication)
    create_topic(address, partitions=partitions, replication=replication)


def open_key_table(address: KafkaAddress) -> KafkaKeys | None:
    """The wrapped keys of a log, read and ready; None when the log is not encrypted. Raises `ConfigurationError` with every difference."""
    where = keys_address(address)
    with _asking(address) as state_of:
        state = state_of(where)
    if state is None:
        return None
    wrong = differences(state, KeysTopicSpec()) + (
        [f"it has {state.partitions} partitions; it must have 1"] if state.partitions != 1 else []
    )
    if wrong:
        hint = "Correct the topic's settings; the store does not start, because each of these can lose keys, or keep destroyed ones."
        raise ConfigurationError(f"{where} is not set up as a topic of keys", differences=wrong, hint=hint)
    table = _opened(where, state)
    if table.source is None:
        table.close()
        raise ConfigurationError(f"{where} does not say where the store's keys are", hint="Restore it from the backup of the keys.")
    return table


def open_new_table(address: KafkaAddress) -> KafkaKeys:
    """The topic of keys of a log that is being made, which says nothing yet of where the keys are. Raises `NotAStore`."""
    where = keys_address(address)
    state = topic_state(where)
    if state is None:
        raise NotAStore(f"{where}: there is no such topic")
    return _opened(where, state)


def topic_state(address: KafkaAddress) -> TopicState | None:
    """A topic as it is; None when there is none. Raises `ConfigurationError` or `Unavailable`."""
    with _asking(address) as state_of:
        return state_of(address)


def check_topics(address: KafkaAddress) -> list[str]:
    """Every difference between a store's topics and what they must be; none: they are right. Raises `NotAStore` when there is no log."""
    with _asking(address) as state_of:
        log, keys = state_of(address), state_of(keys_address(address))
    if log is None:
        raise NotAStore(f"{address}: there is no such topic", hint="Make it with `eventlog init`, or correct the name.")
    of_keys = [] if keys is None else [f"{keys_address(address).topic}: {each}" for each in differences(keys, KeysTopicSpec())]
    return differences(log, TopicSpec.of(address)) + of_keys


def _left(where: KafkaAddress) -> ConfigurationError:
    return ConfigurationError(f"{where} exists: it belongs to a log that was here before", hint="Choose another name, or delete it.")


class _StateOf:
    def __init__(self, address: KafkaAddress) -> None:
        self._client = admin(address)

    def __call__(self, address: KafkaAddress) -> TopicState | None:
        with translated(address):
            try:
                return describe(self._client, address)
            except NotAStore:
                return None

    def close(self) -> None:
        self._client.close()


@contextmanager
def _asking(address: KafkaAddress) -> Iterator[_StateOf]:
    with closing(_StateOf(address)) as state_of:
        yield state_of


def _holds_keys(where: KafkaAddress, state: TopicState) -> bool:
    with closing(_opened(where, state)) as table:
        return any(key.checkpoint_id != PROBE for key in table.all())


def _opened(where: KafkaAddress, state: TopicState) -> KafkaKeys:
    table = KafkaKeys(address=where, topic_id=state.topic_id)
    table.open()
    return table
