"""An archive's directory: which segments there are, whether they follow one another, and how one more gets there.

DIR/0/00000000000000000000-00000000000000000041.parquet    a segment of partition 0: its first and last offset
DIR/0/00000000000000000000-00000000000000000041.json       its manifest; a segment without one was never finished
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from eventlog.archive.manifest import Manifest, Sealed, follow_up_fault, parse_manifest
from eventlog.archive.sealing import seal
from eventlog.errors import Busy, ConfigurationError, Corrupted, NotAStore, StorageError
from eventlog.log import LogIdentity
from eventlog.position import Position
from projections.durable import make_directory, put_in_place

_NAME = re.compile(r"(\d{20})-(\d{20})\.json").fullmatch
_ORPHAN = re.compile(r"(\d{20})-\d{20}\.parquet").fullmatch
_DRAFT = ".new"
_LOCK = "lock"
_CHUNK = 1 << 20
MISSING_HINT = "Put the missing files back from a copy of the archive. Nothing goes on without them: a gap would be bridged."


class Segment(NamedTuple):
    """A segment as its directory has it. Its manifest was checked, its file was not."""

    path: Path  # of the Parquet file
    sealed: Sealed

    @property
    def manifest(self) -> Manifest:
        return self.sealed.manifest

    def check_file(self) -> None:
        """Raises `Corrupted` unless the file is, byte for byte, the one that the manifest speaks of."""
        digest = hashlib.sha256()
        try:
            with self.path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
        except FileNotFoundError as error:
            raise Corrupted(str(self.path), "is missing", hint=MISSING_HINT) from error
        except OSError as error:
            raise StorageError(str(self.path), f"cannot be read: {error.strerror}") from error
        if digest.hexdigest() != self.sealed.file_sha256:
            hint = "Put the original file back from a copy of the archive."
            raise Corrupted(str(self.path), "is not the file that its manifest speaks of: it was altered or damaged", hint=hint)


class Archive:
    """The segments under a directory. Reads what is there each time that it is asked; safe to share between threads."""

    def __init__(self, *, directory: Path, trusted: bytes | None = None) -> None:
        """`trusted`: the public key that every segment has to be signed by, if any."""
        self.directory = directory
        self._trusted = trusted

    def require(self) -> None:
        """Raises `NotAStore` when there is no archive."""
        if not self.partitions():
            raise NotAStore(
                f"{self.directory} holds no archive", hint="Make one with `eventlog archive run --to DIR`, or correct the path."
            )

    def require_of(self, identity: LogIdentity) -> None:
        """Raises `ConfigurationError` when there are segments of another log."""
        for partition in self.partitions():
            for segment in self.segments(partition)[:1]:
                found = segment.manifest
                if (found.store_id, found.partitions) != (identity.store_id, identity.partitions):
                    theirs = f"store {found.store_id} ({found.partitions} partitions)"
                    what = f"{self.directory} is the archive of {theirs}, not of {identity.store_id}"
                    raise ConfigurationError(what, hint="Give every store an archive directory of its own.")

    def partitions(self) -> list[int]:
        """The partitions that have a segment."""
        try:
            numbers = [int(each.name) for each in self.directory.iterdir() if each.name.isascii() and each.name.isdigit()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(str(self.directory), f"cannot be read: {error.strerror}") from error
        return sorted(number for number in numbers if self._names(number))

    def segments(self, partition: int) -> list[Segment]:
        """The segments of a partition in order. Raises `Corrupted`, naming the first that is missing, altered or out of order."""
        found: list[Segment] = []
        before: Sealed | None = None
        for name in self._names(partition):
            path = self._folder(partition) / name
            sealed = self._read(path)
            manifest = sealed.manifest
            if (manifest.partition, path.stem) != (partition, _stem(manifest)) or sealed.file != f"{path.stem}.parquet":
                raise Corrupted(str(path), f"is the manifest of {manifest.partition}/{_stem(manifest)}", hint=MISSING_HINT)
            if (fault := follow_up_fault(before, sealed)) is not None:
                raise Corrupted(str(path), fault, hint=MISSING_HINT)
            file = path.with_suffix(".parquet")
            if not file.exists():
                raise Corrupted(str(file), "is missing", hint=MISSING_HINT)
            found.append(Segment(file, sealed))
            before = sealed
        return found

    def last(self, partition: int) -> Segment | None:
        """The newest segment of a partition."""
        segments = self.segments(partition)
        return segments[-1] if segments else None

    def end(self) -> Position:
        """Just behind the newest archived event of each partition that has any."""
        ends = {number: last.manifest.last_offset + 1 for number in self.partitions() if (last := self.last(number)) is not None}
        return Position.of(ends)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Held by whoever writes. Raises `Busy` when somebody does already."""
        try:
            make_directory(self.directory)
            handle = os.open(self.directory / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StorageError(str(self.directory), f"cannot be made or written: {error.strerror}") from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Busy(str(self.directory), "another process is writing to this archive") from error
            yield
        finally:
            os.close(handle)

    def add(self, manifest: Manifest, write: Callable[[Path], None], *, key: Ed25519PrivateKey | None) -> Segment:
        """Puts one more segment in its place, for whoever holds the lock.

        `write` makes the Parquet file. It gets its name first, the manifest second: a file without a manifest is no segment yet.
        Raises `StorageError`.
        """
        folder = self._folder(manifest.partition)
        file, manifest_file = folder / f"{_stem(manifest)}.parquet", folder / f"{_stem(manifest)}.json"
        draft, manifest_draft = Path(f"{file}{_DRAFT}"), Path(f"{manifest_file}{_DRAFT}")
        try:
            make_directory(folder)
            self._remove_drafts(folder)
            write(draft)
            digest = hashlib.sha256(data := draft.read_bytes()).hexdigest()
            about = {"name": file.name, "bytes": len(data), "sha256": digest}
            manifest_draft.write_text(json.dumps({**seal(manifest.content(), key=key), "file": about}, indent=1))
            put_in_place(draft, file)
            put_in_place(manifest_draft, manifest_file)
            self._remove_orphans(folder, manifest)
        except OSError as error:
            raise StorageError(str(error.filename or folder), f"cannot be written: {error.strerror}") from error
        return Segment(file, self._read(manifest_file))

    def _read(self, path: Path) -> Sealed:
        try:
            text = path.read_bytes()
        except OSError as error:
            raise StorageError(str(path), f"cannot be read: {error.strerror}") from error
        return parse_manifest(text, str(path), trusted=self._trusted)

    def _folder(self, partition: int) -> Path:
        return self.directory / str(partition)

    def _names(self, partition: int) -> list[str]:
        try:
            return sorted(each.name for each in self._folder(partition).iterdir() if _NAME(each.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(str(self._folder(partition)), f"cannot be read: {error.strerror}") from error

    def _remove_drafts(self, folder: Path) -> None:
        """What a process left that was killed in `add`."""
        for left in folder.glob(f"*{_DRAFT}"):
            left.unlink()

    def _remove_orphans(self, folder: Path, manifest: Manifest) -> None:
        """Files that never got their manifest, once a finished segment holds their beginning: never before."""
        for each in folder.glob("*.parquet"):
            named = _ORPHAN(each.name)
            if named and int(named[1]) <= manifest.last_offset and not each.with_suffix(".json").exists():
                each.unlink()


def _stem(manifest: Manifest) -> str:
    return f"{manifest.first_offset:020d}-{manifest.last_offset:020d}"
