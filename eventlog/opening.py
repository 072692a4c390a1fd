"""From an address to a store that is open, and to a new one."""

from __future__ import annotations

import getpass
from pathlib import Path

from eventlog.address import DirectoryAddress, KafkaAddress, parse_address
from eventlog.aio import AsyncCheckpointStore
from eventlog.archive.bodies import ArchivedBodies
from eventlog.catalog import Catalog
from eventlog.embedded import DEFAULT_MAX_EVENT_BYTES, EmbeddedLog
from eventlog.embedded_files import create
from eventlog.errors import InvalidRequest
from eventlog.projector import Projector
from eventlog.store import DEFAULT_TIMEOUT, CheckpointStore, check_identity


def create_store(address: str | Path | DirectoryAddress | KafkaAddress, *, partitions: int = 4, replication: int | None = None) -> None:
    """Makes a new, empty store: a directory, or a topic with the settings that the store insists on.

    Arguments:
        partitions: of a topic; never changed afterwards.
        replication: of a topic; None: 3 where the cluster has three brokers or more, otherwise 1.

    Raises `ConfigurationError` when something is there already, `InvalidRequest`, `StorageError` or `Unavailable`.
    """
    where = parse_address(address)
    if isinstance(where, DirectoryAddress):
        create(where.directory)
    else:
        from eventlog.kafka.topic import create_topic

        create_topic(where, partitions=partitions, replication=replication)


def open_store(
    address: str | Path | DirectoryAddress | KafkaAddress,
    *,
    tenant: str | None = None,
    actor: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    max_event_bytes: int | None = None,
) -> CheckpointStore:
    """Opens a store that `create_store` or `eventlog init` has made. Close it, or use it as a context manager.

    Arguments:
        address: a directory, or `kafka://host:port[,host:port]/topic?setting=value`.
        tenant: limits everything to one tenant; None sees all.
        actor: who writes, for the audit; the user's login name when None.
        timeout: default for calls that wait for the log, in seconds.
        max_event_bytes: refuse larger events; the log's own limit when None.

    Raises `NotAStore`, `ConfigurationError` (with every difference listed), `SchemaMismatch`, `Corrupted`, `StorageError`, `Busy` or
    `Unavailable` (within 10 s).
    """
    where = parse_address(address)
    check_identity(tenant, actor)
    if max_event_bytes is not None and (type(max_event_bytes) is not int or max_event_bytes < 1):
        raise InvalidRequest("max_event_bytes", f"{max_event_bytes!r} is not a number of bytes")
    if not isinstance(timeout, int | float) or not timeout > 0:
        raise InvalidRequest("timeout", f"{timeout!r} is not a number of seconds")
    actor = _login() if actor is None else actor
    if isinstance(where, DirectoryAddress):
        log = EmbeddedLog(directory=where.directory, max_event_bytes=max_event_bytes or DEFAULT_MAX_EVENT_BYTES)
        log.open()
        catalog = Catalog(projector=Projector(log=log, directory=where.directory), keeps_gaps=False, tenant=tenant)
        bodies = ArchivedBodies(state=where.directory)
        return CheckpointStore(log=log, catalog=catalog, tenant=tenant, actor=actor, timeout=timeout, bodies=bodies)
    from eventlog.kafka.log import open_kafka_log

    kafka_log = open_kafka_log(where, max_event_bytes=max_event_bytes)
    catalog = Catalog(projector=kafka_log.projector, keeps_gaps=True, tenant=tenant)
    return CheckpointStore(log=kafka_log, catalog=catalog, tenant=tenant, actor=actor, timeout=timeout)


async def open_async_store(
    address: str | Path | DirectoryAddress | KafkaAddress,
    *,
    tenant: str | None = None,
    actor: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    max_event_bytes: int | None = None,
) -> AsyncCheckpointStore:
    """As `open_store`, for asyncio."""
    import asyncio

    store = await asyncio.to_thread(open_store, address, tenant=tenant, actor=actor, timeout=timeout, max_event_bytes=max_event_bytes)
    return AsyncCheckpointStore(store)


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name for this uid
        return "unknown"
