"""Restoring a backup into an empty place: everything is verified, and what was erased since is erased again, before anybody can open it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from eventlog.address import DirectoryAddress, KafkaAddress, parse_address
from eventlog.backup.companions import KEYS
from eventlog.backup.directory_target import restored_directory
from eventlog.backup.manifest import Backup, Manifest, read_backup
from eventlog.backup.record import record_restore
from eventlog.errors import Corrupted, InvalidRequest
from eventlog.privacy.providers import KeyProvider, NoKeys
from eventlog.store import CheckpointStore

Register = Callable[[CheckpointStore], int]  # applies an erasure register to a store that nobody else can open yet; how many it erased
Progress = Callable[[str, int], None]
MAX_REASON = 1_000


class Restored(NamedTuple):
    """What a restore did."""

    address: str
    store_id: str
    manifest: Manifest
    erasures: int | None  # applied from the register; None: there was none
    recorded: bool  # False: an encrypted store was restored without keys, and nothing can be written to it
    has_keys: bool  # whether the wrapped keys of an encrypted store were restored with it; without them payloads cannot be read


def restore(
    directory: Path,
    to: str | Path | DirectoryAddress | KafkaAddress,
    *,
    register: Register | None = None,
    without_register: str | None = None,
    keys: KeyProvider | None = None,
    keys_from: Path | None = None,
    actor: str | None = None,
    progress: Progress | None = None,
) -> Restored:
    """Makes a store of a backup, in a place where none is.

    Files, hashes, chains, rules and Merkle roots are checked before the store has its name. Killed at any instruction, it leaves nothing
    that opens as a store: it is started again from the beginning.

    Arguments:
        directory: the backup.
        to: a new or empty directory, or a topic that is not there; of the same kind as the backed-up store.
        register: applies the erasure register, so that nothing comes back that was erased after the backup.
        without_register: why there is none; recorded in the restored store. Exactly one of the two must be given.
        keys: of an encrypted store; None: where the store remembers that they are. `NoKeys()`: its payloads stay sealed.
        keys_from: where the backup's wrapped keys are, if they were moved elsewhere: what was its folder `keys`.
        actor: who restores, for the audit.
        progress: called with what is going on and how far it is.

    Raises `NotAStore` (there is no backup), `Corrupted` (naming the file that is not as it was backed up, or what is wrong with what was
    restored), `ConfigurationError` (the place is taken), `InvalidRequest`, `KeysUnavailable`, `StorageError` or `Unavailable`.
    """
    if (register is None) == (without_register is None):
        what = (
            "and a reason to do without it are both given" if register else "is not given: what was erased since the backup would be back"
        )
        hint = "Give the register; or, if there is none, say why with --without-erasure-register REASON, which is recorded."
        raise InvalidRequest("erasure register", what, hint=hint)
    if without_register is not None and not 0 < len(without_register.strip()) <= MAX_REASON:
        raise InvalidRequest("without_register", f"is no reason (1 to {MAX_REASON} characters)")
    backup = read_backup(directory, keys_from=keys_from)
    with restored_aside(backup, to, keys=keys, actor=actor, progress=progress) as store:
        erasures = None if register is None else register(store)
        recorded = record_restore(store, backup.manifest, erasures=erasures, without_register=without_register)
        store_id = store.log.identity.store_id
    has_keys = backup.manifest.encrypted and not backup.lacks(KEYS)
    return Restored(str(parse_address(to)), store_id, backup.manifest, erasures, recorded, has_keys)


@contextlib.contextmanager
def restored_aside(
    backup: Backup,
    to: str | Path | DirectoryAddress | KafkaAddress,
    *,
    keys: KeyProvider | None = None,
    actor: str | None = None,
    finish: bool = True,
    progress: Progress | None = None,
) -> Iterator[CheckpointStore]:
    """The restored store, verified, while nobody else can open it. When the block ends without an error, anybody can.

    Arguments:
        finish: False: nobody ever can; of a topic, the caller deletes it.

    The others, and what it raises, are those of `restore`.
    """
    where = parse_address(to)
    kind = "embedded" if isinstance(where, DirectoryAddress) else "kafka"
    manifest = backup.manifest
    if kind != manifest.kind:
        problem = f"is {where}, and the backup is one of a store of the kind {manifest.kind}: the other log is not restored to"
        raise InvalidRequest("to", problem, hint="A directory for an embedded store, kafka://host:port/topic for one on Kafka.")
    tell = progress or (lambda _what, _reached: None)
    lacks_keys = backup.lacks(KEYS)
    if manifest.files_of(KEYS) and lacks_keys and not isinstance(keys, NoKeys):
        what = "is missing: the backup's wrapped keys were taken away from it"
        hint = "Say where they are with --keys-from DIR, or restore all but payloads with --without-keys."
        raise Corrupted(str(backup.folder(KEYS)), what, hint=hint)
    if manifest.encrypted and lacks_keys:
        keys = NoKeys()  # nothing to open payloads with
    backup.check_files(without={KEYS} if lacks_keys else (), progress=lambda count: tell("checking files", count))
    if isinstance(where, DirectoryAddress):
        with restored_directory(backup, where.directory, keys=keys, actor=actor, progress=tell) as store:
            yield store
    else:
        from eventlog.backup.topic_target import restored_topic

        with restored_topic(backup, where, keys=keys, actor=actor, finish_it=finish, progress=tell) as store:
            yield store
