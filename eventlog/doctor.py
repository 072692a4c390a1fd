"""Looks a store over and says what to do about what it finds. Reads only."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from eventlog.address import DirectoryAddress, KafkaAddress, parse_address
from eventlog.diagnosis import kept, machine
from eventlog.diagnosis import store as state_of
from eventlog.diagnosis.check import Check as Check
from eventlog.diagnosis.check import State as State
from eventlog.diagnosis.check import human
from eventlog.embedded_files import LOG_FILE
from eventlog.errors import CheckpointError
from eventlog.opening import open_store
from eventlog.position import Position
from eventlog.privacy.principals import Operation, Principal
from eventlog.privacy.providers import KeyProvider
from eventlog.store import CheckpointStore

LEAST_FREE_BYTES = 1 << 30
LEAST_FREE_SHARE = 0.05  # of the disk, but
LARGEST_RESERVE = 20 << 30  # never more than this
LARGEST_WAL_BYTES = 64 << 20  # SQLite cleans up at 4 MB; more means that a reader has kept it from doing so
_PACKAGES = ("duckdb", "kafka-python", "fastavro", "pydantic")


def examine(address: str, *, timeout: float = 10.0, keys: KeyProvider | None = None, principal: Principal | None = None) -> Iterator[Check]:
    """Every check of a store, each as soon as it is known. A check that cannot be made is a failed one; nothing is raised.

    Arguments:
        timeout: seconds to wait for the log.
        keys: of an encrypted store; None: where it remembers them.
        principal: who asks; the local user when None.
    """
    yield Check("versions", State.OK, _versions())
    yield machine.open_files()
    try:
        where = parse_address(address)
    except CheckpointError as error:
        yield _failed("address", error)
        return
    if isinstance(where, DirectoryAddress):
        yield from _directory(where.directory)
    else:
        topic = _topic(where)
        yield topic
        yield _disk("disk", _existing(where))
        yield machine.file_system(_existing(where))
        if topic.state is State.FAIL:
            return  # the store would refuse it with the same words
    try:
        store = open_store(where, timeout=timeout, keys=keys, principal=principal)
    except CheckpointError as error:
        yield _failed("open", error)
        return
    with store:
        try:
            with store.entrusted(Operation.DOCTOR) as whole:
                for name, look in _LOOKS.items():
                    yield _made(name, look, whole, where)
                if isinstance(where, KafkaAddress):
                    yield from _brokers(whole, where)
        except CheckpointError as error:
            yield _failed("access", error)


def _made(
    name: str,
    look: Callable[[CheckpointStore, DirectoryAddress | KafkaAddress], Check],
    store: CheckpointStore,
    where: DirectoryAddress | KafkaAddress,
) -> Check:
    try:
        return look(store, where)
    except CheckpointError as error:
        return _failed(name, error)


def _failed(name: str, error: CheckpointError) -> Check:
    return Check(name, State.FAIL, str(error), error.hint)


def _versions() -> str:
    packages = [f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES]
    return ", ".join([f"Python {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}", *packages])


# -- a directory -----------------------------------------------------------------------------------------------


def _directory(directory: Path) -> Iterator[Check]:
    if not directory.is_dir():
        yield Check(
            "directory", State.FAIL, f"{directory} is not a directory", "Correct the address, or make a store with `eventlog init`."
        )
        return
    yield _permissions(directory)
    yield _disk("disk", directory)
    yield machine.file_system(directory)
    yield state_of.snapshot(directory)
    wal = directory / f"{LOG_FILE}-wal"
    size = _size(wal)
    if size > LARGEST_WAL_BYTES:
        advice = "A process keeps reading an old state: close long subscriptions or stop forgotten processes."
        yield Check("write-ahead log", State.WARN, f"{human(size)} in {wal.name}", advice)
    else:
        yield Check("write-ahead log", State.OK, f"{human(size)}")


def _permissions(directory: Path) -> Check:
    paths = [directory, *sorted(each for each in directory.iterdir() if each.is_file())]
    refused = [each.name for each in paths if not os.access(each, os.R_OK | os.W_OK)]
    if refused:
        return Check("permissions", State.FAIL, f"not readable and writable: {', '.join(refused[:5])}", f"Give user {os.getuid()} access.")
    if directory.stat().st_mode & 0o002:
        return Check("permissions", State.WARN, f"{directory} may be written by everybody", f"chmod o-w {directory}")
    return Check("permissions", State.OK, f"{len(paths) - 1} files, all readable and writable")


def _disk(name: str, directory: Path) -> Check:
    usage = shutil.disk_usage(directory)
    detail = f"{human(usage.free)} of {human(usage.total)} free at {directory}"
    if usage.free < max(LEAST_FREE_BYTES, min(usage.total * LEAST_FREE_SHARE, LARGEST_RESERVE)):
        return Check(name, State.WARN, detail, "Free some space: a full disk stops every write.")
    return Check(name, State.OK, detail)


# -- a topic ---------------------------------------------------------------------------------------------------


def _topic(where: KafkaAddress) -> Check:
    try:
        from eventlog.kafka.keys_topic import check_topics  # refuses another version of the client than the one that it guards

        differences = check_topics(where)
    except CheckpointError as error:
        return _failed("topic", error)
    if differences:
        advice = "The store does not open such a topic: correct it with Kafka's own tools."
        return Check("topic", State.FAIL, "; ".join(differences), advice)
    return Check("topic", State.OK, f"{where} has the settings that the store insists on")


def _brokers(store: CheckpointStore, where: KafkaAddress) -> Iterator[Check]:
    from eventlog.kafka.examination import replicas, transactions

    partitions = store.log.identity.partitions
    yield _made("replicas", lambda *_: replicas(where), store, where)
    yield _made("transactions", lambda *_: transactions(where, partitions), store, where)


def _existing(where: KafkaAddress) -> Path:
    """The nearest directory that is there, of the projection's own."""
    state = where.settings.get("state")
    path = Path(state) if state else Path.home()
    while not path.is_dir() and path != path.parent:
        path = path.parent
    return path


