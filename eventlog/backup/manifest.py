"""What a backup says of itself: whose it is, up to where, which files, and what is not in it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, Self

from eventlog.archive.anchors import Anchor
from eventlog.archive.sealing import open_sealed, seal
from eventlog.erasure.carrying import RegisterMark
from eventlog.errors import CheckpointError, Corrupted, NotAStore, StorageError
from eventlog.privacy.access_log import AccessMode

FORMAT_VERSION = 1
MANIFEST = "backup.json"
_CHUNK = 1 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}").fullmatch
_HINT = "Take the file from another copy of this backup, or use another backup."


class BackupFile(NamedTuple):
    """A file of a backup. `name` is its path in the backup, with `/`; its first part says what it belongs to."""

    name: str
    bytes: int
    sha256: str

    @property
    def part(self) -> str:
        return PurePosixPath(self.name).parts[0]


class LeftOut(NamedTuple):
    """Something of the store that is not in the backup, and why."""

    what: str
    why: str


class Manifest(NamedTuple):
    """The sealed content of a backup's manifest."""

    backup_id: str
    kind: str  # of the log: embedded or kafka
    anchor: Anchor  # store, partitions, position, and the head of each partition's Merkle tree
    encrypted: bool
    key_source: str | None  # where an encrypted store's keys are
    access: str  # how strictly the store records accesses: off, buffered or strict
    register: RegisterMark  # how far the erasure register was: the one that a restore is given must contain that
    events: int
    taken_at: int  # milliseconds since 1970 UTC, the clock of whoever took it
    versions: dict[str, str]
    files: tuple[BackupFile, ...]
    left_out: tuple[LeftOut, ...]

    def files_of(self, part: str) -> list[BackupFile]:
        """The files of a part; none: it is not in the backup."""
        return [file for file in self.files if file.part == part]

    def document(self) -> dict[str, Any]:
        """As it is written."""
        content = {
            "format_version": FORMAT_VERSION,
            **self._asdict(),
            "anchor": self.anchor.content(),
            "register": self.register._asdict(),
            "files": [file._asdict() for file in self.files],
            "left_out": [each._asdict() for each in self.left_out],
        }
        return seal(content, key=None)

    @classmethod
    def parse(cls, text: bytes, place: str) -> Self:
        """From the text of a document. Raises `Corrupted` or `SchemaMismatch`."""
        content = open_sealed(text, place, format_version=FORMAT_VERSION).content
        try:
            fields = {name: content[name] for name in cls._fields}
            anchor = Anchor.parse(json.dumps(seal(fields["anchor"], key=None)).encode(), place)
            files = tuple(BackupFile(**each) for each in fields["files"])
            left_out = tuple(LeftOut(**each) for each in fields["left_out"])
            if any(not _is_inside(file.name) or not _SHA256(file.sha256) for file in files):
                raise ValueError("a file is named in a way that no backup names it")
            register = RegisterMark(**fields["register"])
            AccessMode(fields["access"])
            return cls(**{**fields, "anchor": anchor, "register": register, "files": files, "left_out": left_out})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Corrupted(place, f"is no manifest of a backup: {error!r}") from error


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and len(path.parts) > 1 and ".." not in path.parts


class Backup(NamedTuple):
    """A backup as its directory has it. Its manifest was checked, its files were not."""

    directory: Path
    manifest: Manifest
    keys_from: Path | None = None  # where the part `keys` is, if it is not in the backup's directory

    def path(self, file: BackupFile) -> Path:
        """Where a file is."""
        if file.part == "keys" and self.keys_from is not None:
            return self.keys_from.joinpath(*PurePosixPath(file.name).parts[1:])
        return self.directory.joinpath(*PurePosixPath(file.name).parts)

    def folder(self, part: str) -> Path:
        """Where the files of a part are."""
        return self.keys_from if part == "keys" and self.keys_from is not None else self.directory / part

    def lacks(self, part: str) -> bool:
        """Whether a part is not in the backup, or was taken away from it."""
        files = self.manifest.files_of(part)
        return not files or not any(self.path(file).exists() for file in files)

    def check_files(self, *, without: Iterable[str] = (), progress: Callable[[int], None] | None = None) -> None:
        """Raises `Corrupted`, naming the first file that is missing or is not, byte for byte, the one that was backed up.

        Arguments:
            without: parts that are not looked at.
            progress: called with the number of bytes read so far.
        """
        done = 0
        for file in self.manifest.files:
            if file.part not in without:
                path = self.path(file)
                if sha256_of(path) != file.sha256:
                    raise Corrupted(str(path), "is not the file that was backed up: it was altered or damaged", hint=_HINT)
                done += file.bytes
                if progress is not None:
                    progress(done)


def read_backup(directory: Path, *, keys_from: Path | None = None) -> Backup:
    """The backup in a directory. Raises `NotAStore` when there is none, `Corrupted`, `SchemaMismatch` or `StorageError`."""
    path = directory / MANIFEST
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        hint = "Make one with `eventlog backup DIR`, or correct the path. A directory that ends in .part is one that was never finished."
        raise NotAStore(f"{directory} holds no backup", hint=hint) from error
    except OSError as error:
        raise StorageError(str(path), f"cannot be read: {error.strerror}") from error
    return Backup(directory, Manifest.parse(text, str(path)), keys_from)


def backups_in(directory: Path) -> list[Backup | CheckpointError]:
    """The backup in a directory, or those right below it, oldest first; and before them what is wrong with those that cannot be read."""
    if (directory / MANIFEST).exists():
        return [read_backup(directory)]
    try:
        folders = sorted(each.parent for each in directory.glob(f"*/{MANIFEST}") if not each.parent.name.endswith(".part"))
    except OSError as error:
        raise StorageError(str(directory), f"cannot be read: {error.strerror}") from error
    found: list[Backup | CheckpointError] = []
    for folder in folders:
        try:
            found.append(read_backup(folder))
        except CheckpointError as error:
            found.append(error)
    return sorted(found, key=lambda each: each.manifest.taken_at if isinstance(each, Backup) else 0)


def files_below(directory: Path, *, part: str = "", progress: Callable[[int], None] | None = None) -> tuple[BackupFile, ...]:
    """Every file below a directory, with its hash. `part`: what the directory is one of; else its folders are the parts."""
    found: list[BackupFile] = []
    done = 0
    for path in sorted(each for each in directory.rglob("*") if each.is_file()):
        size = path.stat().st_size
        found.append(BackupFile((PurePosixPath(part) / path.relative_to(directory)).as_posix(), size, sha256_of(path)))
        done += size
        if progress is not None:
            progress(done)
    return tuple(found)


def sha256_of(path: Path) -> str:
    """The hash of a file. Raises `Corrupted` when it is missing, `StorageError`."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except FileNotFoundError as error:
        raise Corrupted(str(path), "is missing", hint=_HINT) from error
    except OSError as error:
        raise StorageError(str(path), f"cannot be read: {error.strerror}") from error
    return digest.hexdigest()
