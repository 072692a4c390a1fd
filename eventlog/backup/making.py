"""Making a backup of a store while it is written to."""

from __future__ import annotations

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
from eventlog.errors import InvalidRequest
from eventlog.ids import EventId
from eventlog.store import CheckpointStore

Progress = Callable[[str, int], None]  # what is going on, and how far it is, in events, pages or bytes
CAN_BE_LEFT_OUT = (KEYS, PROJECTION, ACCESS, ARCHIVE)
_NEVER = (
    LeftOut("the tenants' keys", "they never are in a backup: without them no payload of an encrypted store can be read"),
    LeftOut("the erasure register", "it outlives backups: keep it elsewhere, and give it to `restore`"),
)


class _Copied(NamedTuple):
    anchor: Anchor
    key_source: str | None
    left_out: list[LeftOut]


def backup(store: CheckpointStore, directory: Path, *, without: Collection[str] = (), progress: Progress | None = None) -> Backup:
    """Copies a store into a new directory. Others read and write meanwhile; the backup is one moment of the log.

    Everything that anybody was told to be committed before the call is in it. It needs no keys: payloads of an encrypted store stay sealed.
    Killed at any instruction, it leaves nothing under the directory's name.

    Arguments:
        without: parts to be left out: `keys`, `projection`, `access` or `archive`.
        progress: called with what is going on and how far it is.

    Raises `InvalidRequest` (the store is opened for one tenant, or there is no such part), `ConfigurationError` (the directory is taken),
    `Corrupted` (an event of the log cannot be read, or the archive that a compacted log needs is not there), `Unavailable` or
    `StorageError`.
    """
    require_all_tenants(store)
    unknown = sorted(set(without) - set(CAN_BE_LEFT_OUT))
    if unknown:
        raise InvalidRequest("without", f"{unknown[0]!r} cannot be left out", hint=f"Parts are {', '.join(CAN_BE_LEFT_OUT)}.")
    tell = progress or (lambda _what, _reached: None)
    with draft_of(directory) as draft:
        copy = _copy_embedded if isinstance(store.log, EmbeddedLog) else _copy_topic
        copied = copy(store, draft, without, tell)
        manifest = Manifest(
            backup_id=str(EventId.new()),
            kind=store.log.kind,
            anchor=copied.anchor,
            encrypted=store.log.identity.encrypted,
            key_source=copied.key_source,
            events=sum(head.size for head in copied.anchor.heads),
            taken_at=int(time.time() * 1000),
            versions=_versions(),
            files=files_below(draft, progress=lambda count: tell("hashing", count)),
            left_out=(*copied.left_out, *_NEVER),
        )
        (draft / MANIFEST).write_text(json.dumps(manifest.document(), indent=1))
    return Backup(directory, manifest)


def _copy_embedded(store: CheckpointStore, draft: Path, without: Collection[str], tell: Progress) -> _Copied:
    """The order matters: a projection must not be ahead of the log, and no event may lack its key, its access or its body."""
    log = store.log
    assert isinstance(log, EmbeddedLog)
    left_out: list[LeftOut] = []

    def copy_companions(these: list[Companion]) -> None:
        for each in these:
            if not each.is_there(store):
                continue
            if each.part in without:
                left_out.append(LeftOut(each.part, "left out on request"))
                continue
            tell(f"copying {each.part}", 0)
            (draft / each.part).mkdir()
            each.copy(store, draft / each.part)

    copy_companions([each for each in COMPANIONS if each.before_log])
    (draft / LOG).mkdir()
    copied = draft / LOG / LOG_FILE
    copy_database(log.directory / LOG_FILE, copied, progress=lambda done, _: tell("copying log", done))
    copy_companions([each for each in COMPANIONS if not each.before_log])
    tell("reading log", 0)
    return _Copied(anchor_of(log.identity, records_in(copied)), log.key_source, left_out)


def _copy_topic(store: CheckpointStore, draft: Path, without: Collection[str], tell: Progress) -> _Copied:
    """The log as sealed segments. The keys after it: each is there before its first event is."""
    from eventlog.backup.topic_target import KEY_RECORDS
    from eventlog.kafka.keys_record import encode
    from eventlog.kafka.log import KafkaLog

    log = store.log
    assert isinstance(log, KafkaLog)
    archive = Archive(directory=draft / LOG)
    (draft / LOG).mkdir()
    seal_unarchived(store, archive, progress=lambda count: tell("copying log", count))
    left_out = [LeftOut(PROJECTION, "a restored topic has other offsets; it is made anew from the log")]
    if quarantined := len(store.catalog.quarantined()):
        left_out.append(LeftOut("quarantined records", f"of {quarantined} checkpoints: they are no events of the store"))
    if log.key_source is not None and KEYS in without:
        left_out.append(LeftOut(KEYS, "left out on request"))
    elif log.key_source is not None:
        tell("copying keys", 0)
        (draft / KEYS).mkdir()
        with (draft / KEYS / KEY_RECORDS).open("wb") as file:
            file.writelines(encode(key) + b"\n" for key in log.open_keys().all())
    tell("reading log", 0)
    return _Copied(anchor_of(log.identity, archived_records(archive)), log.key_source, left_out)


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    from eventlog import __version__

    return {
        "eventlog": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{name: version(name) for name in ("duckdb", "cryptography", "kafka-python")},
    }
