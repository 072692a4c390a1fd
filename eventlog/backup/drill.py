"""A drill: a backup is restored aside, held against the live store, and thrown away."""

from __future__ import annotations

import contextlib
import random
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from eventlog import codec
from eventlog.address import DirectoryAddress, KafkaAddress, parse_address
from eventlog.archive.running import require_all_tenants
from eventlog.backup.directory_target import Restorer
from eventlog.backup.manifest import Backup, Manifest, read_backup
from eventlog.backup.restoring import Progress, restored_aside
from eventlog.erasure.carrying import carry_register, given_register
from eventlog.erasure.register import register_of
from eventlog.errors import CheckpointError, ConfigurationError, Corrupted, ErasureIncomplete, HistoryRemoved, NotFound
from eventlog.event import EventHeader
from eventlog.log import Record
from eventlog.position import Position
from eventlog.privacy.guard import Access
from eventlog.privacy.principals import Operation
from eventlog.privacy.providers import KeyProvider
from eventlog.store import CheckpointStore

MOST_DIFFERENCES = 200  # kept; all are counted
SAMPLE = 200  # revisions whose payloads are read in both
_HASH = 32


@dataclass
class Drill:
    """What a drill found. Counts are of the backup's events, but for `live_events`, which are the live store's up to its position."""

    manifest: Manifest
    events: int = 0
    live_events: int = 0
    checkpoints: int = 0
    erased_since: int = 0  # events whose body the live store has not any more
    removed_since: int = 0  # events that the live store on Kafka has not any more, as after a compaction
    payloads: int = 0  # that were read in both, and are the same
    erased_again: int = 0  # checkpoints that the live store's erasure register names, and that the backup still had
    restore_seconds: float = 0.0
    compare_seconds: float = 0.0
    differences: list[str] = field(default_factory=list)
    difference_count: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether the backup would give back what the live store has."""
        return not self.difference_count

    def differs(self, what: str) -> None:
        """Counts a difference; keeps it if there is room."""
        self.difference_count += 1
        if len(self.differences) < MOST_DIFFERENCES:
            self.differences.append(what)


def drill(
    directory: Path,
    live: CheckpointStore,
    address: str | Path | DirectoryAddress | KafkaAddress,
    *,
    keys: KeyProvider | None = None,
    keys_from: Path | None = None,
    aside: Path | None = None,
    progress: Progress | None = None,
) -> Drill:
    """Restores a backup where nobody looks for it, verifies it, compares it with the live store as of its position, and removes it.

    Every event's hash and order is compared, every head, and the payloads of a sample; what was erased or compacted since is counted apart.
    Then what the live store's erasure register names is erased in it, as a restore would do.

    Arguments:
        live: the store that was backed up, open. Others may use it meanwhile.
        address: where that is: a topic is restored beside it.
        keys, keys_from: see `restore`.
        aside: a directory with room for the restored store; the system's for temporary files when None.

    Returns what was found; a backup that cannot be restored is a difference too. Raises `NotAStore`, `ConfigurationError` (it is another
    store's), `AccessDenied`, `AuditUnavailable`, `KeysUnavailable`, `StorageError` or `Unavailable`.
    """
    with live.entrusted(Operation.BACKUP_DRILL, Access(Operation.BACKUP_DRILL, target=str(directory))) as whole:
        require_all_tenants(whole)
        backup = read_backup(directory, keys_from=keys_from)
        return _drilled(backup, whole, parse_address(address), keys, aside, progress or (lambda _what, _reached: None))


def _drilled(
    backup: Backup,
    live: CheckpointStore,
    address: DirectoryAddress | KafkaAddress,
    keys: KeyProvider | None,
    aside: Path | None,
    tell: Progress,
) -> Drill:
    identity = live.log.identity
    if backup.manifest.anchor.store_id != identity.store_id:
        what = f"{backup.directory} is a backup of store {backup.manifest.anchor.store_id}, not of {identity.store_id}"
        raise ConfigurationError(what, hint="Name the store that it was made of with --store.")
    found = Drill(backup.manifest)
    begun = time.monotonic()
    register = register_of(live.log.directory, identity.store_id)
    erased = register.erased()
    who = Restorer(actor=live.actor, reason="a drill")
    try:
        with (
            _place(address, aside) as place,
            restored_aside(backup, place, erased=erased.keys(), keys=keys, who=who, finish=False, progress=tell) as restored,
        ):
            found.restore_seconds = time.monotonic() - begun
            _compare(found, restored, live, tell)
            if erased:
                given = given_register(register.path, identity.store_id, since=backup.manifest.register)
                found.erased_again = carry_register(given, restored).present
    except (Corrupted, ErasureIncomplete) as error:
        found.differs(str(error))
    found.compare_seconds = time.monotonic() - begun - found.restore_seconds if found.restore_seconds else 0.0
    return found


@contextlib.contextmanager
def _place(live: DirectoryAddress | KafkaAddress, aside: Path | None) -> Iterator[DirectoryAddress | KafkaAddress]:
    """Where to restore to; nothing is left of it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="eventlog-drill-", dir=aside))
    try:
        if isinstance(live, DirectoryAddress):
            yield DirectoryAddress(folder / "store")
            return
        from eventlog.kafka.restoring import delete

        settings = {**live.settings, "state": str(folder / "state")}
        topic = replace(live, topic=f"{live.topic[:180]}.drill-{secrets.token_hex(6)}", settings=settings)
        try:
            yield topic
        finally:
            delete(topic)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _compare(found: Drill, restored: CheckpointStore, live: CheckpointStore, tell: Progress) -> None:
    hashes: dict[int, bytearray] = {number: bytearray() for number in range(restored.log.identity.partitions)}
    heads: dict[str, tuple[int, bytes]] = {}
    sample = _Sample(found.manifest.backup_id)
    for records, _ in restored.log.revisions(Position()):
        for record in records:
            header, digest = _read(record)
            hashes[record.partition] += digest
            heads[header.checkpoint_id] = (header.revision, digest)
            sample.offer(header)
        found.events += len(records)
        tell("reading the restored store", found.events)
    found.checkpoints = len(heads)
    walks = {number: _Walk(found, number, expected) for number, expected in hashes.items()}
    for records, _ in live.log.revisions(Position()):
        for record in records:
            if record.offset < found.manifest.anchor.position.next_offset(record.partition):
                walks[record.partition].live(record)
        tell("reading the live store", found.live_events)
    for walk in walks.values():
        walk.finish(may_be_removed=live.catalog.has_gaps())
    for checkpoint_id, (revision, digest) in heads.items():
        latest = restored.log.latest(checkpoint_id)
        if latest is None or _is_other(latest, revision, digest):
            found.differs(f"the restored store does not have revision {revision} as the head of checkpoint {checkpoint_id}")
    for checkpoint_id, revision in sample.taken:
        _compare_payload(found, restored, live, checkpoint_id, revision)


