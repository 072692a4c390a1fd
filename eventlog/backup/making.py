"""Making a backup of a store while it is written to."""

from __future__ import annotations

import contextlib
import json
import platform
import sqlite3
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from eventlog.archive.anchors import Anchor, anchor_of
from eventlog.archive.directory import Archive
from eventlog.archive.replay import archived_records
from eventlog.archive.running import require_all_tenants, seal_unarchived
from eventlog.backup.companions import ACCESS, ARCHIVE, COMPANIONS, KEYS, LOG, PROJECTION, Companion
from eventlog.backup.database_copy import copy_database, records_in
from eventlog.backup.draft import draft_of
from eventlog.backup.manifest import MANIFEST, Backup, LeftOut, Manifest, files_below
from eventlog.embedded import EmbeddedLog
from eventlog.embedded_files import LOG_FILE
from eventlog.erasure.carrying import RegisterMark
from eventlog.errors import InvalidRequest
from eventlog.ids import EventId
from eventlog.privacy.access_log import AccessMode
from eventlog.privacy.guard import Access
from eventlog.privacy.principals import Operation
from eventlog.store import CheckpointStore

Progress = Callable[[str, int], None]  # what is going on, and how far it is, in events, pages or bytes
CAN_BE_LEFT_OUT = (KEYS, PROJECTION, ACCESS, ARCHIVE)
_NEVER = (
    LeftOut("the tenants' keys", "they never are in a backup: without them no payload of an encrypted store can be read"),
    LeftOut("the erasure register", "it outlives backups: keep it elsewhere, and give it to `restore`"),
)


class _Target(NamedTuple):
    """Where the copy of a store goes."""

    draft: Path
    keys: Path | None  # the draft of the keys' own directory
    without: frozenset[str]
    tell: Progress
    left_out: list[LeftOut]

    def folder(self, part: str) -> Path | None:
        """The new folder of a part; None: it is left out, which is noted."""
        if part in self.without:
            self.left_out.append(LeftOut(part, "left out on request"))
            return None
        self.tell(f"copying {part}", 0)
        folder = self.keys if part == KEYS else self.draft / part
        assert folder is not None
        folder.mkdir(exist_ok=True)
        return folder


class _Copied(NamedTuple):
    anchor: Anchor
    key_source: str | None
    access: AccessMode


def backup(
    store: CheckpointStore, directory: Path, *, keys_to: Path | None = None, without: Collection[str] = (), progress: Progress | None = None
) -> Backup:
    """Copies a store into a new directory. Others read and write meanwhile; the backup is one moment of the log.

    Everything that anybody was told to be committed before the call is in it. It needs no keys: payloads of an encrypted store stay sealed.
    Killed at any instruction, it leaves nothing under the directory's name.

    Arguments:
        keys_to: a new directory for the wrapped data keys of an encrypted store: they are never in the backup's own.
        without: parts to be left out: `keys`, `projection`, `access` or `archive`.
        progress: called with what is going on and how far it is.

    Raises `InvalidRequest` (the store is opened for one tenant, there is no such part, or nothing says what becomes of the keys),
    `ConfigurationError` (a directory is taken), `Corrupted` (an event of the log cannot be read, or the archive that a compacted log needs
    is not there), `AccessDenied`, `AuditUnavailable`, `Unavailable` or `StorageError`.
    """
    unknown = sorted(set(without) - set(CAN_BE_LEFT_OUT))
    if unknown:
        raise InvalidRequest("without", f"{unknown[0]!r} cannot be left out", hint=f"Parts are {', '.join(CAN_BE_LEFT_OUT)}.")
    with store.entrusted(Operation.BACKUP, Access(Operation.BACKUP, target=str(directory))) as whole:
        require_all_tenants(whole)
        _check_keys_to(keys_to, directory, wanted=whole.log.identity.encrypted and KEYS not in without)
        with contextlib.ExitStack() as drafts:
            draft = drafts.enter_context(draft_of(directory))
            keys = None if keys_to is None else drafts.enter_context(draft_of(keys_to))  # gets its name just before the backup does
            target = _Target(draft, keys, frozenset(without), progress or (lambda _what, _reached: None), [])
            manifest = _copied_to(target, whole)
        return Backup(directory, manifest, keys_to)


