"""From an address to a store that is open, and to a new one."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from eventlog.address import DirectoryAddress, KafkaAddress, parse_address
from eventlog.aio import AsyncCheckpointStore
from eventlog.catalog import Catalog
from eventlog.embedded import DEFAULT_MAX_EVENT_BYTES, EmbeddedLog
from eventlog.errors import InvalidRequest
from eventlog.privacy.embedded_keys import EmbeddedKeys
from eventlog.privacy.opening import create_directory, open_keys
from eventlog.privacy.providers import KeyProvider
from eventlog.privacy.table import KeyTable
from eventlog.projector import Projector
from eventlog.store import DEFAULT_TIMEOUT, CheckpointStore, check_identity

if TYPE_CHECKING:
    from eventlog.kafka.log import KafkaLog


def create_store(
    address: str | Path | DirectoryAddress | KafkaAddress,
    *,
    partitions: int = 4,
    replication: int | None = None,
    encryption: KeyProvider | None = None,
) -> None:
    """Makes a new, empty store: a directory, or a topic with the settings that the store insists on.

    Arguments:
        partitions: of a topic; never changed afterwards.
        replication: of a topic; None: 3 where the cluster has three brokers or more, otherwise 1.
        encryption: seals every payload, for ever, by keys that this holds; a key that is not there is made. The store remembers where they
            are, not what they are. The provider stays the caller's, to close.

    Raises `ConfigurationError` when something is there already, `InvalidRequest`, `StorageError`, `Unavailable` or `KeysUnavailable`.
    """
    where = parse_address(address)
    if isinstance(where, DirectoryAddress):
        create_directory(where.directory, encryption)
    else:
        from eventlog.kafka.keys_topic import create_topics

        create_topics(where, partitions=partitions, replication=replication, encryption=encryption)


def open_store(
    address: str | Path | DirectoryAddress | KafkaAddress,
    *,
    tenant: str | None = None,
    actor: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    max_event_bytes: int | None = None,
    keys: KeyProvider | None = None,
    looks_on: bool = False,
) -> CheckpointStore:
    """Opens a store that `create_store` or `eventlog init` has made. Close it, or use it as a context manager.

    Arguments:
        address: a directory, or `kafka://host:port[,host:port]/topic?setting=value`.
        tenant: limits everything to one tenant; None sees all.
        actor: who writes, for the audit; the user's login name when None.
        timeout: default for calls that wait for the log, in seconds.
        max_event_bytes: refuse larger events; the log's own limit when None.
        keys: of an encrypted store; None: where the store remembers that they are. `NoKeys()`: everything but payloads. The provider stays
            the caller's, to close.
        looks_on: leave a directory's projection to other processes, and answer reports from a private one: for what stays open for long
            beside an application. On Kafka a second process needs a `?state=` of its own in any case.

    Raises `NotAStore`, `ConfigurationError` (with every difference listed), `SchemaMismatch`, `Corrupted`, `StorageError`, `Busy`,
    `KeysUnavailable` (not there, or not the ones that the store was made with) or `Unavailable` (within 10 s).
    """
    where = parse_address(address)
    check_identity(tenant, actor)
    if max_event_bytes is not None and (type(max_event_bytes) is not int or max_event_bytes < 1):
        raise InvalidRequest("max_event_bytes", f"{max_event_bytes!r} is not a number of bytes")
    if not isinstance(timeout, int | float) or not timeout > 0:
        raise InvalidRequest("timeout", f"{timeout!r} is not a number of seconds")
    actor = _login() if actor is None else actor
    log: EmbeddedLog | KafkaLog
    open_table: Callable[[], KeyTable]
    if isinstance(where, DirectoryAddress):
        log = EmbeddedLog(directory=where.directory, max_event_bytes=max_event_bytes or DEFAULT_MAX_EVENT_BYTES)
        log.open()
        catalog = Catalog(projector=Projector(log=log, directory=where.directory, private=looks_on), keeps_gaps=False, tenant=tenant)
        open_table = partial(_embedded_keys, log)
    else:
        from eventlog.kafka.log import open_kafka_log

        log = open_kafka_log(where, max_event_bytes=max_event_bytes)
        catalog = Catalog(projector=log.projector, keeps_gaps=True, tenant=tenant)
        open_table = log.open_keys
    try:
        data_keys = open_keys(log, source=log.key_source, open_table=open_table, given=keys)
    except BaseException:
        log.close()
        raise
    return CheckpointStore(log=log, catalog=catalog, tenant=tenant, actor=actor, timeout=timeout, keys=data_keys)


def _embedded_keys(log: EmbeddedLog) -> KeyTable:
    table = EmbeddedKeys(directory=log.directory, store_id=log.identity.store_id)
    table.open()
    return table


async def open_async_store(
    address: str | Path | DirectoryAddress | KafkaAddress,
    *,
    tenant: str | None = None,
    actor: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    max_event_bytes: int | None = None,
    keys: KeyProvider | None = None,
) -> AsyncCheckpointStore:
    """As `open_store`, for asyncio."""
    import asyncio

    store = await asyncio.to_thread(
        open_store, address, tenant=tenant, actor=actor, timeout=timeout, max_event_bytes=max_event_bytes, keys=keys
    )
    return AsyncCheckpointStore(store)


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name for this uid
        return "unknown"
