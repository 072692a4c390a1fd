"""From an address to a store that is open, and to a new one."""

from __future__ import annotations

import contextlib
import getpass
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from eventlog.address import DirectoryAddress, KafkaAddress, parse_address
from eventlog.aio import AsyncCheckpointStore
from eventlog.archive.bodies import ArchivedBodies
from eventlog.catalog import Catalog, CurrentProjection
from eventlog.checkpoint import check_identity
from eventlog.embedded import DEFAULT_MAX_EVENT_BYTES, EmbeddedLog
from eventlog.erasure.register import Erased, register_of
from eventlog.errors import ConfigurationError, InvalidRequest
from eventlog.log import Log
from eventlog.privacy.access_embedded import open_access_file
from eventlog.privacy.access_log import AccessMode, access_mode
from eventlog.privacy.data_keys import DataKeys
from eventlog.privacy.embedded_keys import EmbeddedKeys
from eventlog.privacy.opening import create_directory, open_keys
from eventlog.privacy.principals import Principal, Role
from eventlog.privacy.providers import KeyProvider
from eventlog.privacy.recorder import AccessRecorder
from eventlog.privacy.store import PrincipalStore
from eventlog.privacy.store_aio import AsyncPrincipalStore
from eventlog.privacy.table import KeyTable
from eventlog.projector import Projector
from eventlog.store import DEFAULT_TIMEOUT, CheckpointStore
from projections.access import progress

if TYPE_CHECKING:
    from eventlog.kafka.log import KafkaLog
    from eventlog.kafka.topic import Spec


def create_store(
    address: str | Path | DirectoryAddress | KafkaAddress,
    *,
    partitions: int = 4,
    replication: int | None = None,
    encryption: KeyProvider | None = None,
    access: AccessMode | str = AccessMode.OFF,
) -> None:
    """Makes a new, empty store: a directory, or a topic with the settings that the store insists on.

    Arguments:
        partitions: of a topic; never changed afterwards.
        replication: of a topic; None: 3 where the cluster has three brokers or more, otherwise 1.
        encryption: seals every payload, for ever, by keys that this holds; a key that is not there is made. The store remembers where they
            are, not what they are. The provider stays the caller's, to close.
        access: whether accesses are recorded: `off`, `buffered` or `strict`. The store remembers it; see docs/privacy.md.

    Raises `ConfigurationError` when something is there already, `InvalidRequest`, `StorageError`, `Unavailable` or `KeysUnavailable`.
    """
    where = parse_address(address)
    mode = access_mode(access)
    if isinstance(where, DirectoryAddress):
        create_directory(where.directory, encryption=encryption, access=mode)
        return
    from eventlog.kafka.keys_topic import create_topics

    create_topics(where, partitions=partitions, replication=replication, encryption=encryption, access=mode)