def _check_keys_to(keys_to: Path | None, directory: Path, *, wanted: bool) -> None:
    if wanted and keys_to is None:
        hint = "Name a directory for them with --keys-to DIR, apart from the backup, or leave them out with --without-keys."
        raise InvalidRequest("keys_to", "is not given, and the store's wrapped data keys are not kept with its backup", hint=hint)
    if keys_to is not None and not wanted:
        raise InvalidRequest("keys_to", "is given where there are no keys to copy", hint="Leave --keys-to out.")
    if keys_to is not None and keys_to.absolute().is_relative_to(directory.absolute()):
        raise InvalidRequest("keys_to", f"{keys_to} is in the backup's own directory", hint="Name a directory apart from it.")


def _copied_to(target: _Target, store: CheckpointStore) -> Manifest:
    register = RegisterMark.of(store)  # first: what is erased while this runs, a restore is told by a longer register
    copied = _copy_embedded(store, target) if isinstance(store.log, EmbeddedLog) else _copy_topic(store, target)
    files = files_below(target.draft, progress=lambda count: target.tell("hashing", count))
    manifest = Manifest(
        backup_id=str(EventId.new()),
        kind=store.log.kind,
        anchor=copied.anchor,
        encrypted=store.log.identity.encrypted,
        key_source=copied.key_source,
        access=copied.access.value,
        register=register,
        events=sum(head.size for head in copied.anchor.heads),
        taken_at=int(time.time() * 1000),
        versions=_versions(),
        files=files if target.keys is None else files + files_below(target.keys, part=KEYS),
        left_out=(*target.left_out, *_NEVER),
    )
    (target.draft / MANIFEST).write_text(json.dumps(manifest.document(), indent=1))
    return manifest


def _copy_embedded(store: CheckpointStore, target: _Target) -> _Copied:
    """The order matters: a projection must not be ahead of the log, and no event may lack its key, its access or its body."""
    log = store.log
    assert isinstance(log, EmbeddedLog)

    def copy_companions(these: list[Companion]) -> None:
        for each in these:
            folder = target.folder(each.part) if each.is_there(store) else None
            if folder is not None:
                each.copy(store, folder)

    copy_companions([each for each in COMPANIONS if each.before_log])
    (target.draft / LOG).mkdir()
    copied = target.draft / LOG / LOG_FILE
    copy_database(log.directory / LOG_FILE, copied, progress=lambda done, _: target.tell("copying log", done))
    copy_companions([each for each in COMPANIONS if not each.before_log])
    target.tell("reading log", 0)
    return _Copied(anchor_of(log.identity, records_in(copied)), log.key_source, AccessMode(log.access or AccessMode.OFF))


def _copy_topic(store: CheckpointStore, target: _Target) -> _Copied:
    """The log as sealed segments. Keys and accesses after it: each is there before the event that it belongs to."""
    from eventlog.backup.topic_companions import access_topic, copy_accesses, copy_keys
    from eventlog.kafka.log import KafkaLog

    log = store.log
    assert isinstance(log, KafkaLog)
    archive = Archive(directory=target.draft / LOG)
    archive.directory.mkdir()
    seal_unarchived(store, archive, progress=lambda count: target.tell("copying log", count))
    target.left_out.append(LeftOut(PROJECTION, "a restored topic has other offsets; it is made anew from the log"))
    if quarantined := len(store.catalog.quarantined()):
        target.left_out.append(LeftOut("quarantined records", f"of {quarantined} checkpoints: they are no events of the store"))
    if log.key_source is not None and (folder := target.folder(KEYS)) is not None:
        copy_keys(log.open_keys(), folder)
    with access_topic(log.address) as (accesses, mode):
        if accesses is not None and (folder := target.folder(ACCESS)) is not None:
            if store.recorder is not None:
                store.recorder.flush()
            copy_accesses(accesses, folder)
    target.tell("reading log", 0)
    return _Copied(anchor_of(log.identity, archived_records(archive)), log.key_source, mode)


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    from eventlog import __version__

    return {
        "eventlog": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{name: version(name) for name in ("duckdb", "cryptography", "kafka-python")},
    }