def _read(record: Record) -> tuple[EventHeader, bytes]:
    if record.damage is not None or record.value is None:
        raise Corrupted(f"log at {record.partition}:{record.offset}", record.damage or "there is no event")
    return codec.decode_header(record.value)


def _is_other(record: Record, revision: int, digest: bytes) -> bool:
    header, found = _read(record)
    return (header.revision, found) != (revision, digest)


class _Walk:
    """One partition of the live log beside the restored one, event by event. Offsets may be others; the order is the same."""

    def __init__(self, found: Drill, partition: int, expected: bytearray) -> None:
        self._found = found
        self._partition = partition
        self._expected = expected
        self._at = 0
        self._missing = 0

    def live(self, record: Record) -> None:
        header, digest = _read(record)
        assert record.value is not None
        self._found.live_events += 1
        if self._found.difference_count >= MOST_DIFFERENCES:
            return  # it is another log
        where = self._at
        while where < len(self._expected) and self._expected[where : where + _HASH] != digest:
            where += _HASH  # the live store may lack what the backup has, never the other way round
        if where == len(self._expected):
            what = (
                f"revision {header.revision} of checkpoint {header.checkpoint_id} at {record.partition}:{record.offset} of the live store"
            )
            self._found.differs(f"{what} is not in the backup, or not in this place")
            return
        self._missing += (where - self._at) // _HASH
        self._at = where + _HASH
        if record.moved is None and header.payload_size and not codec.decode(record.value, verify=False).salt:
            self._found.erased_since += 1

    def finish(self, *, may_be_removed: bool) -> None:
        self._missing += (len(self._expected) - self._at) // _HASH
        if not self._missing:
            return
        if may_be_removed:
            self._found.removed_since += self._missing
        else:
            self._found.differs(f"{self._missing} events of the backup are not in partition {self._partition} of the live store")


class _Sample:
    """Some revisions of a stream of unknown length, each as likely as any other."""

    def __init__(self, seed: str) -> None:
        self.taken: list[tuple[str, int]] = []
        self._chance = random.Random(seed)
        self._seen = 0

    def offer(self, header: EventHeader) -> None:
        self._seen += 1
        one = (header.checkpoint_id, header.revision)
        if len(self.taken) < SAMPLE:
            self.taken.append(one)
        elif (place := self._chance.randrange(self._seen)) < SAMPLE:
            self.taken[place] = one


def _compare_payload(found: Drill, restored: CheckpointStore, live: CheckpointStore, checkpoint_id: str, revision: int) -> None:
    """What the live store cannot read any more, or cannot read without keys, cannot be compared."""
    for store in (restored, live):
        if store.keys is not None and not store.keys.can_open:
            return
    try:
        expected = live.load_revision(checkpoint_id, revision=revision).checkpoint.payload
    except (HistoryRemoved, NotFound):
        return
    what = f"the payload of checkpoint {checkpoint_id} revision {revision}"
    try:
        actual = restored.load_revision(checkpoint_id, revision=revision).checkpoint.payload
    except CheckpointError as error:
        found.differs(f"{what} cannot be read in the restored store: {error}")
        return
    if actual != expected:
        found.differs(f"{what} is another one in the restored store")
    else:
        found.payloads += 1