# -- what an open store knows ----------------------------------------------------------------------------------


def _identity(store: CheckpointStore, where: DirectoryAddress | KafkaAddress) -> Check:
    identity = store.log.identity
    return Check("open", State.OK, f"{where}, store {identity.store_id}, {identity.partitions} partition{'s' * (identity.partitions > 1)}")


def _log(store: CheckpointStore, _where: DirectoryAddress | KafkaAddress) -> Check:
    return Check("log", State.OK, f"ends at {store.position()}")


def _projection(store: CheckpointStore, where: DirectoryAddress | KafkaAddress) -> Check:
    end = store.position()
    projection = store.catalog.projection()
    reached = Position.of(projection.positions())
    path = projection.path
    if not reached.covers(end):
        return Check("projection", State.WARN, f"at {reached}, the log at {end}", "Wait; if it stays behind, `eventlog rebuild`.")
    if isinstance(where, DirectoryAddress) and path is not None and path.parent.resolve() != where.directory.resolve():
        advice = "Reports here are built privately from the last snapshot: slower to start, not less current."
        return Check("projection", State.WARN, f"in use by another process; up to date at {reached}", advice)
    return Check("projection", State.OK, f"up to date at {reached}, {human(0 if path is None else _size(path))}")


def _quarantine(store: CheckpointStore, _where: DirectoryAddress | KafkaAddress) -> Check:
    rows = store.catalog.sql(
        'SELECT checkpoint_id::VARCHAR, reason, partition, "offset" FROM quarantined_records WHERE blocks ORDER BY partition, "offset"'
    ).rows
    if not rows:
        return Check("quarantine", State.OK, "no record is quarantined")
    named = "; ".join(
        f"{partition}:{offset} {checkpoint or 'no checkpoint'}: {reason}" for checkpoint, reason, partition, offset in rows[:3]
    )
    advice = "Somebody else wrote to the log: restrict write access by ACLs. These checkpoints are read-only at their last good revision."
    return Check("quarantine", State.FAIL, f"{len(rows)} records: {named}" + ("; ..." if len(rows) > 3 else ""), advice)


def _gaps(store: CheckpointStore, _where: DirectoryAddress | KafkaAddress) -> Check:
    rows = store.catalog.sql(
        "SELECT reason, count(*), count(DISTINCT checkpoint_id) FROM checkpoint_gaps GROUP BY reason ORDER BY reason"
    ).rows
    if not rows:
        return Check("gaps", State.OK, "no revision is missing")
    detail = ", ".join(f"{count} by {reason} in {checkpoints} checkpoints" for reason, count, checkpoints in rows)
    return Check("gaps", State.WARN, detail, "What compaction removed is gone from the log; `eventlog log ID` shows where.")


_LOOKS: dict[str, Callable[[CheckpointStore, DirectoryAddress | KafkaAddress], Check]] = {
    "open": _identity,
    "encryption": lambda store, _: kept.encryption(store),
    "log": _log,
    "projection": _projection,
    "quarantine": _quarantine,
    "gaps": _gaps,
    "archive": kept.archive,
    "access": kept.access,
    "clock": lambda store, _: state_of.clock(store),
    "runs": lambda store, _: state_of.runs(store),
}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
