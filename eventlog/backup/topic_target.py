"""A backup of a store on Kafka restored into a new topic: the same events in the same order, at other offsets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from eventlog.address import KafkaAddress
from eventlog.archive.directory import Archive
from eventlog.archive.replay import archived_records
from eventlog.backup.companions import LOG
from eventlog.backup.directory_target import HINT, Restorer, require_as_backed_up
from eventlog.backup.manifest import Backup
from eventlog.backup.topic_companions import put_accesses_back, put_keys_back
from eventlog.erasure.register import REGISTER_FILE
from eventlog.errors import ConfigurationError, Corrupted, StorageError
from eventlog.kafka.erased import without_erased
from eventlog.kafka.restoring import RestoringSpec, begin, finish, finish_accesses, produce, require_free
from eventlog.kafka.topic import TopicSpec
from eventlog.log import Record
from eventlog.opening import open_unfinished_topic
from eventlog.position import Position
from eventlog.privacy.access_log import AccessMode
from eventlog.privacy.guard import Access
from eventlog.privacy.principals import Operation
from eventlog.privacy.providers import KeyProvider
from eventlog.projection_files import PROJECTION_FILE, discard_file
from eventlog.store import CheckpointStore
from projections.durable import make_directory

NOTE = "restoring"


@contextlib.contextmanager
def restored_topic(
    backup: Backup,
    where: KafkaAddress,
    *,
    erased: Collection[str],
    keys: KeyProvider | None,
    who: Restorer,
    finish_it: bool,
    progress: Callable[[str, int], None],
) -> Iterator[CheckpointStore]:
    """The restored store, open, verified, and refused to everybody else until the block ends without an error.

    `erased`: checkpoints whose payloads and keys do not even get into the topics, which nothing but compaction would take them out of.
    """
    manifest = backup.manifest
    archive = _Emptied(Archive(directory=backup.folder(LOG)), erased)
    require_free(where)
    note = _claim_state(where)
    mode = AccessMode(manifest.access)
    state = begin(where, partitions=manifest.anchor.partitions, encrypted=manifest.encrypted, access=mode)
    if manifest.encrypted:
        progress("copying keys", 0)
        put_keys_back(backup, where, erased)
    progress("copying access", 0)
    put_accesses_back(backup, where)
    finish_accesses(where, mode)
    produce(where, state.topic_id, archive.records(), progress=lambda count: progress("copying log", count))
    spec = RestoringSpec(TopicSpec.of(where))
    with (
        open_unfinished_topic(where, spec, actor=who.actor, keys=keys, principal=who.principal, reason=who.reason) as opened,
        opened.entrusted(Operation.RESTORE, Access(Operation.RESTORE, target=str(backup.directory))) as store,
    ):
        _require_same_records(store, archive, str(backup.directory))
        require_as_backed_up(store, backup, progress)
        yield store
    if finish_it:
        finish(where, state)
    if note is not None:
        note.unlink()


class _Emptied:
    """The records of a backup, those of erased checkpoints without their payloads."""

    def __init__(self, archive: Archive, erased: Collection[str]) -> None:
        self._archive = archive
        self._erased = erased

    def records(self, partition: int | None = None) -> Iterator[Sequence[Record]]:
        for batch in archived_records(self._archive, partition):
            yield without_erased(batch, self._erased)

    def one_by_one(self, partition: int) -> Iterator[Record]:
        for batch in self.records(partition):
            yield from batch


def _claim_state(where: KafkaAddress) -> Path | None:
    """Where the address names a directory for the projection: a note in there that what is found beside it is of no store yet.

    Raises `ConfigurationError` when it has a store's state already, unless an interrupted restore has left it: that is removed.
    """
    given = where.settings.get("state")
    if given is None:
        return None  # the topic's own directory, which is new as it is
    directory = Path(given).expanduser()
    note, projection, register = directory / NOTE, directory / PROJECTION_FILE, directory / REGISTER_FILE
    try:
        make_directory(directory)
        if note.exists():
            discard_file(projection)
            register.unlink(missing_ok=True)
        elif projection.exists() or register.exists():
            raise ConfigurationError(f"{directory} holds the state of another store", hint="Name a new directory with ?state=DIR.")
        note.touch()
    except OSError as error:
        raise StorageError(str(directory), f"cannot be written: {error.strerror}") from error
    return note


def _require_same_records(store: CheckpointStore, archive: _Emptied, place: str) -> None:
    """Raises `Corrupted` unless the topic holds, partition by partition, exactly the archived records: keys, bytes, times, order."""
    expected = {number: archive.one_by_one(number) for number in range(store.log.identity.partitions)}
    for records, _ in store.log.read(Position()):
        for each in records:
            archived = next(expected[each.partition], None)
            if archived is None or (archived.key, archived.value, archived.recorded_at) != (each.key, each.value, each.recorded_at):
                problem = f"the record at {each.partition}:{each.offset} of the restored topic is not the one that was backed up"
                raise Corrupted(place, problem, hint=HINT)
    missing = [number for number, records in expected.items() if next(records, None) is not None]
    if missing:
        raise Corrupted(place, f"partition {missing[0]} of the restored topic lacks records that were backed up", hint=HINT)
