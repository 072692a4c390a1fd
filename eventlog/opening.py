"""From an address to a store that is open, and to a new one."""

from __future__ import annotations

import getpass
from pathlib import Path

from eventlog.address import DirectoryAddress, KafkaAddress, parse_address
from eventlog.aio import AsyncCheckpointStore
from eventlog.catalog import Catalog, CurrentProjection
from eventlog.embedded import DEFAULT_MAX_EVENT_BYTES, EmbeddedLog
from eventlog.embedded_files import create, remembered
from eventlog.errors import ConfigurationError, InvalidRequest
from eventlog.log import Log
from eventlog.privacy.access_embedded import create_access_file, open_access_file
from eventlog.privacy.access_log import AccessMode, access_mode
from eventlog.privacy.principals import Principal, Role
from eventlog.privacy.recorder import AccessRecorder
from eventlog.privacy.store import PrincipalStore
from eventlog.privacy.store_aio import AsyncPrincipalStore
from eventlog.projector import Projector
from eventlog.store import DEFAULT_TIMEOUT, CheckpointStore, check_identity
from projections.access import progress

ACCESS_KEY = "access"  # in the log's `meta`


def create_store(
    address: str | Path | DirectoryAddress | KafkaAddress,
    *,
    partitions: int = 4,
    replication: int | None = None,
    access: AccessMode | str = AccessMode.OFF,
) -> None:
    """Makes a new, empty store: a directory, or a topic with the settings that the store insists on.

    Arguments:
        partitions: of a topic; never changed afterwards.
        replication: of a topic; None: 3 where the cluster has three brokers or more, otherwise 1.
        access: whether accesses are recorded: `off`, `buffered` or `strict`. The store remembers it; see docs/privacy.md.

    Raises `ConfigurationError` when something is there already, `InvalidRequest`, `StorageError` or `Unavailable`.
    """
    where = parse_address(address)
    mode = access_mode(access)
    recorded = mode is not AccessMode.OFF
    if isinstance(where, DirectoryAddress):
        chosen = {ACCESS_KEY: mode.value} if recorded else {}
        create(where.directory, remembered=chosen, companions=create_access_file if recorded else None)
    else:
        from eventlog.kafka.access import create_access_topic
        from eventlog.kafka.topic import create_topic

        create_topic(where, partitions=partitions, replication=replication)
        if recorded:
            create_access_topic(where, mode=mode, replication=replication)


def open_store(
    address: str | Path | DirectoryAddress | KafkaAddress,
    *,
    tenant: str | None = None,
    actor: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    max_event_bytes: int | None = None,
    principal: Principal | None = None,
    reason: str | None = None,
    access: AccessMode | str | None = None,
) -> CheckpointStore:
    """Opens a store that `create_store` or `eventlog init` has made. Close it, or use it as a context manager.

    Arguments:
        address: a directory, or `kafka://host:port[,host:port]/topic?setting=value`.
        tenant: limits everything to one tenant; None sees all.
        actor: who writes, for the audit; the user's login name when None.
        timeout: default for calls that wait for the log, in seconds.
        max_event_bytes: refuse larger events; the log's own limit when None.
        principal: who asks: see `CheckpointStore.for_principal`. None: the local user, as an admin.
        reason: of the principal's, for the record of accesses.
        access: record accesses at least so strictly; the store's own mode when None, and never less than that.

    Raises `NotAStore`, `ConfigurationError` (with every difference listed), `SchemaMismatch`, `Corrupted`, `StorageError`, `Busy` or
    `Unavailable` (within 10 s).
    """
    where = parse_address(address)
    check_identity(tenant, actor)
    if max_event_bytes is not None and (type(max_event_bytes) is not int or max_event_bytes < 1):
        raise InvalidRequest("max_event_bytes", f"{max_event_bytes!r} is not a number of bytes")
    if not isinstance(timeout, int | float) or not timeout > 0:
        raise InvalidRequest("timeout", f"{timeout!r} is not a number of seconds")
    wanted = None if access is None else access_mode(access)
    if principal is not None and actor is not None and actor != principal.subject:
        raise InvalidRequest(
            "actor", f"is {actor} where {principal.subject} is asking", hint="The subject is the actor: leave the actor out."
        )
    actor = _login() if actor is None else actor
    if isinstance(where, DirectoryAddress):
        log, projector, recorder = _open_directory(where, max_event_bytes, wanted)
    else:
        log, projector, recorder = _open_topic(where, max_event_bytes, wanted)
    keeps_gaps = isinstance(where, KafkaAddress)
    if principal is None and recorder is None:
        catalog = Catalog(projector=projector, keeps_gaps=keeps_gaps, tenant=tenant)
        return CheckpointStore(log=log, catalog=catalog, tenant=tenant, actor=actor, timeout=timeout)
    catalog = Catalog(projector=projector, keeps_gaps=keeps_gaps, tenant=None, accesses=recorder)
    whole = CheckpointStore(log=log, catalog=catalog, tenant=None, actor=actor, timeout=timeout, recorder=recorder)
    try:
        who = Principal(actor, None, [Role.ADMIN]) if principal is None else principal.within(tenant)
        return PrincipalStore(whole, who, reason=reason, tenant=tenant, owns=True)
    except BaseException:
        whole.close()
        raise


