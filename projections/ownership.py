"""One owning process per projection file.

DuckDB's own lock is a POSIX record lock: it is lost, silently, when the owning process closes any descriptor of the file. An flock
on a side file that nobody else has a reason to open does not have that weakness, and it can say who holds it.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from projections.errors import ProjectionLocked


class Ownership:
    """An exclusive flock on `<path>.lock`, with the owner's process id as its content.

    The lock file is never removed: a process that had opened it just before would then hold a lock on nothing.
    """

    def __init__(self, *, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the lock. Raises `ProjectionLocked` naming the owner; a second `Projection` in this process is refused alike."""
        descriptor = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise ProjectionLocked(self._path, owner) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
