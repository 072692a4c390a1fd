"""Restoring a backup into an empty place: everything is verified, and what was erased since is erased again, before anybody can open it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from eventlog.address import DirectoryAddress, KafkaAddress, parse_address
from eventlog.backup.companions import KEYS
from eventlog.backup.directory_target import Restorer, restored_directory
from eventlog.backup.manifest import Backup, Manifest, read_backup
from eventlog.backup.record import record_restore
from eventlog.checkpoint import MAX_REASON, check_text
from eventlog.erasure.applying import Applied
from eventlog.erasure.carrying import carry_register, given_register
from eventlog.errors import Corrupted, InvalidRequest
from eventlog.privacy.principals import Operation, Principal, granted
from eventlog.privacy.providers import KeyProvider, NoKeys
from eventlog.store import CheckpointStore

Progress = Callable[[str, int], None]


class Restored(NamedTuple):
    """What a restore did."""

    address: str
    store_id: str
    manifest: Manifest
    erasures: Applied | None  # what applying the register did; None: there was none
    recorded: bool  # False: an encrypted store was restored without keys, and nothing can be written to it
    has_keys: bool  # whether the wrapped keys of an encrypted store were restored with it; without them payloads cannot be read


def restore(
    directory: Path,
    to: str | Path | DirectoryAddress | KafkaAddress,
    *,
    erasure_register: Path | None = None,
    without_register: str | None = None,
    keys: KeyProvider | None = None,
    keys_from: Path | None = None,
    actor: str | None = None,
    principal: Principal | None = None,
    reason: str | None = None,
    progress: Progress | None = None,
) -> Restored:
    """Makes a store of a backup, in a place where none is.

    Files, hashes, chains, rules and Merkle roots are checked before the store has its name. Killed at any instruction, it leaves nothing
    that opens as a store: it is started again from the beginning.

    Arguments:
        directory: the backup.
        to: a new or empty directory, or a topic that is not there; of the same kind as the backed-up store.
        erasure_register: the newest copy of the store's register, so that nothing comes back that was erased after the backup. Certificates
            that lie beside it go along.
        without_register: why there is none, 1 to 1,000 characters; recorded in the restored store. Exactly one of the two must be given.
        keys: of an encrypted store; None: where the store remembers that they are. `NoKeys()`: its payloads stay sealed.
        keys_from: the directory that the wrapped keys of an encrypted store were copied to, apart from its backup.
        actor: who restores, for the audit; the user's login name when None.
        principal: who restores, if it is not the local user, who may do everything.
        reason: of whoever restores, for the record of accesses.
        progress: called with what is going on and how far it is.

    Raises `NotAStore` (there is no backup), `Corrupted` (naming the file that is not as it was backed up, or what is wrong with what was
    restored), `ConfigurationError` (the place is taken, or the register is older than the backup), `InvalidRequest`, `AccessDenied`,
    `KeysUnavailable`, `StorageError` or `Unavailable`.
    """
    if principal is not None:
        granted(Operation.RESTORE, principal)
    if (erasure_register is None) == (without_register is None):
        what = "and a reason to do without it are both given"
        if erasure_register is None:
            what = "is not given: what was erased since the backup would be back"
        hint = "Give it with --erasure-register FILE; or say with --without-erasure-register REASON why there is none, which is recorded."
        raise InvalidRequest("erasure register", what, hint=hint)
    if without_register is not None:
        without_register = without_register.strip()
        check_text("without_register", without_register, MAX_REASON)
    backup = read_backup(directory, keys_from=keys_from)
    store_id = backup.manifest.anchor.store_id
    given = None if erasure_register is None else given_register(erasure_register, store_id, since=backup.manifest.register)
    who = Restorer(actor, principal, reason if without_register is None else without_register)
    erased = () if given is None else given.erased().keys()
    with restored_aside(backup, to, erased=erased, keys=keys, who=who, progress=progress) as store:
        applied = None if given is None else carry_register(given, store)
        recorded = record_restore(store, backup.manifest, erasures=applied, without_register=without_register)
        store_id = store.log.identity.store_id
    has_keys = backup.manifest.encrypted and not backup.lacks(KEYS)
    return Restored(str(parse_address(to)), store_id, backup.manifest, applied, recorded, has_keys)


@contextlib.contextmanager
def restored_aside(
    backup: Backup,
    to: str | Path | DirectoryAddress | KafkaAddress,
    *,
    erased: Collection[str],
    keys: KeyProvider | None,
    who: Restorer,
    finish: bool = True,
    progress: Progress | None = None,
) -> Iterator[CheckpointStore]:
    """The restored store, verified, while nobody else can open it. When the block ends without an error, anybody can.

    Arguments:
        erased: checkpoints whose payloads need not be restored, where they can be left out.
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
        what = "are not here: the wrapped data keys lie apart from the backup"
        hint = "Say where with --keys-from DIR, or restore all but payloads with --without-keys."
        raise Corrupted(str(backup.folder(KEYS)), what, hint=hint)
    if manifest.encrypted and lacks_keys:
        keys = NoKeys()  # nothing to open payloads with
    backup.check_files(without={KEYS} if lacks_keys else (), progress=lambda count: tell("checking files", count))
    if isinstance(where, DirectoryAddress):
        with restored_directory(backup, where.directory, keys=keys, who=who, progress=tell) as store:
            yield store
    else:
        from eventlog.backup.topic_target import restored_topic

        with restored_topic(backup, where, erased=erased, keys=keys, who=who, finish_it=finish, progress=tell) as store:
            yield store
