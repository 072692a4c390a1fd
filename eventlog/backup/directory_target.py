"""A backup of an embedded store restored into a directory."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from eventlog.archive.directory import Archive
from eventlog.archive.remembered import remember
from eventlog.backup.companions import ACCESS, ARCHIVE, COMPANIONS, KEYS, LOG, PROJECTION, copy_file
from eventlog.backup.draft import draft_of
from eventlog.backup.manifest import Backup
from eventlog.embedded_files import KEYS_FILE, LOG_FILE, translate
from eventlog.errors import Corrupted
from eventlog.opening import open_store
from eventlog.privacy.access_embedded import create_access_file
from eventlog.privacy.access_log import AccessMode
from eventlog.privacy.embedded_keys import create_keys
from eventlog.privacy.guard import Access
from eventlog.privacy.principals import Operation, Principal
from eventlog.privacy.providers import KeyProvider
from eventlog.store import CheckpointStore
from eventlog.verification import verify

HINT = "Use another backup, or another copy of this one."


class Restorer(NamedTuple):
    """Who restores, for the audit of the restored store."""

    actor: str | None = None
    principal: Principal | None = None  # None: the local user
    reason: str | None = None


@contextlib.contextmanager
def restored_directory(
    backup: Backup, target: Path, *, keys: KeyProvider | None, who: Restorer, progress: Callable[[str, int], None]
) -> Iterator[CheckpointStore]:
    """The restored store, open, verified, and where nobody else looks for it. It gets its name when the block ends without an error."""
    with draft_of(target) as draft:
        _put_back(backup, draft, progress)
        with (
            open_store(draft, keys=keys, actor=who.actor, principal=who.principal, reason=who.reason) as opened,
            opened.entrusted(Operation.RESTORE, Access(Operation.RESTORE, target=str(backup.directory))) as store,
        ):
            require_as_backed_up(store, backup, progress, archive=Archive(directory=draft / ARCHIVE))
            yield store
        if (draft / ARCHIVE).exists():
            remember(draft, target.absolute() / ARCHIVE)


def require_as_backed_up(
    store: CheckpointStore, backup: Backup, progress: Callable[[str, int], None], *, archive: Archive | None = None
) -> None:
    """Raises `Corrupted` unless a store holds exactly the backed-up events, each of them whole, each chain unbroken."""
    kept = archive if archive is not None and archive.partitions() else None
    identity = store.log.identity
    anchor = backup.manifest.anchor._replace(store_id=identity.store_id, partitions=identity.partitions)
    found = verify(store, anchor=anchor, archive=kept, progress=lambda count: progress("verifying", count))
    place = str(backup.directory)
    if not found.is_clean:
        first = found.faults[0]
        problem = f"{found.fault_counts.total()} faults in what was restored, the first: {first.position or 'as a whole'}: {first.problem}"
        raise Corrupted(place, problem, hint=HINT)
    if found.events != backup.manifest.events:
        raise Corrupted(place, f"{found.events} events were restored where {backup.manifest.events} were backed up", hint=HINT)


def _put_back(backup: Backup, draft: Path, progress: Callable[[str, int], None]) -> None:
    log = next(iter(backup.manifest.files_of(LOG)), None)
    if log is None or log.name != f"{LOG}/{LOG_FILE}":
        raise Corrupted(str(backup.directory), "names no log in its manifest", hint=HINT)
    progress("copying log", 0)
    copy_file(backup.path(log), draft / LOG_FILE)
    records_accesses = backup.manifest.access != AccessMode.OFF
    for each in COMPANIONS:
        if backup.lacks(each.part) or (each.part == PROJECTION and backup.lacks(ACCESS) and records_accesses):
            continue  # a projection that has followed an access log belongs to that one
        progress(f"copying {each.part}", 0)
        each.put_back(backup.folder(each.part), draft)
    if backup.manifest.encrypted and backup.lacks(KEYS):
        _write_no_keys(draft, backup.manifest.anchor.store_id)
    if records_accesses and backup.lacks(ACCESS):
        create_access_file(draft)


def _write_no_keys(draft: Path, store_id: str) -> None:
    """Keys that were left out: everything but payloads can be read, and whoever has keys is told at once that these are not there."""
    try:
        create_keys(draft / KEYS_FILE, store_id)
    except sqlite3.Error as error:
        raise translate(error, draft / KEYS_FILE) from error
