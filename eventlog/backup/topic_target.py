"""A backup of a store on Kafka restored into a new topic: the same events in the same order, at other offsets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from eventlog.address import KafkaAddress
from eventlog.archive.directory import Archive
from eventlog.archive.replay import archived_records
from eventlog.backup.companions import KEYS, LOG
from eventlog.backup.directory_target import HINT, require_as_backed_up
from eventlog.backup.manifest import Backup
from eventlog.catalog import Catalog
from eventlog.errors import ConfigurationError, Corrupted, StorageError
from eventlog.kafka.keys_record import decode
from eventlog.kafka.keys_topic import open_new_table
from eventlog.kafka.log import open_kafka_log
from eventlog.kafka.restoring import RestoringSpec, begin, finish, produce, require_free
from eventlog.kafka.topic import TopicSpec
from eventlog.log import Record
from eventlog.opening import login
from eventlog.position import Position
from eventlog.privacy.keys import WrappedKey
from eventlog.privacy.opening import open_keys
from eventlog.privacy.providers import KeyProvider
from eventlog.projector import PROJECTION_FILE, discard_file
from eventlog.store import CheckpointStore
from projections.durable import make_directory

KEY_RECORDS = "keys.jsonl"
NOTE = "restoring"
_KEYS_AT_ONCE = 500


@contextlib.contextmanager
def restored_topic(
    backup: Backup,
    where: KafkaAddress,
    *,
    keys: KeyProvider | None,
    actor: str | None,
    finish_it: bool,
    progress: Callable[[str, int], None],
) -> Iterator[CheckpointStore]:
    """The restored store, open, verified, and refused to everybody else until the block ends without an error."""
    manifest = backup.manifest
    archive = Archive(directory=backup.folder(LOG))
    require_free(where)
    note = _claim_state(where)
    state = begin(where, partitions=manifest.anchor.partitions, encrypted=manifest.encrypted)
    if manifest.encrypted:
        progress("copying keys", 0)
        _put_keys_back(backup, where)
    produce(where, state.topic_id, archived_records(archive), progress=lambda count: progress("copying log", count))
    log = open_kafka_log(where, must_be=RestoringSpec(TopicSpec.of(where)))
    try:
        data_keys = open_keys(log, source=log.key_source, open_table=log.open_keys, given=keys)
    except BaseException:
        log.close()
        raise
    catalog = Catalog(projector=log.projector, keeps_gaps=True, tenant=None)
    with CheckpointStore(log=log, catalog=catalog, tenant=None, actor=login() if actor is None else actor, keys=data_keys) as store:
        _require_same_records(store, archive, str(backup.directory))
        require_as_backed_up(store, backup, progress)
        yield store
    if finish_it:
        finish(where, state)
    if note is not None:
        note.unlink()


def _claim_state(where: KafkaAddress) -> Path | None:
    """Where the address names a directory for the projection: a note in there that what is found beside it is of no store yet.

    Raises `ConfigurationError` when it has a projection already, unless an interrupted restore has left it: that one is removed.
    """
    given = where.settings.get("state")
    if given is None:
        return None  # the topic's own directory, which is new as it is
    directory = Path(given).expanduser()
    note, projection = directory / NOTE, directory / PROJECTION_FILE
    try:
        make_directory(directory)
        if note.exists():
            discard_file(projection)
        elif projection.exists():
            raise ConfigurationError(f"{directory} holds the projection of another store", hint="Name a new directory with ?state=DIR.")
        note.touch()
    except OSError as error:
        raise StorageError(str(directory), f"cannot be written: {error.strerror}") from error
    return note


def _put_keys_back(backup: Backup, where: KafkaAddress) -> None:
    assert backup.manifest.key_source is not None
    with contextlib.closing(open_new_table(where)) as table:
        table.remember(backup.manifest.key_source)
        if backup.lacks(KEYS):
            return
        keys = _keys_of(backup)
        while batch := list(islice(keys, _KEYS_AT_ONCE)):
            table.put_all(batch)


def _keys_of(backup: Backup) -> Iterator[WrappedKey]:
    path = backup.folder(KEYS) / KEY_RECORDS
    try:
        with path.open("rb") as file:
            yield from map(decode, file)
    except OSError as error:
        raise StorageError(str(path), f"cannot be read: {error.strerror}") from error


def _require_same_records(store: CheckpointStore, archive: Archive, place: str) -> None:
    """Raises `Corrupted` unless the topic holds, partition by partition, exactly the archived records: keys, bytes, times, order."""
    expected = {number: _one_by_one(archive, number) for number in range(store.log.identity.partitions)}
    for records, _ in store.log.read(Position()):
        for each in records:
            archived = next(expected[each.partition], None)
            if archived is None or (archived.key, archived.value, archived.recorded_at) != (each.key, each.value, each.recorded_at):
                problem = f"the record at {each.partition}:{each.offset} of the restored topic is not the one that was backed up"
                raise Corrupted(place, problem, hint=HINT)
    missing = [number for number, records in expected.items() if next(records, None) is not None]
    if missing:
        raise Corrupted(place, f"partition {missing[0]} of the restored topic lacks records that were backed up", hint=HINT)


def _one_by_one(archive: Archive, partition: int) -> Iterator[Record]:
    for batch in archived_records(archive, partition):
        yield from batch