def open_store(
    address: str | Path | DirectoryAddress | KafkaAddress,
    *,
    tenant: str | None = None,
    actor: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    max_event_bytes: int | None = None,
    keys: KeyProvider | None = None,
    principal: Principal | None = None,
    reason: str | None = None,
    access: AccessMode | str | None = None,
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
        principal: who asks: see `CheckpointStore.for_principal`. None: the local user, as an admin.
        reason: of the principal's, for the record of accesses.
        access: record accesses at least so strictly; the store's own mode when None, and never less than that.
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
    wanted = None if access is None else access_mode(access)
    if principal is not None and actor is not None and actor != principal.subject:
        raise InvalidRequest(
            "actor", f"is {actor} where {principal.subject} is asking", hint="The subject is the actor: leave the actor out."
        )
    actor = _login() if actor is None else actor
    if isinstance(where, DirectoryAddress):
        parts = _directory(where, max_event_bytes, keys, wanted, looks_on)
    else:
        parts = _topic(where, max_event_bytes, keys, wanted)
    return _opened(parts, tenant=tenant, actor=actor, timeout=timeout, principal=principal, reason=reason)


def open_unfinished_topic(
    where: KafkaAddress, must_be: Spec, *, actor: str | None, keys: KeyProvider | None, principal: Principal | None, reason: str | None
) -> CheckpointStore:
    """The store in a topic whose settings are not yet those of a log, for whoever makes it. Otherwise as `open_store`."""
    parts = _topic(where, None, keys, None, must_be=must_be)
    who = _login() if actor is None else actor
    return _opened(parts, tenant=None, actor=who, timeout=DEFAULT_TIMEOUT, principal=principal, reason=reason)


def _opened(
    parts: _Parts, *, tenant: str | None, actor: str, timeout: float, principal: Principal | None, reason: str | None
) -> CheckpointStore:
    is_plain = principal is None and parts.recorder is None  # nobody has to be asked for, and nothing recorded
    whole = parts.store(tenant=tenant if is_plain else None, actor=actor, timeout=timeout)
    if parts.erased:
        _erase_again(whole)
    if is_plain:
        return whole
    try:
        who = Principal(actor, None, [Role.ADMIN]) if principal is None else principal.within(tenant)
        return PrincipalStore(whole, who, reason=reason, tenant=tenant, owns=True)
    except BaseException:
        whole.close()
        raise


class _Parts(NamedTuple):
    """What a store consists of, each part open."""

    log: Log
    projector: CurrentProjection
    keeps_gaps: bool
    keys: DataKeys | None
    recorder: AccessRecorder | None
    erased: Mapping[str, Erased]
    bodies: ArchivedBodies | None = None  # on Kafka the projection has them

    def store(self, *, tenant: str | None, actor: str, timeout: float) -> CheckpointStore:
        catalog = Catalog(projector=self.projector, keeps_gaps=self.keeps_gaps, tenant=tenant, accesses=self.recorder)
        return CheckpointStore(
            log=self.log,
            catalog=catalog,
            tenant=tenant,
            actor=actor,
            timeout=timeout,
            keys=self.keys,
            bodies=self.bodies,
            recorder=self.recorder,
            erased=self.erased,
        )


def _directory(
    where: DirectoryAddress, max_event_bytes: int | None, given: KeyProvider | None, wanted: AccessMode | None, looks_on: bool
) -> _Parts:
    log = EmbeddedLog(directory=where.directory, max_event_bytes=max_event_bytes or DEFAULT_MAX_EVENT_BYTES)
    log.open()
    with contextlib.ExitStack() as if_it_fails:
        if_it_fails.callback(log.close)
        keys = open_keys(log, source=log.key_source, open_table=lambda: _embedded_keys(log), given=given)
        if keys is not None:
            if_it_fails.callback(keys.close)
        own = access_mode(log.access or AccessMode.OFF)
        mode = _mode(own, wanted)
        accesses = None if mode is AccessMode.OFF else open_access_file(where.directory, make=own is AccessMode.OFF)
        if_it_fails.pop_all()
    recorder = None if accesses is None else AccessRecorder(log=accesses, mode=mode).open()
    bodies = ArchivedBodies(state=where.directory)
    projector = Projector(log=log, directory=where.directory, private=looks_on)
    return _Parts(log, projector, False, keys, recorder, _erased(log), bodies)


def _topic(
    where: KafkaAddress,
    max_event_bytes: int | None,
    given: KeyProvider | None,
    wanted: AccessMode | None,
    *,
    must_be: Spec | None = None,
) -> _Parts:
    from eventlog.kafka.access import open_access_topic
    from eventlog.kafka.log import open_kafka_log

    log = open_kafka_log(where, max_event_bytes=max_event_bytes, must_be=must_be)
    with contextlib.ExitStack() as if_it_fails:
        if_it_fails.callback(log.close)
        keys = open_keys(log, source=log.key_source, open_table=log.open_keys, given=given)
        if keys is not None:
            if_it_fails.callback(keys.close)
        found = open_access_topic(where)
        mode = _mode(AccessMode.OFF if found is None else found[1], wanted)
        if found is None:
            _require_no_access_topic(where, log, mode)
        if_it_fails.pop_all()
    recorder = None if found is None else AccessRecorder(log=found[0], mode=mode).open()
    return _Parts(log, log.projector, True, keys, recorder, _erased(log))


def _erased(log: EmbeddedLog | KafkaLog) -> Mapping[str, Erased]:
    return register_of(log.directory, log.identity.store_id).erased()


def _erase_again(whole: CheckpointStore) -> None:
    """What an older log that was put back has again, although it was erased."""
    from eventlog.erasure.applying import apply_register, is_behind

    try:
        if is_behind(whole):
            apply_register(whole)
    except BaseException:
        whole.close()
        raise


def _require_no_access_topic(where: KafkaAddress, log: KafkaLog, mode: AccessMode) -> None:
    """Raises `ConfigurationError` where accesses must be recorded, or were once, and there is no topic for them."""
    followed = progress(log.view.flushed()) is not None
    if followed or mode is not AccessMode.OFF:
        why = "its projection has followed one: it was deleted" if followed else "accesses must be recorded here"
        hint = "Find out who deleted it." if followed else "It is made with the store: `eventlog init --access strict`."
        raise ConfigurationError(f"{where} has no access topic, and {why}", hint=hint)


def _mode(own: AccessMode, wanted: AccessMode | None) -> AccessMode:
    """The mode that a store is opened in: its own, or a stricter one."""
    if wanted is None or wanted.strictness >= own.strictness:
        return own if wanted is None else wanted
    raise ConfigurationError(
        f"this store records accesses in the mode {own}, and {wanted} would be less",
        hint="What was chosen when the store was made can be tightened, not loosened.",
    )


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
        keys=keys,
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
