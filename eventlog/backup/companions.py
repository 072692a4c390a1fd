"""What a store consists of besides its log, one entry a thing: how it is copied into a backup, and how it is put back.

Whatever a store keeps in a new place gets an entry here, or it is not in its backups.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from eventlog.archive.directory import Archive
from eventlog.archive.remembered import remember, remembered
from eventlog.backup.database_copy import copy_database
from eventlog.embedded import EmbeddedLog
from eventlog.embedded_files import ACCESS_FILE, KEYS_FILE
from eventlog.errors import Corrupted, StorageError
from eventlog.projection_errors import translated
from eventlog.projection_files import PROJECTION_FILE
from eventlog.store import CheckpointStore
from projections.snapshot import export

LOG = "log"
KEYS = "keys"
ARCHIVE = "archive"
PROJECTION = "projection"
ACCESS = "access"


class Companion(NamedTuple):
    """One thing beside an embedded log. `part` is its folder in a backup, and what it is called when it is left out.

    `copy` gets the store and the folder, `put_back` the folder and the directory of the store that is being made.
    """

    part: str
    is_there: Callable[[CheckpointStore], bool]
    copy: Callable[[CheckpointStore, Path], None]
    put_back: Callable[[Path, Path], None]
    before_log: bool = False  # what must not be ahead of the log; all others must not be behind it


def _database(part: str, name: str) -> Companion:
    """A SQLite file in the store's directory."""
    return Companion(
        part,
        lambda store: (store.log.directory / name).exists(),
        lambda store, folder: copy_database(store.log.directory / name, folder / name),
        lambda folder, directory: copy_file(folder / name, directory / name),
    )


def _has_projection(store: CheckpointStore) -> bool:
    return (store.log.directory / PROJECTION_FILE).exists()


def _copy_projection(store: CheckpointStore, folder: Path) -> None:
    with translated(store.log.directory):
        export(store.catalog.projection(), folder / PROJECTION_FILE)


def _copy_accesses(store: CheckpointStore, folder: Path) -> None:
    if store.recorder is not None:
        store.recorder.flush()
    copy_database(store.log.directory / ACCESS_FILE, folder / ACCESS_FILE)


def _has_moved_bodies(store: CheckpointStore) -> bool:
    """Whether the log needs its archive: without it a compacted one has not all bodies."""
    return isinstance(store.log, EmbeddedLog) and store.log.is_compacted()


def _copy_archive(store: CheckpointStore, folder: Path) -> None:
    source = remembered(store.log.directory)
    if source is None or not Archive(directory=source).partitions():
        hint = "Say where it is with `eventlog archive run --to DIR`, or leave it out with --without archive."
        what = f"the archive {source} is not there, and bodies of this log are in it only"
        raise Corrupted(str(store.log.directory), what, hint=hint)
    for partition in Archive(directory=source).partitions():
        (folder / str(partition)).mkdir(parents=True)
        for segment in Archive(directory=source).segments(partition):
            segment.check_file()
            for file in (segment.path, segment.path.with_suffix(".json")):
                copy_file(file, folder / str(partition) / file.name)


def _put_archive_back(folder: Path, directory: Path) -> None:
    shutil.copytree(folder, directory / ARCHIVE)
    remember(directory, directory / ARCHIVE)


COMPANIONS = (
    Companion(
        PROJECTION,
        _has_projection,
        _copy_projection,
        lambda folder, directory: copy_file(folder / PROJECTION_FILE, directory / PROJECTION_FILE),
        before_log=True,
    ),
    _database(KEYS, KEYS_FILE),
    _database(ACCESS, ACCESS_FILE)._replace(copy=_copy_accesses),
    Companion(ARCHIVE, _has_moved_bodies, _copy_archive, _put_archive_back),
)


def copy_file(source: Path, target: Path) -> None:
    """Copies a file that nobody writes to. Raises `StorageError`."""
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise StorageError(str(error.filename or source), f"cannot be copied: {error.strerror}") from error