def _open_directory(
    where: DirectoryAddress, max_event_bytes: int | None, wanted: AccessMode | None
) -> tuple[Log, CurrentProjection, AccessRecorder | None]:
    log = EmbeddedLog(directory=where.directory, max_event_bytes=max_event_bytes or DEFAULT_MAX_EVENT_BYTES)
    log.open()
    try:
        own = access_mode(remembered(where.directory, ACCESS_KEY) or AccessMode.OFF)
        mode = _mode(own, wanted)
        accesses = None if mode is AccessMode.OFF else open_access_file(where.directory, make=own is AccessMode.OFF)
    except BaseException:
        log.close()
        raise
    return log, Projector(log=log, directory=where.directory), None if accesses is None else AccessRecorder(log=accesses, mode=mode).open()


def _open_topic(
    where: KafkaAddress, max_event_bytes: int | None, wanted: AccessMode | None
) -> tuple[Log, CurrentProjection, AccessRecorder | None]:
    from eventlog.kafka.access import open_access_topic
    from eventlog.kafka.log import open_kafka_log

    log = open_kafka_log(where, max_event_bytes=max_event_bytes)
    try:
        found = open_access_topic(where)
        mode = _mode(AccessMode.OFF if found is None else found[1], wanted)
        followed = found is None and progress(log.view.flushed()) is not None
        if found is None and (followed or mode is not AccessMode.OFF):
            why = "its projection has followed one: it was deleted" if followed else "accesses must be recorded here"
            hint = "Find out who deleted it." if followed else "It is made with the store: `eventlog init --access strict`."
            raise ConfigurationError(f"{where} has no access topic, and {why}", hint=hint)
    except BaseException:
        log.close()
        raise
    return log, log.projector, None if found is None else AccessRecorder(log=found[0], mode=mode).open()


def _mode(own: AccessMode, wanted: AccessMode | None) -> AccessMode:
    """The mode that a store is opened in: its own, or a stricter one."""
    if wanted is None or wanted.strictness >= own.strictness:
        return own if wanted is None else wanted
    raise ConfigurationError(
        f"this store records accesses in the mode {own}, and {wanted} would be less",
        hint="What was chosen when the store was made can be tightened, not loosened.",
    )


async def open_async_store(
    address: str | Path | DirectoryAddress | KafkaAddress,
    *,
    tenant: str | None = None,
    actor: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    max_event_bytes: int | None = None,
    principal: Principal | None = None,
    reason: str | None = None,
    access: AccessMode | str | None = None,
) -> AsyncCheckpointStore:
    """As `open_store`, for asyncio."""
    import asyncio

    store = await asyncio.to_thread(
        open_store,
        address,
        tenant=tenant,
        actor=actor,
        timeout=timeout,
        max_event_bytes=max_event_bytes,
        principal=principal,
        reason=reason,
        access=access,
    )
    return AsyncPrincipalStore(store) if isinstance(store, PrincipalStore) else AsyncCheckpointStore(store)


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name for this uid
        return "unknown"
