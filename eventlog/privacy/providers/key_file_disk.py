"""A small secret file: read only when nobody else may, made once, replaced whole."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from eventlog.privacy.providers.key_file_form import Unreadable

_MOST_BYTES = 1 << 20


def read(path: Path) -> bytes:
    """The file's bytes. Raises `Unreadable` when others may read it, `OSError`."""
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable("is not a file")
        if found.st_mode & 0o077:
            raise Unreadable(f"has mode {stat.S_IMODE(found.st_mode):04o}: others may use it", hint=f"chmod 600 {path}")
        return file.read(_MOST_BYTES)


def made_once(path: Path, data: bytes) -> None:
    """Makes the file, whole and durable, unless somebody else has: then theirs stays."""
    draft = _draft(path, data)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        _flush(path.parent)
    finally:
        os.unlink(draft)


def replaced(path: Path, data: bytes) -> None:
    """Puts other contents in the file's place, durably. Drafts of processes that died are removed: they hold keys."""
    for left in path.parent.glob(f".{path.name}.*.new"):
        left.unlink(missing_ok=True)
    os.replace(_draft(path, data), path)
    _flush(path.parent)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Held by one process at a time: by whoever replaces the file."""
    while True:
        handle = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if os.fstat(handle).st_ino == os.stat(path).st_ino:  # otherwise it was replaced meanwhile
                yield
                return
        finally:
            os.close(handle)


def _draft(path: Path, data: bytes) -> Path:
    draft = path.parent / f".{path.name}.{secrets.token_hex(8)}.new"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.fchmod(handle, 0o600)  # whatever the umask
        os.write(handle, data)
        os.fsync(handle)
    finally:
        os.close(handle)
    return draft


def _flush(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
