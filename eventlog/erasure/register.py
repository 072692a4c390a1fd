"""The register of erasures: which checkpoints were erased, whatever backup of the store is put back.

A file of lines, each a JSON object that names the hash of the one before. It holds ids and hashes only, is appended to and flushed, and
stays out of backups: it must outlive them. `erased` lines come before anything is destroyed, `certified` ones behind the certificate.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eventlog.errors import Busy, Corrupted, StorageError
from projections.durable import fsync_directory

REGISTER_FILE = "erasures.jsonl"
CERTIFICATES = "certificates"  # beside it: what the register has the hashes of
_NOTHING = "0" * 64
_HINT = "Put the register back from a copy of it. Without it nothing shows what an older backup must not bring back."


class Erased(NamedTuple):
    """The end of an erased checkpoint, as it stood when it was registered."""

    last_revision: int
    hash: str  # of its DELETED event


class Entry(NamedTuple):
    """A line of the register."""

    number: int
    store_id: str
    at: int  # milliseconds since 1970 UTC
    kind: str  # erased | certified | gone (on Kafka: the topic has compacted the records away) | adopted (of what this was restored from)
    erasure: str  # its id; of `adopted` the hash of the other register's last line
    checkpoints: dict[str, Erased]  # of `erased` and `adopted`
    certificate: str | None  # of `certified` and `gone`: the certificate's seal
    previous: str
    hash: str


class Register:
    """A register in a file. Reads what is there each time that it is asked."""

    def __init__(self, *, path: Path, store_id: str) -> None:
        self.path = path
        self._store_id = store_id

    @property
    def certificates(self) -> Path:
        """The directory of the certificates."""
        return self.path.parent / CERTIFICATES

    def entries(self) -> list[Entry]:
        """All lines, each held against its hash and the one before. Raises `Corrupted`, `StorageError`."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(str(self.path), f"cannot be read: {error.strerror}") from error
        found: list[Entry] = []
        for line in data.split(b"\n")[:-1]:  # what has no end of line is of a process that died before anything rested on it
            found.append(self._parsed(line, found[-1].hash if found else _NOTHING, len(found)))
        return found

    def erased(self) -> dict[str, Erased]:
        """Every checkpoint that was erased, or that an erasure has begun with."""
        return {key: each for entry in self.entries() for key, each in entry.checkpoints.items()}

    def open_erasures(self) -> list[Entry]:
        """The `erased` lines with a checkpoint that no certificate speaks of yet."""
        entries = self.entries()
        finished = {entry.erasure for entry in entries if entry.kind == "certified"}
        certified = {key for entry in entries if entry.erasure in finished for key in entry.checkpoints}
        return [entry for entry in entries if entry.kind == "erased" and not entry.checkpoints.keys() <= certified]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Held for the length of an erasure. Raises `Busy` when another one is under way, `StorageError`."""
        try:
            handle = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StorageError(str(self.path), f"cannot be written: {error.strerror}") from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Busy(str(self.path), "another erasure is under way", hint="Wait for it to end, then start this one again.") from error
            yield
        finally:
            os.close(handle)

    def append(self, kind: str, erasure: str, *, checkpoints: Mapping[str, Erased] | None = None, certificate: str | None = None) -> Entry:
        """One more line, for whoever holds the lock; durable when it returns. Raises `Corrupted`, `StorageError`."""
        before = self.entries()
        previous = before[-1].hash if before else _NOTHING
        content = {
            "number": len(before),
            "store_id": self._store_id,
            "at": time.time_ns() // 1_000_000,
            "kind": kind,
            "erasure": erasure,
            "checkpoints": {key: list(each) for key, each in (checkpoints or {}).items()},
            "certificate": certificate,
            "previous": previous,
        }
        line = _canonical({**content, "hash": _hash(content)}) + b"\n"
        try:
            with self.path.open("ab") as file:
                file.truncate(_whole(self.path))
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            fsync_directory(self.path.parent)
        except OSError as error:
            raise StorageError(str(self.path), f"cannot be written: {error.strerror}") from error
        return self._parsed(line[:-1], previous, len(before))

    def _parsed(self, line: bytes, previous: str, number: int) -> Entry:
        try:
            content = json.loads(line)
            digest = content.pop("hash")
            checkpoints = {key: Erased(int(each[0]), str(each[1])) for key, each in content["checkpoints"].items()}
            entry = Entry(**{**content, "checkpoints": checkpoints}, hash=digest)
        except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
            raise Corrupted(str(self.path), f"line {number + 1} is none of a register: {error!r}", hint=_HINT) from error
        if digest != _hash(content) or (entry.previous, entry.number) != (previous, number):
            raise Corrupted(str(self.path), f"line {number + 1} was changed, or does not continue the one before", hint=_HINT)
        if entry.store_id != self._store_id:
            raise Corrupted(str(self.path), f"line {number + 1} is of another store, {entry.store_id}", hint=_HINT)
        return entry


def register_of(directory: Path, store_id: str) -> Register:
    """The register of the store that keeps its state in a directory."""
    return Register(path=directory / REGISTER_FILE, store_id=store_id)


def _canonical(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _hash(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(b"eventlog erasure 1\n" + _canonical(content)).hexdigest()


def _whole(path: Path) -> int:
    """Bytes up to the end of the last whole line."""
    return path.read_bytes().rfind(b"\n") + 1
